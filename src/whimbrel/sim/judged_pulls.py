"""What a plan that pushes and pulls estimated beside what was measured, as rows, words and plots."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from whimbrel.plan.formatting import finite
from whimbrel.sim.alone import ids
from whimbrel.sim.estimates import Compared
from whimbrel.sim.judged import Drawn, delays_drawn, too_late, traffic_drawn
from whimbrel.sim.pulled import Pulled, named
from whimbrel.sim.results import Results

MANY = 10
"""Of detections that are missing, so many are named."""


def judged_pulls(found: Pulled) -> Results:
    """Put a plan's figures beside the measured ones, a row for each; with what was missed."""
    rows = [
        _row("cost a minute", "all links", _cost(found)),
        _row("requests B/s", "all links", _requests(found)),
    ]
    for wanted in found.pulls.wanted:
        name = named(wanted)
        delays = found.outcome.delays_s[name]
        largest = float(delays.max()) if len(delays) else None
        rows.append(_row("delay s", name, Compared("", found.pulls.delay_s(wanted), largest)))
        p95 = float(np.quantile(delays, 0.95)) if len(delays) else None
        rows.append({"figure": "delay s, 95 % within", "of": name, "measured": p95})
    rows += [_row("traffic B/s", each.what, each) for each in _links(found, "bytes")]
    rows += [_row("cost a minute", each.what, each) for each in _links(found, "cost")]
    return Results(rows, (), _notes(found))


def drawn_pulls(found: Pulled) -> list[Drawn]:
    """Give what to draw: traffic by link, and how late which share of the detections was."""
    return [traffic_drawn(_links(found, "bytes")), delays_drawn(found.outcome)]


def _row(figure: str, of: str, each: Compared) -> dict[str, Any]:
    row = {"figure": figure, "of": of, "estimated": finite(each.estimated), "measured": each.measured}
    off = each.off_by
    return row | {"off by %": None if off is None or finite(off) is None else 100 * off}


def _cost(found: Pulled) -> Compared:
    measured = found.outcome.traffic.whole.cost / found.seconds
    return Compared("", 60 * found.pulls.plans.cost_s, 60 * measured)


def _requests(found: Pulled) -> Compared:
    plans = found.pulls.plans
    estimated = sum(rate for (_, name), rate in plans.load.items() if name in plans.plans)
    return Compared("", estimated, found.outcome.traffic.of("request").bytes / found.seconds)


def _links(found: Pulled, what: str) -> list[Compared]:
    """Compare what links carry in both directions: bytes a second, or what they cost a minute."""
    is_cost = what == "cost"
    estimated = {
        frozenset((link.a, link.b)): (f"{link.a} - {link.b}", rate * (60 * link.cost if is_cost else 1.0))
        for link, rate in found.pulls.traffic_b_s.items()
    }
    measured: dict[frozenset[str], float] = {}
    for ends, used in found.outcome.traffic.by_link.items():
        amount = 60 * used.cost if is_cost else used.bytes
        measured[frozenset(ends)] = measured.get(frozenset(ends), 0.0) + amount / found.seconds
    compared = [Compared(name, rate, measured.pop(ends, 0.0)) for ends, (name, rate) in estimated.items()]
    return compared + [Compared(" - ".join(sorted(ends)), 0.0, each) for ends, each in measured.items()]


def _notes(found: Pulled) -> dict[str, Any]:
    """Say whether detections are those of one process, what was missed, held back, late or dropped."""
    traffic = found.outcome.traffic
    drops = Counter(drop.reason for drop in traffic.drops for _ in drop.message.legs)
    counts, missed = {}, {}
    for name, table in found.alone.items():
        got = set(ids(found.outcome.detections[name]))
        counts[name] = f"{len(got)} of {table.num_rows}"
        gone = [each for each in ids(table) if each not in got]
        if gone:
            missed[name] = gone[:MANY] + ([f"and {len(gone) - MANY} more"] if len(gone) > MANY else [])
    deliveries = [each.delivery for each in found.pulls.wanted]
    return {
        "detections are those of one process": found.is_same,
        "detections that arrived, of those that one process finds": counts,
        "detections that were missed": missed or 0,
        "deliveries later than they may be": too_late(deliveries, found.outcome) or "none",
        "events that came to where they are wanted, of those that pass their conditions": {
            name: f"{count} of {found.occurred}" for name, count in found.arrived.items()
        },
        "requests that crossed a link": traffic.of("request").messages,
        "rows that are no events": dict(found.rejected) or 0,
        "messages that were dropped": dict(drops) or 0,
        "messages on their way at the end": traffic.on_their_way,
    }
