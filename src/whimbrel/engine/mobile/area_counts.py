"""Counts of the events that a query reads, in areas: what quality is measured by, without moving an event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whimbrel.engine.mobile.areas import AreaSet
from whimbrel.engine.mobile.history import EventHistory
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.updates import FocalKeys
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.values import Int64Array
from whimbrel.graph.mobile import MobileQuery
from whimbrel.graph.operators import ANY, Graph, Source, TimePoints
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME

_ROW_BITS = 40
"""An area and a row are told apart from others by one number; rows take so many bits of it."""


@dataclass(frozen=True, slots=True)
class Overlaps:
    """How many events lie in both of two areas, in the one that is used, and in the one that is wanted."""

    common: Int64Array
    used: Int64Array
    wanted: Int64Array


class AreaCounts:
    """The events that a plain query reads, whatever conditions it has, by place and time."""

    def __init__(self, query: MobileQuery, events: SourceEvents, user: str) -> None:
        self._events = events
        self.used: list[Selector] = [(name, None) for name in types_read(query.detect.graph)]
        self._selections = [events.select(selector, user) for selector in self.used]
        self._histories: list[EventHistory] = []

    def begin(self, coordinates: Coordinates, excluding: FocalKeys | None) -> None:
        """Begin to remember events, now that it is known how locations are given."""
        self._histories = [
            EventHistory(each, self._events, 0, coordinates, excluding) for each in self._selections
        ]

    def take_in(self) -> None:
        """Add what is new."""
        for history in self._histories:
            history.take_in()

    def rows(self, obj: Int64Array, areas: AreaSet, since: Int64Array, until: Int64Array) -> Int64Array:
        """Find the events in each area, as numbers that are made of those of the area and of the event."""
        of = _asked(obj, areas)
        found = [_numbered(*history.find(of, since, until)) for history in self._histories]
        return np.concatenate([*found, np.zeros(0, np.int64)])

    def overlaps(
        self, obj: Int64Array, used: AreaSet, wanted: AreaSet, since: Int64Array, until: Int64Array
    ) -> Overlaps:
        """Count the events in pairs of areas, from one time on and before another, for some objects."""
        one, other = (self.rows(obj, areas, since, until) for areas in (used, wanted))
        both = np.intersect1d(one, other, assume_unique=True)
        return Overlaps(*(counts_of(rows, len(obj)) for rows in (both, one, other)))

    def forget_before(self, time: int) -> None:
        """Let go of what is older."""
        for history in self._histories:
            history.forget_before(time)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write which events there are."""
        blocks.put_json(name, len(self._histories))
        for number, history in enumerate(self._histories):
            history.save(blocks, f"{name}/{number}")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        for number, history in enumerate(self._histories[: blocks.json(name)]):
            history.load(blocks, f"{name}/{number}")


def types_read(graph: Graph) -> list[str]:
    """Name the types of events that a graph reads, each once; time points are no events."""
    sources = [each for each in graph.operators if isinstance(each, Source)]
    types = dict.fromkeys(each.event_type for each in sources if not isinstance(each, TimePoints))
    return [ANY] if ANY in types else list(types)


def counts_of(rows: Int64Array, areas: int) -> Int64Array:
    """Count the events of each area."""
    return np.bincount(rows >> _ROW_BITS, minlength=areas)


def split(rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Give the areas and the events that numbers are made of."""
    return rows >> _ROW_BITS, rows & ((1 << _ROW_BITS) - 1)


def _numbered(which: Int64Array, rows: Int64Array) -> Int64Array:
    return (which << _ROW_BITS) | rows


def _asked(obj: Int64Array, areas: AreaSet) -> Interests:
    nothing = np.zeros(len(obj), np.int64)
    return Interests(obj, nothing, nothing, np.full(len(obj), END_OF_TIME), nothing, nothing, nothing, areas)
