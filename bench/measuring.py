"""What the benchmarks of the embedded engine measure with."""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import psutil
import pyarrow as pa

import whimbrel as wb


def sequence_line(what: str, text: str, events: pa.Table, options: argparse.Namespace) -> str:
    """Measure one query over a table, and one NumPy pass over the table's columns."""
    query = wb.compile(text)
    wb.detect(query, events.slice(0, 100_000))
    found = wb.detect(query, events).num_rows
    spent = median(lambda: wb.detect(query, events), options.repeat)
    one_pass = median(lambda: numpy_pass(events), options.repeat)
    rate = events.num_rows / spent / 1e6
    return (
        f"| {what} | {rate:.1f} M events/s ({found:,} detections) | {spent / one_pass:.1f} x one NumPy pass |"
    )


def numpy_pass(events: pa.Table) -> float:
    """Read every number of the table once."""
    total = 0.0
    for column in events.columns:
        for chunk in column.chunks:
            if pa.types.is_string(chunk.type):
                total += float(np.frombuffer(chunk.buffers()[2], np.uint8).sum())
            else:
                values = chunk.indices if pa.types.is_dictionary(chunk.type) else chunk
                values = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
                total += float(values.to_numpy(zero_copy_only=False).sum())
    return total


class Peak:
    """The most memory that was seen, beyond what there was at the beginning."""

    most = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Watch the memory of this process from a thread."""
    process, peak, done = psutil.Process(), Peak(), threading.Event()
    before = process.memory_info().rss

    def look() -> None:
        peak.most = max(peak.most, process.memory_info().rss - before)

    def watch() -> None:
        while not done.wait(0.002):
            look()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        look()
        done.set()
        watcher.join()


def median(run: Callable[[], object], times: int, patience_s: float = float("inf")) -> float:
    """Give the median time of several runs, or of fewer if these have taken long enough."""
    spent: list[float] = []
    while len(spent) < times and (not spent or sum(spent) < patience_s):
        begin = time.perf_counter()
        run()
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent)
