"""What a plan estimated beside what was measured when it was carried out, as rows, words and plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whimbrel.plan.cost import Costs
from whimbrel.plan.formatting import finite
from whimbrel.plan.network import Link
from whimbrel.plan.workload import Delivery
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.placement_run import PlacementOutcome
from whimbrel.sim.push_pull_run import PushPullOutcome, delivery_name
from whimbrel.sim.results import Plot, Results
from whimbrel.sim.single_process import ids
from whimbrel.sim.traffic import LinkUse, Traffic

Drawn = tuple[Plot, list[dict[str, Any]]]
"""A plot, and the rows that it shows."""
DATA = ("data", "fixed state", "state")
"""What plans count: events and the state of tasks that move; not headers, heartbeats and orders."""
_STABLE = {
    "checkpoints": "checkpoints",
    "checkpoints_b": "bytes of checkpoints",
    "log_b": "bytes of the log",
    "replayed": "events that were worked on again",
    "lost": "jobs that were lost",
}
MANY = 10
"""Of detections that are missing, so many are named."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure: as a plan estimated it, and as it was measured."""

    what: str
    estimated: float
    measured: float | None

    @property
    def off_by(self) -> float | None:
        """By which share of the estimate the measured figure is larger; below 0: smaller."""
        if self.measured is None or math.isinf(self.estimated):
            return None
        if self.estimated == 0:
            return 0.0 if self.measured == 0 else math.inf
        return self.measured / self.estimated - 1.0


def compare(found: PlacementOutcome | PushPullOutcome) -> Results:
    """Put a plan's figures beside the measured ones, a row for each; with what was lost, and why."""
    rows = _placement_rows(found) if isinstance(found, PlacementOutcome) else _push_pull_rows(found)
    return Results(rows, (), _notes(found))


def plots(found: PlacementOutcome | PushPullOutcome) -> list[Drawn]:
    """Say what to draw: traffic by link, and how late which share of the detections was."""
    if isinstance(found, PlacementOutcome):
        links = _by_link(_data(found.outcome.traffic), found.costs.traffic_b_s, found.seconds)
    else:
        used = found.outcome.traffic.by_link.items()
        links = _by_link(used, found.plan.traffic_b_s, found.seconds)
    return [_traffic_plot(links), _delays_plot(found.outcome)]


# -- rows --------------------------------------------------------------------------------------------------


def against_plan(
    outcome: Outcome, costs: Costs, seconds: float, *, names: Sequence[str] = ()
) -> tuple[Compared, ...]:
    """Put all that a plan estimates beside what was measured in a run of so many seconds.

    Parameters
    ----------
    costs
        What `whimbrel.plan.cost.evaluate` says of the plan for the headers and heartbeats of the run, or
        `costs` of a placement. Delays stand beside its bounds.
    names
        The receivers in the order of the plan's deliveries; none: as they come in the outcome.
    """
    data, total = outcome.traffic.of(*DATA), costs.total
    found = [
        Compared("flow B/s", total.flow_b_s, data.bytes / seconds),
        Compared("bdp B", total.bdp_b, data.bdp / seconds),
        Compared("cost /s", total.cost_s, data.cost / seconds),
    ]
    found += [
        Compared(f"delay s: {name}", costs.bounds_s[number], _longest(outcome.delays_s[name]))
        for number, name in enumerate(names or outcome.delays_s)
    ]
    found += [
        Compared(f"traffic B/s: {each.what}", each.estimated, each.measured)
        for each in _by_link(_data(outcome.traffic), costs.traffic_b_s, seconds)
    ]
    found += [
        Compared(f"work /s: {broker}", work, outcome.work.get(broker, 0.0) / seconds)
        for broker, work in costs.work.items()
    ]
    return tuple(found)


def _placement_rows(found: PlacementOutcome) -> list[dict[str, Any]]:
    compared = against_plan(found.outcome, found.costs, found.seconds, names=[*found.single_process])
    rows = [_placement_row(each, found) for each in compared]
    for (name, delays), way in zip(found.outcome.delays_s.items(), found.costs.delays_s, strict=True):
        rows.append({"figure": "delay s, in an idle network", "of": name, "estimated": finite(way)})
        rows.append(_p95_row(name, delays))
    return rows


def _placement_row(each: Compared, found: PlacementOutcome) -> dict[str, Any]:
    what, _, name = each.what.partition(": ")
    row = _row(what, name or "all links", each)
    if what in ("traffic B/s", "work /s") and _changes(found):
        # What the plan says of a link or a broker is the most at any time, not to be compared with a mean.
        row["figure"], row["off by %"] = f"{what}, estimated at most", None
    if what == "work /s":
        capacity = found.plan.network[name].capacity
        row["busy %"] = (
            None if math.isinf(capacity) or not capacity else 100 * (each.measured or 0.0) / capacity
        )
    return row


def _changes(found: PlacementOutcome) -> bool:
    """Tell whether sources, consumers or tasks move, so that links and brokers are not always as busy."""
    plan = found.plan
    ends = {feed.at for feed in plan.workload.feeds} | {each.at for each in plan.workload.deliveries}
    return bool(plan.moves()) or not ends.isdisjoint(plan.network.mover)


def _push_pull_rows(found: PushPullOutcome) -> list[dict[str, Any]]:
    plans, traffic, seconds = found.plan.plans, found.outcome.traffic, found.seconds
    requests = sum(rate for (_, name), rate in plans.load.items() if name in plans.plans)
    cost = Compared("", 60 * plans.cost_s, 60 * (traffic.whole.cost / seconds))
    rows = [
        _row("cost a minute", "all links", cost),
        _row("requests B/s", "all links", Compared("", requests, traffic.of("request").bytes / seconds)),
    ]
    for wanted in found.plan.wanted:
        name = delivery_name(wanted)
        delays = found.outcome.delays_s[name]
        rows.append(_row("delay s", name, Compared("", found.plan.delay_s(wanted), _longest(delays))))
        rows.append(_p95_row(name, delays))
    load, used = found.plan.traffic_b_s, traffic.by_link.items()
    costs = {link: rate * (60 * link.cost) for link, rate in load.items()}
    rows += [_row("traffic B/s", each.what, each) for each in _by_link(used, load, seconds)]
    rows += [_row("cost a minute", each.what, each) for each in _by_link(used, costs, seconds, cost=True)]
    return rows


def _row(figure: str, of: str, each: Compared) -> dict[str, Any]:
    off = None if each.off_by is None else finite(each.off_by)
    row = {"figure": figure, "of": of, "estimated": finite(each.estimated), "measured": each.measured}
    return row | {"off by %": None if off is None else 100 * off}


def _p95_row(name: str, delays: np.ndarray) -> dict[str, Any]:
    p95 = float(np.quantile(delays, 0.95)) if len(delays) else None
    return {"figure": "delay s, 95 % within", "of": name, "measured": p95}


def _longest(delays: np.ndarray) -> float | None:
    return float(delays.max()) if len(delays) else None


def _data(traffic: Traffic) -> list[tuple[tuple[str, str], LinkUse]]:
    """Say what of the data went over each link in each direction."""
    return [(ends, used) for (ends, kind), used in traffic.parts.items() if kind in DATA]


def _by_link(
    measurements: Iterable[tuple[tuple[str, str], LinkUse]],
    estimated: Mapping[Link, float],
    seconds: float,
    *,
    cost: bool = False,
) -> list[Compared]:
    """Compare what links carry in both directions: bytes a second, or what they cost a minute."""
    measured: dict[frozenset[str], float] = {}
    for ends, used in measurements:
        amount = 60 * used.cost if cost else used.bytes
        measured[frozenset(ends)] = measured.get(frozenset(ends), 0.0) + amount / seconds
    found = [
        Compared(f"{link.a} - {link.b}", rate, measured.pop(frozenset((link.a, link.b)), 0.0))
        for link, rate in estimated.items()
    ]
    return found + [Compared(" - ".join(sorted(ends)), 0.0, each) for ends, each in measured.items()]


# -- notes -------------------------------------------------------------------------------------------------


def _notes(found: PlacementOutcome | PushPullOutcome) -> dict[str, Any]:
    """Say whether detections are those of one process, and what was missed, late, rejected or dropped."""
    traffic, outcome = found.outcome.traffic, found.outcome
    notes: dict[str, Any] = {
        "detections are those of one process": found.is_same,
        "detections that arrived, of those that one process finds": {
            name: f"{outcome.detections[name].num_rows} of {table.num_rows}"
            for name, table in found.single_process.items()
        },
    }
    if isinstance(found, PushPullOutcome):
        notes["detections that were missed"] = _missed(found) or 0
        if found.plan.plans.left_out:
            notes["left out of the plan"] = dict(found.plan.plans.left_out)
        deliveries = [each.delivery for each in found.plan.wanted]
        of_the_kind = {
            "events that came to where they are wanted, of those that pass their conditions": {
                name: f"{count} of {found.occurred}" for name, count in found.arrived.items()
            },
            "requests that crossed a link": traffic.of("request").messages,
        }
    else:
        deliveries = list(found.plan.workload.deliveries)
        of_the_kind = {"events that came too late": outcome.late}
    drops = Counter(drop.reason for drop in traffic.drops for _ in drop.message.contents)
    notes |= {
        "deliveries later than they may be": _too_late(deliveries, outcome) or "none",
        **of_the_kind,
        "rows that are no events": dict(found.rejected) or 0,
        "messages that were dropped": dict(drops) or 0,
        "messages on their way at the end": traffic.on_their_way,
    }
    stable = {_STABLE[name]: amount for name, amount in outcome.notes.get("stable", {}).items() if amount}
    if stable:
        notes["stable storage"] = stable
    if isinstance(found, PlacementOutcome):
        notes["heartbeats and orders B/s"] = traffic.of("heartbeat", "control").bytes / found.seconds
        notes["moves"] = len(outcome.moves)
    return notes


def _missed(found: PushPullOutcome) -> dict[str, list[str]]:
    """Name the detections that did not arrive, the first of them."""
    missed = {}
    for name, table in found.single_process.items():
        got = set(ids(found.outcome.detections[name]))
        gone = [each for each in ids(table) if each not in got]
        if gone:
            missed[name] = gone[:MANY] + ([f"and {len(gone) - MANY} more"] if len(gone) > MANY else [])
    return missed


def _too_late(deliveries: Sequence[Delivery], outcome: Outcome) -> dict[str, str]:
    """Say which deliveries took longer than those who want them allow."""
    said = {}
    for delivery, (name, delays) in zip(deliveries, outcome.delays_s.items(), strict=True):
        count = int((delays > delivery.latency_s).sum())
        if count:
            said[name] = f"{count} of {len(delays)} after more than {delivery.latency_s:g} s"
    return said


# -- plots -------------------------------------------------------------------------------------------------


def _traffic_plot(links: Sequence[Compared]) -> Drawn:
    """Draw bytes a second on links: estimated, and measured."""
    rows: list[dict[str, Any]] = []
    for each in links:
        rows.append({"link": each.what, "B/s": each.estimated, "figure": "estimated"})
        rows.append({"link": each.what, "B/s": each.measured, "figure": "measured"})
    return Plot("traffic", "Traffic by link", "link", "B/s", by="figure", kind="bar"), rows


def _delays_plot(outcome: Outcome) -> Drawn:
    """Draw how late which share of the detections was."""
    rows = [
        {"detections %": 100 * (place + 1) / len(delays), "delay s": float(delay), "delivery": name}
        for name, delays in outcome.delays_s.items()
        for place, delay in enumerate(np.sort(delays))
    ]
    return Plot("delays", "Delays of detections", "detections %", "delay s", by="delivery"), rows
