"""Streams at run time, and how names in expressions become columns of their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.copies import INSTANCE, sharer_column, sharers_of
from whimbrel.engine.evaluate import true_rows
from whimbrel.engine.locations import middles_of, shapes_of
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.shapes import SHAPE
from whimbrel.engine.values import BoolArray, Column, Int64Array, decoded, nothing
from whimbrel.graph.expressions import GROUP, PLACE, Attribute, Binary, Expr, Literal
from whimbrel.graph.functions import Function
from whimbrel.graph.policies import Key, Partitioning
from whimbrel.model.schema import Coordinates, Type
from whimbrel.space.geometry import in_units

CASE = Attribute(None, "@case")
"""The number of the case that found an event, kept because its id depends on it."""
WINDOW = Attribute(None, "@window")
"""The end of the window an event was computed over, kept for the same reason."""
IDENTITY = Attribute(None, "@identity")
"""Which event a row stands for, where a stream passes events of several others on."""

ARRIVAL = Attribute(None, "@arrival")
"""Where atomic events of the same times keep the order in which they came."""

ALIASES = {"srcid": "source", "lon": "x", "lat": "y"}
_AXES = {"@x": "x", "@y": "y"}


@dataclass(slots=True)
class ExecutionContext:
    """What every operator of a session shares: the atomic events, functions, coordinates."""

    atoms: OperatorStream
    functions: Mapping[str, Function] = field(default_factory=dict)
    coordinates: Coordinates | None = None


class Subscriber(Protocol):
    """Where a template takes the events of one selection for one of its instances."""

    @property
    def template(self) -> str:
        """Name the template."""
        ...

    def add(self, rows: Int64Array) -> None:
        """Take new events."""
        ...


class InstanceTypes(Protocol):
    """What the events of one definition are called, instance by instance of a template."""

    names: list[str]
    assigned: Collection[str]
    """The attributes that every event has, be they null."""


@dataclass(slots=True)
class SharedWatermark:
    """How far time has passed; selections of one stream have one clock."""

    watermark: int = -(2**62)


@dataclass(slots=True)
class OperatorStream:
    """The rows of one operator, and which of them are new in this step.

    `composite` streams are read through part names; the others have attributes of their own.
    """

    name: str
    store: RowStore
    composite: bool = False
    event_type: str | None = None
    number: int = 0
    """Which operator of its query makes it, from 1."""
    new: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    clock: SharedWatermark = field(default_factory=SharedWatermark)
    users: dict[str, None] = field(default_factory=dict)
    """Selections of atomic events: the queries that read it."""
    subscribers: dict[Subscriber, None] = field(default_factory=dict)
    """Selections of atomic events: the instances of templates that read it."""
    keeps_order: bool = False
    """Whether the events of a row are reported in the order in which they were taken."""
    branches: dict[str, list[tuple[str | None, Expr | None]]] = field(default_factory=dict)
    """Alternatives: part names, each with the types and conditions one of which an event has to fit."""
    kinds: InstanceTypes | None = None
    """Definitions of a template: the types of its events, which differ from instance to instance."""

    @property
    def watermark(self) -> int:
        """Up to which time it is complete."""
        return self.clock.watermark

    @watermark.setter
    def watermark(self, time: int) -> None:
        self.clock.watermark = time


@dataclass(slots=True)
class RowsFrame:
    """Some rows of a stream, as expressions see them.

    `alias` is the part name that stands for the row itself, besides None.
    """

    context: ExecutionContext
    stream: OperatorStream
    rows: Int64Array
    alias: str | None = None
    partitioning: Partitioning = field(default_factory=Partitioning)

    def __len__(self) -> int:
        return len(self.rows)

    def known(self, expr: Expr) -> Column:
        """Give a value that was computed when the row was made, such as an aggregate."""
        return self.stream.store.column(expr, self.rows)

    def column(self, part: str | None, name: str) -> Column:
        """Give the column that `part.name` stands for."""
        if part == GROUP and (self.alias != GROUP):
            return self._group(name)
        if part is None or part == self.alias:
            return self._own(name)
        if part in self.stream.branches:
            return self._of_branch(part, name)
        return self.stream.store.column(Attribute(part, name), self.rows)

    def _of_branch(self, part: str, name: str) -> Column:
        """Give an attribute of the events that fit one of several alternatives; null for the others."""
        column = self._own(name)
        fits = np.zeros(len(self.rows), np.bool_)
        for event_type, condition in self.stream.branches[part]:
            fits |= self._fits(event_type, condition)
        return Column(column.type, column.values, column.nulls | ~fits)

    def _fits(self, event_type: str | None, condition: Expr | None) -> BoolArray:
        fits = np.ones(len(self.rows), np.bool_)
        if event_type is not None:
            of_type = Binary("=", Attribute(None, "type"), Literal(event_type, Type.STRING))
            fits &= true_rows(of_type, self)
        if condition is not None:
            fits &= true_rows(condition, self)
        return fits

    def attributes(self, part: str | None) -> dict[str, Column]:
        """Give all attributes of the row itself, or of one of its parts."""
        own = part is None or part == self.alias or part in self.stream.branches
        hidden = ("id", "type", "source", "x", "y") if self.stream.store is self.context.atoms.store else ()
        names = self.stream.store.names(None if own else part)
        return {n: self.column(part, n) for n in names if n not in hidden and not n.startswith("@")}

    def _group(self, name: str) -> Column:
        if self.stream.composite:
            return self.stream.store.column(Attribute(GROUP, name), self.rows)
        for key in self.partitioning.keys:
            if key.name == name:
                return self.key(key)
        return nothing(len(self.rows))

    def key(self, key: Key) -> Column:
        """Give the value of a partition key for every row."""
        if key == INSTANCE:
            return sharer_column(self.stream.store, self.rows)
        if self.stream.composite:
            found = self.stream.store.column(Attribute(GROUP, key.name), self.rows)
            if found.type is not None:
                return found
            # Alternatives that join single events and composites keep keys as the events' own.
        if key.kind == "source":
            return self._own("source")
        if key.kind == "attribute":
            return self._own(key.name)
        return cell_names(self._own("@x"), self._own("@y"), key.cell_m, self.context.coordinates)

    def _own(self, name: str) -> Column:
        if name in PLACE:
            return self._place(name)
        found = self.stream.store.column(Attribute(None, name), self.rows)
        if name == "id" and (found.type is None or found.null is not None):
            return self._ids()
        if found.type is None and name in ALIASES:
            name = ALIASES[name]
            found = self.stream.store.column(Attribute(None, name), self.rows)
        if found.type is not None:
            return found
        if name in ("start", "end", "timestamp", "duration"):
            return self._time(name)
        if self.stream is not self.context.atoms:
            return self._derived(name)
        return found

    def _ids(self) -> Column:
        """Give the ids of events that came without one, and of derived events."""
        from whimbrel.engine.identity import row_ids  # it needs streams itself

        is_atomic = self.stream.store is self.context.atoms.store
        if not is_atomic and self.stream.event_type is None:
            return nothing(len(self.rows))
        return Column(Type.STRING, row_ids(self.context, self.stream, self.rows))

    def _place(self, name: str) -> Column:
        """Give the centre or the shape of where an event lies, whatever attributes it has."""
        if self.stream.store is self.context.atoms.store:
            return self.stream.store.column(Attribute(None, _AXES.get(name, name)), self.rows)
        lineage = self.stream.store.lineage(self.rows)
        atoms = self.context.atoms.store
        if name == SHAPE.name:
            return shapes_of(atoms, lineage, self.context.coordinates)
        return middles_of(atoms, lineage, _AXES[name], self.context.coordinates)

    def _time(self, name: str) -> Column:
        start, end = self.stream.store.spans(self.rows)
        if name == "duration":
            return Column(Type.DURATION, end - start)
        return Column(Type.TIMESTAMP, start if name == "start" else end)

    def _derived(self, name: str) -> Column:
        if name == "type" and self.stream.event_type is not None:
            return Column(Type.STRING, types_of(self.stream, self.rows))
        if name == "source":
            return common_source(self.context, self.stream, self.rows)
        if name in ("x", "y"):
            return self._place(f"@{name}")
        return nothing(len(self.rows))


def types_of(stream: OperatorStream, rows: Int64Array) -> pa.DictionaryArray:
    """Give the types of derived events."""
    if stream.kinds is None:
        return pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(len(rows), np.int32)), pa.array([str(stream.event_type)])
        )
    index = pa.array(sharers_of(stream.store, rows).astype(np.int32))
    return pa.DictionaryArray.from_arrays(index, pa.array(stream.kinds.names, pa.string()))


def identities(context: ExecutionContext, stream: OperatorStream, rows: Int64Array) -> Int64Array:
    """Give events numbers, the same in every stream that passes an event on."""
    if stream.store is context.atoms.store:
        return rows
    origin = stream.store.column(IDENTITY, rows)
    return rows + (stream.number << 44) if origin.type is None else origin.values


def common_source(context: ExecutionContext, stream: OperatorStream, rows: Int64Array) -> Column:
    """Give the source that all atomic events below a row share; null if they differ."""
    lineage = stream.store.lineage(rows)
    filled = np.diff(lineage.offsets) > 0
    if not filled.all():
        return _spread(common_source(context, stream, rows[filled]), filled)
    sources = context.atoms.store.column(Attribute(None, "source"), lineage.refs)
    if sources.type is None or not len(rows):
        return nothing(len(rows))
    encoded = decoded(sources.values).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    low = np.minimum.reduceat(codes, lineage.offsets[:-1])
    high = np.maximum.reduceat(codes, lineage.offsets[:-1])
    same: BoolArray = (low == high) & (low >= 0)
    if not same.any():
        return nothing(len(rows))
    values = encoded.dictionary.take(pa.array(np.where(same, low, 0)))
    return Column(Type.STRING, values, ~same)


def _spread(column: Column, filled: BoolArray) -> Column:
    """Give a value to the rows that are made of any event, and null to those that are made of none."""
    if column.type is None:
        return nothing(len(filled))
    spread = column.take(np.maximum(np.cumsum(filled) - 1, 0))
    return Column(spread.type, spread.values, spread.nulls | ~filled)


def cell_names(x: Column, y: Column, size_m: float, coordinates: Coordinates | None) -> Column:
    """Name the grid cell that each point lies in, as 'column:row'."""
    if x.type is None or y.type is None:
        return nothing(len(x))
    null = x.nulls | y.nulls
    step = in_units(size_m, coordinates)
    row = np.floor(y.values / step)
    if coordinates is Coordinates.LONLAT:
        # Every row of cells has its own width in degrees, so that cells keep their size in metres.
        wide = np.maximum(np.cos(np.radians((row + 0.5) * step)), 1e-9)
        column = np.floor(x.values * wide / step)
    else:
        column = np.floor(x.values / step)
    texts = [pa.array(np.where(null, 0, part).astype(np.int64)).cast(pa.string()) for part in (column, row)]
    names = pc.binary_join_element_wise(*texts, ":").dictionary_encode()
    return Column(Type.STRING, names, null if null.any() else None)
