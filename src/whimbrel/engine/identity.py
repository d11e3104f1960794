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

from whimbrel.engine.kernels.ordering import hash_lists, hash_made, hash_texts
from whimbrel.engine.store import Store, different
from whimbrel.engine.streams import Stream, Surroundings
from whimbrel.engine.values import Column, Int64Array, decoded, to_arrow
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.model.schema import Type

HashArray = npt.NDArray[np.uint64]
NUMBER = Attribute(None, "@number")
CONTENT = Attribute(None, "@content")
"""A hash of all that an event without an id says, where events are dealt out to workers that cannot number
those of one source and time together."""
HASH = (Attribute(None, "@high"), Attribute(None, "@low"))
"""Where a stream of derived events or composites keeps the hashes of its rows."""


def hashes(texts: pa.Array) -> tuple[HashArray, HashArray]:
    """Give two 64-bit hashes of every text; null hashes as the empty text."""
    texts = decoded(texts).fill_null("")
    high, low = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    _, offsets, data = texts.buffers()
    if len(texts):
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
        hash_texts.at(4 * len(texts) + int(bounds[-1] - bounds[0]))(bounds, content, high, low)
    return high, low


def event_ids(atoms: Store, rows: Int64Array) -> pa.Array:
    """Give the ids of atomic events: their own, or made from source, times, number and type."""
    own = atoms.column(Attribute(None, "id"), rows)
    if own.type is not None and own.null is None:
        return decoded(own.values)
    made = _made_ids(atoms, rows)
    return made if own.type is None else pc.coalesce(to_arrow(own), made)


def _made_ids(atoms: Store, rows: Int64Array) -> pa.Array:
    start, end = atoms.spans(rows)
    source = _texts(atoms.column(Attribute(None, "source"), rows), len(rows))
    kind = _texts(atoms.column(Attribute(None, "type"), rows), len(rows))
    times = _digits(end)
    if (start != end).any():
        spans = pc.binary_join_element_wise(_digits(start), times, "-")
        times = pc.if_else(pa.array(start == end), times, spans)
    padded = pc.utf8_lpad(_digits(_whole(atoms, NUMBER, rows)), width=6, padding="0")
    if atoms.column(CONTENT, rows).type is None:
        return pc.binary_join_element_wise(source, times, padded, kind, ":")
    content = _whole(atoms, CONTENT, rows).astype(">i8").tobytes().hex()
    texts = pa.array([content[place : place + 16] for place in range(0, len(content), 16)], pa.string())
    return pc.binary_join_element_wise(source, times, texts, padded, kind, ":")


def _whole(atoms: Store, key: Attribute, rows: Int64Array) -> Int64Array:
    """Give the whole numbers of a column, 0 for none."""
    column = atoms.column(key, rows)
    if column.type is None:
        return np.zeros(len(rows), np.int64)
    return np.where(column.nulls, 0, column.values)


def _digits(values: Int64Array) -> pa.Array:
    return pa.array(values).cast(pa.string())


def _texts(column: Column, size: int) -> pa.Array:
    if column.type is None:
        return pa.array([""] * size, pa.string())
    return to_arrow(column).fill_null("")


def row_hashes(around: Surroundings, stream: Stream, rows: Int64Array) -> tuple[HashArray, HashArray]:
    """Give what events count with in the ids of the detections they are part of."""
    if stream.store is around.atoms.store:
        found, inverse = different(rows)
        high, low = event_hashes(stream.store, found)
        return high[inverse], low[inverse]
    kept = [stream.store.column(key, rows).values.view(np.uint64) for key in HASH]
    return kept[0], kept[1]


def event_hashes(atoms: Store, rows: Int64Array) -> tuple[HashArray, HashArray]:
    """Hash the identity of atomic events: their id, or what one would be made of."""
    own = atoms.column(Attribute(None, "id"), rows)
    if own.type is not None and own.null is None:
        return hashes(own.values)
    start, end = atoms.spans(rows)
    source, kind = (_text_hashes(atoms.column(Attribute(None, name), rows)) for name in ("source", "type"))
    numbers = _whole(atoms, NUMBER, rows) + _whole(atoms, CONTENT, rows)
    high, low = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64)
    hash_made.at(8 * len(rows))(*source, *kind, start, end, numbers, high, low)
    if own.type is None:
        return high, low
    own_high, own_low = hashes(to_arrow(own))
    return np.where(own.nulls, high, own_high), np.where(own.nulls, low, own_low)


def _text_hashes(column: Column) -> tuple[HashArray, HashArray]:
    """Hash texts, each different one once; null hashes as the empty text."""
    if column.type is None:
        high, low = hashes(pa.array([""]))
        return np.repeat(high, len(column)), np.repeat(low, len(column))
    if not pa.types.is_dictionary(column.values.type):
        return hashes(to_arrow(column))
    indices = column.values.indices
    codes = (indices.fill_null(0) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    high, low = hashes(column.values.dictionary)
    if column.null is None:
        return high[codes], low[codes]
    if not len(high):
        return _text_hashes(Column(None, codes))
    empty_high, empty_low = hashes(pa.array([""]))
    return np.where(column.null, empty_high[0], high[codes]), np.where(column.null, empty_low[0], low[codes])


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


def row_ids(around: Surroundings, stream: Stream, rows: Int64Array) -> pa.Array:
    """Give the ids of events, atomic or derived."""
    if stream.store is around.atoms.store:
        return event_ids(stream.store, rows)
    return _hexadecimal(*row_hashes(around, stream, rows))


def _hexadecimal(high: HashArray, low: HashArray) -> pa.Array:
    digits = np.stack([high, low], axis=1).astype(">u8").tobytes().hex().encode()
    offsets = np.arange(0, 32 * (len(high) + 1), 32, dtype=np.int32)
    return pa.StringArray.from_buffers(len(high), pa.py_buffer(offsets), pa.py_buffer(digits))
