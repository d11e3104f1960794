"""Measure the embedded engine: throughput against a NumPy pass, many queries, loops, latency, memory.

Every figure comes with a ratio taken in the same run, because the machine's speed varies. Nothing here
asserts a time. `--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from explaining import explaining
from loops import combinations, long_streams
from measuring import median, peak_memory, sequence_line
from workloads import (
    CORRELATED,
    SEQUENCE,
    begun_query,
    dense_events,
    sequence_events,
    zone_events,
    zone_query,
)

import whimbrel as wb
from whimbrel.graph.passes import rewrite

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: made by `make bench ARGS=--write` -->", "<!-- end of figures -->"


def main() -> None:
    """Run the benchmarks that were asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000, help="events of the large workloads")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each measurement; the median counts")
    parser.add_argument("--only", default="abcdefghi", help="which measurements, e.g. 'ab'")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core
    pa.set_cpu_count(1)
    lines = ["| measurement | result | ratio in the same run |", "|---|---|---|"]
    for name in options.only:
        for line in MEASUREMENTS[name](options):
            print(line, file=sys.stderr)
            lines.append(line)
    table = "\n".join(lines)
    print(table)
    if options.write:
        write_docs(table, options)


def throughput(options: argparse.Namespace) -> Iterator[str]:
    """Measure (a): A then B then C within 100 s per object; with ids, and with nothing but those."""
    events = sequence_events(options.events)
    yield sequence_line("(a) A then B then C, 100 s, per object", SEQUENCE, events, options)
    del events
    yield sequence_line("(a) the same, events with ids (checked for duplicates)", SEQUENCE,
                        sequence_events(options.events, ids=True), options)  # fmt: skip
    yield sequence_line(
        "(a) the same, every event an A, B or C", SEQUENCE, dense_events(options.events), options
    )


def correlated(options: argparse.Namespace) -> Iterator[str]:
    """Measure (b): the same with a condition between A and B."""
    yield sequence_line(
        "(b) with b.speed < a.speed * 0.5", CORRELATED, sequence_events(options.events), options
    )


def many_queries(options: argparse.Namespace) -> Iterator[str]:
    """Measure (c): 1, 10, 100 and 1,000 different queries over one stream."""
    events = zone_events(max(100_000, options.events // 10))
    base = None
    for number in (1, 10, 100, 1_000):
        queries = [zone_query(n) for n in range(number)]
        spent = median(lambda queries=queries: run_together(queries, events), options.repeat)
        base = base or spent
        each = spent / events.num_rows * 1e9
        cost = f"{each:,.0f} ns an event, {spent / number * 1e3:.1f} ms a query"
        yield f"| (c) {number:,} different queries | {cost} | {spent / base:.1f} x the time of one query |"


def common_beginnings(options: argparse.Namespace) -> Iterator[str]:
    """Measure (f): sequences that begin alike, against as many that do not; and what compiling them takes."""
    events = zone_events(max(100_000, options.events // 10))
    run_together([begun_query(n, alike=True) for n in range(3)], events.slice(0, 50_000))
    for number in (10, 100, 1_000):
        alike, different = ([begun_query(n, alike=same) for n in range(number)] for same in (True, False))
        spent = median(lambda queries=alike: run_together(queries, events), options.repeat)
        other = median(lambda queries=different: run_together(queries, events), options.repeat)
        each = spent / events.num_rows * 1e9
        what = f"(f) {number:,} sequences that begin alike"
        yield f"| {what} | {each:,.0f} ns an event | {other / spent:.1f} x faster than if they do not |"
    graphs = [query.graph for query in alike]
    spent = median(lambda: [rewrite(graph) for graph in graphs], options.repeat)
    compiled = median(lambda: [begun_query(n, alike=True) for n in range(number)], options.repeat)
    cost = f"{spent / number * 1e3:.2f} ms a query"
    yield f"| (f) rewriting 1,000 queries | {cost} | {spent / compiled:.2f} x the time of compiling them |"


def run_together(queries: list[wb.Query], events: pa.Table) -> None:
    """Run many queries in one session."""
    session = wb.Session()
    for query in queries:
        session.add(query)
    session.push(events)
    session.close()


def latency(options: argparse.Namespace) -> Iterator[str]:
    """Measure (d): one event at a time, under one query and under 1,000 different ones."""
    del options
    query, events = wb.compile(SEQUENCE), sequence_events(200_000)
    yield latency_line("(d) Session.push of single events", [query], events)
    queries = [zone_query(number) for number in range(1_000)]
    yield latency_line("(d) the same, 1,000 different queries", queries, zone_events(200_000))


def latency_line(what: str, queries: list[wb.Query], events: pa.Table) -> str:
    """Push single events after many, and compare with the time of an event in a large batch."""
    session = wb.Session()
    for query in queries:
        session.add(query)
    session.push(events.slice(0, 150_000))
    singles = [events.slice(150_000 + n, 1).combine_chunks() for n in range(5_000)]
    spent = []
    for single in singles:
        begin = time.perf_counter()
        session.push(single)
        spent.append(time.perf_counter() - begin)
    spent.sort()
    middle, high = spent[len(spent) // 2], spent[int(len(spent) * 0.99)]
    batch = median(lambda: run_together(queries, events), 3) / events.num_rows
    cost = f"median {middle * 1e6:.0f} us, 99th percentile {high * 1e6:.0f} us"
    return f"| {what} | {cost} | {middle / batch:,.0f} x an event in a large batch |"


def memory(options: argparse.Namespace) -> Iterator[str]:
    """Measure (e): the peak memory of (a) beyond the input."""
    events = sequence_events(options.events)
    query = wb.compile(SEQUENCE)
    wb.detect(query, events.slice(0, 100_000))
    gc.collect()
    pa.default_memory_pool().release_unused()
    with peak_memory() as peak:
        wb.detect(query, events)
    size = events.nbytes
    cost = f"{peak.most / 1e6:.0f} MB for {size / 1e6:.0f} MB of input"
    yield f"| (e) peak memory of (a) beyond the input | {cost} | {peak.most / size:.2f} x the input |"


def write_docs(table: str, options: argparse.Namespace) -> None:
    """Put the table between the marks in the docs page."""
    about = (
        f"Python {platform.python_version()}, one core of {platform.machine()}, {options.events:,} events, "
        f"median of {options.repeat} runs."
    )
    text = DOCS.read_text()
    head, rest = text.split(BEGIN)
    DOCS.write_text(f"{head}{BEGIN}\n\n{about}\n\n{table}\n\n{END}{rest.split(END)[1]}")


MEASUREMENTS = {
    "a": throughput,
    "b": correlated,
    "c": many_queries,
    "d": latency,
    "e": memory,
    "f": common_beginnings,
    "g": combinations,
    "h": long_streams,
    "i": explaining,
}

if __name__ == "__main__":
    main()
