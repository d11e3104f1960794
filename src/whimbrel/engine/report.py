"""Detections as an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.copies import sharers_of
from whimbrel.engine.derived_batch import numbered
from whimbrel.engine.identity import event_ids, row_ids
from whimbrel.engine.locations import hull_wkb
from whimbrel.engine.row_store import Lineage, offsets_of
from whimbrel.engine.streams import ExecutionContext, InstanceTypes, OperatorStream, types_of
from whimbrel.engine.values import Int64Array, decoded, to_arrow
from whimbrel.graph.expressions import Attribute
from whimbrel.model.deliveries import DELIVERIES_KEY, DELIVERY_COLUMNS, delivery_columns
from whimbrel.model.schema import Coordinates

UTC = pa.timestamp("us", "UTC")
FIXED = ("id", "type", "start", "end", "geometry")
COORDINATES_KEY = b"whimbrel.coordinates"
ATTRIBUTES_KEY = b"whimbrel.attributes"

_EMPTY = pa.schema(
    [("id", pa.string()), ("type", pa.string()), ("start", UTC), ("end", UTC), ("geometry", pa.binary()),
     ("events", pa.list_(pa.string()))]
).empty_table()  # fmt: skip
_BITS = 63
"""How many bits of a number can hold ranks without touching its sign."""


def report(stream: OperatorStream, rows: Int64Array, context: ExecutionContext) -> pa.Table:
    """Write some rows of a definition's stream as a table of detections."""
    atoms = context.atoms.store
    start, end = stream.store.spans(rows)
    lineage = stream.store.lineage(rows)
    events, numbers = numbered(atoms, lineage.refs)
    ids = event_ids(atoms, events)
    columns = {
        "id": row_ids(context, stream, rows),
        "type": decoded(types_of(stream, rows)),
        "start": pa.array(start).cast(UTC),
        "end": pa.array(end).cast(UTC),
        "geometry": hull_wkb(atoms, lineage, context.coordinates),
    }
    names = [name for name in stream.store.names() if not name.startswith("@")]
    for name in names:
        columns[_free_name(name)] = to_arrow(stream.store.column(Attribute(None, name), rows))
    below = Lineage(lineage.offsets, numbers)
    columns["events"] = _event_lists(below, ids, keep=stream.keeps_order)
    table = pa.table(columns)
    if stream.kinds is None:
        return table
    owned = _owned_by_kind(stream.kinds, sharers_of(stream.store, rows), table)
    return table.replace_schema_metadata({ATTRIBUTES_KEY: json.dumps(owned).encode()})


def _owned_by_kind(kinds: InstanceTypes, instances: Int64Array, table: pa.Table) -> dict[str, list[str]]:
    """Name the attributes that the events of each instance have: those it assigns, and those with a value."""
    owned: dict[str, list[str]] = {kinds.names[instance]: [] for instance in np.unique(instances).tolist()}
    assigned = {_free_name(name) for name in kinds.assigned}
    for name in _attributes(table):
        having = instances if name in assigned else instances[table.column(name).is_valid().to_numpy()]
        for instance in np.unique(having).tolist():
            owned[kinds.names[instance]].append(name)
    return owned


def _free_name(name: str) -> str:
    """Keep an attribute apart from the fixed columns."""
    return f"{name}_" if name in (*FIXED, "events") else name


def _event_lists(below: Lineage, ids: pa.Array, *, keep: bool) -> pa.Array:
    """List each row's atomic events once: in total order (they are numbered in it), or in their own."""
    if _is_in_order(below) or (keep and not _has_repeated(below)):
        return pa.ListArray.from_arrays(
            pa.array(below.offsets.astype(np.int32)), ids.take(pa.array(below.refs))
        )
    owner = np.repeat(np.arange(len(below)), np.diff(below.offsets))
    order = np.lexsort((below.refs, owner))
    owner, members = owner[order], below.refs[order]
    first = np.ones(len(members), np.bool_)
    first[1:] = (members[1:] != members[:-1]) | (owner[1:] != owner[:-1])
    owner, members = owner[first], members[first]
    offsets = offsets_of(np.bincount(owner, minlength=len(below)))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), ids.take(pa.array(members)))


def _has_repeated(lineage: Lineage) -> bool:
    """Tell whether any row has an atomic event twice."""
    owner = np.repeat(np.arange(len(lineage)), np.diff(lineage.offsets))
    order = np.lexsort((lineage.refs, owner))
    owner, members = owner[order], lineage.refs[order]
    return bool(((members[1:] == members[:-1]) & (owner[1:] == owner[:-1])).any())


def _is_in_order(lineage: Lineage) -> bool:
    """Tell whether the atomic events of every row are in order and different already."""
    rises = np.ones(len(lineage.refs) + 1, np.bool_)
    rises[1:-1] = lineage.refs[1:] > lineage.refs[:-1]
    rises[lineage.offsets] = True
    return bool(rises.all())


@cache
def no_detections(coordinates: Coordinates | None) -> pa.Table:
    """Make a table of detections that has none."""
    return _EMPTY.replace_schema_metadata(_metadata({}, coordinates))


def together(
    tables: Sequence[pa.Table],
    coordinates: Coordinates | None,
    attributes: Mapping[str, Sequence[str]] | None = None,
) -> pa.Table:
    """Join tables of detections, in the order (end, start, type, events); deliveries as they are told.

    Types and attributes stand in the order of `attributes`, others after them as they come: with those of the
    query, that is the same however its detections were cut into tables.
    """
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return no_detections(coordinates)
    if len(tables) == 1 and attributes is None and COORDINATES_KEY in (tables[0].schema.metadata or {}):
        return tables[0]  # it was put together before
    told = [table for table in tables if DELIVERIES_KEY in (table.schema.metadata or {})]
    if told and len(told) < len(tables):
        plain = [table for table in tables if DELIVERIES_KEY not in (table.schema.metadata or {})]
        tables = [apart_from_deliveries(together(plain, coordinates)), *told]
    owned = _owned(tables, attributes or {})
    joined = pa.concat_tables(_of_one_kind(tables), promote_options="permissive")
    known = _attributes(joined)
    names = [name for names in owned.values() for name in names if name in known]
    joined = joined.select([*FIXED, *dict.fromkeys([*names, *known]), "events"])
    if told:
        metadata = {**_metadata(owned, coordinates), DELIVERIES_KEY: b"1"}
        return _as_told(joined, tables).replace_schema_metadata(metadata)
    if not _follow_each_other(tables, "end"):
        order = _order(joined)
        joined = joined if order is None else joined.take(pa.array(order))
    return joined.replace_schema_metadata(_metadata(owned, coordinates))


def apart_from_deliveries(table: pa.Table) -> pa.Table:
    """Keep the attributes of detections apart from the columns of deliveries."""
    if not any(name in DELIVERY_COLUMNS for name in table.column_names):
        return table

    def free(name: str) -> str:
        return f"{name}_" if name in DELIVERY_COLUMNS else name

    owned = {kind: list(map(free, names)) for kind, names in owned_attributes(table).items()}
    renamed = table.rename_columns(list(map(free, table.column_names)))
    metadata = {**(table.schema.metadata or {}), ATTRIBUTES_KEY: json.dumps(owned).encode()}
    return renamed.replace_schema_metadata(metadata)


def _of_one_kind(tables: Sequence[pa.Table]) -> Sequence[pa.Table]:
    """Write the keys of focal objects as text where mobile queries have keys of different types."""
    places = [table.schema.get_field_index("focal") for table in tables]
    is_told = [DELIVERIES_KEY in (table.schema.metadata or {}) for table in tables]
    kinds = {
        table.schema.field(at).type for table, at, told in zip(tables, places, is_told, strict=True) if told
    }
    if len(kinds) <= 1:
        return tables
    return [
        table.set_column(at, "focal", table.column(at).cast(pa.string())) if told else table
        for table, at, told in zip(tables, places, is_told, strict=True)
    ]


def _follow_each_other(tables: Sequence[pa.Table], by: str) -> bool:
    """Tell whether tables that were joined before, and so are in order, follow each other in time."""
    if not all(COORDINATES_KEY in (table.schema.metadata or {}) for table in tables):
        return False
    times = [table.column(by) for table in tables]
    return all(one[-1].value < other[0].value for one, other in pairwise(times))


def _as_told(joined: pa.Table, tables: Sequence[pa.Table]) -> pa.Table:
    """Put deliveries in order, and plain detections among them by their ends; each table is in order."""
    if len(tables) == 1:
        return joined
    told = pc.coalesce(joined.column("told"), joined.column("end"))
    order = np.lexsort((_ranks(joined.column("query")), _numbers(told)))
    return joined if bool((order == np.arange(len(order))).all()) else joined.take(pa.array(order))


def _attributes(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name not in (*FIXED, "events")]


def _order(table: pa.Table) -> Int64Array | None:
    """Find the order (end, start, type, events, id); None where the rows are in it already."""
    return _settled(table, [_ranks(table.column("type")), *_times(table, "start", "end")])


def order_of_detections(table: pa.Table) -> Int64Array:
    """Give for each row of a table of detections its place in their order."""
    order = _order(table)
    places = np.arange(len(table))
    if order is not None:
        places[order] = np.arange(len(table))
    return places


def _times(table: pa.Table, *names: str) -> list[Int64Array]:
    return [_numbers(table.column(name)) for name in names]


def _settled(table: pa.Table, keys: Sequence[Int64Array]) -> Int64Array | None:
    """Find the order by keys, the least important first; events and ids tell apart what they do not."""
    order = np.lexsort(keys)
    tied = np.zeros(len(order), np.bool_)
    tied[1:] = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
    if tied.any():
        order = Ties(table).settled(order, tied)
    return None if bool((order == np.arange(len(order))).all()) else order


def _ranks(types: pa.ChunkedArray) -> Int64Array:
    """Rank every row's type in the order of the types."""
    names = sorted(name for name in pc.unique(types).to_pylist() if name is not None)
    places = pc.index_in(types, pa.array(names, pa.string())).fill_null(-1)
    ranks: Int64Array = places.to_numpy().astype(np.int64)
    return ranks


def _numbers(column: pa.ChunkedArray) -> Int64Array:
    numbers: Int64Array = column.cast(pa.int64()).to_numpy()
    return numbers


def _owned(tables: Sequence[pa.Table], known: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Name the attributes of every type of detection, those that are known in their order."""
    by_type: dict[str, list[str]] = {}
    for table in tables:
        for kind, names in owned_attributes(table).items():
            by_type[kind] = _merged(by_type.get(kind, []), names)
    kinds = [kind for kind in dict.fromkeys([*known, *by_type]) if kind in by_type]
    return {kind: _in_order(known.get(kind, ()), by_type[kind]) for kind in kinds}


def owned_attributes(table: pa.Table) -> dict[str, list[str]]:
    """Name the attributes of each type of detection in a table, which has some."""
    stated = (table.schema.metadata or {}).get(ATTRIBUTES_KEY)
    if stated:
        found: dict[str, list[str]] = json.loads(stated)
        return found
    told = delivery_columns(table.schema)
    return {table.column("type")[0].as_py(): [name for name in _attributes(table) if name not in told]}


def _in_order(known: Sequence[str], found: list[str]) -> list[str]:
    """Put names into the order of those that are known."""
    return [name for name in _merged([_free_name(name) for name in known], found) if name in found]


def _merged(names: list[str], more: list[str]) -> list[str]:
    """Join lists of names, a new one before the known name that follows it.

    A table leaves out attributes that are null in all its rows, so what comes later may belong before.

    >>> _merged(["speed", "lane"], ["id", "speed", "load"])
    ['id', 'speed', 'lane', 'load']
    """
    merged, waiting = list(names), list[str]()
    for name in more:
        if name in merged:
            at = merged.index(name)
            merged[at:at] = waiting
            waiting = []
        else:
            waiting.append(name)
    return merged + waiting


def _metadata(owned: dict[str, list[str]], coordinates: Coordinates | None) -> dict[bytes, bytes]:
    system = "none" if coordinates is None else coordinates.value
    return {COORDINATES_KEY: system.encode(), ATTRIBUTES_KEY: json.dumps(owned).encode()}


# -- ties ------------------------------------------------------------------------------------------------


class Ties:
    """Groups of rows in a table of detections that only their events, or in the end their ids, tell apart."""

    def __init__(self, table: pa.Table) -> None:
        events = table.column("events").combine_chunks()
        self.offsets: Int64Array = events.offsets.to_numpy().astype(np.int64)
        texts = events.values.dictionary_encode()
        self.codes = texts.indices.to_numpy()
        self.ranks = _text_ranks(texts.dictionary)
        self.width = max(len(texts.dictionary).bit_length(), 1)
        self.ids = table.column("id")

    def settled(self, order: Int64Array, tied: np.ndarray) -> Int64Array:
        """Put the rows of an order right that are tied with the row before them.

        The events are compared a few at a time, and after that only rows that are still tied.
        """
        order = order.copy()
        group = np.cumsum(~tied)
        depth, step = 0, _BITS // self.width
        while tied.any():
            places = _with_neighbours(tied)
            rows = order[places]
            numbers = self._numbers(rows, depth, step)
            if not numbers.any():
                within = np.lexsort((self._id_text_ranks(rows), group[places]))
                order[places] = rows[within]
                break
            within = np.lexsort((numbers, group[places]))
            order[places], numbers = rows[within], numbers[within]
            differs = np.ones(len(order), np.bool_)
            differs[places[1:]] = numbers[1:] != numbers[:-1]
            tied = tied & ~differs
            group = np.cumsum(~tied)
            depth += step
        return order

    def _numbers(self, rows: Int64Array, depth: int, step: int) -> Int64Array:
        """Pack the ranks of some events of every row into one number; 0 stands for no event."""
        first, last = self.offsets[rows] + depth, self.offsets[rows + 1]
        numbers = np.zeros(len(rows), np.int64)
        for offset in range(step):
            numbers <<= self.width
            here = np.flatnonzero(first + offset < last)
            numbers[here] |= self.ranks[self.codes[first[here] + offset]]
        return numbers

    def _id_text_ranks(self, rows: Int64Array) -> Int64Array:
        return _text_ranks(self.ids.take(pa.array(rows)).combine_chunks())


def _with_neighbours(tied: np.ndarray) -> Int64Array:
    """Find the rows that are tied with the one before or after them."""
    both = tied.copy()
    both[:-1] |= tied[1:]
    return np.flatnonzero(both)


def _text_ranks(texts: pa.Array) -> Int64Array:
    """Rank texts in their order, from 1."""
    ranks = np.empty(len(texts), np.int64)
    ranks[pc.sort_indices(texts).to_numpy()] = np.arange(1, len(texts) + 1)
    return ranks
