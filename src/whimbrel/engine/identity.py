"""Ids: of atomic events that came without one, and of detections.

A detection's id is a 128-bit hash of its type, its case and the ids of its constituents in the order
of the parts, written as 32 hexadecimal digits. It depends on nothing else, so it is the same on every
backend, replay and restart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.kernels.ordering import hash_lists, hash_texts
from whimbrel.engine.store import Store
from whimbrel.engine.values import Column, Int64Array, decoded, to_arrow
from whimbrel.graph.expressions import Attribute

HashArray = npt.NDArray[np.uint64]
NUMBER = Attribute(None, "@number")


def hashes(texts: pa.Array) -> tuple[HashArray, HashArray]:
    """Give two 64-bit hashes of every text; null hashes as the empty text."""
    texts = decoded(texts).fill_null("")
    high, low = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    _, offsets, data = texts.buffers()
    if len(texts):
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
        hash_texts(bounds, content, high, low)
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
    number = atoms.column(NUMBER, rows)
    numbers = (
        np.zeros(len(rows), np.int64) if number.type is None else np.where(number.nulls, 0, number.values)
    )
    times = _digits(end)
    if (start != end).any():
        spans = pc.binary_join_element_wise(_digits(start), times, "-")
        times = pc.if_else(pa.array(start == end), times, spans)
    padded = pc.utf8_lpad(_digits(numbers), width=6, padding="0")
    return pc.binary_join_element_wise(source, times, padded, kind, ":")


def _digits(values: Int64Array) -> pa.Array:
    return pa.array(values).cast(pa.string())


def _texts(column: Column, size: int) -> pa.Array:
    if column.type is None:
        return pa.array([""] * size, pa.string())
    return to_arrow(column).fill_null("")


def detection_ids(
    event_type: str, case: Int64Array, window: Int64Array, offsets: Int64Array, constituents: pa.Array
) -> pa.Array:
    """Give the ids of detections: hash of type, case, window and the constituents' ids."""
    seed_high, seed_low = hashes(pa.array([event_type]))
    shift = case.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + window.astype(np.uint64)
    high, low = hashes(constituents)
    size = len(offsets) - 1
    out_high, out_low = np.empty(size, np.uint64), np.empty(size, np.uint64)
    hash_lists(seed_high[0] + shift, seed_low[0] ^ shift, offsets, high, low, out_high, out_low)
    return _hexadecimal(out_high, out_low)


def _hexadecimal(high: HashArray, low: HashArray) -> pa.Array:
    digits = np.stack([high, low], axis=1).astype(">u8").tobytes().hex().encode()
    offsets = np.arange(0, 32 * (len(high) + 1), 32, dtype=np.int32)
    return pa.StringArray.from_buffers(len(high), pa.py_buffer(offsets), pa.py_buffer(digits))
