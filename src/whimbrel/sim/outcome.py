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
        """Give what was asked of each broker in so many seconds as a share of what it can do; 1: just all."""
        return {
            name: work / (self.capacity[name] * seconds) if self.capacity[name] else math.inf
            for name, work in self.work.items()
            if work
        }

    def summary(self) -> dict[str, Any]:
        """Give the figures as plain data."""
        delays = np.concatenate([np.zeros(0), *self.delays_s.values()])
        downs = [move.down_s for move in self.moves if move.down_s is not None]
        found: dict[str, Any] = {
            "seconds": self.seconds,
            "steps": self.steps,
            "detections": sum(table.num_rows for table in self.detections.values()),
            "late": self.late,
            "rejected": self.rejected,
            "delay_s": _spread(delays),
            "moves": len(self.moves),
            "unfinished_moves": sum(move.started_s is None for move in self.moves),
            "down_s": _spread(np.array(downs, np.float64)),
            "state_b": sum(move.state_b + move.fixed_b for move in self.moves),
            **self.traffic.summary(),
        }
        return found | dict(self.notes)


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


def _spread(values: Floats) -> dict[str, float | None]:
    if not len(values):
        return {"mean": None, "median": None, "p95": None, "largest": None}
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "p95": float(np.quantile(values, 0.95)),
        "largest": float(values.max()),
    }
