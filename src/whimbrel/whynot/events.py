"""Events as explanations show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whimbrel.engine.identity import event_ids
from whimbrel.engine.streams import RowsFrame, Stream, Surroundings
from whimbrel.engine.values import Column, to_arrow
from whimbrel.model.time import format_instant

SHOWN_IDS = 6
"""How many ids of one event's constituents a text shows; the object has all."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An event that an explanation speaks of.

    `events` are the ids of the atomic events it is made of (its own, if it came in as it is), `stream` is the
    operator it came out of.
    """

    type: str | None
    start: int
    end: int
    events: tuple[str, ...]
    stream: str

    def __str__(self) -> str:
        ids = ", ".join(self.events[:SHOWN_IDS])
        if len(self.events) > SHOWN_IDS:
            ids += f" and {len(self.events) - SHOWN_IDS} more"
        kind = self.type or ("event" if len(self.events) == 1 else "events")
        return f"{kind} {ids} {self.when}"

    @property
    def when(self) -> str:
        """Say when it happened."""
        if self.start == self.end:
            return f"at {clock(self.start)}"
        return f"from {clock(self.start)} to {clock(self.end)}"

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "type": self.type,
            "start": format_instant(self.start),
            "end": format_instant(self.end),
            "events": list(self.events),
        }


def clock(microseconds: int) -> str:
    """Write an instant without the digits that say nothing.

    >>> clock(1_500_000)
    '1970-01-01T00:00:01.5Z'
    """
    whole, _, fraction = format_instant(microseconds).removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def seen(around: Surroundings, stream: Stream, row: int, name: str | None = None) -> Seen:
    """Look at one row of a stream."""
    rows = np.array([row], np.int64)
    start, end = stream.store.spans(rows)
    refs = np.unique(stream.store.lineage(rows).refs)
    ids = event_ids(around.atoms.store, refs).to_pylist()
    kind = stream.event_type
    if stream.store is around.atoms.store:
        kind = first(RowsFrame(around, around.atoms, rows).column(None, "type"))
    return Seen(kind, int(start[0]), int(end[0]), tuple(ids), name or stream.name)


def first(column: Column) -> Any:
    """Give the first value of a column as plain Python; times stay microseconds."""
    return values(column)[0]


def values(column: Column) -> Sequence[Any]:
    """Give the values of a column as plain Python; times stay microseconds, None is null."""
    if column.type is None:
        return [None] * len(column)
    if isinstance(column.values, np.ndarray):
        listed = column.values.tolist()
        nulls = column.nulls.tolist()
        return [None if gone else value for value, gone in zip(listed, nulls, strict=True)]
    found: list[Any] = to_arrow(column).to_pylist()
    return found
