"""The atomic events, and which of them each deployed query asked for.

Everything that reads a single event (its type and the conditions on it) is tested here, once for all
queries: equal tests are shared, all of them are found through one index, and queries only see the rows
that passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from whimbrel.engine.condition_templates import rows_passing
from whimbrel.engine.identity import NUMBER
from whimbrel.engine.shapes import SHAPE, shape_texts
from whimbrel.engine.streams import ARRIVAL, ExecutionContext, OperatorStream, Subscriber
from whimbrel.engine.total_order import Released
from whimbrel.engine.type_index import TypeIndex
from whimbrel.engine.values import Column, Int64Array, decoded, from_arrow, nothing
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.graph.operators import ANY
from whimbrel.model.schema import Coordinates, Type
from whimbrel.model.time import TIME_POINT

Selector = tuple[str, Expr | None]
"""A type, and a condition on one event of it."""

_NONE = np.zeros(0, np.int64)
MOST = 0.75
"""If more of the events than this are read, the others are not worth leaving out."""


class SourceEvents:
    """The stream of all atomic events, and its selections."""

    def __init__(self, context: ExecutionContext) -> None:
        self.context = context
        self.stream = context.atoms
        self._types: dict[str, TypeIndex] = {}
        self._touched: list[OperatorStream] = []

    @property
    def types(self) -> Collection[str]:
        """The types that any query reads, now and whenever it is looked at."""
        return self._types.keys()

    def select(self, atom: Selector, user: str) -> OperatorStream:
        """Open the stream for a query of the events that pass a test; equal tests share one."""
        event_type, condition = atom
        if event_type not in self._types:
            self._types[event_type] = TypeIndex()
        index = self._types[event_type]
        if condition not in index.streams:
            known = None if event_type == ANY else event_type
            selection = OperatorStream(
                event_type, self.stream.store, event_type=known, clock=self.stream.clock
            )
            index.add(condition, selection)
        selection = index.streams[condition]
        selection.users[user] = None
        return selection

    def release(self, atom: Selector, user: str) -> None:
        """Say that a query no longer needs a test."""
        event_type, condition = atom
        index = self._types.get(event_type)
        if index is None or condition not in index.streams:
            return
        selection = index.streams[condition]
        selection.users.pop(user, None)
        self._drop_unread(index, atom, selection)

    def unsubscribe(self, atom: Selector, subscriber: Subscriber) -> None:
        """Say that an instance of a template no longer needs a test."""
        index = self._types[atom[0]]
        selection = index.streams[atom[1]]
        del selection.subscribers[subscriber]
        self._drop_unread(index, atom, selection)

    def _drop_unread(self, index: TypeIndex, atom: Selector, selection: OperatorStream) -> None:
        if not selection.users and not selection.subscribers:
            index.remove(atom[1])
            if not index.streams:
                del self._types[atom[0]]

    def feed(self, released: Released, columns: Collection[str] | None) -> list[OperatorStream]:
        """Append released events and find out which tests they pass; give the selections that have any."""
        self.clear()
        codes, names = _types(released.batch)
        if ANY not in self._types:
            # Events of types that no query reads need not be remembered.
            read = np.array([name in self._types for name in names], np.bool_)
            if not read.all():
                kept = np.flatnonzero(read[codes])
                if len(kept) <= MOST * len(codes):  # else copying would cost more than remembering
                    released, codes = released.filtered(kept), codes[kept]
        if not len(codes):
            return []
        held = columns_of(released, columns, self.context.coordinates)
        rows = self.stream.store.append(released.start, released.end, held, None)
        for event_type, of_type in self._by_type(codes, names, rows):
            self._touched += self._types[event_type].feed(of_type, self.context)
        return self._touched

    def show_again(self, rows: Int64Array, selectors: Iterable[Selector]) -> None:
        """Let some selections have remembered events once more, for a query that was not there before."""
        self.clear()
        frame_types = self.stream.store.column(Attribute(None, "type"), rows)
        types = decoded(frame_types.values).to_numpy(zero_copy_only=False)
        points = np.array([str(name).startswith(TIME_POINT) for name in types], np.bool_)
        for event_type, condition in dict.fromkeys(selectors):
            some = rows[~points if event_type == ANY else types == event_type]
            if condition is not None and len(some):
                some = rows_passing(condition, self.context, self.stream, some)
            selection = self._types[event_type].streams[condition]
            selection.new = some
            self._touched.append(selection)

    def advance(self, watermark: int) -> None:
        """Let time pass for all selections: they have one clock."""
        self.stream.watermark = watermark

    def clear(self) -> None:
        """Say that nothing is new."""
        for selection in self._touched:
            selection.new = _NONE
        self._touched = []

    def _by_type(
        self, codes: Int64Array, names: list[str], rows: Int64Array
    ) -> Iterable[tuple[str, Int64Array]]:
        """Part new rows by their types; all of them are of any type, time points aside."""
        if ANY in self._types and len(rows):
            points = [code for code, name in enumerate(names) if name.startswith(TIME_POINT)]
            yield ANY, rows[~np.isin(codes, points)] if points else rows
        counts = np.bincount(codes, minlength=len(names))
        if len(rows) == counts.max(initial=0):  # as single events always are
            present = [(int(counts.argmax()), rows)] if len(rows) else []
        else:
            order = np.argsort(codes.astype(np.min_scalar_type(len(names))), kind="stable")
            present = list(enumerate(np.split(rows[order], np.cumsum(counts)[:-1])))
        for code, of_type in present:
            if len(of_type) and names[code] in self._types:
                yield names[code], of_type


def _types(batch: pa.RecordBatch) -> tuple[Int64Array, list[str]]:
    """Encode the types of events: a number for each event, and the types by number."""
    types = batch.column("type")
    if len(types) == 1:
        return np.zeros(1, np.int64), [types[0].as_py()]
    if not pa.types.is_dictionary(types.type):
        types = types.dictionary_encode()
    return types.indices.to_numpy(zero_copy_only=False), decoded(types.dictionary).to_pylist()


_ALWAYS = frozenset({"id", "type", "source", "x", "y"})
_NO_COLUMNS = frozenset({"start", "end", "geometry"})


@lru_cache(maxsize=1_024)
def _attribute(name: str) -> Attribute:
    """Name a column of events; always by the same object, so that keys of chunks are compared fast."""
    return Attribute(None, name)


def columns_of(
    released: Released, wanted: Collection[str] | None, coordinates: Coordinates | None
) -> dict[Expr, Column]:
    """Read the columns of a batch that any query needs."""
    batch, names = released.batch, released.batch.schema.names
    columns: dict[Expr, Column] = {}
    for number, name in enumerate(names):
        if name not in _NO_COLUMNS and (wanted is None or name in wanted or name in _ALWAYS):
            columns[_attribute(name)] = from_arrow(batch.column(number))
    if released.number is not None:
        columns[NUMBER] = Column(Type.INT, released.number)
    if released.arrival is not None:
        columns[ARRIVAL] = Column(Type.INT, released.arrival)
    if "geometry" in names:
        columns |= _polygons(columns, batch.column("geometry"), coordinates)
    return columns


def _polygons(
    points: dict[Expr, Column], geometry: pa.Array, coordinates: Coordinates | None
) -> dict[Expr, Column]:
    """Read the shapes of events that are no points, and the centres of all."""
    from whimbrel.space.geometry import centres

    wkb = geometry.to_numpy(zero_copy_only=False)
    columns: dict[Expr, Column] = {SHAPE: from_arrow(shape_texts(wkb))}
    for axis, middle in zip(("x", "y"), centres(wkb, coordinates), strict=True):
        own = points.get(Attribute(None, axis)) or nothing(len(middle))
        values = middle if own.type is None else np.where(own.nulls, middle, own.values)
        null = np.isnan(values)
        columns[Attribute(None, axis)] = Column(Type.FLOAT, values, null if null.any() else None)
    return columns
