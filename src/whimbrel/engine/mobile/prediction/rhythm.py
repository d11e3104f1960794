"""When the next switches of objects are expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whimbrel.engine.mobile.prediction.places import LastSamples
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.graph.mobile import Refresh, RefreshEvery, RefreshWhenMoved, RefreshWhenQualityFalls
from whimbrel.model.time import END_OF_TIME, SECOND
from whimbrel.space.local_plane import mean_velocity, way

_LONGEST = 1e15
"""Who needs longer than this for the distance to the next switch stands: 30 years, in microseconds."""


@dataclass(frozen=True, slots=True)
class LastSwitches:
    """The last switch of each object."""

    time: Int64Array
    x: FloatArray
    y: FloatArray
    interval: Int64Array
    """The mean time between its last switches in microseconds; 0 if there was but one."""


def expected_switches(refresh: Refresh, seen: LastSamples, last: LastSwitches, steps: int) -> Int64Array:
    """Return when the next switches of each object are expected, a column for each step.

    Updates are expected as far apart as the last ones were, and a switch at the first of them at which the
    condition will hold, should the object go on as it did: time and distance say so, of quality only how
    often it fell. `END_OF_TIME` where nothing is expected: of objects that were seen once, or stand.
    """
    now = seen.time[:, -1]
    gaps = np.maximum((np.diff(seen.time, axis=1) > 0).sum(axis=1), 1)
    gap = (now - seen.time[:, 0]) // gaps
    first, interval = _first_and_interval(refresh, seen, last, gap)
    known = (gap > 0) & (interval < END_OF_TIME)
    interval = np.where(known, interval, 0)
    first = np.where(known, np.maximum(first, now + gap), END_OF_TIME)
    return np.where(known[:, None], first[:, None] + interval[:, None] * np.arange(steps), END_OF_TIME)


def _first_and_interval(
    refresh: Refresh, seen: LastSamples, last: LastSwitches, gap: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Tell the next switch, and the time from one to the next."""
    now = seen.time[:, -1]
    match refresh:
        case RefreshEvery(period):
            interval = _updates_beyond(np.full(len(now), float(period)), gap) * gap
            return now + _updates_beyond(last.time + period - now, gap) * gap, interval
        case RefreshWhenMoved(distance_m):
            east, north = mean_velocity(seen.seconds, seen.x, seen.y, seen.coordinates)
            speed = np.hypot(east, north) / SECOND
            gone_m = np.hypot(*way(last.x, last.y, seen.x[:, -1], seen.y[:, -1], seen.coordinates))
            moves = speed * _LONGEST > distance_m
            per_m = 1.0 / np.where(moves, speed, 1.0)
            interval = _updates_beyond(distance_m * per_m, gap) * gap
            first = now + _updates_beyond((distance_m - gone_m) * per_m, gap) * gap
            return first, np.where(moves, interval, END_OF_TIME)
        case RefreshWhenQualityFalls():
            interval = np.where(last.interval > 0, last.interval, gap)
            return last.time + interval, interval
    return now + gap, gap


def _updates_beyond(duration: FloatArray | Int64Array, gap: Int64Array) -> Int64Array:
    """Count the updates, at least one, until more than a time has passed."""
    return np.maximum(np.floor(duration / np.maximum(gap, 1)), 0).astype(np.int64) + 1
