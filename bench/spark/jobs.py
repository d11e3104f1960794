"""One measured Spark job in a process of its own: python jobs.py JOB CORES FOLDER REPEAT; prints JSON.

`batch` and `stream` are Whimbrel; `batch-ceiling` and `stream-ceiling` move the same data in the same way and
only count; `stream-by-object` is what one would write by hand: the pattern with state for each object.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming import StatefulProcessor

import whimbrel as wb
from whimbrel.graph.operators.source import SOURCE
from whimbrel.graph.sharding import ByKeys
from whimbrel.spark import batch, local_session
from whimbrel.spark.packing import PACKED_SPARK, Packing, from_block, pack_partition

SEQUENCE = "define S detect A as a then B as b then C as c within 100 s group by source"
SHARDS = 16
COUNT = "rows long"


def main() -> None:
    job, cores, folder, repeat = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    settings = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": str(2 * cores)}
    spark = local_session(f"bench {job}", cores=cores, settings=settings)
    print(json.dumps(JOBS[job](spark, folder, repeat)))
    spark.stop()


# -- batch --------------------------------------------------------------------------------------------------


def run_batch(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    return repeated(lambda: wb.detect(query(), history(spark, folder)).count(), repeat)


def run_batch_all_rows(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    """Do the same without leaving rows out at the scan, as the ceiling has it."""
    return repeated(
        lambda: batch.outcomes(query(), history(spark, folder)).where("kind = 'detection'").count(), repeat
    )


def run_batch_ceiling(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    def job() -> int:
        frame = history(spark, folder).repartition("source").sortWithinPartitions("time")
        return frame.mapInArrow(count_rows, COUNT).agg(fn.sum("rows")).first()[0]

    return repeated(job, repeat)


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


def history(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder / "events"))


def query() -> wb.Query:
    return wb.compile(SEQUENCE)


def repeated(job: Callable[[], int], repeat: int) -> dict[str, Any]:
    """Run once to warm up, then as often as asked."""
    job()
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        rows = job()
        times.append(time.perf_counter() - began)
    return {"seconds": times, "rows": rows}


# -- streams ------------------------------------------------------------------------------------------------


def live(spark: SparkSession, folder: Path) -> DataFrame:
    schema = history(spark, folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))


def run_stream(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    return streamed(spark, folder, repeat, lambda frame: wb.detect(query(), frame, shards=SHARDS))


def run_stream_ceiling(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    packing = Packing(ByKeys((SOURCE,)), SHARDS, 0, columns=frozenset(), types=frozenset("ABC"))

    def job(frame: DataFrame) -> DataFrame:
        packed = frame.select("type", "time", "source").mapInArrow(pack_partition(packing), PACKED_SPARK)
        return packed.groupBy("shard").transformWithStateInPandas(Counting(), COUNT, "append", "none")

    return streamed(spark, folder, repeat, job)


class Counting(StatefulProcessor):
    """Counts the packed events, and keeps a small state as the engine does."""

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("state", "state binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803
        count = sum(from_block(bytes(block)).num_rows for each in rows for block in each["events"].dropna())
        self.state.get()
        self.state.update((bytes(30_000),))
        yield pd.DataFrame({"rows": [count]})

    def close(self) -> None:
        pass


def run_count_by_object(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    """Count with a state for each object."""
    return streamed(spark, folder, repeat, lambda frame: counted(frame, "source"))


def run_count_by_shard(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    """Count with a state for each shard, every event a row."""
    shard = fn.pmod(fn.hash("source"), fn.lit(SHARDS)).alias("shard")
    return streamed(spark, folder, repeat, lambda frame: counted(frame.select("*", shard), "shard"))


def counted(frame: DataFrame, key: str) -> DataFrame:
    return frame.groupBy(key).transformWithStateInPandas(CountingRows(), COUNT, "append", "none")


class CountingRows(StatefulProcessor):
    """Counts events that come as rows."""

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("state", "state long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803
        before, count = self.state.get(), sum(len(each) for each in rows)
        self.state.update(((before[0] if before else 0) + count,))
        yield pd.DataFrame({"rows": [count]})

    def close(self) -> None:
        pass


def run_stream_by_object(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    return streamed(
        spark,
        folder,
        repeat,
        lambda frame: frame.groupBy("source").transformWithStateInPandas(ByObject(), COUNT, "append", "none"),
    )


class ByObject(StatefulProcessor):
    """A then B then C within 100 s, with the open pairs of each object as its state: written by hand."""

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("state", "a array<long>, ab array<struct<a:long,b:long>>")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803
        known = self.state.get()
        firsts, pairs = (list(known[0]), [tuple(p) for p in known[1]]) if known is not None else ([], [])
        events = pd.concat(list(rows)).sort_values("time")
        found, within = 0, 100_000_000
        for kind, moment in zip(events["type"], events["time"].astype("int64") // 1000, strict=True):
            if kind == "C":
                pairs = [p for p in pairs if moment - p[0] <= within]
                found += len(pairs)
            elif kind == "B":
                firsts = [a for a in firsts if moment - a <= within]
                pairs += [(a, moment) for a in firsts]
            elif kind == "A":
                firsts.append(moment)
        self.state.update((firsts, pairs))
        yield pd.DataFrame({"rows": [found]})

    def close(self) -> None:
        pass


def streamed(
    spark: SparkSession, folder: Path, repeat: int, job: Callable[[DataFrame], DataFrame]
) -> dict[str, Any]:
    """Run a stream over all files, one a micro-batch; the first micro-batch of a run does not count."""
    times, rows, batches = [], 0, []
    for _ in range(repeat):
        checkpoint = folder / f"checkpoint-{uuid4().hex}"
        writer = (
            job(live(spark, folder)).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        )
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        progress = [each for each in running.recentProgress if each["numInputRows"]][1:]
        times.append(sum(each["durationMs"]["triggerExecution"] for each in progress) / 1000)
        rows = sum(each["numInputRows"] for each in progress)
        batches = [summary(each) for each in progress]
        rmtree(checkpoint)
    return {"seconds": times, "rows": rows, "batches": batches}


def summary(progress: Any) -> dict[str, Any]:
    observed = progress["observedMetrics"].get("whimbrel")
    state = progress["stateOperators"][0]
    return {
        "trigger_ms": progress["durationMs"]["triggerExecution"],
        "commit_ms": state["commitTimeMs"],
        "memory_bytes": state["memoryUsedBytes"],
        "state_bytes": observed.state_bytes if observed else None,
        "detections": observed.detections if observed else None,
    }


# -- latency ------------------------------------------------------------------------------------------------


def run_latency(spark: SparkSession, folder: Path, repeat: int) -> dict[str, Any]:
    """Put a hundred events at a time into a folder; measure until what they complete is in the sink."""
    place = folder / f"latency-{uuid4().hex}"
    (place / "in").mkdir(parents=True)
    arrived: dict[str, float] = {}

    def note(frame: DataFrame, _batch: int) -> None:
        for row in frame.select("events").collect():
            arrived[row.events[-1]] = time.perf_counter()

    frame = spark.readStream.schema("id string, type string, time timestamp, source string").parquet(
        str(place / "in")
    )
    found = wb.detect(query(), frame, shards=4)
    writer = found.writeStream.foreachBatch(note).option("checkpointLocation", str(place / "checkpoint"))
    running = writer.start()
    waits = []
    for number in range(repeat + 5):
        table = small_batch(number)
        hidden = place / f"in/.{number}"
        pq.write_table(table, hidden)
        began = time.perf_counter()
        hidden.rename(place / f"in/{number}.parquet")
        while f"{number}-c" not in arrived and time.perf_counter() < began + 60:
            time.sleep(0.002)
        waits.append(arrived[f"{number}-c"] - began)
    running.stop()
    rmtree(place)
    counted = sorted(waits[5:])
    return {
        "median": statistics.median(counted),
        "p99": counted[int(0.99 * (len(counted) - 1))],
        "n": len(counted),
    }


def small_batch(number: int) -> pa.Table:
    """Make A, B, C of one object, other events, and one a little later that lets time pass them."""
    base = 1_700_000_000_000_000 + number * 1_000_000
    kinds = ["A", "B", "C", *["D"] * 96, "D"]
    times = [base, base + 1, base + 2, *range(base + 3, base + 99), base + 999_000]
    ids = [f"{number}-a", f"{number}-b", f"{number}-c", *(f"{number}-{n}" for n in range(97))]
    return pa.table(
        {
            "id": ids,
            "type": kinds,
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "source": [f"car-{number}"] * 3 + [f"car-{n % 7}" for n in range(97)],
        }
    )


JOBS: dict[str, Callable[[SparkSession, Path, int], dict[str, Any]]] = {
    "batch": run_batch,
    "batch-all-rows": run_batch_all_rows,
    "batch-ceiling": run_batch_ceiling,
    "stream": run_stream,
    "stream-ceiling": run_stream_ceiling,
    "stream-by-object": run_stream_by_object,
    "count-by-object": run_count_by_object,
    "count-by-shard": run_count_by_shard,
    "latency": run_latency,
}


if __name__ == "__main__":
    main()
