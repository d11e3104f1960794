"""What came of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.sim.single_process import ids
from whimbrel.sim.tasks import Migration
from whimbrel.sim.traffic import Traffic

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """Detections and delays by consumer, traffic, and moves."""

    detections: Mapping[str, pa.Table]
    delays_s: Mapping[str, Floats]
    traffic: Traffic
    moves: tuple[Migration, ...] = ()
    seconds: float = 0.0
    """When the last thing happened."""
    steps: int = 0
    """How many things happened."""
    late: int = 0
    """Events that came to a task after their time; in a run without drops there are none."""
    rejected: int = 0
    """Rows that are no events."""
    work: Mapping[str, float] = field(default_factory=dict)
    """What tasks did at each broker, in units of capacity times seconds."""
    notes: Mapping[str, Any] = field(default_factory=dict)

    capacity: Mapping[str, float] = field(default_factory=dict)
    """What each broker can do in a second."""

    def busy(self, seconds: float) -> dict[str, float]:
        """Say what was asked of each broker in so many seconds as a share of what it can do; 1: just all."""
        return {
            name: work / (self.capacity[name] * seconds) if self.capacity[name] else math.inf
            for name, work in self.work.items()
            if work
        }


@dataclass(frozen=True, kw_only=True)
class PlanOutcome:
    """What came of a plan that was carried out, beside what one process finds in the same events."""

    outcome: Outcome
    single_process: Mapping[str, pa.Table]
    """For every delivery, what one process finds."""
    seconds: float
    """How long the events lasted."""
    rejected: Mapping[str, int]
    """Why rows of the recording are no events, and how many."""

    @property
    def is_same(self) -> bool:
        """Whether every delivery got the detections of one process, each once."""
        return all(
            sorted(ids(table)) == sorted(ids(self.outcome.detections[name]))
            for name, table in self.single_process.items()
        )
