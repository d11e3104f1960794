"""Measure Whimbrel on Spark against Spark's own ceiling, in one run, on the same data.

Every job runs in a process of its own with the cores it is given. Nothing here asserts a time. `--write` puts
the table into docs/benchmarks-spark.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from workloads import sequence_events  # noqa: E402

DOCS = HERE.parents[1] / "docs" / "benchmarks-spark.md"
BEGIN, END = "<!-- figures: made by `make bench-spark ARGS=--write` -->", "<!-- end of figures -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000, help="events of the history and the stream")
    parser.add_argument("--files", type=int, default=10, help="files they are in; each is a micro-batch")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each measurement; the median counts")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench-spark"), help="where the data is kept"
    )
    parser.add_argument("--only", default="batch,stream,alternatives,long,latency", help="which measurements")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks-spark.md")
    options = parser.parse_args()
    folder = options.folder.absolute() / f"{options.events}x{options.files}"
    write_events(folder, options.events, options.files)
    lines = ["| measurement | result | ratio in the same run |", "|---|---|---|"]
    for name in options.only.split(","):
        for line in MEASUREMENTS[name](folder, options):
            tell(line)
            lines.append(line)
    table = "\n".join(lines)
    print(table)
    if options.write:
        write_docs(table, options)


def write_events(folder: Path, number: int, files: int) -> None:
    target = folder / "events"
    if target.exists():
        return
    tell(f"making {number:,} events of 5,000 objects")
    target.mkdir(parents=True)
    table, size = sequence_events(number), number // files
    for part in range(files):
        path = target / f"{part:03}.parquet"
        pq.write_table(table.slice(part * size, size), path, row_group_size=size // 2)
        os.utime(path, (1_700_000_000 + part,) * 2)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def on(cores: int) -> str:
    return "1 core" if cores == 1 else f"{cores} cores"


def batch(folder: Path, options: argparse.Namespace) -> list[str]:
    lines = []
    for cores in (1, 2):
        ceiling = job("batch-ceiling", cores, folder, options.repeat)
        ours = job("batch", cores, folder, options.repeat)
        all_rows = job("batch-all-rows", cores, folder, options.repeat)
        what = f"batch, {on(cores)}:"
        lines += [
            row(f"{what} ceiling (repartition, sort, count in Arrow)", rate(options.events, ceiling), "1"),
            row(f"{what} Whimbrel, `wb.detect`", rate(options.events, ours), share(ceiling, ours)),
            row(f"{what} Whimbrel, all rows", rate(options.events, all_rows), share(ceiling, all_rows)),
        ]
        SCALING.setdefault("batch", []).append(median(ours))
    return [*lines, scaling("batch")]


def stream(folder: Path, options: argparse.Namespace) -> list[str]:
    lines = []
    for cores in (1, 2):
        ceiling = job("stream-ceiling", cores, folder, options.repeat)
        ours = job("stream", cores, folder, options.repeat)
        what = f"stream, {on(cores)}:"
        lines += [
            row(f"{what} ceiling (same packing, a stateful count)", rate(ceiling["rows"], ceiling), "1"),
            row(f"{what} Whimbrel", rate(ours["rows"], ours), share(ceiling, ours)),
        ]
        SCALING.setdefault("stream", []).append(median(ours))
    hand = job("stream-by-object", 2, few(folder, options), 1)
    speed = (ours["rows"] / median(ours)) / (hand["rows"] / median(hand))
    told = f"Whimbrel is {speed:.1f} times as fast"
    lines.append(row(f"{what} by hand, state for each object", rate(hand["rows"], hand), told))
    return [*lines, scaling("stream")]


def alternatives(folder: Path, options: argparse.Namespace) -> list[str]:
    """Count only, in the ways that state can be kept."""
    short = few(folder, options)
    ways = {
        "count-by-object": "a state for each object, events as rows",
        "count-by-shard": "a state for each of 16 shards, events as rows",
        "stream-ceiling": "a state for each of 16 shards, events packed",
    }
    results = {name: job(name, 2, short, 1) for name in ways}
    first = results["count-by-object"]
    slowest = first["rows"] / median(first)
    return [
        row(
            f"stream that only counts, 2 cores: {what}",
            rate(results[name]["rows"], results[name]),
            f"{results[name]['rows'] / median(results[name]) / slowest:.1f}",
        )
        for name, what in ways.items()
    ]


def few(folder: Path, options: argparse.Namespace) -> Path:
    """Give a folder with the first files only: by hand, all of them would take too long."""
    short = folder.with_name(f"{folder.name}-first")
    (short / "events").mkdir(parents=True, exist_ok=True)
    for path in sorted((folder / "events").glob("*.parquet"))[: max(3, options.files // 4)]:
        link = short / "events" / path.name
        if not link.exists():
            os.link(path, link)
    return short


def long(folder: Path, options: argparse.Namespace) -> list[str]:
    """Run a stream of many micro-batches: neither state nor the time to keep it may grow."""
    number = options.events // 2
    target = folder.with_name(f"{number}x60")
    write_events(target, number, 60)
    batches = job("stream", 2, target, 1)["batches"]
    first, last = batches[9:19], batches[-10:]
    lines = []
    for name, what, unit in (
        ("state_bytes", "state of all shards", 1e6),
        ("commit_ms", "time to commit it", 1.0),
        ("trigger_ms", "time of a micro-batch", 1.0),
    ):
        early, late = (statistics.median(each[name] for each in part) / unit for part in (first, last))
        kind = "MB" if unit > 1 else "ms"
        told = f"{early:.1f} {kind} after ten, {late:.1f} {kind} at the end"
        lines.append(row(f"long stream, {len(batches)} micro-batches: {what}", told, f"{late / early:.2f}"))
    return lines


def latency(folder: Path, options: argparse.Namespace) -> list[str]:
    del options
    result = job("latency", 2, folder, 60)
    told = f"median {result['median']:.2f} s, 99 % within {result['p99']:.2f} s"
    return [row("latency, 100 events a micro-batch, file to sink", told, f"{result['n']} micro-batches")]


MEASUREMENTS = {
    "batch": batch,
    "stream": stream,
    "alternatives": alternatives,
    "long": long,
    "latency": latency,
}
SCALING: dict[str, list[float]] = {}


def scaling(what: str) -> str:
    one, two = SCALING[what]
    told = f"{one:.1f} s, {two:.1f} s"
    return row(f"{what}: Whimbrel from one core to two", told, f"{one / two:.2f} times as fast")


def job(name: str, cores: int, folder: Path, repeat: int) -> dict[str, Any]:
    tell(f"... {name}, {cores} cores (load {os.getloadavg()[0]:.1f})")
    command = [sys.executable, str(HERE / "jobs.py"), name, str(cores), str(folder), str(repeat)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed")
    return json.loads(done.stdout.strip().splitlines()[-1])


def median(result: dict[str, Any]) -> float:
    return statistics.median(result["seconds"])


def share(ceiling: dict[str, Any], ours: dict[str, Any]) -> str:
    return f"{median(ceiling) / median(ours):.2f} of the ceiling"


def rate(events: int, result: dict[str, Any]) -> str:
    return f"{events / median(result) / 1e6:.2f} M events/s"


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def write_docs(table: str, options: argparse.Namespace) -> None:
    text = DOCS.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    facts = (
        f"{options.events:,} events of 5,000 objects in {options.files} files, median of {options.repeat} "
        f"runs; Spark {pyspark.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores."
    )
    DOCS.write_text(f"{before}{BEGIN}\n\n{facts}\n\n{table}\n\n{END}{after}")


if __name__ == "__main__":
    main()
