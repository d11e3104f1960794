"""Location updates: where the focal objects of a mobile query are, once the time of each has come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.interner import Interner
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.values import BoolArray, Column, FloatArray, Int64Array, floats
from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.mobile import FocalObjects, ListedObject
from whimbrel.model.schema import Value
from whimbrel.model.time import BEGINNING_OF_TIME


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
    """Numbers for the objects that events are of, by the attribute that tells them apart.

    Where the objects are listed in a table, each may have a radius and a lifetime of its own; objects may be
    put on the list, and be taken off it, while the query runs.
    """

    state: ClassVar = ("objects", "rows")

    def __init__(self, focal: FocalObjects) -> None:
        self.name = focal.key
        self.objects = Interner()
        self.rows: list[list[Value]] = []
        """The list as a snapshot has it."""
        self._only = None if focal.only is None else set(focal.only)
        self._listed: dict[Value, ListedObject] | None = None
        if focal.listed is not None:
            self._listed = {each.key: each for each in focal.listed}
        self._known = 0
        self._followed = np.zeros(0, np.bool_)
        self._radius = np.zeros(0)
        self._lifetime = NO_ROWS

    def __len__(self) -> int:
        return len(self.objects)

    def of_rows(self, events: SourceEvents, rows: Int64Array) -> Int64Array:
        """Give the number of the object that each event is of; -1 where it is nobody's."""
        return self.codes_of(events.stream.store.column(Attribute(None, self.name), rows))

    def codes_of(self, keys: Column) -> Int64Array:
        """Give the number of the object that each key is of; -1 for none."""
        codes = np.full(len(keys), -1, np.int64)
        if keys.type is None:
            return codes
        there = np.flatnonzero(~keys.nulls)
        if len(there):
            codes[there] = self.objects.codes(keys.take(there))
        return codes

    def followed(self, codes: Int64Array) -> BoolArray:
        """Tell which of some objects the query follows."""
        if self._only is None and self._listed is None:
            return codes >= 0
        self._look_up_new()
        return (codes >= 0) & self._followed[codes]

    def radii(self, objects: Int64Array) -> FloatArray:
        """Give the radius that each object has of its own; NaN: none."""
        if self._listed is None:
            return np.full(len(objects), np.nan)
        self._look_up_new()
        return self._radius[objects]

    def lifetimes(self, objects: Int64Array, otherwise: int) -> Int64Array:
        """Give the lifetime of each object: its own, or that of all."""
        if self._listed is None:
            return np.full(len(objects), otherwise, np.int64)
        self._look_up_new()
        own = self._lifetime[objects]
        return np.where(own < 0, otherwise, own)

    def longest_lifetime(self, otherwise: int) -> int:
        """Give the longest lifetime that any object has."""
        own = (each.lifetime for each in (self._listed or {}).values())
        return max((otherwise if each is None else each for each in own), default=otherwise)

    def follow(self, rows: Iterable[ListedObject]) -> None:
        """Put objects on the list; what one had of its own is replaced."""
        listed = self._need_list()
        listed |= {each.key: each for each in rows}
        self._known = 0

    def unfollow(self, keys: Iterable[Value]) -> Int64Array:
        """Take objects off the list; give the numbers of those that have any."""
        listed = self._need_list()
        gone = [key for key in keys if listed.pop(key, None) is not None]
        self._known = 0
        numbers = {value: number for number, value in enumerate(self.objects.values())} if gone else {}
        return np.array([numbers[key] for key in gone if key in numbers], np.int64)

    def _need_list(self) -> dict[Value, ListedObject]:
        if self._listed is None:
            raise QueryError(
                "the mobile query follows all objects that fit, and has no list to put any on",
                hint="give it one, which may be empty: listed in 'cars.csv', or listed=[]",
            )
        return self._listed

    def _look_up_new(self) -> None:
        """Look up the objects that are new since the last time."""
        values = self.objects.values()[self._known :]
        if not values:
            return
        listed = self._listed
        rows = [None if listed is None else listed.get(value) for value in values]
        followed = [
            (listed is None or row is not None) and (self._only is None or value in self._only)
            for value, row in zip(values, rows, strict=True)
        ]
        radius = [np.nan if row is None or row.radius_m is None else row.radius_m for row in rows]
        lifetime = [-1 if row is None or row.lifetime is None else row.lifetime for row in rows]
        known, self._known = self._known, len(self.objects)
        self._followed = np.append(self._followed[:known], np.array(followed, np.bool_))
        self._radius = np.append(self._radius[:known], np.array(radius))
        self._lifetime = np.append(self._lifetime[:known], np.array(lifetime, np.int64))

    def values(self) -> list[Value]:
        """Give the keys of the objects by their numbers."""
        return self.objects.values()

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the objects, and the list."""
        listed = (self._listed or {}).values()
        self.rows = [[each.key, each.radius_m, each.lifetime] for each in listed]
        super().save(blocks, name)
        self.rows = []

    def loaded(self) -> None:
        """Make the list anew."""
        if self._listed is not None:
            self._listed = {row[0]: ListedObject(row[0], row[1], row[2]) for row in self.rows}  # type: ignore[arg-type]
        self.rows, self._known = [], 0


class LocationUpdates(SavedState):
    """Takes location updates from the events of a session."""

    state: ClassVar = ("held", "begins")

    def __init__(self, focal: FocalObjects, keys: FocalKeys, events: SourceEvents, user: str) -> None:
        self.keys = keys
        self.events = events
        self.selector = (focal.type, focal.condition)
        self._stream = events.select(self.selector, user)
        self.held = NO_ROWS
        """Updates that the watermark has not reached: of those of one time, only the last counts."""
        self.begins = BEGINNING_OF_TIME
        """Earlier updates do not count: they are of the time before the query was there."""

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
        keep = np.flatnonzero((time >= self.begins) & self.keys.followed(obj) & ~np.isnan(x) & ~np.isnan(y))
        keep = keep[_last_of_each_time(obj[keep], time[keep])]
        return Updates(obj[keep], time[keep], x[keep], y[keep], rows[keep])


def _last_of_each_time(obj: Int64Array, time: Int64Array) -> Int64Array:
    """Choose the last of the updates of an object that have the same time; they are in total order."""
    order = np.lexsort((np.arange(len(obj)), time, obj))
    last = np.ones(len(order), np.bool_)
    last[:-1] = (obj[order][1:] != obj[order][:-1]) | (time[order][1:] != time[order][:-1])
    return np.sort(order[last])
