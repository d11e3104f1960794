"""Derived events on their way from one session to another, with the atomic events they were made of.

A query can be cut (`whimbrel.graph.fragments`): one session finds the events of a definition, another one
uses them. What the second one needs is more than the attributes: ids are made of ids, order, hull and
provenance of the atomic events below. So derived events travel as two record batches, which become one
block of bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import event_ids
from whimbrel.engine.row_store import Lineage, RowStore, different, offsets_of
from whimbrel.engine.shapes import SHAPE
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.values import Column, Int64Array, from_arrow, to_arrow
from whimbrel.errors import StateError
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.model.schema import Type

MADE_OF = "@made_of"
"""The column that lists, for every derived event, its atomic events as places in the second batch."""

OWN_TIMES = (Attribute(None, "@start"), Attribute(None, "@end"))
"""Where the store of atomic events keeps the times of those that were brought along. They are remembered for
as long as the derived events that brought them, and so have the time of these where others have their own."""

_ATOM = (Attribute(None, "source"), Attribute(None, "x"), Attribute(None, "y"), SHAPE)
_IN_ORDER = b"whimbrel.in_order"
_HEAD = struct.Struct("<4sQ")
_MARK = b"WBCE"


@dataclass(frozen=True, slots=True)
class DerivedBatch:
    """Events of one definition, and the atomic events below them, each once."""

    events: pa.RecordBatch
    atoms: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.events.num_rows)

    @property
    def end(self) -> Int64Array:
        """When each event ends."""
        values: Int64Array = self.events.column("end").to_numpy()
        return values

    @property
    def in_order(self) -> bool:
        """Whether provenance keeps the order in which events were taken."""
        return (self.events.schema.metadata or {}).get(_IN_ORDER) == b"1"

    @property
    def lineage(self) -> Lineage:
        """The atomic events below each event, as places in `atoms`."""
        lists = self.events.column(MADE_OF)
        lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        return Lineage(offsets_of(lengths), lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64))

    def taken(self, rows: Int64Array) -> DerivedBatch:
        """Give some of the events; the atomic ones stay."""
        return DerivedBatch(self.events.take(pa.array(rows)), self.atoms)

    def columns(self) -> dict[Expr, Column]:
        """Give what the stream of the definition holds."""
        skipped = ("start", "end", MADE_OF)
        names = [name for name in self.events.schema.names if name not in skipped]
        return {Attribute(None, name): from_arrow(self.events.column(name)) for name in names}

    def to_bytes(self) -> bytes:
        """Write both batches as one block of bytes."""
        first, second = (_written(batch) for batch in (self.events, self.atoms))
        return _HEAD.pack(_MARK, len(first)) + first + second

    @classmethod
    def from_bytes(cls, data: bytes) -> DerivedBatch:
        """Read what `to_bytes` wrote.

        Raises
        ------
        StateError
            If it is something else, or damaged.
        """
        if len(data) < _HEAD.size or data[:4] != _MARK:
            raise StateError("these are no derived events on their way")
        _, size = _HEAD.unpack_from(data)
        middle = _HEAD.size + size
        try:
            return cls(_read(data[_HEAD.size : middle]), _read(data[middle:]))
        except pa.ArrowInvalid as error:
            raise StateError("derived events on their way are damaged") from error


def _written(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _read(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def derived_batch(stream: OperatorStream, rows: Int64Array, context: ExecutionContext) -> DerivedBatch:
    """Make some rows of a definition's stream ready to travel."""
    lineage = stream.store.lineage(rows)
    refs, places = different(lineage.refs)
    start, end = stream.store.spans(rows)
    columns: dict[str, pa.Array] = {"start": pa.array(start), "end": pa.array(end)}
    for name in stream.store.names():
        column = stream.store.column(Attribute(None, name), rows)
        if column.type is not None:
            columns[name] = to_arrow(column)
    columns[MADE_OF] = pa.ListArray.from_arrays(
        pa.array(lineage.offsets.astype(np.int32)), pa.array(places.astype(np.int32))
    )
    schema = pa.schema(
        [(name, column.type) for name, column in columns.items()],
        {_IN_ORDER: b"1" if stream.keeps_order else b"0"},
    )
    events = pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
    return DerivedBatch(events, _atoms(context.atoms.store, refs))


def _atoms(store: RowStore, refs: Int64Array) -> pa.RecordBatch:
    start, end = own_times(store, refs)
    columns = {"id": event_ids(store, refs), "start": pa.array(start), "end": pa.array(end)}
    for key in _ATOM:
        column = store.column(key, refs)
        if column.type is not None:
            columns[key.name] = to_arrow(column)
    return pa.RecordBatch.from_pydict(columns)


def own_times(store: RowStore, refs: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Give the times of atomic events, also of those that were brought along."""
    times = store.spans(refs)
    if not has_brought_along(store):
        return times
    found = []
    for given, key in zip(times, OWN_TIMES, strict=True):
        own = store.column(key, refs)
        found.append(given if own.type is None else np.where(own.nulls, given, own.values))
    return found[0], found[1]


def has_brought_along(store: RowStore) -> bool:
    """Tell whether any of the atomic events that are remembered came along with derived ones."""
    return any(OWN_TIMES[1] in chunk.columns for chunk in store.chunks)


def bring_along(store: RowStore, derived: DerivedBatch) -> Lineage:
    """Put the atomic events below derived ones into the store of atomic events; give the lineage there."""
    lineage = derived.lineage
    used, places = different(lineage.refs)
    until = np.zeros(len(used), np.int64)
    np.maximum.at(until, places, np.repeat(derived.end, np.diff(lineage.offsets)))
    atoms = derived.atoms.take(pa.array(used))
    columns: dict[Expr, Column] = {}
    for name in atoms.schema.names:
        if name not in ("start", "end"):
            columns[Attribute(None, name)] = from_arrow(atoms.column(name))
    for key, name in zip(OWN_TIMES, ("start", "end"), strict=True):
        columns[key] = Column(Type.INT, atoms.column(name).to_numpy())
    rows = store.append(until, until, columns, None)
    return Lineage(lineage.offsets, rows[places])


# -- order -----------------------------------------------------------------------------------------------


def numbered(atoms: RowStore, refs: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Give a row of each different atomic event, in total order, and the place there of every ref."""
    rows, places = different(refs)
    if not has_brought_along(atoms) or not len(rows):
        return rows, places
    table = _keys(atoms, rows)
    order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy()
    ids = table.column("id").take(pa.array(order)).combine_chunks()
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(is_new) - 1
    return rows[order[is_new]], number[places]


def _keys(atoms: RowStore, rows: Int64Array) -> pa.Table:
    start, end = own_times(atoms, rows)
    source = atoms.column(Attribute(None, "source"), rows)
    texts = to_arrow(source) if source.type is Type.STRING else pa.nulls(len(rows), pa.string())
    return pa.table(
        {
            "end": end,
            "start": start,
            "has_source": texts.is_valid(),  # those without one come first
            "source": texts.fill_null(""),
            "id": event_ids(atoms, rows),
        }
    )
