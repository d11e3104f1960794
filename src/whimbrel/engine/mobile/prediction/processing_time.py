"""How long before a switch a run has to begin, so that it is done with history when the object comes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.errors import QueryError
from whimbrel.model.time import SECOND


@dataclass(frozen=True)
class ProcessingTimes:
    """How long events of history take, from measured pairs of events and seconds (thesis, equation 3.12).

    Between two pairs the time is on the line between them; beyond the last one it goes on as between the last
    two, and before the first it begins at (0, 0), unless that is measured.
    """

    events: tuple[float, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.events or len(self.events) != len(self.seconds):
            raise QueryError("a profile of processing times needs pairs of events and seconds")
        pairs = np.array([self.events, self.seconds], float)
        if not np.isfinite(pairs).all() or (pairs < 0).any():
            raise QueryError("events and seconds of a profile are finite numbers from 0 on")
        if (np.diff(pairs[0]) <= 0).any() or (np.diff(pairs[1]) < 0).any():
            raise QueryError(
                "the pairs of a profile are in order: each has more events than the last, and no less time",
                hint="put them in order, and take the mean of several measurements of one number of events",
            )

    @classmethod
    def each(cls, seconds: float) -> ProcessingTimes:
        """Let every event take the same time.

        >>> ProcessingTimes.each(0.005).seconds_for(np.array([0.0, 400.0])).tolist()
        [0.0, 2.0]
        """
        return cls((1.0,), (seconds,))

    def seconds_for(self, events: FloatArray | Int64Array) -> FloatArray:
        """Return how long so many events take."""
        known, took = np.array(self.events, float), np.array(self.seconds, float)
        if known[0] > 0:
            known, took = np.append(0.0, known), np.append(0.0, took)
        found = np.interp(events, known, took)
        if len(known) > 1:
            slope = (took[-1] - took[-2]) / (known[-1] - known[-2])
            found = found + slope * np.maximum(events - known[-1], 0.0)
        return found

    def begin(self, switch: Int64Array, events: FloatArray | Int64Array, now: Int64Array) -> Int64Array:
        """Return when runs begin that have to be done by their switches, at once if it is late (µs)."""
        needed = np.ceil(self.seconds_for(events) * SECOND).astype(np.int64)
        return np.maximum(switch - needed, now)
