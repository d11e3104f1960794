"""Measure how long a user waits for the first result: with no machine code on disk, and once there is some.

Each measurement is a program of its own. "First" has an empty folder for machine code (NUMBA_CACHE_DIR),
"again" the same folder after it. Python's own cache of bytecode is warm in both. `--write` puts the table
into docs/benchmarks-start.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "benchmarks-start.md"
BEGIN, END = "<!-- figures: made by `make bench-start ARGS=--write` -->", "<!-- end of figures -->"
EXAMPLES, TRAFFIC = ROOT / "examples", ROOT / "examples" / "traffic"
COMMAND = (sys.executable, "-c", "from whimbrel.cli.main import main; main(prog_name='whimbrel')")

PAIRS = """
define LaneChange(vehicle)
  detect Position as a then Position as b within 1 s
  where a.road = b.road and a.lane != b.lane
  assign vehicle = group.source
  group by source
"""
WALK = """
define Braking(vehicle)
  detect Position(speed > 15) as fast
    next Position(speed < last(slow.speed) or count(slow) = 0)+ greedy as slow
    followed by Position(speed < 1) as stopped within 1 min
  assign vehicle = group.source
  group by source
  skip past last event
"""


@dataclass(frozen=True)
class Case:
    """A program whose user waits."""

    title: str
    command: Sequence[str]
    compiles: bool = True


@dataclass(frozen=True)
class Took:
    """Seconds on the wall, and of processor time in all processes."""

    wall_s: float
    user_s: float

    def __str__(self) -> str:
        return f"{self.wall_s:.1f} s ({self.user_s:.1f} s)"


def main() -> None:
    """Measure what was asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="a part of the titles of the measurements to make")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks-start.md")
    options = parser.parse_args()
    lines = ["| what | first | again |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder)):
            if options.only is None or options.only in case.title:
                lines.append(measured(case, Path(folder)))
                print(lines[-1], file=sys.stderr)
    table = "\n".join(lines)
    print(table)
    if options.write:
        write_docs(table)


def cases(folder: Path) -> list[Case]:
    """Name the programs; the queries that are no files yet are written to a folder."""
    traffic = str(TRAFFIC / "traffic.parquet")
    for name, text in {"pairs.wbl": PAIRS, "walk.wbl": WALK}.items():
        (folder / name).write_text(text)

    def detect(query: Path, events: str) -> tuple[str, ...]:
        out = str(folder / "found.jsonl")
        return (*COMMAND, "detect", str(query), "--events", events, "--out", out, "--quiet")

    overdue = EXAMPLES / "overdue.wbl"
    return [
        Case("`import whimbrel`", (sys.executable, "-c", "import whimbrel"), compiles=False),
        Case("`whimbrel check`", (*COMMAND, "check", str(overdue)), compiles=False),
        Case("detect an absence, 7 events", detect(overdue, str(EXAMPLES / "trips.csv"))),
        Case("detect pairs, 277,475 events", detect(folder / "pairs.wbl", traffic)),
        Case("detect steps, 277,475 events", detect(folder / "walk.wbl", traffic)),
        Case("detect accidents (six definitions), 277,475 events", detect(TRAFFIC / "accident.wbl", traffic)),
    ]


def measured(case: Case, folder: Path) -> str:
    """Run a program on an empty folder and again; give a row of the table."""
    with tempfile.TemporaryDirectory(dir=folder) as machine_code:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("WHIMBREL_KERNELS", "PYTHONDONTWRITEBYTECODE")
        }
        environment |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        environment |= {"NUMBA_CACHE_DIR": machine_code}
        run((*COMMAND, "warm", "--help"), environment)
        run((sys.executable, "-c", "import whimbrel.warming, numba"), environment)
        first = run(case.command, environment)
        again = run(case.command, environment)
    return f"| {case.title} | {first if case.compiles else ''} | {again} |"


def run(command: Sequence[str], environment: dict[str, str]) -> Took:
    """Run a program to its end; say how long it took."""
    began = time.perf_counter()
    process = os.posix_spawn(
        command[0], list(command), environment,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )  # fmt: skip
    _, status, used = os.wait4(process, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return Took(time.perf_counter() - began, used.ru_utime)


def write_docs(table: str) -> None:
    """Put the table into the page."""
    text = DOCS.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    about = f"Python {platform.python_version()}, {os.cpu_count()} cores of {platform.machine()}."
    DOCS.write_text(f"{before}{BEGIN}\n\n{about}\n\n{table}\n\n{END}{after}")


if __name__ == "__main__":
    main()
