"""Learned transitions: objects do what others did where they are now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from whimbrel.engine.mobile.prediction.dead_reckoning import DeadReckoning
from whimbrel.engine.mobile.prediction.places import LastSamples, PredictedPlaces, likeliest_first
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.errors import QueryError
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND
from whimbrel.space.geometry import METRES_PER_DEGREE

_ROWS = 1 << 32
"""Cells of a grid have numbers row * `_ROWS` + column."""
_UNKNOWN = -1


@dataclass(frozen=True)
class LearnedCells:
    """Square cells that cover the plane; on the globe, as wide as they are high at one latitude."""

    width: float
    height: float
    """In units of coordinates."""

    @classmethod
    def of(cls, cell_m: float, latitude: float | None) -> LearnedCells:
        """Lay out cells of a size in metres; without a latitude, on the plane."""
        if latitude is None:
            return cls(cell_m, cell_m)
        height = cell_m / METRES_PER_DEGREE
        return cls(height / max(float(np.cos(np.radians(latitude))), 1e-6), height)

    def cells(self, x: FloatArray, y: FloatArray) -> Int64Array:
        """Give the number of the cell of each place."""
        column, row = (np.floor(a / size).astype(np.int64) for a, size in ((x, self.width), (y, self.height)))
        return row * _ROWS + column


@dataclass(frozen=True)
class LearnedPlaces:
    """What objects did, by the cell they were in and the one a step before: a Markov chain of second order.

    Learned once, by `learned`, and frozen: a model that learned on would make what is told depend on what
    else was asked. Objects in places where nobody was seen are predicted by dead reckoning.
    """

    grid: LearnedCells
    step: int
    """The time between two steps, in microseconds."""
    cells: Int64Array
    """The cells that anybody was in, in order."""
    pairs: Int64Array
    """The states, in order: the cell before (0: not known; else its place in `cells` + 1) times the number of
    cells, plus the place of the present cell."""
    begins: Int64Array
    """Where the ways on from each state begin; at the end, where the last ones end."""
    following: Int64Array
    chance: FloatArray
    x: FloatArray
    y: FloatArray
    """Where objects were in each state, on average."""
    most_states: int = 64
    """So many states are followed for each object, the likeliest ones."""
    otherwise: DeadReckoning = field(default_factory=DeadReckoning)
    samples: ClassVar[int] = 8
    route_attribute: ClassVar[str | None] = None

    @classmethod
    def learned(
        cls,
        obj: Int64Array,
        time: Int64Array,
        x: FloatArray,
        y: FloatArray,
        *,
        cell_m: float = 10.0,
        step: int = SECOND,
        longest_gap: int = 10 * SECOND,
        coordinates: Coordinates = Coordinates.PLANE,
    ) -> LearnedPlaces:
        """Learn from location updates in any order.

        Parameters
        ----------
        obj, time
            Whose they are, as numbers, and when, in microseconds.
        cell_m
            The size of the cells; by the cell a step before they tell ways and speeds apart, so that small
            ones are better as long as many objects were seen.
        step
            The time from one cell to the next. Between updates that are at most `longest_gap` apart objects
            went straight.
        """
        if cell_m <= 0 or step <= 0:
            raise QueryError(
                f"cells have a size and steps a duration above 0, not {cell_m:g} m and {step} µs"
            )
        is_globe = coordinates is Coordinates.LONLAT
        grid = LearnedCells.of(cell_m, float(np.median(y)) if is_globe and len(y) else None)
        track, x, y = _in_steps(obj, time, x, y, step, longest_gap)
        return cls._counted(grid, step, track, x, y)

    @classmethod
    def _counted(
        cls, grid: LearnedCells, step: int, track: Int64Array, x: FloatArray, y: FloatArray
    ) -> LearnedPlaces:
        """Count how often objects went from state to state; a track is a way without gaps."""
        cells, at = np.unique(grid.cells(x, y), return_inverse=True)
        goes_on = track[1:] == track[:-1]
        before = np.zeros(len(at), np.int64)
        before[1:][goes_on] = at[:-1][goes_on] + 1
        # Each place counts twice: after the cell before, and for objects whose past is not known.
        keys = np.concatenate([before * len(cells) + at, at])
        pairs, state = np.unique(keys, return_inverse=True)
        known, unknown = state[: len(at)], state[len(at) :]
        to = known[1:]
        has_past = goes_on & (known[:-1] != unknown[:-1])
        ways = np.concatenate([
            (known[:-1] * len(pairs) + to)[goes_on], (unknown[:-1] * len(pairs) + to)[has_past]
        ])  # fmt: skip
        ways, count = np.unique(ways, return_counts=True)
        origin, following = np.divmod(ways, max(len(pairs), 1))
        total = np.bincount(origin, count, minlength=len(pairs))
        size = np.bincount(state, minlength=len(pairs))
        mean_x, mean_y = (np.bincount(state, np.tile(a, 2), minlength=len(pairs)) / size for a in (x, y))
        begins = np.searchsorted(origin, np.arange(len(pairs) + 1)).astype(np.int64)
        return cls(grid, step, cells, pairs, begins, following, count / total[origin], mean_x, mean_y)

    def predict(self, seen: LastSamples, ahead: Int64Array, most: int) -> PredictedPlaces:
        """Give at most so many places for each row of samples, `ahead` microseconds after its newest one."""
        first = self._states(seen)
        off = np.flatnonzero(first == _UNKNOWN)
        rest = self.otherwise.predict(seen.take(off), ahead[off], most)
        row = np.flatnonzero(first != _UNKNOWN)
        state, weight = first[row], np.ones(len(row))
        steps = np.rint(ahead / self.step).astype(np.int64)
        for step in range(int(steps[row].max(initial=0))):
            row, state, weight = self._one_step(row, state, weight, steps[row] > step)
        row, x, y, weight = self._in_cells(row, state, weight)
        # Others were elsewhere in the first cell, on average: by as much it will be elsewhere than they were.
        x = x + (seen.x[row, -1] - self.x[first[row]])
        y = y + (seen.y[row, -1] - self.y[first[row]])
        return likeliest_first(
            np.concatenate([row, off[rest.row]]),
            np.concatenate([x, rest.x]),
            np.concatenate([y, rest.y]),
            np.concatenate([weight, rest.probability]),
            most,
        )

    def _states(self, seen: LastSamples) -> Int64Array:
        """Find the state of each object; that without a past if its own was never seen."""
        at = _place_in(self.cells, self.grid.cells(seen.x[:, -1], seen.y[:, -1]))
        before = np.full(len(seen), _UNKNOWN, np.int64)
        there, x, y = _a_step_ago(seen, self.step)
        before[there] = _place_in(self.cells, self.grid.cells(x[there], y[there]))
        state = _place_in(self.pairs, (before + 1) * len(self.cells) + at)
        state = np.where(state == _UNKNOWN, _place_in(self.pairs, at), state)
        return np.where(at == _UNKNOWN, _UNKNOWN, state)

    def _one_step(
        self, row: Int64Array, state: Int64Array, weight: FloatArray, moves: BoolArray
    ) -> tuple[Int64Array, Int64Array, FloatArray]:
        """Go on from every state that is followed; who was never seen to leave one stays there."""
        ways = np.where(moves, self.begins[state + 1] - self.begins[state], 0)
        goes, stays = np.flatnonzero(ways > 0), np.flatnonzero(ways == 0)
        origin = np.repeat(goes, ways[goes])
        within = np.arange(len(origin)) - np.repeat(np.cumsum(ways[goes]) - ways[goes], ways[goes])
        edge = self.begins[state[origin]] + within
        return self._likeliest_states(
            np.concatenate([row[stays], row[origin]]),
            np.concatenate([state[stays], self.following[edge]]),
            np.concatenate([weight[stays], weight[origin] * self.chance[edge]]),
        )

    def _likeliest_states(
        self, row: Int64Array, state: Int64Array, weight: FloatArray
    ) -> tuple[Int64Array, Int64Array, FloatArray]:
        keys, group = np.unique(row * len(self.pairs) + state, return_inverse=True)
        weight = np.bincount(group, weight).astype(np.float64, copy=False)
        row, state = np.divmod(keys, len(self.pairs))
        order = np.lexsort((state, -weight, row))
        row, state, weight = row[order], state[order], weight[order]
        keep = np.arange(len(row)) - np.searchsorted(row, row) < self.most_states
        return row[keep], state[keep], weight[keep]

    def _in_cells(
        self, row: Int64Array, state: Int64Array, weight: FloatArray
    ) -> tuple[Int64Array, FloatArray, FloatArray, FloatArray]:
        """Put states of one cell together, however objects came there."""
        keys, group = np.unique(
            row * len(self.cells) + self.pairs[state] % len(self.cells), return_inverse=True
        )
        total = np.bincount(group, weight).astype(np.float64, copy=False)
        x, y = (np.bincount(group, weight * a[state]) / total for a in (self.x, self.y))
        return keys // len(self.cells), x, y, total


def _in_steps(
    obj: Int64Array, time: Int64Array, x: FloatArray, y: FloatArray, step: int, longest_gap: int
) -> tuple[Int64Array, FloatArray, FloatArray]:
    """Read tracks at whole steps; give whose each place is, another number after each gap."""
    order = np.lexsort((time, obj))
    obj, time, x, y = obj[order], time[order], x[order], y[order]
    joined = (obj[1:] == obj[:-1]) & (time[1:] > time[:-1]) & (time[1:] - time[:-1] <= longest_gap)
    # The whole steps from an update up to, and without, the next one; after a gap, up to its own time.
    end = np.append(np.where(joined, time[1:] - 1, time[:-1]), time[-1:])
    first = -(-time // step)
    count = np.maximum(end // step - first + 1, 0)
    origin = np.repeat(np.arange(len(time)), count)
    at = (first[origin] + np.arange(len(origin)) - np.repeat(np.cumsum(count) - count, count)) * step
    after = np.minimum(origin + 1, len(time) - 1)
    passed = np.maximum(time[after] - time[origin], 1)
    share = np.where(at > time[origin], (at - time[origin]) / passed, 0.0)
    track = np.concatenate([np.zeros(1, np.int64), np.cumsum(~joined)]) if len(obj) else obj
    return (
        track[origin],
        x[origin] + share * (x[after] - x[origin]),
        y[origin] + share * (y[after] - y[origin]),
    )


def _a_step_ago(seen: LastSamples, step: int) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Tell where objects were a step before their newest sample, and of which that is known."""
    wanted = seen.time[:, -1] - step
    there = seen.time[:, 0] <= wanted
    rows = np.arange(len(seen))
    left = np.maximum((seen.time <= wanted[:, None]).sum(axis=1) - 1, 0)
    right = np.minimum(left + 1, seen.time.shape[1] - 1)
    t0, t1 = seen.time[rows, left], seen.time[rows, right]
    share = np.where(t1 > t0, (wanted - t0) / np.maximum(t1 - t0, 1), 0.0)
    x, y = (a[rows, left] + share * (a[rows, right] - a[rows, left]) for a in (seen.x, seen.y))
    return there, x, y


def _place_in(sorted_keys: Int64Array, wanted: Int64Array) -> Int64Array:
    """Find keys in an array in order; `_UNKNOWN` for those that are not there."""
    if not len(sorted_keys):
        return np.full(len(wanted), _UNKNOWN, np.int64)
    place = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.where(sorted_keys[place] == wanted, place, _UNKNOWN).astype(np.int64)
