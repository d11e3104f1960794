"""What runs for single interests take, by place and time: what happened lately, and what is new."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from whimbrel.engine.mobile.areas import covers
from whimbrel.engine.mobile.atom_places import places_of_events
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.place_index import PlaceIndex
from whimbrel.engine.mobile.placed_rows import PlacedRows
from whimbrel.engine.mobile.reporting import places_of_atoms
from whimbrel.engine.mobile.updates import FocalKeys
from whimbrel.engine.row_store import different
from whimbrel.engine.shapes import NO_SHAPE
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.streams import OperatorStream
from whimbrel.engine.values import Int64Array
from whimbrel.model.schema import Coordinates

Pairs = tuple[Int64Array, Int64Array]
"""Places of interests, and rows that lie in them."""


class History(Protocol):
    """The rows of one stream that interests look back at, and those that are new."""

    back: int
    """How long before what is told they may still decide about it."""

    def take_in(self) -> None:
        """Add what is new in the stream."""
        ...

    def find(self, of: Interests, since: Int64Array, until: Int64Array) -> Pairs:
        """Find what lies in each interest, from one time on and before another."""
        ...

    def count(self, of: Interests, since: Int64Array, until: Int64Array) -> Int64Array:
        """Tell about how many rows `find` gives for each interest."""
        ...

    def forget_before(self, time: int) -> None:
        """Let go of what is older."""
        ...

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the rows."""
        ...

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        ...


class EventHistory:
    """Atomic events of one selection."""

    def __init__(
        self,
        selection: OperatorStream,
        events: SourceEvents,
        back: int,
        coordinates: Coordinates,
        excluding: FocalKeys | None,
    ) -> None:
        self.back = back
        self._selection = selection
        self._events = events
        self._excluding = excluding
        self._points = PlaceIndex(coordinates)
        self._shapes = PlaceIndex(coordinates)
        """The few whose location is more than a point, by a corner of it."""

    def take_in(self) -> None:
        """Add what is new in the selection."""
        rows = self._selection.new
        if not len(rows):
            return
        times = self._selection.store.spans(rows)[1]
        x, y, shape, _ = places_of_events(self._events, rows)
        is_point = shape == NO_SHAPE
        for index, chosen in ((self._points, is_point), (self._shapes, ~is_point)):
            index.append(rows[chosen], times[chosen], x[chosen], y[chosen])

    def find(self, of: Interests, since: Int64Array, until: Int64Array) -> Pairs:
        """Find what lies in each interest, from one time on and before another."""
        which, rows = self._points.find(of.areas, since, until)
        if len(self._shapes):
            others = self._shapes_in(of, since, until)
            which, rows = (np.concatenate(pair) for pair in zip((which, rows), others, strict=True))
        if self._excluding is None or not len(rows):
            return which, rows
        others = self._excluding.of_rows(self._events, rows) != of.obj[which]
        return which[others], rows[others]

    def _shapes_in(self, of: Interests, since: Int64Array, until: Int64Array) -> Pairs:
        """Find the events all of whose shape lies in an interest."""
        which, rows = self._shapes.find(of.areas, since, until)
        if not len(rows):
            return which, rows
        found, place = different(rows)
        _, _, shape, shapes = places_of_events(self._events, found)
        inside = covers(of.areas, which, shapes, shape[place])
        return which[inside], rows[inside]

    def count(self, of: Interests, since: Int64Array, until: Int64Array) -> Int64Array:
        """Tell how many rows lie in each interest, those of its own object among them."""
        counts = self._points.count(of.areas, since, until)
        if len(self._shapes):
            counts += np.bincount(self._shapes_in(of, since, until)[0], minlength=len(of))
        return counts

    def first_at(self, times: Int64Array) -> Int64Array:
        """Give the first row that ends at each of some times, or later."""
        return self._selection.store.first_at(times)

    def forget_before(self, time: int) -> None:
        """Let go of what is older."""
        self._points.forget_before(time)
        self._shapes.forget_before(time)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write which rows there are."""
        self._points.save(blocks, name)
        self._shapes.save(blocks, f"{name}/shapes")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self._points.load(blocks, name)
        self._shapes.load(blocks, f"{name}/shapes")


class TimePointHistory:
    """Time points: they are in every interest."""

    def __init__(self, selection: OperatorStream, back: int) -> None:
        self.back = back
        self._selection = selection
        self._rows = np.zeros(0, np.int64)
        self._times = np.zeros(0, np.int64)

    def take_in(self) -> None:
        """Add what is new in the selection."""
        rows = self._selection.new
        if len(rows):
            self._rows = np.concatenate([self._rows, rows])
            self._times = np.concatenate([self._times, self._selection.store.spans(rows)[1]])

    def find(self, of: Interests, since: Int64Array, until: Int64Array) -> Pairs:  # noqa: ARG002 (everywhere)
        """Find what happens from one time on and before another."""
        in_time = (self._times >= since[:, None]) & (self._times < until[:, None])
        which, place = np.nonzero(in_time)
        return which, self._rows[place]

    def count(self, of: Interests, since: Int64Array, until: Int64Array) -> Int64Array:  # noqa: ARG002
        """Tell how many there can be."""
        return np.full(len(of), len(self._rows))

    def forget_before(self, time: int) -> None:
        """Let go of what is older."""
        kept = self._times >= time
        self._rows, self._times = self._rows[kept], self._times[kept]

    def save(self, blocks: Blocks, name: str) -> None:
        """Write which rows there are."""
        blocks.put_arrays(name, {"rows": self._rows, "times": self._times})

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        arrays = blocks.arrays(name)
        self._rows, self._times = arrays["rows"], arrays["times"]


class GivenHistory:
    """Rows of a definition that is found once for all."""

    def __init__(
        self,
        given: OperatorStream,
        events: SourceEvents,
        back: int,
        coordinates: Coordinates,
        excluding: FocalKeys | None,
        known: Callable[[OperatorStream, Int64Array], Int64Array],
    ) -> None:
        self.back = back
        self._given = given
        self._events = events
        self._excluding = excluding
        self._known = known
        self._placed = PlacedRows(coordinates)

    def take_in(self) -> None:
        """Add what is new in the stream."""
        rows = self._given.new
        if not len(rows):
            return
        known = self._known(self._given, rows)
        order = np.lexsort((rows, known))
        rows, known = rows[order], known[order]
        atoms = places_of_atoms(self._events, self._given.store.lineage(rows), self._excluding)
        self._placed.append(rows, known, atoms)

    def find(self, of: Interests, since: Int64Array, until: Int64Array) -> Pairs:
        """Find what lies in each interest, from one time on and before another."""
        return self._placed.find(of, since, until, excluding_own=self._excluding is not None)

    def count(self, of: Interests, since: Int64Array, until: Int64Array) -> Int64Array:
        """Tell how many rows have an event in each interest."""
        return self._placed.count(of, since, until)

    def forget_before(self, time: int) -> None:
        """Let go of what is older."""
        self._placed.forget_before(time)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write which rows there are."""
        self._placed.save(blocks, name)

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self._placed.load(blocks, name)
