"""What the planner `pushpull` can be told besides workload, network and objective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whimbrel.errors import NetworkError

if TYPE_CHECKING:
    from whimbrel.plan.pushpull.multi_query import MultiQueryPlan


@dataclass(frozen=True, slots=True)
class PushPullSettings:
    """Settings of the planner `pushpull`."""

    priorities: Mapping[str, float] = field(default_factory=dict)
    """How much each definition matters where links or storage are too small for all; 0 where nothing is said.
    With any, what does not fit beside what matters more is left out, and told; without, it is an error."""
    previous: MultiQueryPlan | None = None
    """The plan that is carried out now, to plan again after something has changed."""
    least_gain: float = 0.05
    """The previous plan stays, if it still does, unless another saves at least this share of its cost."""

    def __post_init__(self) -> None:
        if not 0 <= self.least_gain < math.inf:
            raise NetworkError(f"the setting least_gain is {self.least_gain:g}", "give a share, such as 0.05")
        for name, priority in self.priorities.items():
            if not math.isfinite(priority):
                raise NetworkError(f"the priority of {name!r} is {priority:g}", "give a number")
