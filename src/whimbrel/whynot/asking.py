"""What was asked: which key, around which time, and how much is to be searched and shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whimbrel.engine.key_codes import KeyCodes
from whimbrel.engine.streams import ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import BoolArray, Int64Array
from whimbrel.errors import QueryError, UnknownNameError
from whimbrel.graph.expressions import GROUP, Attribute
from whimbrel.graph.operators import Derive, Graph
from whimbrel.graph.policies import Key, Partitioning
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME
from whimbrel.whynot.events import Seen, seen
from whimbrel.whynot.watching import Watched

SHOWN = 5
"""Misses shown for each definition, unless asked for more."""
EFFORT = 4_000
"""How many partial matches are looked at for each definition."""


@dataclass
class SearchBudget:
    """How much may still be searched, so that an explanation comes in seconds, however many events came."""

    left: int = EFFORT

    @property
    def is_spent(self) -> bool:
        """Whether the search has to end."""
        return self.left <= 0

    def spend(self, amount: int = 1) -> None:
        """Take note of work done."""
        self.left -= amount


@dataclass(frozen=True)
class EngineView:
    """What the engine did, seen through what was asked."""

    watched: Watched
    key: Mapping[str, Any] = field(default_factory=dict)
    since: int = BEGINNING_OF_TIME
    until: int = END_OF_TIME
    limit: int = SHOWN
    effort: int = EFFORT
    types: Mapping[str, int] = field(default_factory=Counter)
    """How many events of each type came in."""

    @property
    def graph(self) -> Graph:
        """The operators, as they were written."""
        return self.watched.watched

    @property
    def context(self) -> ExecutionContext:
        """What expressions over the rows need."""
        return self.watched.context

    def stream(self, name: str) -> OperatorStream:
        """Find the stream of an operator, with all its rows."""
        return self.watched.stream(name)

    def examples(self, name: str, rows: Int64Array) -> tuple[Seen, ...]:
        """Look at the last of some rows of a stream."""
        stream = self.stream(name)
        return tuple(seen(self.context, stream, int(row), name) for row in rows[-self.limit :])

    def in_time(self, start: Int64Array, end: Int64Array) -> BoolArray:
        """Tell which events lie around the time that was asked for."""
        return (start <= self.until) & (end >= self.since)

    def of_group(self, group: Mapping[str, Any]) -> bool:
        """Tell whether a group is one that was asked for; keys that it does not have do not matter."""
        return all(same_value(group[name], wanted) for name, wanted in self.key.items() if name in group)

    def rows_asked_for(self, name: str, partitioning: Partitioning) -> Int64Array:
        """Select the rows of a stream that are of the key and around the time that was asked for."""
        stream = self.stream(name)
        rows = stream.new[self.in_time(*stream.store.spans(stream.new))]
        return _in_order(stream, self.of_key(stream, rows, partitioning))

    def of_key(self, stream: OperatorStream, rows: Int64Array, partitioning: Partitioning) -> Int64Array:
        """Leave out the rows of groups that were not asked for."""
        if not self.key or not len(rows):
            return rows
        groups = EventGroups(self.context, partitioning.keys)
        numbers = groups.of(stream, rows)
        return rows[np.array([self.of_group(group) for group in groups.values], np.bool_)[numbers]]


def _in_order(stream: OperatorStream, rows: Int64Array) -> Int64Array:
    """Sort rows by time and by the events they are made of, however groups happen to be numbered."""
    if not len(rows):
        return rows
    start, end = stream.store.spans(rows)
    lineage = stream.store.lineage(rows)
    filled = np.diff(lineage.offsets) > 0
    first, last = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    first[filled] = lineage.refs[lineage.offsets[:-1][filled]]
    last[filled] = lineage.refs[lineage.offsets[1:][filled] - 1]
    return rows[np.lexsort((last, first, start, end))]


class EventGroups:
    """The groups that events lie in, each with a number."""

    def __init__(self, context: ExecutionContext, keys: tuple[Key, ...]) -> None:
        self.context = context
        self.keys = keys
        self._numbers = KeyCodes(keys)

    def of(self, stream: OperatorStream, rows: Int64Array) -> Int64Array:
        """Find the group of every row, as a number."""
        if not self.keys:
            return np.zeros(len(rows), np.int64)
        frame = RowsFrame(self.context, stream, rows, None, Partitioning(self.keys))
        columns = [_key_column(frame, key) for key in self.keys]
        return self._numbers.codes_of(columns)

    @property
    def values(self) -> list[dict[str, Any]]:
        """The keys of every group that was seen so far, by its number."""
        names = [key.name for key in self.keys]
        if len(names) == 1:
            return [{names[0]: value} for value in self._numbers.values()]
        return [dict(zip(names, row or (), strict=True)) for row in self._numbers.values()]


def group_of(
    context: ExecutionContext, stream: OperatorStream, row: int, keys: tuple[Key, ...]
) -> dict[str, Any]:
    """Find the group of one row."""
    groups = EventGroups(context, keys)
    number = groups.of(stream, np.array([row], np.int64))[0]
    return groups.values[number]


def _key_column(frame: RowsFrame, key: Key) -> Any:
    kept = frame.stream.store.column(Attribute(GROUP, key.name), frame.rows)
    return frame.key(key) if kept.type is None else kept


def same_value(value: Any, wanted: Any) -> bool:
    """Tell whether a value is the one that was asked for, perhaps as text.

    >>> same_value(7, "7"), same_value("7", 7), same_value(None, "7")
    (True, True, False)
    """
    if value is None or wanted is None:
        return value is wanted
    if isinstance(value, bool) or isinstance(wanted, bool):
        return str(value).lower() == str(wanted).lower()
    if isinstance(value, str):
        return value == str(wanted)
    try:
        return float(value) == float(wanted)
    except ValueError:
        return False


def keys_of(graph: Graph) -> tuple[str, ...]:
    """Name the keys by which any operator of a graph parts its events."""
    names: dict[str, None] = {}
    for operator in graph.operators:
        names |= dict.fromkeys(key.name for key in operator.partitioning.keys)
        names |= dict.fromkeys(key.name for key in operator.together or ())
        if isinstance(operator, Derive):
            names |= dict.fromkeys(key.name for case in operator.cases for key in case.partitioning.keys)
    return tuple(names)


def key_asked_for(key: Any, graph: Graph) -> dict[str, Any]:
    """Read a key as it was given: names with values, or one value where there is one name.

    Raises
    ------
    QueryError
        If the query has no such key, or several and none was named.
    """
    if key is None:
        return {}
    known = keys_of(graph)
    if isinstance(key, Mapping):
        for name in key:
            if name not in known:
                raise UnknownNameError("key of the query", str(name), known)
        return dict(key)
    if len(known) == 1:
        return {known[0]: key}
    if not known:
        raise QueryError(
            "the query has no key: nothing in it says `group by`", hint="leave the key out, or ask by time"
        )
    raise QueryError(
        f"the query has several keys: {', '.join(known)}; say which one {key!r} is a value of",
        hint=f"write for example {known[0]}={key}",
    )
