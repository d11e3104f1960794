"""Ids: of atomic events that came without one, and of detections.

A detection's id is a 128-bit hash of its type, its case, its window and the ids of its constituents in the
order of the parts, written as 32 hexadecimal digits; constituents that are detections themselves count with
their own ids. It depends on nothing else, so it is the same on every backend, replay and restart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine import content_hashes
from whimbrel.engine.kernels.contents import sizes_of_ids, write_ids
from whimbrel.engine.kernels.ordering import hash_lists, hash_texts
from whimbrel.engine.row_store import RowStore, different
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.values import Column, Int64Array, decoded, to_arrow
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.model.schema import Type

HashArray = npt.NDArray[np.uint64]
NUMBER = Attribute(None, "@number")
CONTENT = Attribute(None, content_hashes.CONTENT)
"""Where the store of atomic events keeps what those without an id say, and the number of equal ones."""
HASH = (Attribute(None, "@high"), Attribute(None, "@low"))
"""Where a stream of derived events or composites keeps the hashes of its rows."""


def hashes(texts: pa.Array) -> tuple[HashArray, HashArray]:
    """Give two 64-bit hashes of every text; null hashes as the empty text."""
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
    """Give the ids of atomic events: their own, or made from what they say."""
    own = atoms.column(Attribute(None, "id"), rows)
    if own.type is not None and own.null is None:
        return decoded(own.values)
    source, event_type = (atoms.column(Attribute(None, name), rows) for name in ("source", "type"))
    content, number = (_whole(atoms, key, rows) for key in (CONTENT, NUMBER))
    made = made_ids(source, event_type, *atoms.spans(rows), content, number)
    return made if own.type is None else pc.coalesce(to_arrow(own), made)


def made_ids(
    source: Column,
    event_type: Column,
    start: Int64Array,
    end: Int64Array,
    content: Int64Array,
    number: Int64Array,
) -> pa.Array:
    """Make ids for events without one: `source:times:content:number:type`.

    `content` is what they say (`whimbrel.engine.content_hashes`), `number` tells equal ones apart.
    """
    sources, types = _coded(source), _coded(event_type)
    offsets = np.zeros(len(start) + 1, np.int64)
    sizes_of_ids.at(40 * len(start))(*sources[:2], *types[:2], start, end, number, offsets)
    out = np.empty(int(offsets[-1]), np.uint8)
    write_ids.at(2 * len(out))(*sources, *types, start, end, content, number, offsets, out)
    places = pa.py_buffer(offsets.astype(np.int32))
    return pa.StringArray.from_buffers(len(start), places, pa.py_buffer(out))


def _coded(texts: Column) -> tuple[Int64Array, Int64Array, npt.NDArray[np.uint8]]:
    """Give texts as numbers, and where the different texts lie in one row of bytes; none is empty."""
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
    """Give the whole numbers of a column, 0 for none."""
    column = atoms.column(key, rows)
    if column.type is None:
        return np.zeros(len(rows), np.int64)
    return np.where(column.nulls, 0, column.values)


def row_hashes(
    context: ExecutionContext, stream: OperatorStream, rows: Int64Array
) -> tuple[HashArray, HashArray]:
    """Give what events count with in the ids of the detections they are part of."""
    if stream.store is context.atoms.store:
        found, inverse = different(rows)
        high, low = event_hashes(stream.store, found)
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
    """Give the hashes of events of a definition, made from those of their types and what they were found in.

    There is a hash of the type for every event, or one for all.
    """
    shift = np.uint64(case * 0x9E3779B97F4A7C15 % 2**64) + window.astype(np.uint64)
    each = np.arange(len(high) + 1)
    return _folded(kind[0] + shift, kind[1] ^ shift, each, high, low)


def _folded(
    seed_high: HashArray, seed_low: HashArray, offsets: Int64Array, high: HashArray, low: HashArray
) -> dict[Expr, Column]:
    out_high, out_low = np.empty(len(offsets) - 1, np.uint64), np.empty(len(offsets) - 1, np.uint64)
    fold_hashes = hash_lists.at(2 * (len(offsets) + len(high)))
    fold_hashes(seed_high, seed_low, offsets, high, low, out_high, out_low)
    return hash_columns(out_high, out_low)


def row_ids(context: ExecutionContext, stream: OperatorStream, rows: Int64Array) -> pa.Array:
    """Give the ids of events, atomic or derived."""
    if stream.store is context.atoms.store:
        return event_ids(stream.store, rows)
    return _hexadecimal(*row_hashes(context, stream, rows))


def _hexadecimal(high: HashArray, low: HashArray) -> pa.Array:
    digits = np.stack([high, low], axis=1).astype(">u8").tobytes().hex().encode()
    offsets = np.arange(0, 32 * (len(high) + 1), 32, dtype=np.int32)
    return pa.StringArray.from_buffers(len(high), pa.py_buffer(offsets), pa.py_buffer(digits))
