"""Rows as those see them that share a run: a copy of a row for each of them that it concerns.

Nothing is copied: the number of a copy is made of those of the row and of whom it is for. What is made of
copies is for the same one, and so its lineage tells whom.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from whimbrel.engine.row_store import Lineage, RowStore
from whimbrel.engine.values import Column, Int64Array
from whimbrel.graph.expressions import GROUP, Attribute, Expr
from whimbrel.graph.policies import Key
from whimbrel.model.schema import Type

BITS = 20
"""Of the number of a copy, so many tell whom it is for; the others tell the row."""
MOST_SHARERS = 1 << BITS
_SHARER = MOST_SHARERS - 1

MADE_OF_COPIES = 1 << 18
GIVEN = 1 << 17
GIVEN_BITS = 8
"""The number of the first stream that is made of copies, that of the first of copies of derived events, and
by how many bits the next is shifted. Copies have large numbers, and no event may have that of another one."""

INSTANCE = Key("attribute", "@instance")
"""Which instance of a template, or member of a cohort, an event is for: the key that parts them."""
INSTANCE_KEPT = Attribute(None, INSTANCE.name)
INSTANCE_OF_GROUP = Attribute(GROUP, INSTANCE.name)
"""Where streams of events, and of composites, keep it for rows that may be made of no event."""


class CopiedRows(RowStore):
    """The atomic events as those see them that share a run."""

    def __init__(self, rows: RowStore) -> None:
        super().__init__()
        self.rows = rows

    @property
    def first(self) -> int:
        """The number of the oldest copy still here."""
        return self.rows.first << BITS

    def origin(self, rows: Int64Array) -> tuple[RowStore, Int64Array]:
        """Give where the content of some copies lies."""
        return self.rows.origin(rows >> BITS)

    def column(self, key: Expr, rows: Int64Array) -> Column:
        """Give a column's values at some copies."""
        return self.rows.column(key, rows >> BITS)

    def spans(self, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Give the starts and ends of some copies."""
        return self.rows.spans(rows >> BITS)

    def lineage(self, rows: Int64Array) -> Lineage:
        """Give the atomic events below some copies: themselves."""
        return Lineage.single(rows)

    def leading(self, rows: Int64Array) -> Int64Array:
        """Give the first atomic event below each of some copies: itself."""
        return rows

    def names(self, part: str | None = None) -> list[str]:
        """Name the attributes that any remembered row has."""
        return self.rows.names(part)

    def has_any(self, keys: Set[Expr]) -> bool:
        """Tell whether any remembered row has one of some columns."""
        return self.rows.has_any(keys)


class CopiedDerivedRows(CopiedRows):
    """The events of a definition as those see them that share a run."""

    def lineage(self, rows: Int64Array) -> Lineage:
        """Give the copies of the atomic events below some copies."""
        below = self.rows.lineage(rows >> BITS)
        sharers = np.repeat(rows & _SHARER, np.diff(below.offsets))
        return Lineage(below.offsets, (below.refs << BITS) | sharers)


def sharers_of(store: RowStore, rows: Int64Array) -> Int64Array:
    """Tell whom each of some rows is for, read off what it is made of."""
    leading = store.leading(rows)
    made_of_none = leading < 0
    if not made_of_none.any():
        return leading & _SHARER
    kept = store.column(INSTANCE_KEPT, rows)
    if kept.type is None:
        kept = store.column(INSTANCE_OF_GROUP, rows)
    return np.where(made_of_none, kept.values, leading & _SHARER)


def seen_by(copies: Int64Array, sharer: int) -> Int64Array:
    """Give the copies of the same rows that somebody else has."""
    return copies & ~np.int64(_SHARER) | sharer


def sharer_column(store: RowStore, rows: Int64Array) -> Column:
    """Give the same as a column, as a key that parts events is read."""
    return Column(Type.INT, sharers_of(store, rows))
