"""What a predictor of places is given, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND


@dataclass(frozen=True, slots=True)
class LastSamples:
    """The last location updates of some objects: a row for each object, the newest update in the last column.

    Where an object had fewer updates, its first one stands in the columns before.
    """

    time: Int64Array
    """Microseconds."""
    x: FloatArray
    y: FloatArray
    coordinates: Coordinates = Coordinates.PLANE
    routes: np.ndarray | None = None
    """The route that each object said last, as WKT; None where it said none. Only if the predictor asks."""

    def __len__(self) -> int:
        return len(self.time)

    @property
    def seconds(self) -> FloatArray:
        """The times in seconds before the newest update, so that no digit is lost."""
        return (self.time - self.time[:, -1:]) / SECOND

    def take(self, rows: Int64Array) -> LastSamples:
        """Give some of the objects, each as often as asked for."""
        routes = None if self.routes is None else self.routes[rows]
        return replace(self, time=self.time[rows], x=self.x[rows], y=self.y[rows], routes=routes)


@dataclass(frozen=True, slots=True)
class PredictedPlaces:
    """Places where objects may be: row after row of what was asked, the likeliest of each first."""

    row: Int64Array
    """Which row of what was asked it is for."""
    x: FloatArray
    y: FloatArray
    probability: FloatArray
    """The places of a row have 1 together."""

    def __len__(self) -> int:
        return len(self.row)

    def take(self, which: np.ndarray) -> PredictedPlaces:
        """Give some of the places."""
        return PredictedPlaces(self.row[which], self.x[which], self.y[which], self.probability[which])

    def offsets(self, rows: int) -> Int64Array:
        """Tell where the places of each row begin; at the end, where the last ones end."""
        return np.searchsorted(self.row, np.arange(rows + 1)).astype(np.int64)


@runtime_checkable
class PlacePredictor(Protocol):
    """Says where objects will be.

    The same samples give the same places: what a query tells must not depend on when somebody asked.
    """

    @property
    def samples(self) -> int:
        """How many of the last location updates it reads."""
        ...

    @property
    def route_attribute(self) -> str | None:
        """The attribute of location updates that it reads routes from, as WKT."""
        ...

    def predict(self, seen: LastSamples, ahead: Int64Array, most: int) -> PredictedPlaces:
        """Give at most so many places for each row of samples, `ahead` microseconds after its newest one."""
        ...


def likeliest_first(
    row: Int64Array, x: FloatArray, y: FloatArray, weight: FloatArray, most: int
) -> PredictedPlaces:
    """Make places of what is found for rows in any order: the likeliest ones, their weights as probabilities.

    Of equally likely ones those to the west, then to the south, come first.
    """
    order = np.lexsort((y, x, -weight, row))
    row, x, y, weight = row[order], x[order], y[order], weight[order]
    begins = np.searchsorted(row, row)
    keep = np.arange(len(row)) - begins < most
    row, x, y, weight = row[keep], x[keep], y[keep], weight[keep]
    total = np.bincount(row, weight, minlength=int(row[-1]) + 1 if len(row) else 0)
    return PredictedPlaces(row, x, y, weight / total[row])


class SampleMemory(SavedState):
    """Keeps the last location updates of objects that are numbered from 0."""

    state: ClassVar = ("time", "x", "y", "known")

    def __init__(self, samples: int) -> None:
        self.time = np.zeros((0, samples), np.int64)
        self.x = np.zeros((0, samples))
        self.y = np.zeros((0, samples))
        self.known = np.zeros(0, np.bool_)

    def take_in(self, obj: Int64Array, time: Int64Array, x: FloatArray, y: FloatArray) -> None:
        """Remember updates that are in order of time."""
        if not len(obj):
            return
        self._reserve(int(obj.max()) + 1)
        order = np.argsort(obj, kind="stable")
        touched, first, count = np.unique(obj[order], return_index=True, return_counts=True)
        width = self.time.shape[1]
        column = np.arange(width)
        for kept, new in ((self.time, time), (self.x, x), (self.y, y)):
            sorted_new = new[order]
            # Columns of the old row and the new updates, one after the other: the last of these are kept.
            before = np.where(self.known[touched, None], kept[touched], sorted_new[first, None])
            at = column + count[:, None]
            rows = np.take_along_axis(before, np.minimum(at, width - 1), axis=1)
            is_new = at >= width
            fresh = np.minimum(first[:, None] + np.maximum(at - width, 0), len(obj) - 1)
            kept[touched] = np.where(is_new, sorted_new[fresh], rows)
        self.known[touched] = True

    def of(self, obj: Int64Array, coordinates: Coordinates, routes: np.ndarray | None = None) -> LastSamples:
        """Give what is remembered of some objects."""
        return LastSamples(self.time[obj], self.x[obj], self.y[obj], coordinates, routes)

    def _reserve(self, objects: int) -> None:
        more = objects - len(self.known)
        if more > 0:
            self.time, self.x, self.y = (
                np.concatenate([kept, np.zeros((more, kept.shape[1]), kept.dtype)])
                for kept in (self.time, self.x, self.y)
            )
            self.known = np.concatenate([self.known, np.zeros(more, np.bool_)])
