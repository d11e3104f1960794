"""Write what comes from an MQTT broker to a folder, without end: mqtt_driver.py FOLDER PORT."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.streaming.query import StreamingQuery

from whimbrel.spark.session import local_session
from whimbrel.spark.sinks import FolderSink, start
from whimbrel.spark.sources import open_source


def write_messages(
    spark: SparkSession, folder: Path, port: int, *, available_now: bool = False
) -> StreamingQuery:
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
    return start(found, sink, checkpoint=folder / "checkpoint", available_now=available_now)


if __name__ == "__main__":
    session = local_session("whimbrel-mqtt-driver", cores=1, settings={"spark.driver.memory": "1g"})
    write_messages(session, Path(sys.argv[1]), int(sys.argv[2])).awaitTermination()
