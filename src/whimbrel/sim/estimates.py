"""What a plan promised, beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
