"""A batch and a stream on a cluster, a worker of which is killed half-way: python cluster_program.py FOLDER.

Writes what was found as JSON to FOLDER/result.json.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from tests.spark.faults.cluster import Cluster, running
from tests.spark.faults.trips import QUERY, write_events, written

import whimbrel as wb
from whimbrel.spark.session import ROCKSDB
from whimbrel.spark.sinks import start
from whimbrel.spark.sources import read_replay

BATCH_EVENTS, STREAM_EVENTS = 400_000, 8_000


def main() -> None:
    folder = Path(sys.argv[1])
    write_events(folder / "history.parquet", BATCH_EVENTS)
    write_events(folder / "live.parquet", STREAM_EVENTS)
    result = {}
    for name, run in (("batch", run_batch), ("stream", run_stream)):
        (folder / name).mkdir()
        with running(folder / name) as cluster:
            spark = session(cluster)
            try:
                result[name] = run(spark, cluster, folder)
            finally:
                spark.stop()
    (folder / "result.json").write_text(json.dumps(result))


def session(cluster: Cluster) -> SparkSession:
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "700m",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "6",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.network.timeout": "60s",
        "spark.executor.heartbeatInterval": "5s",
    }
    builder = SparkSession.builder.master(cluster.address).appName("to be hurt")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def run_batch(spark: SparkSession, cluster: Cluster, folder: Path) -> dict[str, Any]:
    """Kill a worker when some of the tasks are done and others are not."""
    frame = spark.read.parquet(str(folder / "history.parquet")).repartition(8)
    found: dict[str, Any] = {}
    worker = Thread(target=lambda: found.update(ids=_ids(wb.detect(wb.compile(QUERY), frame, partitions=12))))
    worker.start()
    done = _wait_for_tasks(spark, 10)
    cluster.kill("worker-0")
    worker.join(600)
    return {"ids": found.get("ids"), "killed_after": done}


def _ids(frame: DataFrame) -> list[str]:
    return sorted(row.id for row in frame.select("id").collect())


def _wait_for_tasks(spark: SparkSession, wanted: int) -> int:
    tracker, until = spark.sparkContext.statusTracker(), time.monotonic() + 300
    done = 0
    while time.monotonic() < until:
        stages = [
            s for job in tracker.getActiveJobsIds() for s in (tracker.getJobInfo(job) or _None).stageIds
        ]
        infos = [info for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
        done = sum(info.numCompletedTasks for info in infos)
        if done >= wanted:
            break
        time.sleep(0.02)
    return done


class _None:
    stageIds: tuple[int, ...] = ()  # noqa: N815, Spark's name


def run_stream(spark: SparkSession, cluster: Cluster, folder: Path) -> dict[str, Any]:
    """Kill a worker when some of the micro-batches are done."""
    live = read_replay(spark, str(folder / "live.parquet"), rows_per_batch=800, cache=str(folder / "replays"))
    found = wb.detect(wb.compile(QUERY), live, shards=6)
    query = start(
        found, f"folder:{folder}/found?format=parquet", checkpoint=folder / "checkpoint", available_now=True
    )
    until = time.monotonic() + 300
    while len(query.recentProgress) < 4 and query.isActive and time.monotonic() < until:
        time.sleep(0.05)
    done = len(query.recentProgress)
    cluster.kill("worker-0")
    query.awaitTermination(900)
    return {"ids": written(folder / "found"), "killed_after": done, "batches": len(query.recentProgress)}


if __name__ == "__main__":
    main()
