"""A stream that is to be killed: python stream_program.py EVENTS CHECKPOINT OUT ROWS_PER_BATCH."""

from __future__ import annotations

import sys

from tests.spark.faults.trips import QUERY

import whimbrel as wb
from whimbrel.spark import local_session
from whimbrel.spark.sinks import start
from whimbrel.spark.sources import read_replay


def main() -> None:
    events, checkpoint, out, rows = sys.argv[1:]
    spark = local_session("killed", cores=2, settings={"spark.sql.shuffle.partitions": "2"})
    live = read_replay(spark, events, rows_per_batch=int(rows), cache=f"{checkpoint}-replay")
    found = wb.detect(wb.compile(QUERY), live, shards=4)
    start(found, f"folder:{out}?format=parquet", checkpoint=checkpoint, available_now=True).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
