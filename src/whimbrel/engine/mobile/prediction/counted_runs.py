"""Prepared runs that several objects wait for: identical ones run once, as long as anybody needs them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


class CountedRuns(SavedState):
    """Counts who uses which run; runs with the same place and the same beginning are one.

    For one query, whose interest depends on the place alone. Objects meet in a place only if places lie on a
    grid. A run has a number, which another one gets when nobody uses it any more.
    """

    state: ClassVar = ("x", "y", "begin", "users")

    def __init__(self) -> None:
        self.x = np.zeros(0)
        self.y = np.zeros(0)
        self.begin = NO_ROWS
        self.users = NO_ROWS

    def take(self, x: FloatArray, y: FloatArray, begin: Int64Array) -> tuple[Int64Array, BoolArray]:
        """Use runs at some places from some times on; give their numbers, and which of them are new."""
        used = np.flatnonzero(self.users)
        wanted = _keys(x, y, begin)
        keys, at = np.unique(
            np.concatenate([_keys(self.x[used], self.y[used], self.begin[used]), wanted]),
            return_inverse=True,
        )
        number = np.full(len(keys), -1, np.int64)
        number[at[: len(used)]] = used
        asked = at[len(used) :]
        new, first = np.unique(asked[number[asked] < 0], return_index=True)
        # Numbers in the order in which runs were asked for first.
        order = np.argsort(first)
        number[new[order]] = self._free(len(new))
        runs = number[asked]
        begins = np.zeros(len(runs), np.bool_)
        begins[np.flatnonzero(np.isin(asked, new))[first]] = True
        for kept, given in ((self.x, x), (self.y, y), (self.begin, begin)):
            kept[runs] = given
        np.add.at(self.users, runs, 1)
        return runs, begins

    def release(self, runs: Int64Array) -> Int64Array:
        """Use runs no more, each once; give those that nobody uses any more."""
        np.subtract.at(self.users, runs, 1)
        return np.unique(runs[self.users[runs] == 0])

    def _free(self, count: int) -> Int64Array:
        """Find numbers that no run has, and make room for more."""
        free = np.flatnonzero(self.users == 0)[:count]
        missing = count - len(free)
        if missing:
            free = np.concatenate([free, len(self.users) + np.arange(missing)])
            self.x, self.y, self.begin, self.users = (
                np.concatenate([kept, np.zeros(missing, kept.dtype)])
                for kept in (self.x, self.y, self.begin, self.users)
            )
        return free


def _keys(x: FloatArray, y: FloatArray, begin: Int64Array) -> np.ndarray:
    keys = np.empty(len(x), [("x", np.float64), ("y", np.float64), ("begin", np.int64)])
    keys["x"], keys["y"], keys["begin"] = x, y, begin
    return keys
