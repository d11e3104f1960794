"""Ids: of atomic events that came without one, and of detections.

A detection's id is a 128-bit hash of its type, its case, its window and the ids of its constituents in the
order of the parts, written as 32 hexadecimal digits; constituents that are detections themselves count with
their own ids. It depends on nothing else, so it is the same on every backend, replay and restart.

The id of an event that came without one is made with its content: what it says, as one number.

It is the exclusive or, over all values that an event has besides its type, its source and its times, of the
XXH64 of the value, seeded with the XXH64 (seed 42) of the column's name: what Spark's
`xxhash64(lit(name), value)` gives. So neither the order of columns nor missing values matter; on Spark the
part of the attributes is computed before columns that nobody reads are left out. Attributes count as they
come, under the names that the input gives them and before a query's declarations convert them, so that no
id depends on a query; the location counts as the event has it, however it was
given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.kernels.contents import hash_bytes, mix_in_numbers, sizes_of_ids, write_ids
from whimbrel.engine.kernels.ordering import hash_lists, hash_texts
from whimbrel.engine.row_store import RowStore, different
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.values import Column, Int64Array, decoded, to_arrow
from whimbrel.errors import DataError
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.model.batch import Normalised, Normaliser
from whimbrel.model.columns import from_values, natural, nulls_of, values_of
from whimbrel.model.faults import Faults
from whimbrel.model.schema import RESERVED_COLUMNS, Type

CONTENT = "@content"
"""The column of a batch in the common form that has the content of events without ids."""
ATTRIBUTES = "@attributes"
"""The column of a batch that has the part of its attributes already, because some of them were left out."""

_SEED = np.uint64(42)
_NOTHING_MISSING = np.zeros(0, np.bool_)
_LOCATION = ("x", "y", "geometry")
_NO_BYTES = np.frombuffer(b"\0", np.uint8)

HashArray = npt.NDArray[np.uint64]
NUMBER = Attribute(None, "@number")
CONTENT_KEY = Attribute(None, CONTENT)
"""Where the store of atomic events keeps what those without an id say, and the number of equal ones."""
HASH = (Attribute(None, "@high"), Attribute(None, "@low"))
"""Where a stream of derived events or composites keeps the hashes of its rows."""


def normalise_with_content(
    normaliser: Normaliser, batch: pa.RecordBatch, first_row: int = 0, aside: Collection[str] = ()
) -> Normalised:
    """Bring a batch into the common form, and note what events say that bring no ids.

    A batch that has it keeps it. Columns `aside` were added on the way and are not the events' own.
    """
    known = None
    if ATTRIBUTES in batch.schema.names:
        known = values_of(batch.column(ATTRIBUTES), "u8")
        batch = batch.drop_columns([ATTRIBUTES])
    normalised = normaliser.normalise(batch, first_row)
    events, names = normalised.events, normalised.events.schema.names
    if "id" in names or CONTENT in names:
        return normalised
    if known is None and normalised.is_as_given and not any(name in names for name in aside):
        own = [name for name in names if name not in RESERVED_COLUMNS or name in _LOCATION]
        content = hashes_of({name: events.column(name) for name in own}, events.num_rows)
    else:
        content = attribute_hashes(batch, {*aside, *normalised.named.used}) if known is None else known
        if normalised.rejected.num_rows:
            content = np.delete(content, normalised.rejected.column("row").to_numpy() - first_row)
        location = {name: events.column(name) for name in _LOCATION if name in names}
        content = content ^ hashes_of(location, len(content))
    return replace(normalised, events=events.append_column(CONTENT, from_values(content.view(np.int64))))


def attribute_hashes(batch: pa.RecordBatch, aside: Collection[str] = ()) -> HashArray:
    """Hash the attributes of every row, under the names that the input gives them.

    Columns `aside` are none: those that say what the event's type, source, times and location are. Columns
    that cannot be attributes do not count.
    """
    return hashes_of(dict(_attributes(batch, aside)), batch.num_rows)


def _attributes(batch: pa.RecordBatch, aside: Collection[str]) -> Iterator[tuple[str, pa.Array]]:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in aside:
            try:
                yield name, natural(name, column, Faults(len(column)))
            except DataError:  # such a column is refused where it is read, and else nobody minds it
                continue


def hashes_of(columns: Mapping[str, pa.Array], rows: int) -> HashArray:
    """Hash the values of every row, in columns that are in their natural form."""
    combined = np.zeros(rows, np.uint64)
    for name, column in columns.items():
        if column.null_count < rows:
            _mix_in(column, _text_hash(name), combined)
    return combined


def _mix_in(column: pa.Array, seed: np.uint64, found: HashArray) -> None:
    kind = column.type
    missing = nulls_of(column) if column.null_count else _NOTHING_MISSING
    if pa.types.is_dictionary(kind):
        own = _bytes_hashes(column.dictionary, seed)
        codes = column.indices.fill_null(0) if column.null_count else column.indices
        _mix_in_found(own[codes.to_numpy(zero_copy_only=False)], missing, found)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        _mix_in_found(_bytes_hashes(column, seed), missing, found)
    elif pa.types.is_boolean(kind):
        values = column.fill_null(False) if column.null_count else column
        both = np.array([_int_hash(0, seed), _int_hash(1, seed)], np.uint64)
        _mix_in_found(both[values.to_numpy(zero_copy_only=False).astype(np.intp)], missing, found)
    else:
        numbers = values_of(column, "i8")
        mix_in_numbers.at(8 * len(numbers))(numbers, pa.types.is_floating(kind), missing, seed, found)


def _mix_in_found(hashes: HashArray, missing: npt.NDArray[np.bool_], found: HashArray) -> None:
    if len(missing):
        hashes[missing] = 0
    found ^= hashes


def _bytes_hashes(column: pa.Array, seed: np.uint64) -> HashArray:
    """Hash texts or bytes; what is null hashes as anything."""
    hashes = np.empty(len(column), np.uint64)
    if len(column):
        _, offsets, data = column.buffers()
        bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_BYTES
        work = 4 * len(column) + int(bounds[-1] - bounds[0]) // 2
        hash_bytes.at(work)(bounds, content, seed, hashes)
    return hashes


@lru_cache(maxsize=4096)
def _text_hash(text: str) -> np.uint64:
    return np.uint64(_bytes_hashes(pa.array([text], pa.string()), _SEED)[0])


def _int_hash(value: int, seed: np.uint64) -> np.uint64:
    """Hash a number of four bytes."""
    return np.uint64(_bytes_hashes(pa.array([value.to_bytes(4, "little")], pa.binary()), seed)[0])


def hashes(texts: pa.Array) -> tuple[HashArray, HashArray]:
    """Hash every text to two 64-bit numbers; null hashes as the empty text."""
    texts = decoded(texts)
    texts = texts.fill_null("") if texts.null_count else texts
    high, low = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    _, offsets, data = texts.buffers()
    if len(texts):
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
        hash_texts.at(4 * len(texts) + int(bounds[-1] - bounds[0]))(bounds, content, high, low)
    return high, low


def event_ids(atoms: RowStore, rows: Int64Array) -> pa.Array:
    """Look up the ids of atomic events: their own, or made from what they say."""
    own = atoms.column(Attribute(None, "id"), rows)
    if own.type is not None and own.null is None:
        return decoded(own.values)
    source, event_type = (atoms.column(Attribute(None, name), rows) for name in ("source", "type"))
    content, number = (_whole(atoms, key, rows) for key in (CONTENT_KEY, NUMBER))
    from_content = made_ids(source, event_type, *atoms.spans(rows), content, number)
    return from_content if own.type is None else pc.coalesce(to_arrow(own), from_content)


def made_ids(
    source: Column,
    event_type: Column,
    start: Int64Array,
    end: Int64Array,
    content: Int64Array,
    number: Int64Array,
) -> pa.Array:
    """Make ids for events without one: `source:times:content:number:type`.

    `content` is what they say (`whimbrel.engine.identity`), `number` tells equal ones apart.
    """
    sources, types = _coded(source), _coded(event_type)
    offsets = np.zeros(len(start) + 1, np.int64)
    sizes_of_ids.at(40 * len(start))(*sources[:2], *types[:2], start, end, number, offsets)
    out = np.empty(int(offsets[-1]), np.uint8)
    write_ids.at(2 * len(out))(*sources, *types, start, end, content, number, offsets, out)
    places = pa.py_buffer(offsets.astype(np.int32))
    return pa.StringArray.from_buffers(len(start), places, pa.py_buffer(out))


def _coded(texts: Column) -> tuple[Int64Array, Int64Array, npt.NDArray[np.uint8]]:
    """Encode texts as numbers, and tell where the different texts lie in one row of bytes; none is empty."""
    if texts.type is None:
        return np.zeros(len(texts), np.int64), np.zeros(2, np.int64), np.zeros(1, np.uint8)
    values = texts.values if pa.types.is_dictionary(texts.values.type) else texts.values.dictionary_encode()
    known = [(text or "").encode() for text in decoded(values.dictionary).to_pylist()] + [b""]
    codes = values.indices.fill_null(len(known) - 1) if values.null_count else values.indices
    codes = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    if texts.null is not None:
        codes[texts.null] = len(known) - 1
    offsets = np.cumsum([0, *map(len, known)], dtype=np.int64)
    return codes, offsets, np.array(bytearray(b"".join(known) + b"\0"), np.uint8)


def _whole(atoms: RowStore, key: Attribute, rows: Int64Array) -> Int64Array:
    """Read the whole numbers of a column, 0 for none."""
    column = atoms.column(key, rows)
    if column.type is None:
        return np.zeros(len(rows), np.int64)
    return np.where(column.nulls, 0, column.values)


def row_hashes(
    context: ExecutionContext, stream: OperatorStream, rows: Int64Array
) -> tuple[HashArray, HashArray]:
    """Hash what events count with in the ids of the detections they are part of."""
    if stream.store is context.atoms.store:
        store, events = stream.store.origin(rows)
        events, inverse = different(events)
        high, low = event_hashes(store, events)
        return high[inverse], low[inverse]
    kept = [stream.store.column(key, rows).values.view(np.uint64) for key in HASH]
    return kept[0], kept[1]


def event_hashes(atoms: RowStore, rows: Int64Array) -> tuple[HashArray, HashArray]:
    """Hash the ids of atomic events."""
    return hashes(event_ids(atoms, rows))


def hash_columns(high: HashArray, low: HashArray) -> dict[Expr, Column]:
    """Make the columns in which a stream keeps the hashes of its rows."""
    return {key: Column(Type.INT, value.view(np.int64)) for key, value in zip(HASH, (high, low), strict=True)}


def fold(offsets: Int64Array, high: HashArray, low: HashArray) -> dict[Expr, Column]:
    """Fold the hashes of the constituents of every row, in order, into one."""
    seeds = np.zeros(len(offsets) - 1, np.uint64)
    return _folded(seeds, seeds, offsets, high, low)


def fold_on(
    begun: tuple[HashArray, HashArray], offsets: Int64Array, high: HashArray, low: HashArray
) -> dict[Expr, Column]:
    """Go on folding from what was folded before: the same as folding all of it at once."""
    return _folded(*begun, offsets, high, low)


def named(
    kind: tuple[HashArray, HashArray], case: int, window: Int64Array, high: HashArray, low: HashArray
) -> dict[Expr, Column]:
    """Hash the events of a definition: made from those of their types and what they were found in.

    There is a hash of the type for every event, or one for all.
    """
    shift = np.uint64(case * 0x9E3779B97F4A7C15 % 2**64) + window.astype(np.uint64)
    offsets = np.arange(len(high) + 1)
    return _folded(kind[0] + shift, kind[1] ^ shift, offsets, high, low)


def _folded(
    seed_high: HashArray, seed_low: HashArray, offsets: Int64Array, high: HashArray, low: HashArray
) -> dict[Expr, Column]:
    out_high, out_low = np.empty(len(offsets) - 1, np.uint64), np.empty(len(offsets) - 1, np.uint64)
    fold_hashes = hash_lists.at(2 * (len(offsets) + len(high)))
    fold_hashes(seed_high, seed_low, offsets, high, low, out_high, out_low)
    return hash_columns(out_high, out_low)


def row_ids(context: ExecutionContext, stream: OperatorStream, rows: Int64Array) -> pa.Array:
    """Look up the ids of events, atomic or derived."""
    if stream.store is context.atoms.store:
        return event_ids(stream.store, rows)
    return hexadecimal(*row_hashes(context, stream, rows))


def hexadecimal(high: HashArray, low: HashArray) -> pa.Array:
    """Write pairs of hashes as ids: 32 hexadecimal digits each."""
    digits = np.stack([high, low], axis=1).astype(">u8").tobytes().hex().encode()
    offsets = np.arange(0, 32 * (len(high) + 1), 32, dtype=np.int32)
    return pa.StringArray.from_buffers(len(high), pa.py_buffer(offsets), pa.py_buffer(digits))
