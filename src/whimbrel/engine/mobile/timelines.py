"""Timelines: from location updates to the switches at which an object's interest follows it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from whimbrel.engine.arrays import NO_ROWS, longer
from whimbrel.engine.kernels import focal_objects as k
from whimbrel.engine.mobile.updates import Updates
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.graph.mobile import Refresh, RefreshEvery, RefreshWhenMoved
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME


@dataclass(frozen=True, slots=True)
class Switches:
    """Where interests begin, in order of time."""

    obj: Int64Array
    number: Int64Array
    """Which interest of its object begins, from 1."""
    time: Int64Array
    end: Int64Array
    """When it ends, as far as that is known; else the end of time."""
    x: FloatArray
    y: FloatArray
    from_x: FloatArray
    from_y: FloatArray
    """Where the object was before, in another place; NaN if it has not moved."""
    row: Int64Array
    """The location update that begins it."""

    def __len__(self) -> int:
        return len(self.obj)

    @staticmethod
    def at(updates: Updates, some: Int64Array, came_from: FloatArray) -> Switches:
        """Take some location updates for switches, to ask where interests would be."""
        return Switches(
            updates.obj[some], np.zeros(len(some), np.int64), updates.time[some],
            np.full(len(some), END_OF_TIME), updates.x[some], updates.y[some],
            came_from[:, 0], came_from[:, 1], updates.row[some],
        )  # fmt: skip

    def take(self, which: BoolArray) -> Switches:
        """Give some of them."""
        return Switches(*(getattr(self, each.name)[which] for each in fields(self)))


@dataclass(frozen=True, slots=True)
class Ended:
    """Interests of earlier steps that end, object by object."""

    obj: Int64Array
    end: Int64Array


class Timelines(SavedState):
    """The timelines of all objects that a query follows: where each was, and when its interest began."""

    state: ClassVar = ("times", "places", "numbers", "open")

    def __init__(self, refresh: Refresh, silent: int | None) -> None:
        self.refresh = refresh
        self.silent = -1 if silent is None else silent
        self.times = np.zeros((0, k.TIMES), np.int64)
        self.places = np.zeros((0, k.PLACES))
        self.numbers = NO_ROWS
        """How many interests each object had."""
        self.open = np.zeros(0, np.bool_)
        """Whether it has one that has not ended."""

    @property
    def due(self) -> int:
        """When the next object has been silent for too long."""
        last = self.times[self.open, k.T_LAST]
        return int(last.min()) + self.silent if self.silent >= 0 and len(last) else END_OF_TIME

    def reserve(self, objects: int) -> None:
        """Make room for objects that are new."""
        if objects > len(self.numbers):
            room = max(objects, 2 * len(self.numbers))
            self.times = longer(self.times, room, k.NEVER)
            before = len(self.places)
            self.places = longer(self.places, room)
            self.places[before:, k.P_FROM_X : k.P_FROM_Y + 1] = np.nan
            self.numbers = longer(self.numbers, room)
            self.open = longer(self.open, room)

    def advance(
        self, updates: Updates, watermark: int, coordinates: Coordinates | None
    ) -> tuple[Switches, Ended]:
        """Take in updates up to a watermark; give the interests that begin, and the earlier ones that end."""
        found, came_from = self._found(updates, coordinates)
        return self.settle(updates, found, came_from, watermark)

    def came_from(self, updates: Updates) -> FloatArray:
        """Tell of updates that were not taken in yet where the objects were before, in another place."""
        before = np.empty((len(updates), 2))
        if len(updates):
            k.note_moves(
                updates.obj,
                updates.time,
                updates.x,
                updates.y,
                self.times.copy(),
                self.places.copy(),
                before,
            )
        return before

    def _found(self, updates: Updates, coordinates: Coordinates | None) -> tuple[Int64Array, FloatArray]:
        found, came_from = np.empty((len(updates), 3), np.int64), np.empty((len(updates), 2))
        if not len(updates):
            return found, came_from
        condition, period, distance_m = _condition(self.refresh)
        count = k.find_switches(
            updates.obj, updates.time, updates.x, updates.y, condition, period, distance_m,
            coordinates is Coordinates.LONLAT, self.silent, self.times, self.places, found, came_from,
        )  # fmt: skip
        return found[:count], came_from[:count]

    def stop(self, objects: Int64Array) -> None:
        """Follow some objects no longer: what they had is over, and an update begins another timeline."""
        objects = objects[objects < len(self.numbers)]
        self.open[objects] = False
        self.times[objects] = k.NEVER
        self.places[objects, k.P_FROM_X : k.P_FROM_Y + 1] = np.nan

    def settle(
        self, updates: Updates, found: Int64Array, came_from: FloatArray, watermark: int
    ) -> tuple[Switches, Ended]:
        """Work out when interests end, from the updates that begin others, and from silence."""
        at, ends, had = found[:, 0], found[:, 1], found[:, 2] == 1
        obj = updates.obj[at]
        order = np.argsort(obj, kind="stable")
        sorted_obj = obj[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = sorted_obj[1:] != sorted_obj[:-1]
        numbers, until = np.empty(len(order), np.int64), np.full(len(order), END_OF_TIME)
        rank = _rank_in_runs(is_first)
        numbers[order] = self.numbers[sorted_obj] + rank + 1
        until[order[:-1]] = np.where(is_first[1:], END_OF_TIME, ends[order[1:]])
        first = order[is_first]
        closes = first[had[first] & self.open[obj[first]]]
        ended_obj, ended_at = obj[closes], ends[closes]
        last = order[np.append(is_first[1:], True)] if len(order) else order
        self.numbers[obj[last]] = numbers[last]
        self.open[obj[last]] = True
        silent_obj, silent_at = self._fallen_silent(watermark)
        place = np.full(len(self.numbers), -1, np.int64)
        place[obj[last]] = last
        mine = place[silent_obj]
        until[mine[mine >= 0]] = silent_at[mine >= 0]
        switches = Switches(
            obj, numbers, updates.time[at], until, updates.x[at], updates.y[at],
            came_from[:, 0], came_from[:, 1], updates.row[at],
        )  # fmt: skip
        older = mine < 0
        return switches, Ended(
            np.concatenate([ended_obj, silent_obj[older]]), np.concatenate([ended_at, silent_at[older]])
        )

    def _fallen_silent(self, watermark: int) -> tuple[Int64Array, Int64Array]:
        """Find the objects that are silent for too long by now, and when that was the case."""
        if self.silent < 0:
            return NO_ROWS, NO_ROWS
        ends = self.times[:, k.T_LAST] + self.silent + 1
        silent = np.flatnonzero(self.open & (ends - 1 <= watermark))
        self.open[silent] = False
        return silent, ends[silent]


def _condition(refresh: Refresh) -> tuple[int, int, float]:
    """Write a condition as the kernel reads it."""
    match refresh:
        case RefreshEvery(period):
            return k.EVERY, period, 0.0
        case RefreshWhenMoved(distance_m):
            return k.MOVED, 0, distance_m
    return k.ALWAYS, 0, 0.0


def _rank_in_runs(is_first: np.ndarray) -> Int64Array:
    """Count the members of each run, from 0."""
    places = np.arange(len(is_first))
    return places - np.maximum.accumulate(np.where(is_first, places, 0))
