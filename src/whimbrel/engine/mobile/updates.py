"""Location updates: where the focal objects of a mobile query are, once the time of each has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.interner import Interner
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.values import BoolArray, Column, FloatArray, Int64Array, floats
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.mobile import FocalObjects
from whimbrel.model.schema import Value

SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Updates:
    """Location updates in order of time, of each object at most one at a time."""

    obj: Int64Array
    time: Int64Array
    x: FloatArray
    y: FloatArray
    row: Int64Array
    """The event that each is, in the store of atomic events."""

    def __len__(self) -> int:
        return len(self.obj)


class FocalKeys(SavedState):
    """Numbers for the objects that events are of, by the attribute that tells them apart."""

    state: ClassVar = ("objects",)

    def __init__(self, focal: FocalObjects) -> None:
        self.name = focal.key
        self.objects = Interner()
        self._only = None if focal.only is None else set(focal.only)
        self._followed = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self.objects)

    def of_rows(self, events: SourceEvents, rows: Int64Array) -> Int64Array:
        """Give the number of the object that each event is of; -1 where it is nobody's."""
        return self._codes(events.stream.store.column(Attribute(None, self.name), rows))

    def _codes(self, keys: Column) -> Int64Array:
        codes = np.full(len(keys), -1, np.int64)
        if keys.type is None:
            return codes
        there = np.flatnonzero(~keys.nulls)
        if len(there):
            codes[there] = self.objects.codes(keys.take(there))
        return codes

    def followed(self, codes: Int64Array) -> BoolArray:
        """Tell which of some objects the query follows."""
        if self._only is None:
            return codes >= 0
        if len(self._followed) < len(self.objects):
            self._followed = np.array([value in self._only for value in self.objects.values()], np.bool_)
        return (codes >= 0) & self._followed[codes]

    def values(self) -> list[Value]:
        """Give the keys of the objects by their numbers."""
        return self.objects.values()


class LocationUpdates(SavedState):
    """Takes location updates from the events of a session."""

    state: ClassVar = ("held",)

    def __init__(self, focal: FocalObjects, keys: FocalKeys, events: SourceEvents, user: str) -> None:
        self.keys = keys
        self.events = events
        self.selector = (focal.type, focal.condition)
        self._stream = events.select(self.selector, user)
        self.held = NO_ROWS
        """Updates that the watermark has not reached: of those of one time, only the last counts."""

    def ready(self, watermark: int) -> Updates:
        """Give the updates up to a watermark that were not given before."""
        rows = np.concatenate([self.held, self._stream.new]) if len(self.held) else self._stream.new
        if not len(rows):
            self.held = NO_ROWS
            return Updates(NO_ROWS, NO_ROWS, np.zeros(0), np.zeros(0), NO_ROWS)
        _, end = self._stream.store.spans(rows)
        count = int(np.searchsorted(end, watermark, side="right"))  # rows are in order of their ends
        self.held = rows[count:].copy()
        return self._updates(rows[:count], end[:count])

    def _updates(self, rows: Int64Array, time: Int64Array) -> Updates:
        obj = self.keys.of_rows(self.events, rows)
        x, y = (floats(self._stream.store.column(Attribute(None, axis), rows)) for axis in ("x", "y"))
        keep = np.flatnonzero(self.keys.followed(obj) & ~np.isnan(x) & ~np.isnan(y))
        keep = keep[_last_of_each_time(obj[keep], time[keep])]
        return Updates(obj[keep], time[keep], x[keep], y[keep], rows[keep])


def _last_of_each_time(obj: Int64Array, time: Int64Array) -> Int64Array:
    """Choose the last of the updates of an object that have the same time; they are in total order."""
    order = np.lexsort((np.arange(len(obj)), time, obj))
    last = np.ones(len(order), np.bool_)
    last[:-1] = (obj[order][1:] != obj[order][:-1]) | (time[order][1:] != time[order][:-1])
    return np.sort(order[last])
