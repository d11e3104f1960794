"""Measure patterns of steps with loops: how matches are counted and listed, and how fast a long stream goes.

Run as a script, it measures one loop in a process of its own, so that its memory is nobody else's:
`loops.py counted 20`.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
from measuring import median, peak_memory, sequence_line
from workloads import sequence_events

import whimbrel as wb

LISTED = (
    "define K detect A as a followed by any B+ combinations as b followed by any C as c within 1 h "
    "group by source"
)
COUNTED = LISTED.replace("group by", "assign found = matches group by") + " counting matches"
LOOP = "define S detect A as a followed by B+ as b followed by C as c within 100 s group by source"
GREEDY = LOOP.replace("B+", "B+ greedy") + " skip past last event"

LOOPS = (5, 10, 20, 40)
MOST_LISTED = 20
"""Twice as many events in the loop have 2 ** 40 - 1 matches: at a million a second, listing takes 12 days."""
PATIENCE_S = 20
"""Seconds after which a loop is not run again."""


@dataclass(frozen=True)
class Cost:
    """What one way of finding all matches of a loop took."""

    matches: int
    seconds: float
    memory: int

    @property
    def spent(self) -> str:
        """Time and memory."""
        megabytes = self.memory / 1e6
        memory = f"{megabytes:,.0f} MB" if megabytes >= 1 else "under 1 MB"
        return f"{self.seconds * 1e3:,.1f} ms, {memory}"

    def __str__(self) -> str:
        return f"{self.spent} ({self.matches:,} matches)"


def combinations(options: argparse.Namespace) -> Iterator[str]:
    """Measure (g): one A, so many B in a loop in combinations, one C."""
    twenty: Cost | None = None
    for loop in LOOPS:
        what = f"(g) A, {loop} x B in combinations, C"
        counted = cost_of("counted", loop, options.repeat)
        if loop > MOST_LISTED:
            assert twenty is not None
            more = f"{counted.matches / twenty.matches:,.0f} x the matches"
            ratio = f"{counted.seconds / twenty.seconds:.1f} x the time of {MOST_LISTED} x B, for {more}"
            yield f"| {what}: counted (too many to list) | {counted} | {ratio} |"
            continue
        listed, plain = (cost_of(how, loop, options.repeat) for how in ("listed", "plain"))
        for how, cost in (("counted", counted), ("listed", listed)):
            ratio = f"{_short(cost.seconds / plain.seconds)} x plain Python that lists them ({plain.spent})"
            yield f"| {what}: {how} | {cost} | {ratio} |"
        twenty = counted


def _short(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2g}"


def long_streams(options: argparse.Namespace) -> Iterator[str]:
    """Measure (h): loops over a long stream of many objects."""
    events = sequence_events(options.events)
    yield sequence_line("(h) A followed by B+ followed by C, 100 s, per object", LOOP, events, options)
    yield sequence_line("(h) the same, matches counted", f"{LOOP} counting matches", events, options)
    yield sequence_line("(h) the same, greedy, skip past last event", GREEDY, events, options)


def cost_of(how: str, loop: int, repeat: int) -> Cost:
    """Measure one loop in a process of its own."""
    command = [sys.executable, __file__, how, str(loop), "--repeat", str(repeat)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent)
    return Cost(**json.loads(said.stdout))


def loop_events(loop: int) -> pa.Table:
    """Make an A, so many B and a C, a second apart."""
    kinds = ["A", *["B"] * loop, "C"]
    times = [1_700_000_000_000_000 + n * 1_000_000 for n in range(len(kinds))]
    return pa.table(
        {
            "id": [f"e{n}" for n in range(len(kinds))],
            "type": kinds,
            "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "source": ["veh-0"] * len(kinds),
        }
    )


@cache
def compiled(text: str) -> wb.Query:
    """Compile a query, once: warming up does it, not what is measured."""
    return wb.compile(text)


def counted(events: pa.Table) -> int:
    """Count the matches."""
    found: int = wb.detect(compiled(COUNTED), events)["found"][0].as_py()
    return found


def listed(events: pa.Table) -> int:
    """List the matches."""
    return wb.detect(compiled(LISTED), events).num_rows


def plain(events: pa.Table) -> int:
    """List the matches as a few lines of Python do: every B doubles what has begun."""
    begun: list[tuple[str, ...]] = []
    found: list[tuple[str, ...]] = []
    for name, kind in zip(events["id"].to_pylist(), events["type"].to_pylist(), strict=True):
        if kind == "A":
            begun.append((name,))
        elif kind == "B":
            begun += [(*run, name) for run in begun]
        else:
            found += [(*run, name) for run in begun if len(run) > 1]
    return len(found)


WAYS: dict[str, Callable[[pa.Table], int]] = {"counted": counted, "listed": listed, "plain": plain}


def main() -> None:
    """Measure one loop, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("how", choices=list(WAYS))
    parser.add_argument("loop", type=int, help="how many events are in the loop")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    find, events = WAYS[options.how], loop_events(options.loop)
    find(loop_events(3))
    gc.collect()
    with peak_memory() as peak:
        matches = find(events)
    if matches != 2**options.loop - 1:
        sys.exit(f"{options.how} found {matches:,} matches, but there are {2**options.loop - 1:,}")
    seconds = median(lambda: find(events), options.repeat, PATIENCE_S)
    print(json.dumps({"matches": matches, "seconds": seconds, "memory": peak.most}))


if __name__ == "__main__":
    main()
