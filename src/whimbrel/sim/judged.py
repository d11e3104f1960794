"""What a plan estimated beside what was measured when it was carried out, as rows, words and plots."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from whimbrel.sim.estimates import Compared, against_plan
from whimbrel.sim.planned import Executed
from whimbrel.sim.scenarios.registry import Plot, Results


def judged(found: Executed) -> Results:
    """Put a plan's figures beside the measured ones, a row for each; with what was lost, and why."""
    rows: list[dict[str, Any]] = [
        _row(each, found)
        for each in against_plan(found.outcome, found.costs, found.seconds, names=[*found.alone])
    ]
    rows += _delay_rows(found)
    return Results(rows, (), notes(found))


def drawn(found: Executed) -> list[tuple[Plot, list[dict[str, Any]]]]:
    """Give what to draw: traffic by link, and how late which share of the detections was."""
    compared = against_plan(found.outcome, found.costs, found.seconds, names=[*found.alone])
    links: list[dict[str, Any]] = []
    for each in compared:
        what, _, name = each.what.partition(": ")
        if what == "traffic B/s":
            links.append({"link": name, "B/s": each.estimated, "figure": "estimated"})
            links.append({"link": name, "B/s": each.measured, "figure": "measured"})
    late = [
        {"detections %": 100 * (place + 1) / len(delays), "delay s": float(delay), "delivery": name}
        for name, delays in found.outcome.delays_s.items()
        for place, delay in enumerate(np.sort(delays))
    ]
    return [
        (Plot("traffic", "Traffic by link", "link", "B/s", by="figure", kind="bar"), links),
        (Plot("delays", "Delays of detections", "detections %", "delay s", by="delivery"), late),
    ]


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
        "deliveries later than they may be": _too_late(found) or "none",
        "events that came too late": outcome.late,
        "rows that are no events": dict(found.rejected) or 0,
        "messages that were dropped": dict(drops) or 0,
        "messages on their way at the end": outcome.traffic.on_their_way,
        "heartbeats and orders B/s": besides,
        "moves": len(outcome.moves),
    }


def _too_late(found: Executed) -> dict[str, str]:
    """Say which deliveries took longer than those who want them allow."""
    said = {}
    for delivery, (name, delays) in zip(
        found.plan.workload.deliveries, found.outcome.delays_s.items(), strict=True
    ):
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
    if what == "work /s":
        capacity = found.plan.network[name].capacity
        row["figure"], row["of"] = "work /s", name
        row["busy %"] = (
            None if math.isinf(capacity) or not capacity else 100 * (each.measured or 0.0) / capacity
        )
    return row


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
