"""What a plan estimated beside what was measured when it was carried out, as rows, words and plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from whimbrel.plan.workload import Delivery
from whimbrel.sim.estimates import Compared, against_plan
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.planned import Executed
from whimbrel.sim.results import Plot, Results

Drawn = tuple[Plot, list[dict[str, Any]]]
"""A plot, and the rows that it shows."""


def judged(found: Executed) -> Results:
    """Put a plan's figures beside the measured ones, a row for each; with what was lost, and why."""
    rows: list[dict[str, Any]] = [
        _row(each, found)
        for each in against_plan(found.outcome, found.costs, found.seconds, names=[*found.alone])
    ]
    rows += _delay_rows(found)
    return Results(rows, (), notes(found))


def drawn(found: Executed) -> list[Drawn]:
    """Give what to draw: traffic by link, and how late which share of the detections was."""
    compared = against_plan(found.outcome, found.costs, found.seconds, names=[*found.alone])
    links = [
        replace(each, what=name)
        for each in compared
        for what, _, name in [each.what.partition(": ")]
        if what == "traffic B/s"
    ]
    return [traffic_drawn(links), delays_drawn(found.outcome)]


def traffic_drawn(links: Sequence[Compared]) -> Drawn:
    """Give the plot of bytes a second on links: estimated, and measured."""
    rows: list[dict[str, Any]] = []
    for each in links:
        rows.append({"link": each.what, "B/s": each.estimated, "figure": "estimated"})
        rows.append({"link": each.what, "B/s": each.measured, "figure": "measured"})
    return Plot("traffic", "Traffic by link", "link", "B/s", by="figure", kind="bar"), rows


def delays_drawn(outcome: Outcome) -> Drawn:
    """Give the plot of how late which share of the detections was."""
    rows = [
        {"detections %": 100 * (place + 1) / len(delays), "delay s": float(delay), "delivery": name}
        for name, delays in outcome.delays_s.items()
        for place, delay in enumerate(np.sort(delays))
    ]
    return Plot("delays", "Delays of detections", "detections %", "delay s", by="delivery"), rows


def notes(found: Executed) -> dict[str, Any]:
    """Say whether detections are those of one process, and what was late, rejected or dropped, and why."""
    outcome = found.outcome
    drops = Counter(drop.reason for drop in outcome.traffic.drops for _ in drop.message.legs)
    counts = {
        name: f"{outcome.detections[name].num_rows} of {table.num_rows}"
        for name, table in found.alone.items()
    }
    besides = outcome.traffic.of("heartbeat", "control").bytes / found.seconds
    return {
        "detections are those of one process": found.is_same,
        "detections that arrived, of those that one process finds": counts,
        "deliveries later than they may be": too_late(found.plan.workload.deliveries, outcome) or "none",
        "events that came too late": outcome.late,
        "rows that are no events": dict(found.rejected) or 0,
        "messages that were dropped": dict(drops) or 0,
        "messages on their way at the end": outcome.traffic.on_their_way,
        "heartbeats and orders B/s": besides,
        "moves": len(outcome.moves),
    }


def too_late(deliveries: Sequence[Delivery], outcome: Outcome) -> dict[str, str]:
    """Say which deliveries took longer than those who want them allow."""
    said = {}
    for delivery, (name, delays) in zip(deliveries, outcome.delays_s.items(), strict=True):
        count = int((delays > delivery.latency_s).sum())
        if count:
            said[name] = f"{count} of {len(delays)} after more than {delivery.latency_s:g} s"
    return said


def _row(each: Compared, found: Executed) -> dict[str, Any]:
    what, _, name = each.what.partition(": ")
    row: dict[str, Any] = {"figure": what, "of": name or "all links", "estimated": _finite(each.estimated)}
    row["measured"] = each.measured
    off = each.off_by
    row["off by %"] = None if off is None or math.isinf(off) else 100 * off
    if what in ("traffic B/s", "work /s") and _changes(found):
        # What the plan says of a link or a broker is the most at any time, not to be compared with a mean.
        row["figure"], row["off by %"] = f"{what}, estimated at most", None
    if what == "work /s":
        capacity = found.plan.network[name].capacity
        row["busy %"] = (
            None if math.isinf(capacity) or not capacity else 100 * (each.measured or 0.0) / capacity
        )
    return row


def _changes(found: Executed) -> bool:
    """Tell whether sources, consumers or tasks move, so that links and brokers are not always as busy."""
    plan = found.plan
    ends = {feed.at for feed in plan.workload.feeds} | {each.at for each in plan.workload.deliveries}
    return bool(plan.moves()) or not ends.isdisjoint(plan.network.mover)


def _delay_rows(found: Executed) -> list[dict[str, Any]]:
    rows = []
    for number, (name, delays) in enumerate(found.outcome.delays_s.items()):
        way = found.costs.delays_s[number]
        p95 = float(np.quantile(delays, 0.95)) if len(delays) else None
        rows.append({"figure": "delay s, in an idle network", "of": name, "estimated": _finite(way)})
        rows.append({"figure": "delay s, 95 % within", "of": name, "measured": p95})
    return rows


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
