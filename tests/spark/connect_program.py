"""Whimbrel over Spark Connect: python connect_program.py FOLDER. Writes the result to FOLDER/result.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from tests.spark.frames import Folder
from tests.spark.test_live import BRAKES, EVENTS, ORDERS, driving, order

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.spark import detect_live, outcomes, read_events
from whimbrel.spark.errors import plain_errors
from whimbrel.spark.sinks import start


def main() -> None:
    folder = Path(sys.argv[1])
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    query, rows = wb.compile(BRAKES), driving(0, 200)
    frame = spark.createDataFrame(pd.DataFrame(rows))
    result = {
        "module": type(frame).__module__,
        "batch": [row.id for row in wb.detect(query, frame).collect()],
    }
    result["progress"] = outcomes(query, frame).where("kind = 'progress'").count()
    result["files"] = ids_of_files(spark, query, rows, folder)
    result["error"] = error_of_a_worker(frame)

    events, orders = Folder(spark, folder / "events", EVENTS), Folder(spark, folder / "orders", ORDERS)
    events.put(rows[:120])
    events.put(rows[120:])
    orders.put([order("add", "brakes", BRAKES)])
    result["stream"] = found(wb.detect(query, events.stream(), shards=2), folder / "stream")
    result["live"] = found(detect_live(events.stream(), orders.stream(), shards=2), folder / "live")
    (folder / "result.json").write_text(json.dumps(result))
    spark.stop()


def ids_of_files(spark, query, rows, folder: Path) -> list[str]:
    """Detect in files that Spark itself would not read, or not so."""
    written = pd.DataFrame(rows)
    moments = pd.to_datetime(written["time"], unit="s", utc=True).astype("datetime64[ns, UTC]")
    written.assign(time=moments)[:120].to_parquet(folder / "first.parquet")
    written[120:].to_csv(folder / "second.csv", index=False)
    apart = [read_events(spark, folder / name) for name in ("first.parquet", "second.csv")]
    both = read_events(spark, [folder / "first.parquet", folder / "second.csv"], schemas=query.schemas)
    assert [each.count() for each in apart] == [120, 80]
    return [row.id for row in wb.detect(query, both).collect()]


def error_of_a_worker(frame) -> str:
    """Let a worker raise an error of Whimbrel's, and tell what comes here."""

    def fail(batches):
        raise DataError("row 3 is bad; mend it")
        yield from batches

    try:
        with plain_errors():
            frame.mapInArrow(fail, frame.schema).collect()
    except DataError as error:
        return str(error)
    return "nothing was raised"


def found(frame, folder: Path) -> list[str]:
    """Write a stream to its end, and read what was written."""
    start(frame, f"folder:{folder}/found?format=parquet", checkpoint=folder / "checkpoint", available_now=True
          ).awaitTermination()  # fmt: skip
    session = frame.sparkSession
    return [
        row.id for row in session.read.schema(frame.schema).parquet(f"{folder}/found").select("id").collect()
    ]


if __name__ == "__main__":
    main()
