"""The time steps that a plan looks ahead: TS in the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.arrays import Floats


@dataclass(frozen=True, slots=True)
class Horizon:
    """Equal time steps from a time on: step i lasts from `start_s + i * step_s` to the next one."""

    steps: int
    step_s: float = 1.0
    start_s: float = 0.0

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.step_s < math.inf:
            raise NetworkError(
                f"{self.steps} time steps of {self.step_s} s are no time to plan for",
                "give at least one step, longer than 0 s",
            )

    @property
    def times_s(self) -> Floats:
        """When each step begins."""
        return self.start_s + self.step_s * np.arange(self.steps, dtype=np.float64)

    @property
    def end_s(self) -> float:
        """When the last step ends."""
        return self.start_s + self.steps * self.step_s

    def time_s(self, step: int) -> float:
        """Tell when a step begins."""
        return self.start_s + step * self.step_s

    def span(self, seconds: float) -> int:
        """Return the number of whole steps that something takes: at least one."""
        return max(1, math.ceil(seconds / self.step_s - 1e-9))
