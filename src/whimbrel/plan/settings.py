"""What each planner can be told besides workload, network and objective: frozen, typed, checked when made.

`whimbrel.plan.planners.PLANNERS` names the settings of each planner; `whimbrel plan` has an option for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from whimbrel.errors import NetworkError


class Movement(StrEnum):
    """What is known ahead of the movers whose tracks a network has (MigCEP, section 4.2)."""

    KNOWN = "known"
    """The tracks: timetables, or what was recorded."""
    NAVIGATION = "navigation"
    """The brokers on the way, and when each is entered up to a normal error."""
    LEARNED_TIMES = "learned-times"
    """The brokers on the way; when each is entered, as other movers of the network did."""
    LEARNED = "learned"
    """Nothing; they are expected to do what other movers of the network did."""
    LINEAR = "linear"
    """Nothing; they are expected to go straight on: dead reckoning."""


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """Settings of planners whose hosts stay: `centralised`, `greedy` and `exact`."""

    previous: Mapping[str, str] = field(default_factory=dict)
    """The hosts of the plan that runs now, to plan again after something has changed (`previous_hosts`)."""
    least_gain: float = 0.05
    """The previous hosts stay, if they still do, unless others save at least this share of what they cost."""

    def __post_init__(self) -> None:
        _check("least_gain", self.least_gain, 0.0, "give a share, such as 0.05")


@dataclass(frozen=True, slots=True)
class ExactSettings(PlacementSettings):
    """Settings of the planner `exact`."""

    time_limit_s: float = 120.0
    """How long the solver may search; what it has found by then is the plan, and a note tells the gap."""

    def __post_init__(self) -> None:
        PlacementSettings.__post_init__(self)
        _check("time_limit_s", self.time_limit_s, math.ulp(0.0), "give a time above 0")


@dataclass(frozen=True, slots=True)
class FlowSettings(PlacementSettings):
    """Settings of the planner `flow`."""

    radius: int | None = None
    """How many hops around itself a broker knows of. With it, brokers plan by themselves and hand tasks on to
    each other, as they would without anybody who knows the whole network."""
    grouped: bool = False
    """Keep tasks that are made of each other on one broker (dependence grouping, section 5 of the paper)."""

    def __post_init__(self) -> None:
        PlacementSettings.__post_init__(self)
        if self.radius is not None:
            _check("radius", self.radius, 1, "a broker sees at least its neighbours")
            if self.grouped or self.previous:
                raise NetworkError(
                    "brokers that plan with a radius neither group tasks nor keep a previous plan",
                    "leave out the radius, or grouping and the previous plan",
                )


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """Settings of the planner `migrate`."""

    step_s: float | None = None
    """The longest time between two moments at which tasks may start on another broker; None: such that there
    are at most 300 of them."""
    ahead_s: float | None = None
    """How far the plan looks; None: to the end of the last track."""
    coordinated: bool = False
    """Let tasks agree by messages alone, each with what its neighbours tell it (MigCEP, section 4.1), instead
    of planning with a view of the whole."""
    movement: Movement = Movement.KNOWN
    """What is known ahead of movers. Unless it is all, tasks plan again and again with what is expected."""
    policy: str = "adaptive"
    """How tasks plan next to movers that are uncertain: a name in `whimbrel.plan.migration.POLICIES`."""
    replan_s: float = 10.0
    """How often a new plan is made at least; a mover that is not where it was expected leads to one, too."""
    window_s: float = 200.0
    """How far each of these plans looks ahead."""
    range_m: float | None = None
    """Each task looks at brokers whose areas are so near to its present one, and those above; None: all."""
    spread: float = 0.1
    """The standard deviation of times on a known route, as a share of how far they lie ahead."""

    def __post_init__(self) -> None:
        for name in ("replan_s", "window_s"):
            _check(name, getattr(self, name), math.ulp(0.0), "give a time above 0")
        for name in ("range_m", "spread"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), 0.0, "give a number of 0 or more")
        if self.coordinated and self.movement is not Movement.KNOWN:
            raise NetworkError(
                "tasks that agree by messages plan once, for tracks that are known",
                "leave out one of coordinated and movement",
            )


def _check(name: str, value: float, least: float, hint: str) -> None:
    if not value >= least or math.isinf(value):
        raise NetworkError(f"the setting {name} is {value:g}", hint)
