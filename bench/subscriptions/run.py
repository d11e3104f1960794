"""Measure subscriptions: against NumPy and Shapely's STRtree, with changes going on, as their number grows.

Every figure comes with a ratio taken in the same run, because the machine's speed varies; times are
processor time, so that other programs on the machine count less. Nothing here asserts a time, but answers
that differ from a peer's are an error. `--write` puts the table into docs/benchmarks-subscriptions.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from peers import (
    circles_by_numpy,
    circles_by_tree,
    in_order,
    mixture_by_tree,
    polygons_by_tree,
    ranges_by_numpy,
    tree_of_mixture,
)
from scenarios import TAXI_RADIUS_M, Mixture, Speeds, mixture, shops, speeds, taxis

import whimbrel as wb

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks-subscriptions.md"
PATIENCE_S = 5.0
"""A peer that takes longer than this is measured once."""
BEGIN, END = "<!-- figures: made by `make bench-subscriptions ARGS=--write` -->", "<!-- end of figures -->"


def main() -> None:
    """Run the benchmarks that were asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--most", type=int, default=1_000_000, help="subscriptions and events of the largest runs"
    )
    parser.add_argument("--repeat", type=int, default=3, help="runs of each measurement; the median counts")
    parser.add_argument("--only", default="abcdefg", help="which measurements, e.g. 'ab'")
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core
    pa.set_cpu_count(1)
    warm_up()
    lines = ["| measurement | result | ratio in the same run |", "|---|---|---|"]
    for name in options.only:
        for line in MEASUREMENTS[name](options):
            print(line, file=sys.stderr, flush=True)
            lines.append(line)
    table = "\n".join(lines)
    print(table)
    if options.write:
        write_docs(table, options)


def median(run: Callable[[], object], times: int, patience_s: float = float("inf")) -> float:
    """Give the median processor time of several runs, or of fewer if these have taken long enough."""
    spent: list[float] = []
    while len(spent) < times and (not spent or sum(spent) < patience_s):
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return statistics.median(spent)


def warm_up() -> None:
    """Compile every kernel."""
    small = mixture(2_000, 5.0, skewed=True)
    subs = subscribed(small)
    subs.match(small.events(2_000, 1))
    replace_some(subs, small, 0, 500)
    for scenario in (taxi_subscriptions(200)[0], shop_subscriptions(200)[0]):
        scenario.match(taxis(10, 1_000).events)
    some = speeds(40, 1_000)
    range_subscriptions(some).match(some.events)


def taxi_subscriptions(count: int) -> tuple[wb.Subscriptions, Any, Any]:
    """Subscribe people to free taxis."""
    scenario = taxis(count, 80_000)
    subs = wb.Subscriptions()
    subs.add_circles(
        np.arange(count), scenario.x, scenario.y, TAXI_RADIUS_M, type="TAXI", where="state = 'uncarry'"
    )
    return subs, scenario, scenario.events


def shop_subscriptions(count: int) -> tuple[wb.Subscriptions, Any, Any]:
    """Subscribe storekeepers to users of an age near their stores."""
    scenario = shops(count, 80_000)
    subs = wb.Subscriptions()
    subs.add_many(
        pa.table(
            {
                "id": np.arange(count),
                "geometry": pa.array(shapely.to_wkb(scenario.regions).tolist(), pa.binary()),
                "ageRange": scenario.age_ranges,
            }
        )
    )
    return subs, scenario, scenario.events


def taxi(options: argparse.Namespace) -> Iterator[str]:
    """Measure (a): 80,000 events of taxis, and 1,000 to 10,000 people."""
    for count in (1_000, 10_000):
        subs, scenario, events = taxi_subscriptions(count)
        px, py = (events[name].to_numpy() for name in "xy")
        points, tree = shapely.points(px, py), shapely.STRtree(shapely.points(scenario.x, scenario.y))
        plain = partial(circles_by_numpy, scenario.x, scenario.y, TAXI_RADIUS_M, px, py)
        peers: dict[str, Callable[[], Any]] = {
            "STRtree": lambda tree=tree, points=points: circles_by_tree(tree, TAXI_RADIUS_M, points),
            "plain": plain,
        }
        yield compared(f"(a) taxis: {count:,} circles, indexed", subs, events, peers, options)
        spent = median(plain, options.repeat, PATIENCE_S)
        rate = f"{len(px) / spent / 1e6:.4f} M events/s, {spent * 1e3:,.0f} ms for {len(px):,}"
        yield f"| (a) taxis: {count:,} circles, plain (NumPy, no index) | {rate} | |"


def shopping(options: argparse.Namespace) -> Iterator[str]:
    """Measure (b): 80,000 events of users, and 1,000 to 10,000 stores."""
    for count in (1_000, 10_000):
        subs, scenario, events = shop_subscriptions(count)
        points = shapely.points(events["x"].to_numpy(), events["y"].to_numpy())
        ages, tree = events["ageRange"].to_numpy(), shapely.STRtree(scenario.regions)
        peers: dict[str, Callable[[], Any]] = {
            "STRtree": lambda t=tree, s=scenario, p=points, a=ages: polygons_by_tree(t, s.age_ranges, p, a)
        }
        yield compared(f"(b) shops: {count:,} regions", subs, events, peers, options)


def ranging(options: argparse.Namespace) -> Iterator[str]:
    """Measure (g): 80,000 events, and subscriptions that ask for a type and a range of numbers only."""
    base = None
    for count in (1_000, 10_000):
        scenario = speeds(count, 80_000)
        begin = time.process_time()
        subs = range_subscriptions(scenario)
        added = time.process_time() - begin
        spent = median(lambda subs=subs, s=scenario: subs.match(s.events), 5 * options.repeat)
        base = base or spent
        peers: dict[str, Callable[[], Any]] = {
            "plain": lambda s=scenario: ranges_by_numpy(s.low, s.high, s.events["speed"].to_numpy())
        }
        line = compared(f"(g) ranges: {count:,} of them", subs, scenario.events, peers, options)
        about = f", {spent / base:.1f} x the time of 1,000, added at {count / added / 1e3:.1f} k/s |"
        yield line.removesuffix(" |") + about


def range_subscriptions(scenario: Speeds) -> wb.Subscriptions:
    """Subscribe to ranges of speeds."""
    subs = wb.Subscriptions()
    for number, (low, high) in enumerate(zip(scenario.low.tolist(), scenario.high.tolist(), strict=True)):
        subs.add(number, type="TAXI", where=f"speed between {low} and {high}")
    return subs


def compared(
    what: str,
    subs: wb.Subscriptions,
    events: pa.Table,
    peers: dict[str, Callable[[], Any]],
    options: argparse.Namespace,
) -> str:
    """Measure matching against peers, and check that all find the same."""
    found = subs.match(events)
    answer = in_order(found["event_row"].to_numpy(), found["subscription"].to_numpy())
    spent = median(lambda: subs.match(events), 5 * options.repeat)
    ratios = []
    for name, run in peers.items():
        begin = time.process_time()
        theirs = run()
        spent_by_it = time.process_time() - begin
        if not np.array_equal(answer, in_order(theirs[:, 0], theirs[:, 1])):
            raise SystemExit(f"{what}: {name} finds other pairs")
        if spent_by_it < PATIENCE_S:
            spent_by_it = median(run, options.repeat, PATIENCE_S)
        ratios.append(f"{spent_by_it / spent:,.1f} x faster than {name}")
    rate = events.num_rows / spent / 1e6
    met = len(np.unique(answer[:, 0])) / events.num_rows
    result = f"{rate:.2f} M events/s, {spent * 1e3:.0f} ms for {events.num_rows:,} ({met:.0%} met)"
    return f"| {what} | {result} | {', '.join(ratios)} |"


def subscribed(made: Mixture) -> wb.Subscriptions:
    """Subscribe to the circles and polygons of a mixture; ids are their numbers."""
    subs = wb.Subscriptions()
    half = len(made.x)
    subs.add_circles(np.arange(half), made.x, made.y, made.radius_m)
    subs.add_polygons(np.arange(half, 2 * half), made.polygons)
    return subs


def growth(options: argparse.Namespace) -> Iterator[str]:
    """Measure (c): from 1,000 to a million subscriptions, an event lying in about one of them."""
    base = None
    sizes = [size for size in (1_000, 10_000, 100_000) if size < options.most]
    for count in (*sizes, options.most):
        made = mixture(count)
        begin = time.process_time()
        subs = subscribed(made)
        added = time.process_time() - begin
        events = made.events(options.most, 2)
        spent = median(lambda subs=subs, events=events: subs.match(events), options.repeat)
        base = base or spent
        each = (
            f"{events.num_rows / spent / 1e6:.2f} M events/s, {subs.nbytes / count:,.0f} bytes a subscription"
        )
        more = f", added at {count / added / 1e3:,.0f} k/s"
        what = f"(c) {count:,} circles and polygons"
        yield f"| {what} | {each}{more} | {spent / base:.1f} x the time of 1,000 |"


def denser(options: argparse.Namespace) -> Iterator[str]:
    """Measure (d): more matches an event, and subscriptions crowded in cities."""
    for matches in (0.1, 1.0, 10.0):
        yield dense_line("(d) 100,000, spread evenly", mixture(100_000, matches), options)
    yield dense_line(f"(d) {options.most:,}, spread evenly", mixture(options.most), options)
    made = mixture(options.most, 0.3, skewed=True)
    yield dense_line(f"(d) {options.most:,}, crowded in cities", made, options)


def dense_line(what: str, made: Mixture, options: argparse.Namespace) -> str:
    """Measure a mixture against the tree, and check that both find the same."""
    count = options.most // 20
    subs, events = subscribed(made), made.events(count, 2)
    px, py = events["x"].to_numpy(), events["y"].to_numpy()
    points, tree = shapely.points(px, py), tree_of_mixture(made)
    found = subs.match(events)
    theirs = mixture_by_tree(tree, made, points, px, py)
    answer = in_order(found["event_row"].to_numpy(), found["subscription"].to_numpy())
    if not np.array_equal(answer, in_order(theirs[:, 0], theirs[:, 1])):
        raise SystemExit(f"{what}: the tree finds other pairs")
    spent = median(lambda: subs.match(events), options.repeat)
    other = median(lambda: mixture_by_tree(tree, made, points, px, py), options.repeat, PATIENCE_S)
    rate = f"{count / spent / 1e6:.2f} M events/s, {len(answer) / spent / 1e6:.1f} M matches/s"
    per_event = f"{len(answer) / count:.1f} an event, {subs.nbytes / len(made):,.0f} bytes a subscription"
    return f"| {what} | {rate} ({per_event}) | {other / spent:.1f} x faster than STRtree |"


def changing(options: argparse.Namespace) -> Iterator[str]:
    """Measure (e): adds and removes between the batches, with all subscriptions in place."""
    for skewed in (False, True):
        made = mixture(options.most, 0.3 if skewed else 1.0, skewed=skewed)
        subs, events = subscribed(made), made.events(options.most, 2)
        step, changed = max(1, options.most // 50), max(2, options.most // 2_000)
        leave_aside()
        still = median(lambda subs=subs, events=events: subs.match(events), options.repeat)
        pauses, matched, found = [], 0.0, 0
        for number in range(50):
            pauses += replace_some(subs, made, number * changed, changed)
            begin = time.process_time()
            found += subs.match(events.slice(number * step, step)).num_rows
            matched += time.process_time() - begin
        whole = matched + sum(pauses)
        rate = f"{50 * step / whole / 1e6:.2f} M events/s with {100 * changed / whole / 1e3:,.0f} k changes/s"
        longest = f"longest change {max(pauses) * 1e3:.1f} ms for {changed // 2:,}"
        where = "crowded in cities" if skewed else "spread evenly"
        about = f"({found / (50 * step):.1f} matches an event; {longest})"
        yield (
            f"| (e) {options.most:,}, {where}, changes between batches | {rate} {about} "
            f"| {whole / still:.2f} x the time without changes |"
        )


def leave_aside() -> None:
    """Let Python's garbage collector pass over the shapes made so far: those pauses are not ours."""
    gc.collect()
    gc.freeze()


def replace_some(subs: wb.Subscriptions, made: Mixture, first: int, count: int) -> list[float]:
    """Remove circles and polygons and add them again; give how long each of the four calls took."""
    half = len(made.x)
    circles = np.arange(first, first + count // 2) % half
    polygons = made.polygons[circles]
    calls: list[Callable[[], None]] = [
        lambda: subs.remove(circles),
        lambda: subs.remove(circles + half),
        lambda: subs.add_circles(circles, made.x[circles], made.y[circles], made.radius_m[circles]),
        lambda: subs.add_polygons(circles + half, polygons),
    ]
    spent = []
    for call in calls:
        begin = time.process_time()
        call()
        spent.append(time.process_time() - begin)
    return spent


def growing(options: argparse.Namespace) -> Iterator[str]:
    """Measure (f): from nothing to all subscriptions, 500 at a time: no call may have to rebuild anything."""
    made = mixture(options.most)
    leave_aside()
    subs, half, spent = wb.Subscriptions(), len(made.x), []
    for first in range(0, half, 500):
        some = np.arange(first, min(first + 500, half))
        begin = time.process_time()
        subs.add_circles(some, made.x[some], made.y[some], made.radius_m[some])
        spent.append(time.process_time() - begin)
        begin = time.process_time()
        subs.add_polygons(some + half, made.polygons[some])
        spent.append(time.process_time() - begin)
    middle, longest = float(np.median(spent)), max(spent)
    rate = f"{len(made) / sum(spent) / 1e3:,.0f} k/s"
    result = f"longest call {longest * 1e3:.1f} ms, median {middle * 1e3:.1f} ms, {rate}"
    what = f"(f) growing to {options.most:,}, 500 at a time"
    yield f"| {what} | {result} | {longest / middle:.0f} x the median call |"


def write_docs(table: str, options: argparse.Namespace) -> None:
    """Put the table between the marks in the docs page."""
    about = (
        f"Python {platform.python_version()}, one core of {platform.machine()}, {options.most:,} "
        f"subscriptions and events in the largest runs, median of {options.repeat} runs."
    )
    text = DOCS.read_text()
    head, rest = text.split(BEGIN)
    DOCS.write_text(f"{head}{BEGIN}\n\n{about}\n\n{table}\n\n{END}{rest.split(END)[1]}")


MEASUREMENTS = {
    "a": taxi,
    "b": shopping,
    "c": growth,
    "d": denser,
    "e": changing,
    "f": growing,
    "g": ranging,
}

if __name__ == "__main__":
    main()
