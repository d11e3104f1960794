"""Measure mobile queries on Spark: a thousand of five thousand vehicles are followed; beside it, a self-join.

Every vehicle reports once a second on 7.7 x 3.5 km; in one of a hundred reports it stands, and that is what
is told, with the history of 30 minutes, of the square of 500 m around each vehicle that is followed. Traffic
of fewer seconds than that has less history: the table says how many deliveries there are. Nothing here
asserts a time, but all ways must tell the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

import whimbrel as wb
from whimbrel.graph.mobile import (
    BoxInterest,
    FocalObjects,
    MobilePolicy,
    MobileQuery,
    Refresh,
    RefreshAlways,
    RefreshWhenMoved,
)
from whimbrel.model.time import MINUTE
from whimbrel.spark import local_session

WIDTH_M, HEIGHT_M, SIDE_M = 7_700.0, 3_500.0, 500.0
STANDS = "define Stands(speed) detect Position(speed < 0.5) as p assign speed = p.speed"
SCHEMA = "id string, type string, time long, source string, x double, y double, speed double"
SQL = """
with updates as (
  select source as focal, time as start, x, y, lead(time) over (partition by source order by time) as end
  from events where source in (select source from followed)
)
select u.focal, u.start, u.x, u.y, e.id, e.time, e.x as at_x, e.y as at_y, e.speed, e.time >= u.start as live
from updates u join events e
  on e.speed < 0.5 and abs(e.x - u.x) <= {half} and abs(e.y - u.y) <= {half}
 and e.time >= u.start - 1800000000 and (u.end is null or e.time < u.end)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="seconds of traffic")
    parser.add_argument("--vehicles", type=int, default=5_000)
    parser.add_argument("--followed", type=int, default=1_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--micro-batch", type=int, default=10, help="seconds of traffic in a micro-batch")
    parser.add_argument("--folder", type=Path, default=Path("build/bench-mobile-spark"))
    parser.add_argument("--only", default="batch,stream,sql", help="which measurements")
    options = parser.parse_args()
    folder = options.folder.absolute() / f"{options.vehicles}x{options.seconds}"
    write_traffic(folder, options)
    settings = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": str(2 * options.cores)}
    spark = local_session("bench mobile", cores=options.cores, settings=settings)
    print("| way | deliveries | seconds | times real time | load before |\n|---|---|---|---|---|")
    told = {
        name: measured
        for name in options.only.split(",")
        for measured in [WAYS[name](spark, folder, options)]
    }
    spark.stop()
    if {"batch", "sql"} <= told.keys() and told["batch"] != told["sql"]:
        sys.exit(f"the ways differ: {told}")


def write_traffic(folder: Path, options: argparse.Namespace) -> None:
    """Write a file for each micro-batch: vehicles that drive along streets, and turn around at the border."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    count = options.vehicles
    place = rng.uniform(0, 1, (count, 2)) * (WIDTH_M, HEIGHT_M)
    along = rng.integers(0, 2, count)
    way = rng.choice((-1.0, 1.0), count)
    for part, first in enumerate(range(0, options.seconds, options.micro_batch)):
        tables = []
        for second in range(first, min(first + options.micro_batch, options.seconds)):
            speed = np.where(rng.random(count) < 0.01, 0.0, rng.uniform(5, 15, count))
            turns = rng.random(count) < 0.02
            along = np.where(turns, 1 - along, along)
            place[np.arange(count), along] += way * speed
            over = (place < 0) | (place > (WIDTH_M, HEIGHT_M))
            place = np.clip(place, 0, (WIDTH_M, HEIGHT_M))
            way = np.where(over.any(axis=1), -way, way)
            tables.append(reports(second, place, speed))
        path = folder / f"{part:04}.parquet"
        pq.write_table(pa.concat_tables(tables), path)
        os.utime(path, (1_700_000_000 + part,) * 2)


def reports(second: int, place: np.ndarray, speed: np.ndarray) -> pa.Table:
    """Write where all vehicles are in one second."""
    count = len(speed)
    vehicles = [f"v{number}" for number in range(count)]
    return pa.table(
        {
            "id": [f"{vehicle}-{second}" for vehicle in vehicles],
            "type": pa.repeat("Position", count),
            "time": pa.repeat(1_700_000_000_000_000 + second * 1_000_000, count),
            "source": vehicles,
            "x": place[:, 0].round(2),
            "y": place[:, 1].round(2),
            "speed": speed.round(2),
        }
    )


def following(refresh: Refresh, options: argparse.Namespace) -> MobileQuery:
    """Follow some of the vehicles."""
    keys = frozenset(f"v{number}" for number in range(options.followed))
    return MobileQuery(
        wb.compile(STANDS),
        FocalObjects("Position", only=keys),
        BoxInterest(SIDE_M, SIDE_M),
        30 * MINUTE,
        MobilePolicy(refresh),
    )


def batch(spark: SparkSession, folder: Path, options: argparse.Namespace) -> int:
    """Run over a static frame, refreshed when moved 50 m, and at every update."""
    events = spark.read.schema(SCHEMA).parquet(str(folder))
    counts = []
    for words, refresh in (("when moved 50 m", RefreshWhenMoved(50.0)), ("always", RefreshAlways())):
        query = following(refresh, options)
        wb.detect(query, events.where("time < 1700000003000000")).count()  # kernels and workers are there
        counts.append(
            timed(f"batch, refresh {words}", options, lambda query=query: written(wb.detect(query, events)))
        )
    return counts[-1]


def stream(spark: SparkSession, folder: Path, options: argparse.Namespace) -> int:
    """Run over the same files one by one, as micro-batches."""
    counts = []
    for words, refresh in (("when moved 50 m", RefreshWhenMoved(50.0)), ("always", RefreshAlways())):
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
        found = wb.detect(following(refresh, options), frame, shards=options.cores)
        counts.append(timed(f"stream, refresh {words}", options, lambda found=found: to_end(found, folder)))
    return counts[-1]


def to_end(found: DataFrame, folder: Path) -> int:
    """Count what a stream tells of all there is."""
    counts: list[int] = []
    checkpoint = folder.with_name(f"checkpoint-{uuid4().hex}")
    writer = found.writeStream.foreachBatch(lambda rows, _: counts.append(rows.count()))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    last = [each["observedMetrics"]["whimbrel"] for each in query.recentProgress if each["numInputRows"]]
    sizes = ", ".join(f"{each.state_bytes / 1e6:.1f}" for each in last)
    print(f"MB of state after each micro-batch: {sizes}", file=sys.stderr)
    rmtree(checkpoint)
    return sum(counts)


def sql(spark: SparkSession, folder: Path, options: argparse.Namespace) -> int:
    """Join events with themselves in Spark SQL, which can switch at every update only."""
    events = spark.read.schema(SCHEMA).parquet(str(folder))
    events.createOrReplaceTempView("events")
    spark.range(options.followed).selectExpr("concat('v', id) as source").createOrReplaceTempView("followed")
    query = SQL.format(half=SIDE_M / 2)
    spark.sql(query).limit(1).collect()
    return timed("self-join in Spark SQL, refresh always", options, lambda: written(spark.sql(query)))


def written(frame: DataFrame) -> int:
    """Make all rows with all columns, and count them."""
    seen = Observation()
    counted = frame.observe(seen, fn.count(fn.lit(1)).alias("rows"))
    counted.write.format("noop").mode("overwrite").save()
    return int(seen.get["rows"])


def timed(what: str, options: argparse.Namespace, run: Callable[[], int]) -> int:
    """Run and print a row of the table."""
    load, began = os.getloadavg()[0], time.perf_counter()
    found = run()
    took = time.perf_counter() - began
    ratio = options.seconds / took
    print(f"| {what} | {found:,} | {took:.1f} | {ratio:.1f} | {load:.1f} |", flush=True)
    return found


WAYS = {"batch": batch, "stream": stream, "sql": sql}

if __name__ == "__main__":
    main()
