"""What a plan promised, beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from whimbrel.plan.cost import Costs
from whimbrel.sim.outcome import Outcome


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


DATA = ("data", "fixed state", "state")
"""What plans count: events and the state of tasks that move; not headers, heartbeats and orders."""


def against_plan(
    outcome: Outcome,
    costs: Costs,
    seconds: float,
    *,
    names: Sequence[str] = (),
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
    for number, name in enumerate(names or outcome.delays_s):
        delays = outcome.delays_s[name]
        bound = costs.bounds_s[number]
        found.append(Compared(f"delay s: {name}", bound, float(delays.max()) if len(delays) else None))
    sent: dict[frozenset[str], float] = {}
    for (ends, kind), used in outcome.traffic.parts.items():
        if kind in DATA:
            sent[frozenset(ends)] = sent.get(frozenset(ends), 0.0) + used.bytes / seconds
    for link, load in costs.traffic_b_s.items():
        bytes_s = sent.pop(frozenset((link.a, link.b)), 0.0)
        found.append(Compared(f"traffic B/s: {link.a} - {link.b}", load, bytes_s))
    found += [Compared(f"traffic B/s: {' - '.join(sorted(ends))}", 0.0, each) for ends, each in sent.items()]
    found += [
        Compared(f"work /s: {broker}", work, outcome.work.get(broker, 0.0) / seconds)
        for broker, work in costs.work.items()
    ]
    return tuple(found)
