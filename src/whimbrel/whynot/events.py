"""Events as explanations show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whimbrel.engine.identity import event_ids
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.streams import ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, Int64Array, to_arrow
from whimbrel.graph.expressions import Attribute
from whimbrel.model.time import TIME_POINT, format_instant, written_time_point
from whimbrel.model.words import many
from whimbrel.whynot.words import clock, listed

SHOWN_NAMES = 6
"""How many of the events that an event is made of a text names; the object has all."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An event that an explanation speaks of.

    `events` are the ids of the atomic events it is made of (its own, if it came in as it is), `stream` is the
    operator it came out of. `sources` are theirs, where they brought no ids by which people know them.
    """

    type: str | None
    start: int
    end: int
    events: tuple[str, ...]
    stream: str
    sources: tuple[str, ...] | None = None

    def __str__(self) -> str:
        if self.type is not None and self.type.startswith(TIME_POINT):
            return written_time_point(self.type)
        return " ".join(word for word in (self._kind, self._names, self.when) if word)

    @property
    def _kind(self) -> str:
        if self.type is not None:
            return self.type
        several = len(self.events) != 1
        return ("events" if several else "event") if self.sources is None else many(len(self.events), "event")

    @property
    def _names(self) -> str:
        names = self.events if self.sources is None else self.sources
        shown = listed(names, SHOWN_NAMES)
        return shown if self.sources is None or not names else f"of {shown}"

    @property
    def when(self) -> str:
        """Say when it happened."""
        if self.start == self.end:
            return f"at {clock(self.start)}"
        return f"from {clock(self.start)} to {clock(self.end)}"

    def to_dict(self) -> dict[str, Any]:
        """Convert it to plain data."""
        return {
            "type": self.type,
            "start": format_instant(self.start),
            "end": format_instant(self.end),
            "events": list(self.events),
        }


def seen(context: ExecutionContext, stream: OperatorStream, row: int, name: str | None = None) -> Seen:
    """Look at one row of a stream."""
    rows = np.array([row], np.int64)
    start, end = stream.store.spans(rows)
    refs = np.unique(stream.store.lineage(rows).refs)
    atoms = context.atoms.store
    ids = event_ids(atoms, refs).to_pylist()
    kind = stream.event_type
    if stream.store is atoms:
        kind = first(RowsFrame(context, context.atoms, rows).column(None, "type"))
    times = int(start[0]), int(end[0])
    return Seen(kind, *times, tuple(ids), name or stream.name, _sources(atoms, refs))


def _sources(atoms: RowStore, refs: Int64Array) -> tuple[str, ...] | None:
    """List the sources of events that have no ids of their own; None if they have."""
    own = atoms.column(Attribute(None, "id"), refs)
    if own.type is not None and not own.nulls.any():
        return None
    sources = values(atoms.column(Attribute(None, "source"), refs))
    return tuple(dict.fromkeys(source for source in sources if source is not None))


def first(column: Column) -> Any:
    """Read the first value of a column as plain Python; times stay microseconds."""
    return values(column)[0]


def values(column: Column) -> Sequence[Any]:
    """Read the values of a column as plain Python; times stay microseconds, None is null."""
    if column.type is None:
        return [None] * len(column)
    if isinstance(column.values, np.ndarray):
        listed = column.values.tolist()
        nulls = column.nulls.tolist()
        return [None if gone else value for value, gone in zip(listed, nulls, strict=True)]
    plain: list[Any] = to_arrow(column).to_pylist()
    return plain
