"""Columns as the evaluator sees them: NumPy values with a null mask, texts as Arrow arrays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.model.columns import ARROW_TYPES, type_of
from whimbrel.model.schema import Type

Int64Array: TypeAlias = npt.NDArray[np.int64]
UInt64Array: TypeAlias = npt.NDArray[np.uint64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

NUMPY_TYPES: dict[Type, Any] = {
    Type.BOOL: np.bool_,
    Type.INT: np.int64,
    Type.FLOAT: np.float64,
    Type.TIMESTAMP: np.int64,
    Type.DURATION: np.int64,
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of values. `null` is None where no value is missing.

    `values` is a NumPy array, or an Arrow array for texts and lists of them; `type` is None for a column of
    nothing but nulls, whose type is not known yet.
    """

    type: Type | None
    values: Any
    null: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nulls(self) -> BoolArray:
        """The null mask, made if there is none."""
        return np.zeros(len(self), np.bool_) if self.null is None else self.null

    def take(self, rows: npt.NDArray[Any]) -> Column:
        """Choose the values at `rows`."""
        null = None if self.null is None else self.null[rows]
        if self.type in (Type.STRING, Type.TEXTS):
            if len(rows) == 1 and isinstance(self.values, pa.DictionaryArray):
                # One event at a time: a slice costs a tenth of what taking does.
                return Column(self.type, self.values.slice(rows[0], 1), null)
            return Column(self.type, self.values.take(pa.array(rows)), null)
        return Column(self.type, self.values[rows], null)


def nothing(size: int) -> Column:
    """Make a column of nulls of unknown type."""
    return Column(None, np.zeros(size, np.int64), np.ones(size, np.bool_))


def from_arrow(array: pa.Array) -> Column:
    """Read an Arrow array; numbers without nulls are not copied."""
    kind = type_of(array.type)
    if kind is None:
        return nothing(len(array))
    null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if kind in (Type.STRING, Type.TEXTS):
        return Column(kind, array, null)
    if kind in (Type.TIMESTAMP, Type.DURATION):
        array = array.cast(pa.int64())
    if null is not None:
        array = array.fill_null(False if kind is Type.BOOL else 0)
    values = array.to_numpy(zero_copy_only=False)
    return Column(kind, values.astype(NUMPY_TYPES[kind], copy=False), null)


def floats(column: Column) -> FloatArray:
    """Read numbers as floats, NaN where there is none."""
    if column.type is None:
        return np.full(len(column), np.nan)
    values: FloatArray = column.values.astype(np.float64)
    return values if column.null is None else np.where(column.null, np.nan, values)


def to_arrow(column: Column, kind: Type | None = None) -> pa.Array:
    """Write a column as an Arrow array of its own type, or of `kind`."""
    wanted = kind or column.type
    if column.type is None:
        return pa.nulls(len(column), ARROW_TYPES[wanted] if wanted else pa.null())
    if column.type is Type.STRING:
        values = decoded(column.values)
        if column.null is not None and column.null.any():
            values = pc.if_else(pa.array(~column.null), values, pa.scalar(None, pa.string()))
        return values
    if column.type is Type.TEXTS:
        return column.values
    mask = column.null if column.null is not None and column.null.any() else None
    if column.type in (Type.TIMESTAMP, Type.DURATION):
        return pa.array(column.values, pa.int64(), mask=mask).cast(ARROW_TYPES[column.type])
    return pa.array(column.values, ARROW_TYPES[column.type], mask=mask)


def decoded(array: pa.Array) -> pa.Array:
    """Decode texts, whatever their encoding, as plain strings."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        few = len(array) < len(array.dictionary)  # taking a few costs less than looking at all
        texts = array.dictionary.take(array.indices) if few else array.dictionary_decode()
        return texts if texts.type == pa.string() else texts.cast(pa.string())
    return array if array.type == pa.string() else array.cast(pa.string())


def concat(columns: list[Column]) -> Column:
    """Put columns one after the other; whole numbers give way to floats."""
    kinds = {column.type for column in columns if column.type is not None}
    if not kinds:
        return nothing(sum(len(column) for column in columns))
    kind = Type.FLOAT if kinds == {Type.INT, Type.FLOAT} else next(iter(kinds))
    null = None
    if any(column.null is not None for column in columns):
        null = np.concatenate([column.nulls for column in columns])
    if kind is Type.STRING:
        texts = [pa.nulls(len(c), pa.string()) if c.type is not kind else c.values for c in columns]
        return Column(kind, _joined_texts(texts), null)
    if kind is Type.TEXTS:
        lists = [pa.nulls(len(c), ARROW_TYPES[kind]) if c.type is not kind else c.values for c in columns]
        return Column(kind, pa.concat_arrays(lists), null)
    return Column(
        kind, np.concatenate([c.values.astype(NUMPY_TYPES[kind], copy=False) for c in columns]), null
    )


def _joined_texts(texts: list[pa.Array]) -> pa.Array:
    """Put texts one after the other, decoded; of arrays that are short, which may be many, as one."""
    parts: list[pa.Array] = []
    for is_short, some in groupby(texts, lambda each: len(each) <= _SHORT):
        if is_short:
            parts.append(pa.array([text for each in some for text in each.to_pylist()], pa.string()))
        else:
            parts += map(decoded, some)
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


_SHORT = 4
"""Up to this many texts are decoded one by one: it costs less than asking Arrow to."""
