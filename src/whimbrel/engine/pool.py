"""The state of a pattern: the events that may still take part, as arrays."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.interner import Interner
from whimbrel.engine.kernels.match import COUNTS, ENTRIES, WAITING, shift_pool

_TABLES = ("start", "end", "key", "ident", "row", "root", "consumed", "nulls")
_WAITS = ("deadline", "serial", "trigger", "fine")


class Pool:
    """Pool entries, chains and waiting combinations of one pattern (see `kernels.match`)."""

    def __init__(self, parts: int, slots: int, int_columns: int, float_columns: int) -> None:
        self.parts = parts
        self.count = np.zeros(COUNTS, np.int64)
        self.start = np.empty(0, np.int64)
        self.end = np.empty(0, np.int64)
        self.key = np.empty(0, np.int64)
        self.ident = np.empty(0, np.int64)
        self.row = np.empty(0, np.int64)
        self.root = np.empty(0, np.int64)
        self.consumed = np.empty(0, np.uint8)
        self.nulls = np.empty(0, np.uint64)
        self.ints = np.empty((int_columns, 0), np.int64)
        self.floats = np.empty((float_columns, 0), np.float64)
        self.prev = np.empty((slots, 0), np.int32)
        self.back = np.empty((parts, 0), np.int32)
        self.tail = np.empty((slots, 0), np.int32)
        self.keys = Interner()
        self.deadline = np.empty(0, np.int64)
        self.serial = np.empty(0, np.int64)
        self.trigger = np.empty(0, np.int64)
        self.fine = np.empty(0, np.uint8)
        self.bound = np.empty((0, parts), np.int64)

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
        if needed > len(self.end):
            size = max(needed, 2 * self.entries, 256)
            for name in _TABLES:
                setattr(self, name, _longer(getattr(self, name), size))
            for name in ("ints", "floats", "prev", "back"):
                setattr(self, name, _wider(getattr(self, name), size))
        if len(self.keys) > self.tail.shape[1]:
            grown = np.full((self.tail.shape[0], max(16, 2 * len(self.keys))), -1, np.int32)
            grown[:, : self.tail.shape[1]] = self.tail
            self.tail = grown

    def add_columns(self, int_columns: int, float_columns: int) -> None:
        """Make room for columns; the new ones are null in all entries so far."""
        for name, wanted in (("ints", int_columns), ("floats", float_columns)):
            table = getattr(self, name)
            if wanted > table.shape[0]:
                first = table.shape[0] + (32 if name == "floats" else 0)
                grown = np.zeros((wanted, table.shape[1]), table.dtype)
                grown[: table.shape[0]] = table
                setattr(self, name, grown)
                for bit in range(first, wanted + (32 if name == "floats" else 0)):
                    self.nulls |= np.uint64(1 << bit)

    def forget_before(self, time: int) -> None:
        """Drop entries that ended before `time`, once they are many."""
        dropped = int(np.searchsorted(self.end[: self.entries], time))
        if dropped < 1024 and dropped != self.entries:
            return
        if 2 * dropped < self.entries or not dropped:
            return
        shift_pool(
            dropped, self.entries, self.tail.shape[1], self.start, self.end, self.key, self.ident, self.ints, self.floats,
            self.nulls, self.consumed, self.row, self.root, self.prev, self.back, self.tail,
            self.waiting, self.bound, self.trigger,
        )
        self.count[ENTRIES] -= dropped
        self._shrink()
        self._forget_keys()

    def _shrink(self) -> None:
        """Give memory back when most of it is unused."""
        size = max(256, 2 * self.entries)
        if len(self.end) <= 4 * size:
            return
        for name in _TABLES:
            setattr(self, name, getattr(self, name)[:size].copy())
        for name in ("ints", "floats", "prev", "back"):
            setattr(self, name, getattr(self, name)[:, :size].copy())

    def _forget_keys(self) -> None:
        live = np.unique(self.key[: self.entries])
        if len(self.keys) < 1024 or len(self.keys) < 2 * len(live):
            return
        table = self.keys.keep(live)
        self.key[: self.entries] = table[self.key[: self.entries]]
        tail = np.full((self.tail.shape[0], max(16, 2 * len(live))), -1, np.int32)
        tail[:, : len(live)] = self.tail[:, live]
        self.tail = tail

    def save(self) -> dict[str, np.ndarray]:
        """Give the used part of every array."""
        n, w = self.entries, self.waiting
        saved = {"count": self.count, "tail": self.tail[:, : len(self.keys)], "bound": self.bound[:w]}
        saved |= {name: getattr(self, name)[:n] for name in _TABLES}
        saved |= {name: getattr(self, name)[:, :n] for name in ("ints", "floats", "prev", "back")}
        saved |= {name: getattr(self, name)[:w] for name in _WAITS}
        return saved

    def load(self, saved: dict[str, np.ndarray], keys: Interner) -> None:
        """Take over what `save` gave."""
        for name, array in saved.items():
            setattr(self, name, np.ascontiguousarray(array))
        self.keys = keys


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer


def _wider(table: np.ndarray, size: int) -> np.ndarray:
    wider = np.zeros((table.shape[0], size), table.dtype)
    wider[:, : table.shape[1]] = table
    return wider


def bits(column: int, is_float: bool) -> np.uint64:
    """Give the null bit of a pool column."""
    return np.uint64(1 << (column + (32 if is_float else 0)))

