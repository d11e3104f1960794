"""Carry out push and pull plans with events drawn by chance, and judge them by all there is to detect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.plan import PushPullPlan
from whimbrel.sim.pushpull.matching import Atom, MatchBuffer, MatchRule, PartialMatch, joins
from whimbrel.sim.pushpull.run import PlanRun, run_plans
from whimbrel.sim.settings import Settings
from whimbrel.sim.traffic import Traffic


@dataclass(frozen=True)
class PushPullOutcome:
    """What a plan found, what it cost, and how late it was."""

    found: frozenset[tuple[Atom, ...]]
    missed: frozenset[tuple[Atom, ...]]
    """What all events hold, and the plan did not find."""
    invented: frozenset[tuple[Atom, ...]]
    """What the plan found, and the events do not hold."""
    delays_s: np.ndarray
    """From the last event of a detection until the root had it."""
    minutes: float
    traffic: Traffic
    """What all plans sent that were carried out together."""
    most_kept: int
    """The most parts that any node kept of one input."""

    @property
    def cost_a_minute(self) -> float:
        """Bytes times what they cost, a minute."""
        return self.traffic.whole.cost / self.minutes

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        delays = self.delays_s
        return {
            "cost a minute": self.cost_a_minute,
            "bytes": self.traffic.whole.bytes,
            "detections": len(self.found),
            "missed": len(self.missed),
            "mean delay s": float(delays.mean()) if len(delays) else None,
            "largest delay s": float(delays.max()) if len(delays) else None,
            "requests": self.traffic.by_kind["request"].messages,
            "most kept": self.most_kept,
        }


def poisson_events(
    rates_min: Mapping[str, float], until_s: float, random: np.random.Generator
) -> dict[str, list[Atom]]:
    """Draw events of every leaf at a mean rate a minute."""
    found: dict[str, list[Atom]] = {}
    for name, rate in rates_min.items():
        count = int(random.poisson(rate * until_s / 60))
        times = np.sort(random.uniform(0.0, until_s, count)).tolist()
        found[name] = [(time, name, f"{name}{number}") for number, time in enumerate(times)]
    return found


def run_plan(
    plan: PushPullPlan, network: Network, events: Mapping[str, Sequence[Atom]], *, seed: int = 0
) -> PushPullOutcome:
    """Carry a plan out for given events of its leaves."""
    return run_together({"": plan}, network, events, seed=seed)[""]


def run_together(
    plans: Mapping[str, PushPullPlan],
    network: Network,
    events: Mapping[str, Sequence[Atom]],
    *,
    seed: int = 0,
) -> dict[str, PushPullOutcome]:
    """Carry several plans out at once, and judge each."""
    runs = run_plans(plans, network, events, settings=Settings(seed=seed, interval_s=60.0))
    last = max((atoms[-1][0] for atoms in events.values() if atoms), default=60.0)
    return {name: _judged(run, events, last / 60) for name, run in runs.items()}


def _judged(run: PlanRun, events: Mapping[str, Sequence[Atom]], minutes: float) -> PushPullOutcome:
    parts = run.composite.parts
    by_leaf = {part.name: list(events.get(part.name, ())) for part in parts}
    truth: set[tuple[Atom, ...]]
    if run.composite.operator == "or":
        truth = {(atom,) for atoms in by_leaf.values() for atom in atoms}
    else:
        truth = all_detections(run.rule, by_leaf, [part.name for part in parts if part.is_negated])
    return PushPullOutcome(
        frozenset(run.found),
        frozenset(truth - run.found.keys()),
        frozenset(run.found.keys() - truth),
        np.array(list(run.found.values()), np.float64),
        minutes,
        run.channel.world.links.traffic,
        max(node.most_kept for node in run.nodes),
    )


def all_detections(
    rule: MatchRule,
    events: Mapping[str, Sequence[Atom]],
    negated: Sequence[str] = (),
) -> set[tuple[Atom, ...]]:
    """Find all detections in all events: what plans are judged by."""
    buffers: dict[str, MatchBuffer] = {}
    for name, atoms in events.items():
        buffers[name] = MatchBuffer()
        for atom in atoms:
            buffers[name].add(PartialMatch(atom[0], atom[0], (atom,)))
    first, *others = [name for name in events if name not in negated]
    found = set()
    for atom in events[first]:
        for match in joins(rule, PartialMatch(atom[0], atom[0], (atom,)), [buffers[name] for name in others]):
            is_prevented = any(
                low < other.start < high
                for name in negated
                for low, high in [rule.forbidden(match, name)]
                for other in buffers[name].within(low, high)
            )
            if not is_prevented:
                found.add(match.atoms)
    return found
