"""What programs of the stack machine read of events: a table of whole numbers and one of floats.

An expression over one event is a *column*. Its type is known only when events come, and whole numbers may
turn out to be floats later; columns then change places, and with them what was kept of earlier events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from whimbrel.engine.interner import Texts
from whimbrel.engine.ordered_inputs import Places
from whimbrel.engine.programs import Operand
from whimbrel.engine.snapshot import Blocks, expr_from_json, expr_to_json
from whimbrel.engine.values import Column, FloatArray, Int64Array, UInt64Array
from whimbrel.errors import QueryError, QueryTypeError
from whimbrel.graph.expressions import Attribute, Expr, PartRef, format_expr, transform
from whimbrel.model.schema import Type

NULLS = 0xFFFFFFFFFFFFFFFF
"""Every value is null."""

Place = tuple[bool, int]
"""Whether a value is a float, and its place among those of its kind; -1 where its type is not known yet."""


class ColumnKey(NamedTuple):
    """What a column holds: an expression, over the events of one stream, as one input sees them."""

    expr: Expr
    root: int = 0
    slot: int = -1
    """The input, where names mean something else in it than in others."""


class ValueTable(NamedTuple):
    """The values of some events, or of some runs; a bit tells which are null."""

    ints: Int64Array
    floats: FloatArray
    nulls: UInt64Array


class ValueColumns:
    """The columns of one pattern, in the order in which they were asked for."""

    def __init__(self, most: int, reader: str) -> None:
        self.most = most
        self.reader = reader
        self.numbers: dict[ColumnKey, int] = {}
        self.types: list[Type | None] = []
        self.places: list[Place] = []
        self.texts = Texts()

    def number(self, key: ColumnKey) -> int:
        """Give the number of a column; a new one gets the next."""
        if key not in self.numbers:
            self.numbers[key] = len(self.types)
            self.types.append(None)
            self.places.append((False, -1))
        return self.numbers[key]

    def operand(self, key: ColumnKey) -> Operand:
        """Say where programs find a column."""
        number = self.number(key)
        return Operand(self.types[number], self.places[number][1])

    def type_of(self, key: ColumnKey) -> Type | None:
        """Give the type of a column, as far as it is known."""
        return self.types[self.number(key)]

    def learn(self, computed: Iterable[tuple[Places, int, Column]]) -> bool:
        """Take note of the types of what was computed; tell whether programs have to be compiled anew."""
        is_changed = False
        for _, number, column in computed:
            is_changed |= self._learn(number, column.type)
        if is_changed:
            self.places = places_of(self.types, self.most, self.reader)
        return is_changed

    def _learn(self, number: int, kind: Type | None) -> bool:
        known = self.types[number]
        if kind is None or kind is known or (known is Type.FLOAT and kind is Type.INT):
            return False
        if known is not None and not (known is Type.INT and kind is Type.FLOAT):
            name = next(format_expr(key.expr) for key, place in self.numbers.items() if place == number)
            raise QueryTypeError(f"{name!r} was a {known.value} before and is a {kind.value} now")
        self.types[number] = kind
        return True

    def learn_texts(self, computed: Iterable[tuple[Places, int, Column]]) -> Int64Array | None:
        """Take in new texts; give the table from old to new codes if these have moved."""
        return self.texts.learn([column for _, _, column in computed if column.type is Type.STRING])

    def table(self, size: int, computed: Iterable[tuple[Places, int, Column]]) -> ValueTable:
        """Put what was computed of so many events where programs find it; texts have codes by now."""
        found = _blank(size, self.places)
        for at, number, column in computed:
            is_float, place = self.places[number]
            if column.type is None or place < 0:
                continue
            values = self.texts.codes(column) if column.type is Type.STRING else column.values
            (found.floats if is_float else found.ints)[at, place] = values
            cleared = found.nulls[at] & ~null_bit(is_float, place)
            found.nulls[at] = (
                cleared if column.null is None else np.where(column.null, found.nulls[at], cleared)
            )
        return found

    def places_of_texts(self) -> Int64Array:
        """Give the places of the columns that hold codes of texts."""
        return places_of_texts(self.types, self.places)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what is known of the columns, and the texts that have codes."""
        kinds = [None if kind is None else kind.value for kind in self.types]
        keys = [[expr_to_json(key.expr), key.root, key.slot] for key in self.numbers]
        blocks.put_json(name, {"keys": keys, "types": kinds, "texts": self.texts.values()})

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        keys = [ColumnKey(expr_from_json(expr), root, slot) for expr, root, slot in about["keys"]]
        self.numbers = {key: number for number, key in enumerate(keys)}
        self.types = [None if kind is None else Type(kind) for kind in about["types"]]
        self.places = places_of(self.types, self.most, self.reader)
        self.texts.restore(about["texts"])


def own(expr: Expr, part: str) -> Expr:
    """Rewrite an expression over one part as one over the event itself."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Attribute) and node.part == part:
            return Attribute(None, node.name, at=node.at)
        if isinstance(node, PartRef) and node.name == part:
            return PartRef(None, at=node.at)
        return node

    return transform(expr, change)


def places_of(types: Sequence[Type | None], most: int, reader: str) -> list[Place]:
    """Give every value its place among whole numbers or floats."""
    used = [0, 0]
    places: list[Place] = []
    for kind in types:
        is_float = kind is Type.FLOAT
        places.append((is_float, -1 if kind is None else used[is_float]))
        used[is_float] += kind is not None
    if max(used) > most:
        raise QueryError(f"the conditions of {reader} read more than {most} values")
    return places


def places_of_texts(types: Sequence[Type | None], places: Sequence[Place]) -> Int64Array:
    """Give the places of the values that are codes of texts."""
    found = [place for kind, (_, place) in zip(types, places, strict=True) if kind is Type.STRING]
    return np.array([place for place in found if place >= 0], np.int64)


def widths(places: Sequence[Place]) -> tuple[int, int]:
    """Give how many whole numbers and how many floats there are."""
    ints, floats = ([place for is_float, place in places if is_float == kind] for kind in (False, True))
    return max(ints, default=-1) + 1, max(floats, default=-1) + 1


def null_bit(is_float: bool, place: int) -> np.uint64:
    """Give the bit that says that a value is null."""
    return np.uint64(1 << (place + 32 * is_float))


def _blank(size: int, places: Sequence[Place], nulls: int = NULLS) -> ValueTable:
    ints, floats = widths(places)
    return ValueTable(
        np.zeros((size, ints), np.int64), np.zeros((size, floats)), np.full(size, np.uint64(nulls))
    )


def rearranged(
    table: ValueTable, old: Sequence[Place], new: Sequence[Place], nulls: int = NULLS
) -> ValueTable:
    """Bring values to new places; whole numbers may become floats, and new ones are as `nulls` says."""
    made = _blank(len(table.nulls), new, nulls)
    moved = np.array(made.nulls)
    for (was_float, was), (is_float, place) in zip(old, new, strict=False):
        if was < 0 or place < 0:
            continue
        (made.floats if is_float else made.ints)[:, place] = (table.floats if was_float else table.ints)[
            :, was
        ]
        bit = null_bit(is_float, place)
        moved = np.where(table.nulls & null_bit(was_float, was) != 0, moved | bit, moved & ~bit)
    return made._replace(nulls=moved)


def remap_texts(ints: Int64Array, places: Int64Array, codes: Int64Array) -> None:
    """Give kept codes of texts their new numbers; rows that are not in use may hold what is no code."""
    ints[:, places] = codes[np.minimum(ints[:, places], len(codes) - 1)]
