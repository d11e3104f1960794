"""What a changed query finds that the old one did not, and the other way round.

Detections of two queries are the same finding if they are of one type and rest on the same atomic events.
Where several are, those with equal ids go together first, then the others in their order. An id is made from
the type, the case, the window and the constituents, and never from the text of the query: so a definition
that keeps its name keeps its ids, whatever else is changed in it.

Deliveries are the same if they tell the same object of the same finding, by mobile queries of one name. Those
with equal ids go together first: they are told in interests that begin at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.report import ATTRIBUTES_KEY, COORDINATES_KEY
from whimbrel.io import _text
from whimbrel.io.detections import attribute_texts
from whimbrel.model.columns import decoded
from whimbrel.model.deliveries import has_deliveries, without_areas

Rows = npt.NDArray[np.int64]

SAME, ADDED, DROPPED, CHANGED = "same", "added", "dropped", "changed"
CHANGES = (SAME, ADDED, DROPPED, CHANGED)
CHANGE, BEFORE = "change", "before"
"""Columns of a comparison: which of `CHANGES` a row is, and what a changed one said before, as JSON."""

_FIXED = ("id", "type", "start", "end", "geometry")
_NOT_COMPARED = ("id", "type", "events", "delivery")
_TYPES = {
    "id": pa.string(),
    "type": pa.string(),
    "start": pa.timestamp("us", "UTC"),
    "end": pa.timestamp("us", "UTC"),
    "geometry": pa.binary(),
    "events": pa.list_(pa.string()),
}


@dataclass(frozen=True)
class Pairs:
    """Rows of two tables that are the same finding, and the rows of each that have no partner."""

    old: Rows
    new: Rows
    dropped: Rows
    added: Rows


def compare(old: pa.Table, new: pa.Table) -> pa.Table:
    """Put what two queries detected into one table, in order; the column `change` says what each row is.

    A row that is the same or changed is as the new query has it. `before` is a JSON object of what was
    different before, in rows that are changed.
    """
    return comparison_table(old, new, pairs_of(old, new))


def pairs_of(old: pa.Table, new: pa.Table) -> Pairs:
    """Find which rows of two tables of detections are the same findings."""
    name = "delivery" if has_deliveries(old.schema) and has_deliveries(new.schema) else "id"
    by_id = matched(decoded(_joined(old, name)), decoded(_joined(new, name)))
    by_events = pairs_by_events(old.take(pa.array(by_id.dropped)), new.take(pa.array(by_id.added)))
    return Pairs(
        np.concatenate([by_id.old, by_id.dropped[by_events.old]]),
        np.concatenate([by_id.new, by_id.added[by_events.new]]),
        by_id.dropped[by_events.dropped],
        by_id.added[by_events.added],
    )


def pairs_by_events(old: pa.Table, new: pa.Table) -> Pairs:
    """Match rows by type and atomic events, those with the same ones in the order they stand in."""
    return matched(finding_names(old), finding_names(new))


def finding_names(table: pa.Table) -> pa.Array:
    """Name a finding by what makes it one: its type and its atomic events."""
    events = pc.binary_join(_sorted_lists(_joined(table, "events").cast(_TYPES["events"])), "\0")
    names = [decoded(_joined(table, "type")), events]
    if has_deliveries(table.schema):
        told = (decoded(_joined(table, name)).cast(pa.string()) for name in ("query", "focal", "change"))
        names = [*(pc.fill_null(each, "") for each in told), *names]
    return pc.binary_join_element_wise(*names, "\0")


def _sorted_lists(lists: pa.ListArray) -> pa.ListArray:
    """Sort the texts of each list: in which order a detection tells its events does not matter."""
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(lists)), lengths)
    keys = pa.table({"owner": owners, "text": lists.flatten()})
    order = pc.sort_indices(keys, [("owner", "ascending"), ("text", "ascending")])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), lists.flatten().take(order))


def matched(old: pa.Array, new: pa.Array) -> Pairs:
    """Match equal texts, the first with the first, the second with the second."""
    codes = pa.concat_arrays([old, new]).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    codes = codes.astype(np.int64)
    ours, theirs = _numbered(codes[: len(old)]), _numbered(codes[len(old) :])
    width = max(ours.max(initial=0), theirs.max(initial=0)) + 1
    _, first, second = np.intersect1d(
        codes[: len(old)] * width + ours,
        codes[len(old) :] * width + theirs,
        assume_unique=True,
        return_indices=True,
    )
    return Pairs(first, second, _rest(len(old), first), _rest(len(new), second))


def _numbered(codes: Rows) -> Rows:
    """Count up within each group of equal values, from 0."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    begins = np.ones(len(codes), np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    positions = np.arange(len(codes))
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    return numbers


def _rest(size: int, taken: Rows) -> Rows:
    left = np.ones(size, np.bool_)
    left[taken] = False
    return np.flatnonzero(left)


def comparison_table(old: pa.Table, new: pa.Table, pairs: Pairs) -> pa.Table:
    """Write pairs and lonely rows as one table, in the order (end, start, type, events, id)."""
    metadata = _metadata(old, new)
    old, new = _alike(without_areas(old), without_areas(new))
    before = _before(old.take(pa.array(pairs.old)), new.take(pa.array(pairs.new)))
    added, dropped = new.take(pa.array(pairs.added)), old.take(pa.array(pairs.dropped))
    kept = pc.if_else(pc.is_null(before), SAME, CHANGED)
    nothing = pa.nulls(added.num_rows + dropped.num_rows, pa.string())
    changes = [kept, pa.repeat(ADDED, added.num_rows), pa.repeat(DROPPED, dropped.num_rows)]
    table = pa.concat_tables([new.take(pa.array(pairs.new)), added, dropped])
    table = table.append_column(CHANGE, pa.concat_arrays([kinds.cast(pa.string()) for kinds in changes]))
    table = table.append_column(BEFORE, pa.concat_arrays([before, nothing]))
    names = [name for name in table.column_names if name != "events"]
    return _in_order(table.select([*names, "events"])).replace_schema_metadata(metadata)


def _in_order(table: pa.Table) -> pa.Table:
    keys = table.select(["end", "start", "type", "id", CHANGE])
    if has_deliveries(table.schema):
        told = ("query", "focal", "told")
        for name in told:
            keys = keys.add_column(0, name, decoded(_joined(table, name)))
    keys = keys.add_column(
        keys.column_names.index("id"), "events", pc.binary_join(_joined(table, "events"), "\0")
    )
    return table.take(pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names]))


def _before(old: pa.Table, new: pa.Table) -> pa.Array:
    """Write what was different in the old rows as JSON objects; null where nothing was."""
    names = [name for name in new.column_names if name not in _NOT_COMPARED and not name.startswith("~")]
    differs = {name: _differs(_joined(old, name), _joined(new, name)) for name in names}
    any_differs = np.logical_or.reduce(list(differs.values()))
    rows = np.flatnonzero(any_differs)  # usually few; writing all of them would take long
    texts = np.full(old.num_rows, None, dtype=object)
    if len(rows):
        texts[rows] = _objects(
            old.take(pa.array(rows)), {name: rows_of[rows] for name, rows_of in differs.items()}
        )
    return pa.array(texts, pa.string())


def _differs(ours: pa.Array, theirs: pa.Array) -> np.ndarray:
    if pa.types.is_nested(ours.type):  # Arrow compares no lists
        ours, theirs = _text.json_values(ours), _text.json_values(theirs)
    is_equal = pc.fill_null(pc.equal(ours, theirs), False)
    both_null = pc.and_(pc.is_null(ours), pc.is_null(theirs))
    differs: np.ndarray = ~pc.or_(is_equal, both_null).to_numpy(zero_copy_only=False)
    return differs


def _objects(table: pa.Table, shown: dict[str, np.ndarray]) -> np.ndarray:
    """Write the columns of each row that are to be shown as a JSON object."""
    members = []
    for name, is_shown in shown.items():
        column = _joined(table, name)
        values = _text.json_values(_text.wkt(column) if name == "geometry" else column)
        texts = pc.binary_join_element_wise(f", {json.dumps(name)}: ", values, "")
        members.append(pc.if_else(pa.array(is_shown), texts, ""))
    joined = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*members, ""), 2)
    return pc.binary_join_element_wise("{", joined, "}", "").to_numpy(zero_copy_only=False)


def difference_texts(table: pa.Table) -> pa.Array:
    """Write the rows of a comparison as JSON objects.

    Their members are `change`, `type`, `start`, `end`, `geometry` (WKT), `attributes` and `before` (objects),
    `events` (ids) and `id`.
    """
    plain = table.drop_columns([CHANGE, BEFORE]).combine_chunks()
    attributes = [attribute_texts(batch) for batch in plain.to_batches()]
    members = {CHANGE: _text.json_values(_joined(table, CHANGE))}
    members |= {name: _text.json_values(_joined(table, name)) for name in ("type", "start", "end")}
    members["geometry"] = _text.json_values(_text.wkt(_joined(table, "geometry")))
    members["attributes"] = pa.concat_arrays(attributes) if attributes else pa.array([], pa.string())
    members[BEFORE] = pc.fill_null(_joined(table, BEFORE), "null")
    members |= {name: _text.json_values(_joined(table, name)) for name in ("events", "id")}
    return _text.json_objects(members, table.num_rows)


# -- columns of both --------------------------------------------------------------------------------------


def _alike(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Bring both tables to the columns of both, with one type each."""
    names = [*_FIXED, *_attributes(new, old), "events"]
    kinds = {name: _TYPES.get(name) or _common(name, [old, new]) for name in names}
    ours, theirs = (
        pa.table({_shown(name): _as(table, name, kind) for name, kind in kinds.items()})
        for table in (old, new)
    )
    return ours, theirs


def _attributes(*tables: pa.Table) -> list[str]:
    fixed = (*_FIXED, "events")
    return list(dict.fromkeys(name for t in tables for name in t.column_names if name not in fixed))


def _shown(name: str) -> str:
    """Keep attributes apart from the columns of a comparison, as the engine does from its own."""
    return f"{name}_" if name in (CHANGE, BEFORE) else name


def _common(name: str, tables: Sequence[pa.Table]) -> pa.DataType:
    """Choose the type that holds a column of both tables: text if there is no other."""
    kinds = {_plain_type(table.schema.field(name).type) for table in tables if name in table.column_names}
    kinds.discard(pa.null())  # of a column without any value
    if len(kinds) == 1:
        return kinds.pop()
    if kinds and all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        return pa.float64()
    return pa.string()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _as(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    if name not in table.column_names:
        return pa.nulls(table.num_rows, kind)
    column = decoded(_joined(table, name))
    if column.type == kind:
        return column
    if pa.types.is_string(kind) and not pa.types.is_null(column.type):
        texts = _text.json_values(column)
        return pc.if_else(pc.is_null(column), pa.scalar(None, pa.string()), texts)
    return column.cast(kind)


def _joined(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _metadata(old: pa.Table, new: pa.Table) -> dict[bytes, bytes]:
    """Say which type has which attributes, the columns of the comparison included."""
    owned: dict[str, list[str]] = {}
    for table in (new, old):
        known = (table.schema.metadata or {}).get(ATTRIBUTES_KEY, b"{}")
        for kind, names in json.loads(known).items():
            more = [_shown(CHANGE)] if has_deliveries(table.schema) else []
            owned[kind] = list(dict.fromkeys([*owned.get(kind, []), *map(_shown, names), *more]))
    shown = {kind: [*names, CHANGE, BEFORE] for kind, names in owned.items()}
    known = [(table.schema.metadata or {}).get(COORDINATES_KEY, b"none") for table in (new, old)]
    coordinates = next((name for name in known if name != b"none"), b"none")
    return {COORDINATES_KEY: coordinates, ATTRIBUTES_KEY: json.dumps(shown).encode()}
