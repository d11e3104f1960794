"""Measure Whimbrel and Flink CEP on the same events and patterns in one run, and compare what they find.

The first run makes a virtual environment with Flink's jars under build/peers and compiles a small Java
program; needs a JDK. If any system finds other matches than the others, the run fails and says how they
differ. `--write` puts the tables into docs/benchmarks-peers.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import flink_program
import numpy as np
import psutil
from cases import CASES, LATENESS, Case, Files, files
from matches import Differ, Reader, check_same, reader_of
from steps import STEPS_CASES, StepsCase
from whimbrel_worker import BATCH

import whimbrel as wb

sys.path.append(str(flink_program.TOOLS))  # a pattern in JSON is made ready for Flink there

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "peers"
DOCS = ROOT / "docs" / "benchmarks-peers.md"
START, END = "<!-- figures of {}: made by `make bench-peers ARGS=--write` -->", "<!-- end of figures -->"
GROUPS: dict[str, tuple[Case | StepsCase, ...]] = {"combinations": CASES, "steps": STEPS_CASES}
"""What is measured; the tables of a group are written together."""
QUICK = 200_000
WARM = 10
"""Seconds for which a row may warm up."""
WARM_EVENTS = 1_000_000
"""How many events Flink takes at least to warm up, up to three times; with fewer, Java is still compiling."""


@dataclass
class Row:
    """One way of running a pattern, and what was measured."""

    title: str
    system: str
    """Which worker: flink, whimbrel or spark."""
    how: str
    cores: int
    spent: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    """Seconds of processor time, of all threads and processes."""
    memory: int = 0
    missing: str = ""
    """What stands where there are no figures."""

    @property
    def name(self) -> str:
        """Which row this is, in messages."""
        return f"{self.system} {self.how} on {self.cores}"

    @property
    def seconds(self) -> float:
        """The median of the runs."""
        return statistics.median(self.spent)


def rows_of(case: Case | StepsCase) -> list[Row]:
    """Give the rows of a case's table."""
    if isinstance(case, StepsCase):
        return rows_of_steps(case)
    rows = [
        Row("Whimbrel, table in memory", "whimbrel", "table", 1),
        Row("Whimbrel, Parquet file", "whimbrel", "parquet", 1),
        Row(f"Whimbrel, session, {BATCH:,} events at once", "whimbrel", "session", 1),
    ]
    for cores in (1, 2):
        rows += [
            Row("Flink CEP, filtered and chained", "flink", "chained", cores),
            Row("Flink CEP, filtered", "flink", "filtered", cores),
        ]
        if case.name == "sequence":
            rows += [
                Row("Flink CEP, batch mode, filtered", "flink", "batch", cores),
                Row("Flink CEP", "flink", "plain", cores),
            ]
        rows += [
            Row("Whimbrel on Spark, batch", "spark", "batch", cores),
            Row("Whimbrel on Spark, streaming", "spark", "stream", cores),
        ]
    return rows


def rows_of_steps(case: StepsCase) -> list[Row]:
    """Give the rows of a pattern of steps: on one core, as the engine runs."""
    filtered = ", filtered" if case.has_others else ""
    return [
        Row("Whimbrel, table in memory", "whimbrel", "table", 1),
        Row(f"Whimbrel, session, {BATCH:,} events at once", "whimbrel", "session", 1),
        Row(f"Flink CEP{filtered} and chained" if filtered else "Flink CEP, chained", "flink", "chained", 1),
        Row(f"Flink CEP{filtered}", "flink", "filtered", 1),
        Row(f"Flink CEP, batch mode{filtered}", "flink", "batch", 1),
    ]


class Worker:
    """A process that runs patterns as it is told, bound to so many cores."""

    def __init__(self, command: list[str], cores: int) -> None:
        with bound_to(cores):
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=BUILD
            )

    def answer(self) -> list[str]:
        """Wait for a line that is meant for us, and give its words."""
        for line in self._process.stdout or ():
            words = line.split()
            if words and words[0] in ("peer", "unavailable"):
                return words
            print(line, end="", file=sys.stderr)
        return ["failed", f"the process ended with status {self._process.wait()}"]

    def ask(self, line: str) -> tuple[list[str], Peak, float]:
        """Have one job done; give the answer, the memory and the processor time that it took."""
        assert self._process.stdin is not None
        before = busy(self._process.pid)
        with peak_memory(self._process.pid) as peak:
            with suppress(BrokenPipeError):
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
            words = self.answer()
        return words, peak, busy(self._process.pid) - before

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def bound_to(cores: int) -> Iterator[None]:
    """Start processes on the first so many cores: they inherit this."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def family(process: int) -> list[psutil.Process]:
    """Give a process and all those below it; none if it has ended."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(process)
        return [root, *root.children(recursive=True)]
    return []


def busy(process: int) -> float:
    """Give the processor time, in seconds, that a process and those below it have taken."""
    spent = 0.0
    for each in family(process):
        with suppress(psutil.NoSuchProcess):
            spent += sum(each.cpu_times()[:2])
    return spent


class Peak:
    """The most memory that was seen."""

    most = 0


@contextmanager
def peak_memory(process: int) -> Iterator[Peak]:
    """Watch the resident memory of a process and those below it, from a thread."""
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            look()

    def look() -> None:
        with suppress(psutil.NoSuchProcess):
            peak.most = max(peak.most, sum(each.memory_info().rss for each in family(process)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        look()


class Bench:
    """The measurements of one case."""

    def __init__(self, case: Case | StepsCase, options: argparse.Namespace) -> None:
        self._case = case
        self._options = options
        self._number = case.number_of(options.events)
        say(f"{case.name}: making {self._number:,} events")
        self._files = files(case.stream, self._number, BUILD / "data")
        self._reader = reader_of(case, self._number)
        self._asked = case.asked_of_flink(BUILD) if "flink" in options.systems else ""
        self._out = BUILD / "matches"
        self.rows = [row for row in rows_of(case) if row.system in options.systems]
        if options.quick:
            self.rows = [row for row in self.rows if (row.system, row.cores) != ("spark", 1)]
        self.found = 0
        """How many matches there are."""
        self._expected: np.ndarray | None = None
        self._expected_from = ""

    def run(self) -> None:
        """Measure all rows in turn, every other time in the opposite order."""
        keys = sorted({(row.system, row.cores) for row in self.rows})
        workers = {key: Worker(command(*key, self._case, self._files), key[1]) for key in keys}
        try:
            for key, worker in workers.items():
                said = worker.answer()
                say(f"{self._case.name}: {key[0]} on {key[1]}: {' '.join(said[1:])}")
            for row in () if self._options.quick else self.rows:
                self._warm_up(row, workers[row.system, row.cores])
            for repetition in range(self._options.repeat):
                for row in self.rows[::-1] if repetition % 2 else self.rows:
                    if not row.missing and sum(row.spent) < self._options.patience:
                        self._measure(row, workers[row.system, row.cores])
        finally:
            for worker in workers.values():
                worker.close()

    def _warm_up(self, row: Row, worker: Worker) -> None:
        """Run over some of the events, up to three times, so that everything is loaded and compiled."""
        spent = 0.0
        for _ in range(3):
            if not row.missing and spent < WARM:
                spent += self._do(row, worker, self._line(row, "-", is_warm_up=True))[0]

    def _do(self, row: Row, worker: Worker, line: str) -> tuple[float, float, int]:
        """Have one job done; give seconds, processor time and memory, or note that it cannot be done."""
        words, peak, busy_since = worker.ask(line)
        if words[0] != "peer":
            row.missing = "not available" if words[0] == "unavailable" else "FAILED"
            say(f"{self._case.name}: {row.name}: {row.missing}: {' '.join(words[1:])}")
            return 0, 0, 0
        return float(words[1]), float(words[2]) if len(words) > 2 else busy_since, peak.most

    def _measure(self, row: Row, worker: Worker) -> None:
        self._out.unlink(missing_ok=True)
        spent, busy_for, memory = self._do(row, worker, self._line(row, str(self._out)))
        if row.missing:
            return
        row.spent.append(spent)
        row.busy.append(busy_for)
        row.memory = max(row.memory, memory)
        found = self._reader.flink(self._out) if row.system == "flink" else self._reader.whimbrel(self._out)
        if self._expected is None:
            self._expected, self._expected_from, self.found = found, row.name, len(found)
        expected = self._expected
        if (row.system, row.how) == ("spark", "stream") and isinstance(self._reader, Reader):
            expected = self._reader.known_at_end(expected)  # a stream does not end
        check_same(row.name, found, self._expected_from, expected)
        say(f"{self._case.name}: {row.name}: {spent:.2f} s, {len(found):,} matches, the same")

    def _line(self, row: Row, out: str, *, is_warm_up: bool = False) -> str:
        """Say what a worker is to do."""
        if row.system != "flink":
            return f"{row.how} {'some' if is_warm_up else 'all'} {out}"
        number = self._number
        number = min(number, max(WARM_EVENTS, number // 10)) if is_warm_up else number
        watermarks = self._case.stream.watermarks
        return f"{self._asked} {LATENESS} {row.how} {row.cores} {number} {watermarks} {out}"

    def table(self) -> str:
        """Give the figures in Markdown."""
        number = self._number
        peers = [row for row in self.rows if row.system == "flink" and not row.missing]
        fastest = {
            cores: min(row.seconds for row in peers if row.cores == cores)
            for cores in {row.cores for row in peers}
        }
        lines = [
            f"**{self._case.title}**: {self.found:,} matches in {number:,} events, the same from all.\n",
            "| system | cores | events/s | x Flink at its best | busy s a million | peak memory | runs |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in self.rows:
            if row.missing:
                lines.append(f"| {row.title} | {row.cores} | {row.missing} | | | | |")
                continue
            ratio = f"{fastest[row.cores] / row.seconds:.2f}" if row.cores in fastest else ""
            busy_for = statistics.median(row.busy) / number * 1e6
            lines.append(
                f"| {row.title} | {row.cores} | {number / row.seconds / 1e6:.2f} M | {ratio} "
                f"| {busy_for:.2f} s | {row.memory / 1e6:,.0f} MB | {len(row.spent)} |"
            )
        return "\n".join(lines)


def command(system: str, cores: int, case: Case | StepsCase, made: Files) -> list[str]:
    """Give the command that starts a worker."""
    if system == "flink":
        return [*flink_program.command(BUILD, cores), str(made.binary)]
    program = [sys.executable, str(Path(__file__).with_name("whimbrel_worker.py"))]
    spark = ["--spark", str(cores)] if system == "spark" else []
    return [*program, *spark, case.name, str(made.parquet), str(made.parts), str(made.first)]


def say(line: str) -> None:
    """Tell how far the run has come."""
    print(line, file=sys.stderr, flush=True)


def facts(options: argparse.Namespace) -> str:
    """Say what was measured with what."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"Whimbrel {wb.__version__} on Python {platform.python_version()}, Spark {version('pyspark')}, "
        f"Flink {flink_program.VERSION} (heap {flink_program.HEAP}) on Java {flink_program.java_version()}, "
        f"{os.cpu_count()} cores of {platform.machine()}, {memory:.0f} GB; {options.events:,} events "
        f"or as many as a table says, median of up to {options.repeat} runs (a row that has taken "
        f"{options.patience:.0f} s is not run again); the load average before was {options.load:.1f}. "
        f"Made with `make bench-peers{options.arguments}`."
    )


def write_docs(group: str, text: str) -> None:
    """Put the tables of a group between their marks in the docs page."""
    head, rest = DOCS.read_text().split(START.format(group))
    after = rest.split(END, 1)[1]
    DOCS.write_text(f"{head}{START.format(group)}\n\n{text}\n\n{END}{after}")


def parsed() -> argparse.Namespace:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each row; the median counts")
    parser.add_argument(
        "--patience", type=float, default=40, help="seconds after which a row is not run again"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} events, once, not warmed up")
    parser.add_argument(
        "--cases", default=",".join(GROUPS), help=f"some of the cases, or all of a kind: {', '.join(GROUPS)}"
    )
    parser.add_argument("--systems", default="whimbrel,flink,spark", help="some of the systems")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks-peers.md")
    options = parser.parse_args()
    options.load = os.getloadavg()[0]
    options.arguments = f' ARGS="{" ".join(sys.argv[1:])}"' if len(sys.argv) > 1 else ""
    if options.quick:
        options.events, options.repeat = QUICK, 1
    options.chosen = chosen(options.cases.split(","))
    if options.write and any(cases != GROUPS[group] for group, cases in options.chosen.items()):
        parser.error(f"only all cases of one kind can be written: --cases {' or '.join(GROUPS)}")
    return options


def chosen(names: list[str]) -> dict[str, tuple[Case | StepsCase, ...]]:
    """Give the cases of each group that are named, or whose group is."""
    known = {*GROUPS, *(case.name for cases in GROUPS.values() for case in cases)}
    unknown = sorted(set(names) - known)
    if unknown:
        sys.exit(f"no case is named {unknown[0]!r}; there are {', '.join(sorted(known))}")
    found = {
        group: tuple(case for case in cases if {group, case.name} & set(names))
        for group, cases in GROUPS.items()
    }
    return {group: cases for group, cases in found.items() if cases}


def main() -> None:
    """Run the cases that were asked for and print their tables."""
    options = parsed()
    BUILD.mkdir(parents=True, exist_ok=True)
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("the comparison needs two cores")
    try:
        for group, cases in options.chosen.items():
            measure(group, cases, options)
    except flink_program.PeerMissing as error:
        sys.exit(str(error))
    except Differ as error:
        sys.exit(f"THE MATCHES DIFFER\n{error}")


def measure(group: str, cases: tuple[Case | StepsCase, ...], options: argparse.Namespace) -> None:
    """Run the cases of a group, and print or write their tables."""
    tables, has_failed = [], False
    for case in cases:
        bench = Bench(case, options)
        bench.run()
        tables.append(bench.table())
        say(tables[-1])
        has_failed |= any(row.missing == "FAILED" for row in bench.rows)
    text = "\n\n".join([facts(options), *tables])
    print(text)
    if has_failed:
        sys.exit("some rows failed; nothing is written")
    if options.write:
        write_docs(group, text)


if __name__ == "__main__":
    main()
