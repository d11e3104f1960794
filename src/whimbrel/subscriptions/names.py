"""The names of subscriptions: texts or whole numbers outside, small numbers inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import hashes
from whimbrel.errors import DataError
from whimbrel.model.columns import decoded, is_text
from whimbrel.space.lists import Ints, Lists, lengthen
from whimbrel.subscriptions.kernels import ids as kernels

Names: TypeAlias = (
    str | int | Sequence[str] | Sequence[int] | npt.NDArray[np.generic] | pa.Array | pa.ChunkedArray
)
"""One id or many: texts or whole numbers."""

_NO_OFFSETS = np.zeros(1, np.int32)
_CHUNK = 1 << 20
_LONGEST = 1_000
"""So many names of so many bytes fit into one Arrow array."""


class GivenNames:
    """Names as they were given: all texts or all whole numbers, with a hash of each."""

    def __init__(self, names: Names) -> None:
        array = _as_array(names)
        if array.null_count:
            raise DataError("a subscription has no id; give a text or a whole number")
        self.is_text = bool(pa.types.is_string(array.type))
        self.array = array
        if self.is_text:
            _check_lengths(array)
            high, _ = hashes(array)
            self.hashes: Ints = high.view(np.int64)
            _, offsets, data = array.buffers()
            self.offsets = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
            has_data = data is not None and data.size
            self.data: npt.NDArray[Any] = np.frombuffer(data, np.uint8) if has_data else np.zeros(0, np.uint8)
        else:
            self.hashes = array.to_numpy(zero_copy_only=False)
            self.offsets, self.data = _NO_OFFSETS, self.hashes

    def __len__(self) -> int:
        return len(self.array)

    def shown(self, row: int) -> str:
        """Name a subscription in an error."""
        return f"subscription {self.array[row].as_py()!r}"


def _check_lengths(texts: pa.Array) -> None:
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest > _LONGEST:
        raise DataError(f"an id has {longest:,} bytes; the limit is {_LONGEST:,}")


def _as_array(names: Names) -> pa.Array:
    """Bring names into one Arrow array of texts or of whole numbers."""
    if isinstance(names, str | int | np.integer):
        names = [names]
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    try:
        if not isinstance(names, pa.Array):
            names = pa.array(names if isinstance(names, np.ndarray | Iterable) else [names])
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"ids are all texts or all whole numbers: {error}") from error
    names = decoded(names)
    if pa.types.is_null(names.type):
        return names.cast(pa.int64())
    if is_text(names.type):
        return names
    if pa.types.is_integer(names.type):
        try:
            return names.cast(pa.int64())
        except pa.ArrowException as error:
            raise DataError(f"an id is too large: {error}") from error
    raise DataError(f"ids are texts or whole numbers, not {names.type}")


class SubscriptionNames:
    """Which number each name has, and which name each number."""

    def __init__(self) -> None:
        self.is_text: bool | None = None
        self._lists = Lists()
        self._names: Ints = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """The memory that names take."""
        return self._names.nbytes + self._lists.nbytes

    def find(self, given: GivenNames) -> Ints:
        """Look up the numbers of names, -1 for those that nobody has."""
        if self.is_text is not given.is_text:
            return np.full(len(given), -1, np.int64)
        lists = self._lists
        return kernels.numbers_of(
            given.hashes, given.offsets, given.data, self._names, given.is_text,
            lists.slots, lists.old, lists.words,
        )  # fmt: skip

    def check_new(self, given: GivenNames) -> None:
        """Refuse names that are taken, given twice, or of the other kind than those there are."""
        if self.is_text is not None and self.is_text is not given.is_text and len(given):
            kinds = ("texts", "whole numbers") if self.is_text else ("whole numbers", "texts")
            raise DataError(f"the ids so far are {kinds[0]}, these are {kinds[1]}; use one kind")
        taken = np.flatnonzero(self.find(given) >= 0)
        if len(taken):
            raise DataError(f"{given.shown(int(taken[0]))} is already there; remove it first")
        if len(given) > 1 and len(np.unique(given.hashes)) < len(given):
            twice = given.array.value_counts().field("counts").to_numpy()
            if twice.max() > 1:
                row = given.array.index(
                    given.array.value_counts().field("values")[int(twice.argmax())]
                ).as_py()
                raise DataError(f"{given.shown(row)} is given twice; ids must differ")

    def enter(self, numbers: Ints, given: GivenNames) -> None:
        """Store the names of numbers."""
        if not len(numbers):
            return
        self.is_text = given.is_text
        lengthen(self._names, int(numbers.max()) + 1)
        lists, done = self._lists, 0
        while True:
            done = kernels.enter(
                numbers, done, given.hashes, given.offsets, given.data, self._names, given.is_text,
                lists.slots, lists.old, lists.words, lists.free, lists.counters,
            )  # fmt: skip
            if done == len(numbers):
                break
            longest = int(np.diff(given.offsets[done : done + 2]).max(initial=0))
            lists.make_room(words=longest // 2 + 8)
        lists.go_on()

    def forget(self, numbers: Ints, given: GivenNames) -> None:
        """Take the names of numbers away."""
        lists = self._lists
        kernels.forget(
            numbers, given.hashes, self._names, given.is_text,
            lists.slots, lists.old, lists.words, lists.free, lists.counters,
        )  # fmt: skip
        lists.go_on()

    def of(self, numbers: npt.NDArray[np.int32]) -> pa.ChunkedArray:
        """Write the names of numbers as an Arrow column."""
        if not self.is_text:
            return pa.chunked_array(
                [pa.array(self._names[numbers] if len(self._names) else numbers, pa.int64())]
            )
        pieces = [self._texts(numbers[at : at + _CHUNK]) for at in range(0, len(numbers), _CHUNK)]
        return pa.chunked_array(pieces, pa.string())

    def _texts(self, numbers: npt.NDArray[np.int32]) -> pa.Array:
        offsets = np.empty(len(numbers) + 1, np.int32)
        total = kernels.lengths_of(numbers, self._names, self._lists.words, offsets)
        data = np.empty(total, np.uint8)
        kernels.texts_of(numbers, self._names, self._lists.words, data)
        return pa.Array.from_buffers(
            pa.string(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
