"""Measure the logistics scenario of Grus: 15,000 composite subscriptions, 60,000 events, 25,000 detections.

5,000 subscriptions each ask whether a vehicle left a region, reached one, or strayed from the one it follows.
Two events that follow each other complete one of the first two kinds, four one of the third. All detections
are known beforehand, and the program stops if one is missing or one too many. Nothing here asserts a time.
`--write` puts the table into docs/benchmarks-subscriptions.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from measuring import peak_memory

import whimbrel as wb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "benchmarks-subscriptions.md"
BEGIN, END = "<!-- logistics: made by `make bench-logistics ARGS=--write` -->", "<!-- end of logistics -->"
EACH = 5_000
"""Subscriptions of each of the three kinds."""
RATE = 1_500
"""Events a second."""
WITHIN_S = 1
KINDS = {"left": 2, "reached": 2, "strayed": 1}
"""How often each subscription of a kind is met."""
Event = dict[str, object]


def subscriptions(each: int) -> dict[str, str]:
    """Write the subscriptions of all three kinds."""
    made = {}
    for n in range(each):
        region = f"(({n},0)({n + 10},0)({n + 10},10)({n},10))"
        leaving, coming = (f'ARITH:vehicle={k * each + n}, STRING:type="truck"' for k in (0, 1))
        made[f"left{n}"] = f"=|(@({region})({leaving});{WITHIN_S})(DIST({region};>;50)({leaving}))"
        made[f"reached{n}"] = f"=|(DIST({region};>;50)({coming});{WITHIN_S})(@({region})({coming}))"
        other, head = (f'ARITH:vehicle={k * each + n}, STRING:type="van"' for k in (2, 3))
        made[f"strayed{n}"] = (
            f"=|($e;;{WITHIN_S})($f;), $e;=(|($a;)($b;)&&DIST($a;;<;20)($b;)), "
            f"$f;=(|($c;)($d;)&&DIST($c;;>;20)($d;)), "
            f"$a;=({other}), $b;=({head}), $c;=({other}), $d;=({head})"
        )
    return made


def events(each: int, seed: int) -> pa.Table:
    """Give pairs and fours of events: two rounds of leaving and reaching, with straying in the first."""
    rng = random.Random(seed)
    rows: list[Event] = []
    for pause, kinds in ((0, ("left", "reached", "strayed")), (2 * WITHIN_S, ("left", "reached"))):
        turns = [(kind, n) for kind in kinds for n in range(each)]
        rng.shuffle(turns)
        for kind, n in turns:
            rows += _turn(kind, n, each, pause + len(rows) / RATE)
    return pa.Table.from_pylist(rows)


def _turn(kind: str, n: int, each: int, at: float) -> list[Event]:
    def event(vehicle: int, type_: str, x: float, place: int) -> Event:
        return {"type": type_, "vehicle": vehicle, "x": x, "y": 5.0, "time": round(at + place / RATE, 6)}

    inside, far = n + 5.0, n + 500.0
    if kind == "left":
        return [event(n, "truck", inside, 0), event(n, "truck", far, 1)]
    if kind == "reached":
        return [event(each + n, "truck", far, 0), event(each + n, "truck", inside, 1)]
    other, head = 2 * each + n, 3 * each + n
    return [
        event(other, "van", 0.0, 0), event(head, "van", 5.0, 0),
        event(other, "van", 0.0, 2), event(head, "van", 50.0, 2),
    ]  # fmt: skip


def spent(run: Callable[[], object]) -> tuple[object, float]:
    """Run something once; give what it gave and the seconds it took."""
    begin = time.perf_counter()
    return run(), time.perf_counter() - begin


def measure(each: int, seed: int) -> str:
    """Deploy, run, check, and tell."""
    given = events(each, seed)
    with peak_memory() as peak:
        queries, compiling = spent(
            lambda: {n: wb.cpsl(f"{n}: {text}", horizon="2 s") for n, text in subscriptions(each).items()}
        )
        session = wb.Session(lateness="0 s")
        _, adding = spent(lambda: [session.add(query, name=name) for name, query in queries.items()])
        tables, running = spent(lambda: [session.push(given), session.close()])
    _check(tables, each)
    found = sum(table.num_rows for table in tables)
    return (
        f"{3 * each:,} subscriptions, {given.num_rows:,} events, {found:,} detections, all of them expected, "
        f"on one core of {platform.machine()}; the load average before was {os.getloadavg()[0]:.1f}.\n\n"
        "| | |\n|---|---|\n"
        f"| compile the subscriptions | {compiling:.0f} s ({compiling / 3 / each * 1e3:.1f} ms each) |\n"
        f"| deploy them | {adding:.0f} s |\n"
        f"| all events | {running:.1f} s, {given.num_rows / running:,.0f} events/s |\n"
        f"| peak memory | {peak.most / 1e6:,.0f} MB |\n"
    )


def _check(tables: list[pa.Table], each: int) -> None:
    counts = Counter(kind for table in tables for kind in table.column("type").to_pylist())
    wanted = {f"{kind}{n}": times for kind, times in KINDS.items() for n in range(each)}
    if counts != wanted:
        wrong = next(kind for kind in {*counts, *wanted} if counts[kind] != wanted.get(kind, 0))
        sys.exit(f"{wrong} was detected {counts[wrong]} times, not {wanted.get(wrong, 0)} times")


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=EACH, help="subscriptions of each kind")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/benchmarks-subscriptions.md"
    )
    options = parser.parse_args()
    said = measure(options.each, options.seed)
    print(said)
    if options.write:
        before, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
        DOCS.write_text(f"{before}{BEGIN}\n\n{said}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
