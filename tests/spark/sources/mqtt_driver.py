"""Write what comes from an MQTT broker to a folder: python mqtt_driver.py FOLDER PORT [until-done]."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows

from whimbrel.spark.session import local_session
from whimbrel.spark.sinks import FolderSink, start
from whimbrel.spark.sources import open_source


def main(folder: Path, port: str, until_done: bool) -> None:
    spark = local_session("whimbrel-mqtt-driver", cores=2)
    events = open_source(
        spark,
        f"mqtt://127.0.0.1:{port}/fleet/%23?spool={folder / 'spool'}&client_id=whimbrel-test"
        "&schema=id STRING, type STRING, time TIMESTAMP, n LONG, topic STRING",
    )
    found = events.select(
        "id",
        "type",
        F.col("time").alias("start"),
        F.col("time").alias("end"),
        F.lit(None).cast("binary").alias("geometry"),
        "n",
        F.array("id").alias("events"),
    )
    sink = FolderSink(str(folder / "found"), "json")
    query = start(found, sink, checkpoint=folder / "checkpoint", available_now=until_done)
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], len(sys.argv) > 3)
