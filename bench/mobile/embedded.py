"""Measure mobile queries in one process, as multiples of real time, beside one plain query for each object.

5,000 vehicles in a town of 7.7 km x 3.5 km say where they are once a second; 1,000 of them are followed. What
is told is who brakes hard within 500 m in the last 30 minutes. History is full before anything is timed.
`--write` puts the table into docs/benchmarks-mobile.md. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import whimbrel as wb

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments.mobile.traffic import TOWN, Traffic, drive_streets, positions  # noqa: E402

DOCS = ROOT / "docs" / "benchmarks-mobile.md"
BEGIN, END = "<!-- embedded: made by `make bench-mobile ARGS=--write` -->", "<!-- end of embedded -->"
PUSHED_S = 10
"""Seconds of traffic that are pushed at once."""
BRAKES = """
define Brakes
  detect Position(speed > 13.5) as a then Position(speed < 0.3) as b within 1 s
  group by source
"""
JAM = """
define Jam over 1 min every 30 s
  detect Position(speed < 0.2)
  assign cars = count(Position)
  having cars > 400
"""
GONE = """
define Gone
  detect Position(speed > 15.9) as a then not Position for 2 s
  group by source
"""


@dataclass(frozen=True)
class Case:
    """One measurement."""

    what: str
    text: str = BRAKES
    followed: int = 1_000
    radius_m: float = 500.0
    lifetime_s: int = 1_800
    moved_m: float | None = 50.0
    deliver: str = "all"

    def query(self) -> wb.MobileQuery:
        """Ask for it."""
        refresh = wb.RefreshAlways() if self.moved_m is None else wb.RefreshWhenMoved(self.moved_m)
        return wb.MobileQuery(
            wb.compile(self.text),
            wb.focal("Position", listed=[{"key": f"car-{n}"} for n in range(self.followed)]),
            wb.CircleInterest(self.radius_m),
            lifetime=f"{self.lifetime_s} s",
            policy=wb.MobilePolicy(refresh=refresh, deliver=self.deliver),  # type: ignore[arg-type]
        )


@dataclass(frozen=True)
class Measured:
    """What came out."""

    case: Case
    times_real: float
    deliveries_s: float
    switches_s: float
    history_mb: float


def pushes(events: pa.Table, vehicles: int, seconds: int) -> Iterator[pa.Table]:
    """Cut events into what is pushed at once."""
    for second in range(0, seconds, PUSHED_S):
        yield events.slice(second * vehicles, PUSHED_S * vehicles)


def measure(case: Case, events: pa.Table, vehicles: int, timed_s: int) -> Measured:
    """Fill history, begin all interests, then time the last seconds."""
    total = len(events) // vehicles
    session = wb.Session(case.query())
    parts = list(pushes(events, vehicles, total))
    first = len(parts) - timed_s // PUSHED_S
    session.recall(events.slice(0, (first - 1) * PUSHED_S * vehicles))
    session.push(parts[first - 1])
    before = session.monitor().to_pylist()[0]
    began, told = time.perf_counter(), 0
    for part in parts[first:]:
        told += session.push(part).num_rows
    spent = time.perf_counter() - began
    after = session.monitor().to_pylist()[0]
    return Measured(
        case,
        timed_s / spent,
        told / timed_s,
        (after["switches"] - before["switches"]) / timed_s,
        memory_mb(session),
    )


def memory_mb(session: wb.Session) -> float:
    """Tell how much memory history, state and remembered events take."""
    row = session.monitor().to_pylist()[0]
    return float(sum(row[f"{part}_bytes"] for part in ("history", "state", "events"))) / 1e6


# -- a plain query for each object -----------------------------------------------------------------------


def plain_for_each(traffic: Traffic, events: pa.Table, vehicles: int, followed: int, seconds: int) -> float:
    """Follow objects with a plain query each, put in anew whenever its object has moved 50 m.

    Such a query sees what happens from then on: it brings no history. Gives multiples of real time.
    """
    session = wb.Session(wb.compile("define None_ detect Nothing"))
    rows = [traffic.rows_of(number)[:seconds] for number in range(followed)]
    at: dict[int, tuple[float, float]] = {}
    began = time.perf_counter()
    for second in range(seconds):
        for number in range(followed):
            here = traffic.x[rows[number][second]], traffic.y[rows[number][second]]
            if number in at and np.hypot(here[0] - at[number][0], here[1] - at[number][1]) <= 50.0:
                continue
            if number in at:
                session.remove(f"car-{number}")
            at[number] = here
            session.add(wb.compile(_around(*here)), name=f"car-{number}")
        session.push(events.slice(second * vehicles, vehicles))
    return seconds / (time.perf_counter() - began)


def _around(x: float, y: float) -> str:
    return (
        f"region Here = circle({x:.1f}, {y:.1f}, 500 m)\n"
        "define Brakes detect Position(speed > 13.5, this in Here) as a "
        "then Position(speed < 0.3, this in Here) as b within 1 s group by source"
    )


# -- many objects, few situations ------------------------------------------------------------------------


def situations(objects: int, updates_s: int, seconds: int, timed_s: int) -> tuple[float, float]:
    """Tell a very large number of objects of situations near them; give multiples of real time, and MB."""
    random = np.random.default_rng(0)
    wide, high = TOWN
    reports = max(updates_s // 1_000, 1)
    query = wb.MobileQuery(
        wb.compile("define Accident detect Report(severity > 1)"),
        wb.focal("Place"),
        wb.CircleInterest(500.0),
        lifetime="30 min",
        policy=wb.MobilePolicy(refresh=wb.RefreshWhenMoved(50.0), deliver="new"),
        of_situations=True,
    )
    session = wb.Session(query)
    x, y = random.uniform(0, wide, objects), random.uniform(0, high, objects)
    order, spent, place = random.permutation(objects), 0.0, 0
    names = pa.array([f"user-{n}" for n in range(objects)])
    for second in range(seconds):
        some = order[(place + np.arange(updates_s)) % objects]
        place += updates_s
        x[some] = np.clip(x[some] + random.normal(0, 150, updates_s), 0, wide)
        y[some] = np.clip(y[some] + random.normal(0, 150, updates_s), 0, high)
        events = _second(random, second, names.take(pa.array(some)), x[some], y[some], reports)
        began = time.perf_counter()
        session.push(events)
        spent += time.perf_counter() - began if second >= seconds - timed_s else 0.0
    return timed_s / spent, memory_mb(session)


def _second(
    random: np.random.Generator, second: int, names: pa.Array, x: np.ndarray, y: np.ndarray, reports: int
) -> pa.Table:
    wide, high = TOWN
    size = len(x) + reports
    times = np.sort(random.integers(0, 1_000_000, size)) + second * 1_000_000
    sources = pa.concat_arrays([names, pa.array([f"report-{second}-{n}" for n in range(reports)])])
    return pa.table(
        {
            "type": ["Place"] * len(x) + ["Report"] * reports,
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "source": sources,
            "x": np.concatenate([x, random.uniform(0, wide, reports)]),
            "y": np.concatenate([y, random.uniform(0, high, reports)]),
            "severity": pa.array([None] * len(x) + random.integers(0, 5, reports).tolist(), pa.int64()),
        }
    )


# -- the table -------------------------------------------------------------------------------------------


def cases() -> list[Case]:
    """List what is measured: the bar, and how cost grows with each of its sizes."""
    bar = Case("moved 50 m")
    return [
        bar,
        replace(bar, what="a switch at every update", moved_m=None),
        replace(bar, what="a switch at every update, new only", moved_m=None, deliver="new"),
        replace(bar, what="moved 50 m, changes", deliver="changes"),
        replace(bar, what="moved 50 m, new only", deliver="new"),
        replace(bar, what="an absence for each interest", text=GONE, lifetime_s=60),
        replace(bar, what="counts for each interest", text=JAM, lifetime_s=60),
        *(replace(bar, what=f"{followed:,} followed", followed=followed) for followed in (100, 300, 3_000)),
        *(replace(bar, what=f"radius {radius:g} m", radius_m=radius) for radius in (250.0, 1_000.0)),
        *(replace(bar, what=f"lifetime {minutes} min", lifetime_s=60 * minutes) for minutes in (0, 5)),
        *(replace(bar, what=f"moved {metres:g} m", moved_m=metres) for metres in (10.0, 200.0)),
    ]


def table(found: Sequence[Measured], options: argparse.Namespace) -> Iterator[str]:
    """Write it down."""
    yield "| case | times real time | switches/s | deliveries/s | history and state |"
    yield "|---|---|---|---|---|"
    for each in found:
        yield (
            f"| {each.case.what} | {each.times_real:.1f} | {each.switches_s:,.0f} | {each.deliveries_s:,.0f} "
            f"| {each.history_mb:,.0f} MB |"
        )
    yield ""
    yield (
        f"{options.vehicles:,} vehicles, {options.seconds:,} s of traffic, the last {options.timed} s timed; "
        f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; at most "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB of memory for all of it."
    )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vehicles", type=int, default=5_000)
    parser.add_argument("--seconds", type=int, default=2_000, help="seconds of traffic")
    parser.add_argument("--timed", type=int, default=100, help="how many of them are timed, at the end")
    parser.add_argument("--only", help="cases with this in their names")
    parser.add_argument("--write", action="store_true", help=f"write into {DOCS.relative_to(ROOT)}")
    options = parser.parse_args()
    traffic = drive_streets(options.vehicles, options.seconds)
    events = positions(traffic)
    found = []
    for case in cases():
        if options.only and options.only not in case.what:
            continue
        found.append(measure(case, events, options.vehicles, options.timed))
        print(*list(table(found[-1:], options))[2:3], flush=True)
    lines = list(table(found, options))
    if not options.only:
        peer_s, peers = 20, 50
        mobile = measure(Case("peer", followed=peers, lifetime_s=0), events, options.vehicles, options.timed)
        plain = plain_for_each(traffic, events, options.vehicles, peers, peer_s)
        many, memory = situations(100_000, 5_000, 90, 30)
        alone = (
            f"{peers} objects with a plain query each, added and removed as they move ({peer_s} s of "
            f"traffic, no history): {plain:.2f} times real time; as one mobile query with lifetime 0: "
            f"{mobile.times_real:.0f} times, {mobile.times_real / plain:,.0f} times as fast."
        )
        crowd = (
            f"100,000 objects that are told of situations within 500 m in the last 30 minutes, 5,000 "
            f"location updates a second: {many:.1f} times real time, {memory:,.0f} MB."
        )
        lines += ["", alone, "", crowd]
    print("\n".join(lines))
    if options.write:
        text = DOCS.read_text()
        before, rest = text.split(BEGIN)
        DOCS.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
