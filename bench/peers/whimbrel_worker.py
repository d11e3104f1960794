"""Run one query of Whimbrel again and again, as asked on standard input: embedded, or on Spark.

A line says how, whether `all` events or `some` to warm up, and the file for the matches or `-`. The answer is
`peer` with the seconds, or `unavailable` with a reason.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from cases import CASES, LATENESS
from steps import STEPS_CASES

import whimbrel as wb

BATCH = 100_000
"""Events that a session is given at once."""

Runner = Callable[[str, bool], tuple[float, pa.Table]]
"""Runs in the way named, over all events or (a warm-up) over the first few; gives seconds and detections."""


def main() -> None:
    """Say that all is ready, then answer line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("parquet", type=Path)
    parser.add_argument("parts", type=Path)
    parser.add_argument("first", type=Path)
    parser.add_argument("--spark", type=int, default=0, metavar="CORES")
    options = parser.parse_args()
    case = next(case for case in (*CASES, *STEPS_CASES) if case.name == options.case)
    query = case.compiled()
    try:
        run = on_spark(query, options) if options.spark else embedded(query, options)
    except (ImportError, NotImplementedError) as error:
        run = unavailable(f"{type(error).__name__}: {error}")
    print("peer ready", wb.__version__, flush=True)
    for line in iter(input_line, ""):
        how, share, out = line.split()
        try:
            spent, found = run(how, share == "some")
        except (ImportError, NotImplementedError) as error:
            print("unavailable", type(error).__name__, error, flush=True)
            continue
        if out != "-":
            pq.write_table(found.select(case.kept(found.column_names)), out)
        print("peer", spent, flush=True)


def input_line() -> str:
    """Give the next line of standard input, or nothing at its end."""
    try:
        return input()
    except EOFError:
        return ""


def unavailable(reason: str) -> Runner:
    """Give a runner that only says why there is none."""

    def run(how: str, is_warm_up: bool) -> tuple[float, pa.Table]:
        raise NotImplementedError(f"{how}: {reason}")

    return run


def embedded(query: wb.Query, options: argparse.Namespace) -> Runner:
    """Run in this process, on one core."""
    pa.set_cpu_count(1)
    table = pq.read_table(options.parquet)

    def run(how: str, is_warm_up: bool) -> tuple[float, pa.Table]:
        events = table.slice(0, BATCH) if is_warm_up else table
        begin = time.perf_counter()
        if how == "session":
            session = wb.Session(query, lateness=f"{LATENESS} ms")
            found = [session.push(batch) for batch in events.to_batches(max_chunksize=BATCH)]
            detections = pa.concat_tables([*found, session.close()], promote_options="default")
        elif how == "parquet" and not is_warm_up:
            detections = wb.detect(query, options.parquet)
        else:
            detections = wb.detect(query, events)
        return time.perf_counter() - begin, detections

    return run


def on_spark(query: wb.Query, options: argparse.Namespace) -> Runner:
    """Run on Spark in local mode: `batch` over all files, `stream` over one file after the other."""
    from whimbrel.spark import detect, local_session

    spark = local_session("peers", cores=options.spark)
    schema = spark.read.parquet(str(options.parquet)).schema
    numbers = itertools.count()

    def batch(files: str) -> pa.Table:
        return detect(query, spark.read.schema(schema).parquet(files)).toArrow()

    def stream(files: str, checkpoint: str) -> pa.Table:
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
        found: list[pa.Table] = []
        running = (
            detect(query, frame, lateness=f"{LATENESS} ms")
            .writeStream.foreachBatch(lambda part, _: found.append(part.toArrow()))
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        running.awaitTermination()
        return pa.concat_tables(found, promote_options="default")

    def run(how: str, is_warm_up: bool) -> tuple[float, pa.Table]:
        files = str(options.first if is_warm_up else options.parts)
        checkpoint = tempfile.mkdtemp(prefix=f"peers-{next(numbers)}-")
        begin = time.perf_counter()
        detections = batch(files) if how == "batch" else stream(files, checkpoint)
        spent = time.perf_counter() - begin
        shutil.rmtree(checkpoint, ignore_errors=True)
        return spent, detections

    return run


if __name__ == "__main__":
    main()
