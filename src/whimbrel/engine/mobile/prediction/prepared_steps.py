"""Which of the switches ahead runs are prepared for, and where (thesis, algorithms 3.8 and 3.10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whimbrel.engine.arrays import longer
from whimbrel.engine.mobile.prediction.places import LastSamples, PlacePredictor, PredictedPlaces
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME
from whimbrel.space.local_plane import way

NOTHING = -1
"""The number of no interest: nothing is prepared."""


@dataclass(frozen=True, slots=True)
class PreparedInterests:
    """Interests that something is prepared for."""

    obj: Int64Array
    number: Int64Array
    """Which interest of its object."""

    def __len__(self) -> int:
        return len(self.obj)

    def __add__(self, other: PreparedInterests) -> PreparedInterests:
        return PreparedInterests(
            np.concatenate([self.obj, other.obj]), np.concatenate([self.number, other.number])
        )


@dataclass(frozen=True, slots=True)
class Renewal:
    """What changes in what is prepared after some location updates."""

    discard: PreparedInterests
    """Whose prepared runs are given up: they were predicted elsewhere, or are for what is over."""
    prepare: PreparedInterests
    """For whom runs are prepared."""
    switch: Int64Array
    """When each of these interests is expected to begin."""
    places: PredictedPlaces
    """Where: `row` counts what is to be prepared."""


class PreparedSteps(SavedState):
    """Keeps runs prepared for the next switches of objects that are numbered from 0.

    With each location update of an object the next `steps` switches are predicted. What is prepared for one
    of them stays unless the likeliest place has moved too far: then it is given up and prepared anew. With
    one step this is algorithm 3.8, renewed as in 3.10.
    """

    state: ClassVar = ("number", "x", "y")

    def __init__(
        self, predictor: PlacePredictor, steps: int = 1, candidates: int = 1, deviation_m: float = 0.0
    ) -> None:
        self.predictor = predictor
        self.steps = steps
        self.candidates = candidates
        """So many places are predicted for each step; which runs are worth it is decided afterwards."""
        self.deviation_m = deviation_m
        self.number = np.zeros((0, steps), np.int64)
        """What each slot is for: interests of an object take turns."""
        self.x = np.zeros((0, steps))
        self.y = np.zeros((0, steps))

    def update(
        self, obj: Int64Array, current: Int64Array, seen: LastSamples, expected: Int64Array
    ) -> Renewal:
        """Take in a location update of some objects, each object at most once.

        Parameters
        ----------
        current
            The number of the interest that is current after the update; if it has just begun, what was
            prepared for it has been taken over, or is given up now.
        seen
            The last samples of these objects, this update included.
        expected
            When the next switches are expected, a column for each step; nothing is predicted for those at the
            end of time, and what is prepared for them stays.
        """
        self._reserve(int(obj.max(initial=-1)) + 1)
        over = self._pass(obj, current)
        ahead = current[:, None] + np.arange(1, self.steps + 1)
        row, step = np.nonzero(expected < END_OF_TIME)
        number, switch = ahead[row, step], expected[row, step]
        places = self.predictor.predict(seen.take(row), switch - seen.time[row, -1], self.candidates)
        first = places.offsets(len(row))[:-1]
        x, y = places.x[first], places.y[first]
        slot = number % self.steps
        had = self.number[obj[row], slot] != NOTHING
        renewed = ~had | self._deviates(obj[row], slot, x, y, seen.coordinates)
        self.number[obj[row], slot] = number
        for kept, new in ((self.x, x), (self.y, y)):
            kept[obj[row], slot] = np.where(renewed, new, kept[obj[row], slot])
        elsewhere = PreparedInterests(obj[row][had & renewed], number[had & renewed])
        return Renewal(
            over + elsewhere,
            PreparedInterests(obj[row][renewed], number[renewed]),
            switch[renewed],
            _only(places, renewed),
        )  # fmt: skip

    def end(self, obj: Int64Array) -> PreparedInterests:
        """Give up all that is prepared for some objects, whose last interest has ended."""
        self._reserve(int(obj.max(initial=-1)) + 1)
        return self._pass(obj, np.full(len(obj), np.iinfo(np.int64).max))

    def _pass(self, obj: Int64Array, current: Int64Array) -> PreparedInterests:
        """Empty the slots of interests that have begun."""
        numbers = self.number[obj]
        row, slot = np.nonzero((numbers != NOTHING) & (numbers <= current[:, None]))
        order = np.lexsort((numbers[row, slot], row))
        row, slot = row[order], slot[order]
        self.number[obj[row], slot] = NOTHING
        return PreparedInterests(obj[row], numbers[row, slot])

    def _deviates(
        self, obj: Int64Array, slot: Int64Array, x: FloatArray, y: FloatArray, coordinates: Coordinates
    ) -> BoolArray:
        moved = np.hypot(*way(self.x[obj, slot], self.y[obj, slot], x, y, coordinates))
        return moved > self.deviation_m

    def _reserve(self, objects: int) -> None:
        before = len(self.number)
        if objects > before:
            room = max(objects, 2 * before)
            self.number, self.x, self.y = (longer(a, room) for a in (self.number, self.x, self.y))
            self.number[before:] = NOTHING


def _only(places: PredictedPlaces, rows: BoolArray) -> PredictedPlaces:
    """Keep the places of some rows, and count these anew."""
    kept = places.take(rows[places.row])
    return PredictedPlaces((np.cumsum(rows) - 1)[kept.row], kept.x, kept.y, kept.probability)
