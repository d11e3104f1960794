"""Small whole numbers for values, so that kernels can index arrays by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.values import Column, Int64Array, decoded
from whimbrel.model.schema import Type


class Interner:
    """Gives every different value a code, densely from 0, and forgets those no longer used.

    Null has a code of its own where it is asked for.
    """

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def codes(self, column: Column) -> Int64Array:
        """Give the code of every value; null counts as a value."""
        if column.type is None:
            return np.full(len(column), self._code(None), np.int64)
        if column.type is Type.STRING:
            values, local = _encoded_texts(column)
        else:
            values, local = _encoded_numbers(column)
        table = np.fromiter((self._code(value) for value in values), np.int64, len(values))
        found = table[local] if len(table) else np.zeros(len(column), np.int64)
        if column.null is not None and column.null.any():
            found = np.where(column.null, self._code(None), found)
        return found

    def row_codes(self, columns: list[Column]) -> Int64Array:
        """Give one code for every different row of several columns."""
        locals_ = [Interner() for _ in columns]
        stacked = np.stack([local.codes(column) for local, column in zip(locals_, columns, strict=True)], axis=1)
        rows, inverse = np.unique(stacked, axis=0, return_inverse=True)
        values = [local.values() for local in locals_]
        found = [tuple(values[c][code] for c, code in enumerate(row)) for row in rows.tolist()]
        table = np.fromiter((self._code(value) for value in found), np.int64, len(found))
        return table[inverse.reshape(-1)]

    def _code(self, value: Any) -> int:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self._codes)
        return code

    def keep(self, live: Int64Array) -> Int64Array:
        """Forget all codes but `live` (sorted, each once); give the table from old to new codes."""
        table = np.full(len(self._codes), -1, np.int64)
        table[live] = np.arange(len(live))
        self._codes = {value: int(table[code]) for value, code in self._codes.items() if table[code] >= 0}
        return table

    def values(self) -> list[Any]:
        """Give the values in the order of their codes."""
        return list(self._codes)

    @classmethod
    def of(cls, values: list[Any]) -> Interner:
        """Make an interner that gives `values` the codes 0, 1, 2, ..."""
        made = cls()
        made._codes = {_hashable(value): code for code, value in enumerate(values)}
        return made


class Texts(Interner):
    """Codes for texts; where asked, in the order of the texts, which new ones may then shift."""

    def __init__(self) -> None:
        super().__init__()
        self.in_order = False

    def learn(self, columns: list[Column]) -> Int64Array | None:
        """Take in new texts; give the table from old to new codes if any code changed."""
        before = len(self)
        for column in columns:
            self.codes(column)
        if not self.in_order or len(self) == before:
            return None
        # Null is a value like the others here; where it stands does not matter.
        ordered = sorted(self._codes, key=lambda text: (text is not None, text))
        table = np.empty(len(self), np.int64)
        table[[self._codes[text] for text in ordered]] = np.arange(len(self))
        self._codes = {text: code for code, text in enumerate(ordered)}
        return table


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _encoded_texts(column: Column) -> tuple[list[Any], Any]:
    array = column.values
    if not pa.types.is_dictionary(array.type):
        array = decoded(array).dictionary_encode()
    values = decoded(array.dictionary).to_pylist()
    indices = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
    if len(values) > 4 * len(indices) + 16:
        # A few rows of a large dictionary: only look at the texts that occur.
        used, indices = np.unique(indices, return_inverse=True)
        values = array.dictionary.take(pa.array(used)).to_pylist()
    return values, indices


def _encoded_numbers(column: Column) -> tuple[list[Any], Any]:
    if len(column) < 64:
        used, local = np.unique(column.values, return_inverse=True)
        return used.tolist(), local
    encoded = pa.array(column.values).dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)
