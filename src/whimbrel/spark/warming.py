"""Kernels on Spark: compiled once on a machine, before its workers need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.warming import CompileWork, ready

_REPORT = "host STRING, compiled INT, kept INT, folders STRING"


def warm(spark: SparkSession, *queries: Query | Compilable, tasks: int = 32) -> pa.Table:
    """Compile ahead, on every executor, what queries need (none: all kinds); give what each task did.

    A task waits for what another one on its machine compiles, and finds what is there already. Spark does not
    promise that tasks reach every executor: ask for several times as many as there are cores.

    Parameters
    ----------
    tasks
        How many tasks do it.
    """
    needed = tuple(compiled(query) for query in queries)
    return spark.range(tasks).repartition(tasks).mapInArrow(_warm_up(needed), _REPORT).toArrow()


def _warm_up(queries: tuple[Query, ...]) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import socket

        from whimbrel.warming import warm as compile_ahead

        for _ in batches:
            pass
        done = compile_ahead(*queries)
        yield pa.RecordBatch.from_pydict(
            {
                "host": [socket.gethostname()],
                "compiled": pa.array([done.compiled], pa.int32()),
                "kept": pa.array([done.kept], pa.int32()),
                "folders": [", ".join(map(str, done.folders))],
            }
        )

    return run


def begin(query: Query, frame: DataFrame) -> CompileWork | None:
    """Begin to compile here what workers on this machine will need; None where they are on others."""
    return ready(query) if _is_local(frame.sparkSession) else None


def _is_local(spark: SparkSession) -> bool:
    return str(spark.conf.get("spark.master", "")).startswith("local")
