"""The columns of a batch of events, as the kernels of the index read them: hashes, numbers and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.engine.identity import hashes
from whimbrel.engine.kernels.conditions import hash_numbers
from whimbrel.engine.values import Column, decoded
from whimbrel.model.schema import Type
from whimbrel.space.geometry import Floats
from whimbrel.space.lists import Ints

_TAGS = {Type.BOOL: 1, Type.INT: 2, Type.FLOAT: 2, Type.TIMESTAMP: 3}
"""Whole numbers and others are compared with each other; a truth or a time equals only its own kind."""


@dataclass(frozen=True, slots=True)
class ConditionColumns:
    """The columns that conditions ask for, one row of each array a column; see `kernels.conditions`."""

    highs: Ints
    lows: Ints
    values: Floats
    begins: Ints
    ends: Ints
    data: npt.NDArray[np.uint8]

    @property
    def arrays(self) -> tuple[Ints, Ints, Floats, Ints, Ints, npt.NDArray[np.uint8]]:
        """All of them, in the order in which kernels take them."""
        return self.highs, self.lows, self.values, self.begins, self.ends, self.data


def hash_values(values: Sequence[Any], kind: Type) -> tuple[Ints, Ints]:
    """Hash constants as the values of columns are hashed."""
    if kind is Type.STRING:
        return _text_hashes(pa.array(values, pa.string()))
    if kind in (Type.BOOL, Type.TIMESTAMP):
        return _number_hashes(Column(kind, np.array(values).astype(np.int64)))
    if all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in values):
        return _number_hashes(Column(Type.INT, np.array(values, np.int64)))
    return _number_hashes(Column(Type.FLOAT, np.array(values, np.float64)))


def _text_hashes(texts: pa.Array) -> tuple[Ints, Ints]:
    high, low = hashes(texts)
    return high.view(np.int64), low.view(np.int64)


def _number_hashes(column: Column) -> tuple[Ints, Ints]:
    """Hash numbers, a float that is whole like the whole number."""
    assert column.type is not None
    numbers, kinds = column.values, np.full(len(column), _TAGS[column.type], np.int64)
    if column.type is Type.FLOAT:
        numbers = numbers.astype(np.float64, copy=False)
        is_whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**63)
        bits = numbers.view(np.int64)
        numbers, kinds = (
            np.where(is_whole, np.where(is_whole, numbers, 0).astype(np.int64), bits),
            kinds + ~is_whole,
        )
    high, low = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
    numbers = numbers.astype(np.int64, copy=False).view()
    numbers.flags.writeable = False  # as columns from Arrow are: another type would be compiled for once more
    hash_numbers(numbers, kinds, high, low)
    return high, low


def column_hashes(column: Column, high: Ints, low: Ints) -> None:
    """Hash the values of a column into two arrays; null has the hashes 0 and 0."""
    if column.type is None or not len(column):
        high[:] = low[:] = 0
        return
    if column.type is not Type.STRING:
        high[:], low[:] = _number_hashes(column)
    elif pa.types.is_dictionary(column.values.type) and len(column.values.dictionary) < 2 * len(column) + 16:
        codes = column.values.indices
        codes = (codes.fill_null(0) if codes.null_count else codes).to_numpy(zero_copy_only=False)
        different = column.values.dictionary if len(column.values.dictionary) else pa.array([""])
        for hashes_of_rows, hashed in zip((high, low), _text_hashes(different), strict=True):
            np.take(hashed, codes, out=hashes_of_rows, mode="clip")
    else:
        high[:], low[:] = _text_hashes(decoded(column.values))
    if column.null is not None:
        high[column.null] = low[column.null] = 0


@dataclass(frozen=True, slots=True)
class WantedColumns:
    """The names of the columns that conditions ask for, and of which they ask for what."""

    names: tuple[str, ...] = ()
    values: frozenset[str] = frozenset()
    """Those that are compared with single values, by hash."""
    numbers: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


def read_columns(wanted: WantedColumns, events: int, column_of: Callable[[str], Column]) -> ConditionColumns:
    """Read the columns that conditions want of some events."""
    shape = (len(wanted.names), events)
    highs, lows = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    values = np.full(shape if wanted.numbers else (shape[0], 0), np.nan)
    begins = np.zeros(shape if wanted.texts else (shape[0], 0), np.int64)
    ends, data = begins - 1, _Bytes()
    for row, name in enumerate(wanted.names):
        column = column_of(name)
        if name in wanted.values:
            column_hashes(column, highs[row], lows[row])
        if name in wanted.numbers and column.type in (Type.INT, Type.FLOAT, Type.TIMESTAMP):
            np.add(column.values, 0.0, out=values[row])  # there shall be one zero, not -0.0 beside it
            if column.null is not None:
                values[row, column.null] = np.nan
        if name in wanted.texts and column.type is Type.STRING:
            begins[row], ends[row] = data.add(decoded(column.values))
            if column.null is not None:
                ends[row, column.null] = begins[row, column.null] - 1
    return ConditionColumns(highs, lows, values, begins, ends, data.joined())


class _Bytes:
    """The texts of several columns, one behind the other."""

    def __init__(self) -> None:
        self.size = 0
        self.pieces: list[npt.NDArray[np.uint8]] = []

    def add(self, texts: pa.Array) -> tuple[Ints, Ints]:
        """Take the texts of a column; give where each begins and ends."""
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1] + np.int64(
            self.size
        )
        if data is not None and data.size:
            self.pieces.append(np.frombuffer(data, np.uint8))
            self.size += data.size
        return bounds[:-1], bounds[1:]

    def joined(self) -> npt.NDArray[np.uint8]:
        return np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.uint8)
