"""Small whole numbers for values, so that kernels can index arrays by them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.row_store import different
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Column, Int64Array, decoded
from whimbrel.model.schema import Type


class Interner:
    """Gives every different value a code, densely from 0, and forgets those no longer used.

    Null has a code of its own where it is asked for.
    """

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._last: tuple[Any, Int64Array] | None = None
        """The last dictionary and its codes: batches cut from one table share their dictionary."""

    def __len__(self) -> int:
        return len(self._codes)

    def codes(self, column: Column) -> Int64Array:
        """Give the code of every value; null counts as a value."""
        if column.type is None:
            return np.full(len(column), self._code(None), np.int64)
        if len(column) == 1 and column.null is None:
            return np.array([self._code(column.values[0].as_py() if column.type is Type.STRING
                                        else column.values.item())], np.int64)  # fmt: skip
        if column.type is Type.STRING and pa.types.is_dictionary(column.values.type):
            found = self._of_dictionary(column.values)
        else:
            values, local = _encoded(column)
            table = self._table(values)
            found = table[local] if len(table) else np.zeros(len(column), np.int64)
        if column.null is not None and column.null.any():
            found = np.where(column.null, self._code(None), found)
        return found

    def _of_dictionary(self, array: pa.DictionaryArray) -> Int64Array:
        indices = array.indices.fill_null(0) if array.null_count else array.indices
        local = indices.to_numpy(zero_copy_only=False)
        if len(array.dictionary) > 4 * len(local) + 16:
            # A few rows of a large dictionary: only look at the texts that occur.
            used, local = np.unique(local, return_inverse=True)
            return self._table(array.dictionary.take(pa.array(used)).to_pylist())[local]
        if self._last is None or not _is_same(self._last[0], array.dictionary):
            self._last = (array.dictionary, self._table(decoded(array.dictionary).to_pylist()))
        table = self._last[1]
        return table[local] if len(table) else np.zeros(len(local), np.int64)

    def _table(self, values: list[Any]) -> Int64Array:
        codes = list(map(self._codes.get, values))
        if None in codes:
            new = dict.fromkeys([value for value, code in zip(values, codes, strict=True) if code is None])
            self._codes.update(zip(new, range(len(self), len(self) + len(new)), strict=True))
            codes = list(map(self._codes.get, values))
        return np.array(codes, np.int64)

    def codes_of(self, columns: list[Column]) -> Int64Array:
        """Give one code for every different value of a column, or row of several."""
        return self.codes(columns[0]) if len(columns) == 1 else self.row_codes(columns)

    def row_codes(self, columns: list[Column]) -> Int64Array:
        """Give one code for every different row of several columns."""
        encoded = [_with_null(column) for column in columns]
        rows, inverse = _different_rows(
            [local for _, local in encoded], [len(values) for values, _ in encoded]
        )
        values = [
            map(values.__getitem__, column.tolist())
            for (values, _), column in zip(encoded, rows, strict=True)
        ]
        return self._table(list(zip(*values, strict=True)))[inverse]

    def _code(self, value: Any) -> int:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self._codes)
        return code

    def keep(self, live: Int64Array) -> Int64Array:
        """Forget all codes but `live` (sorted, each once); give the table from old to new codes."""
        self._last = None
        table = np.full(len(self._codes), -1, np.int64)
        table[live] = np.arange(len(live))
        self._codes = {value: int(table[code]) for value, code in self._codes.items() if table[code] >= 0}
        return table

    def values(self) -> list[Any]:
        """Give the values in the order of their codes."""
        return list(self._codes)

    def restore(self, values: list[Any]) -> None:
        """Let `values` have the codes 0, 1, 2, ..., and nothing else a code."""
        self._last = None
        self._codes = {_hashable(value): code for code, value in enumerate(values)}

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the values in the order of their codes."""
        blocks.put_json(name, self.values())

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.restore(blocks.json(name))


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
        self._last = None
        table = np.empty(len(self), np.int64)
        table[[self._codes[text] for text in ordered]] = np.arange(len(self))
        self._codes = {text: code for code, text in enumerate(ordered)}
        return table


def _different_rows(columns: list[Int64Array], sizes: list[int]) -> tuple[list[Int64Array], Int64Array]:
    """Give the different rows of columns of codes, column by column, and for every row which it is."""
    if prod(sizes) >= 2**63:
        rows, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        return list(rows.T), inverse.reshape(-1)
    numbers = np.ravel_multi_index(tuple(columns), tuple(max(size, 1) for size in sizes))
    found, inverse = np.unique(numbers, return_inverse=True)
    return list(np.unravel_index(found, tuple(max(size, 1) for size in sizes))), inverse


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _is_same(one: pa.Array, other: pa.Array) -> bool:
    """Tell whether two arrays are the same piece of memory."""
    if len(one) != len(other) or one.offset != other.offset:
        return False
    places = [[b.address if b is not None else 0 for b in array.buffers()] for array in (one, other)]
    return places[0] == places[1]


def _with_null(column: Column) -> tuple[list[Any], Int64Array]:
    """Give the values of a column, null among them, and for every row which one it has."""
    is_table = column.type is Type.STRING and pa.types.is_dictionary(column.values.type)
    if column.type is None or (is_table and not len(column.values.dictionary)):
        return [None], np.zeros(len(column), np.int64)
    if is_table:
        indices = column.values.indices.fill_null(0).to_numpy(zero_copy_only=False)
        used, local = different(indices)  # a batch has few of the texts that its table has
        values = column.values.dictionary.take(pa.array(used)).to_pylist()
    else:
        values, local = _encoded(column)
    if column.null is not None and column.null.any():
        return [*values, None], np.where(column.null, len(values), local)
    return values, local


def _encoded(column: Column) -> tuple[list[Any], Any]:
    """Give the different values of a column, and for every row which one it has."""
    if column.type is not Type.STRING and len(column) < 64:
        used, local = np.unique(column.values, return_inverse=True)
        return used.tolist(), local
    array = decoded(column.values) if column.type is Type.STRING else pa.array(column.values)
    encoded = array.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
