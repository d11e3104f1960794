"""What a plan promised, beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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


def compared(estimated: Mapping[str, float], measured: Mapping[str, float | None]) -> tuple[Compared, ...]:
    """Put figures of the same names beside each other; what was not measured is None.

    >>> compared({"cost": 100.0}, {"cost": 110.0})[0].off_by
    0.10000000000000009
    """
    return tuple(Compared(what, value, measured.get(what)) for what, value in estimated.items())


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


def against_costs(
    outcome: Outcome,
    seconds: float,
    *,
    bdp_b: float | None = None,
    flow_b_s: float | None = None,
    cost_s: float | None = None,
    delays_s: Sequence[float] = (),
) -> tuple[Compared, ...]:
    """Compare the costs of a plan with a run of so many seconds.

    Parameters
    ----------
    bdp_b, flow_b_s, cost_s
        What the plan says of a second: byte seconds on their way, bytes on all links, what they cost.
    delays_s
        The longest delay of each delivery, in the order of the outcome's receivers.
    """
    whole = outcome.traffic.whole
    given = {"bdp B": bdp_b, "flow B/s": flow_b_s, "cost /s": cost_s}
    estimated = {what: value for what, value in given.items() if value is not None}
    measured: dict[str, float | None] = {
        "bdp B": whole.bdp / seconds,
        "flow B/s": whole.bytes / seconds,
        "cost /s": whole.cost / seconds,
    }
    for (name, delays), delay in zip(outcome.delays_s.items(), delays_s, strict=False):
        estimated[f"delay s: {name}"] = delay
        measured[f"delay s: {name}"] = float(delays.max()) if len(delays) else None
    return compared(estimated, measured)
