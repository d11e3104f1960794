"""The state of a pattern: the events that may still take part, as arrays."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from whimbrel.engine.arrays import longer
from whimbrel.engine.kernels.match import shift_pool
from whimbrel.engine.kernels.pattern import COUNTS, END, ENTRIES, PREV, START, WAITING
from whimbrel.engine.key_codes import KeyCodes
from whimbrel.engine.operators.value_columns import Place, ValueTable, rearranged
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.values import Int64Array

_TABLES = ("hot", "key", "ident", "row", "root", "consumed", "nulls", "ints", "floats")
_WAITS = ("deadline", "serial", "trigger", "fine", "bound")


class MatchState(SavedState):
    """Pool entries, chains and waiting combinations of one pattern (see `kernels.match`)."""

    state: ClassVar = ("count", "tail", *_TABLES, *_WAITS)

    def __init__(self, parts: int, slots: int, keys: KeyCodes) -> None:
        self.count = np.zeros(COUNTS, np.int64)
        self.hot = np.empty((0, PREV + slots + parts), np.int64)
        self.key = np.empty(0, np.int64)
        self.ident = np.empty(0, np.int64)
        self.row = np.empty(0, np.int64)
        self.root = np.empty(0, np.int64)
        self.consumed = np.empty(0, np.uint8)
        self.nulls = np.empty(0, np.uint64)
        self.ints = np.empty((0, 0), np.int64)
        self.floats = np.empty((0, 0), np.float64)
        self.tail = np.empty((0, slots), np.int64)
        self.keys = keys
        self.deadline = np.empty(0, np.int64)
        self.serial = np.empty(0, np.int64)
        self.trigger = np.empty(0, np.int64)
        self.fine = np.empty(0, np.uint8)
        self.bound = np.empty((0, parts), np.int64)

    @property
    def start(self) -> Int64Array:
        """The starts of all entries."""
        return self.hot[:, START]

    @property
    def entries(self) -> int:
        """How many events are in the pool."""
        return int(self.count[ENTRIES])

    @property
    def waiting(self) -> int:
        """How many combinations wait for a deadline."""
        return int(self.count[WAITING])

    @property
    def next_deadline(self) -> int | None:
        """The earliest deadline, if any combination waits."""
        return int(self.deadline[0]) if self.waiting else None

    def reserve(self, more: int) -> None:
        """Make room for `more` entries and for all keys."""
        needed = self.entries + more
        if needed > len(self.hot):
            size = max(needed, 2 * self.entries, 256)
            for name in _TABLES:
                setattr(self, name, longer(getattr(self, name), size, None))
        if len(self.keys) > len(self.tail):
            self.tail = longer(self.tail, max(16, 2 * len(self.keys)), -1)

    def reserve_waiting(self, more: int) -> None:
        """Make room for `more` waiting combinations."""
        size = max(self.waiting + more, 2 * len(self.deadline), 64)
        for name in _WAITS:
            setattr(self, name, longer(getattr(self, name), size, None))

    def rearrange(self, old: list[Place], new: list[Place]) -> None:
        """Bring the values of all entries to new places; those that were not there before are null."""
        values = ValueTable(self.ints, self.floats, self.nulls)
        self.ints, self.floats, self.nulls = rearranged(values, old, new)

    def forget_before(self, time: int) -> None:
        """Drop entries that ended before `time`, once they are many."""
        if self.entries and self.hot[0, END] >= time:
            return
        dropped = int(np.searchsorted(self.hot[: self.entries, END], time))
        if not dropped or 2 * dropped < self.entries or (dropped < 1024 and dropped != self.entries):
            return
        shift_pool.at(4 * self.entries + self.tail.size + self.waiting)(
            dropped, self.entries, self.hot.shape[1] - PREV,
            self.hot, self.key, self.ident, self.ints, self.floats, self.nulls, self.consumed,
            self.row, self.root, self.tail, self.waiting, self.bound, self.trigger,
        )  # fmt: skip
        self.count[ENTRIES] -= dropped
        self._shrink()
        self._forget_keys()

    def _shrink(self) -> None:
        """Give memory back when most of it is unused."""
        size = max(256, 2 * self.entries)
        if len(self.hot) > 4 * size:
            for name in _TABLES:
                setattr(self, name, getattr(self, name)[:size].copy())

    def _forget_keys(self) -> None:
        live = np.unique(self.key[: self.entries])
        if len(self.keys) < 1024 or len(self.keys) < 2 * len(live):
            return
        table = self.keys.keep(live)
        self.key[: self.entries] = table[self.key[: self.entries]]
        self.tail = longer(self.tail[live], max(16, 2 * len(live)), -1)

    def in_use(self, attribute: str) -> Any:
        """Give the used part of an array."""
        sizes = dict.fromkeys(_TABLES, self.entries) | dict.fromkeys(_WAITS, self.waiting)
        sizes["tail"] = len(self.keys)
        array: np.ndarray = getattr(self, attribute)
        return array[: sizes.get(attribute)]


class MatchScratch:
    """Room for the combinations of one trigger before the context chooses among them."""

    def __init__(self, parts: int, size: int) -> None:
        self.rows = np.empty((size, parts), np.int64)
        self.fine = np.empty(size, np.uint8)
        self.chosen = np.empty(size, np.int64)


class MatchOutput:
    """Room for the combinations found in one step."""

    def __init__(self, parts: int, size: int) -> None:
        self.bound = np.empty((size, parts), np.int64)
        self.end = np.empty(size, np.int64)
        self.offset = np.zeros(size + 1, np.int64)
        self.member = np.empty(size * parts, np.int64)

    def lengthen(self, more: int) -> None:
        """Make room for at least `more` further combinations, twice the room in any case."""
        size = 2 * len(self.end) + more
        self.bound = longer(self.bound, size, None)
        self.end = longer(self.end, size, None)
        self.offset = longer(self.offset, size + 1, None)
        self.member = longer(self.member, 2 * len(self.member) + more * self.bound.shape[1])
