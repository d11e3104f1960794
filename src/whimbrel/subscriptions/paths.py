"""How subscriptions are found without their place: each in the list or range that selects most."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from whimbrel.space.geometry import Floats
from whimbrel.space.grid import ShapeGrid
from whimbrel.space.kernels.lists import BIGGEST
from whimbrel.space.lists import Ints, Lists, lengthen
from whimbrel.subscriptions.columns import Columns
from whimbrel.subscriptions.conditions import Conditions
from whimbrel.subscriptions.kernels import paths as kernels
from whimbrel.subscriptions.kernels.conditions import SUBSTRING
from whimbrel.subscriptions.kernels.placed import find_placed
from whimbrel.subscriptions.kernels.ranged import find_ranged
from whimbrel.subscriptions.kernels.ranges import LEVELS

Numbers = npt.NDArray[np.int32]
Pairs = tuple[Numbers, Numbers]
"""Rows of events, and numbers of subscriptions."""

_KINDS = SUBSTRING + 1
_EVICTED = 1 << 16
_MORE = 1 << 12
"""So many words are made room for at once: more than a range can take, apart from lists."""
_SEEN = 64
"""So many values of each column tell how much a range selects."""


class Paths:
    """The lists, and what each subscription asks; a key of 0 sends whoever asks to the place instead."""

    def __init__(self) -> None:
        self._lists = Lists()
        self.conditions = Conditions(self._lists)
        self._keys: Ints = np.zeros(0, np.int64)
        self._uses: Ints = np.zeros((0, _KINDS), np.int64)
        self._sizes: Ints = np.zeros((0, _KINDS, kernels.LONGEST + 1), np.int64)
        self._ranges: Ints = np.zeros((0, LEVELS), np.int64)
        self._seen: Floats = np.zeros((0, _SEEN))
        self._listed = 0

    @property
    def nbytes(self) -> int:
        """The memory that lists and conditions take."""
        return self._lists.nbytes + self._keys.nbytes + self.conditions.starts.nbytes

    def enter(self, numbers: Ints, has_place: npt.NDArray[np.bool_]) -> Ints:
        """Choose a way to each subscription; give those, old ones too, whose way is now their place."""
        if not len(numbers):
            return numbers
        lengthen(self._keys, int(numbers.max()) + 1)
        columns = len(self.conditions.wanted.names)
        known = len(self._uses)
        if columns > known:
            for array in (self._uses, self._sizes, self._ranges, self._seen):
                array.resize((columns, *array.shape[1:]), refcheck=False)
            self._seen[known:] = np.nan
        lists, done, evicted = self._lists, 0, []
        while True:
            room = np.empty(_EVICTED, np.int64)
            done, gone = kernels.choose(
                numbers, done, has_place, self.conditions.starts, self._keys,
                self._uses, self._sizes, self._ranges, self._seen, room,
                lists.slots, lists.old, lists.words, lists.free, lists.counters,
            )  # fmt: skip
            evicted.append(room[:gone])
            if done == len(numbers):
                break
            lists.make_room(words=_MORE + (4 << int(lists.counters[BIGGEST])))
        lists.go_on()
        others = np.concatenate(evicted)
        others = others[~np.isin(others, numbers)]
        placed = numbers[self._keys[numbers] == kernels.PLACE]
        self._listed += len(numbers) - len(placed) - len(others)
        return np.concatenate([placed, others])

    def leave(self, numbers: Ints) -> npt.NDArray[np.bool_]:
        """Take subscriptions out of their lists, and their conditions away; tell who was found by place."""
        by_place: npt.NDArray[np.bool_] = self._keys[numbers] == kernels.PLACE
        lists = self._lists
        kernels.leave(
            numbers, self.conditions.starts, self._keys, self._uses, self._sizes, self._ranges,
            lists.slots, lists.old, lists.words, lists.free, lists.counters,
        )  # fmt: skip
        self._listed -= len(numbers) - int(by_place.sum())
        self.conditions.take(numbers)
        lists.go_on()
        return by_place

    def find(self, events: int, columns: Columns) -> Pairs:
        """Give the pairs of events and listed subscriptions whose condition they meet, by row."""
        has_lists = self._listed > int(self._ranges.sum())
        done, room, lists = (0 if has_lists else events), max(1024, events), self._lists
        found: list[Pairs] = []
        while done < events:
            rows, numbers = np.empty(room, np.int32), np.empty(room, np.int32)
            before = done
            done, count = kernels.find(
                events, done, self._uses, self._sizes, self.conditions.starts, *columns.arrays,
                lists.slots, lists.old, lists.words, rows, numbers,
            )  # fmt: skip
            found.append((rows[:count], numbers[:count]))
            room = 2 * room if done == before else room
        return joined(found)

    def find_ranged(self, events: int, columns: Columns) -> Pairs:
        """Give the pairs of events and subscriptions found through a range whose condition they meet."""
        self._see(columns)
        ranged, levels = np.nonzero(self._ranges)
        found: list[Pairs] = []
        done, room, lists = (0 if len(ranged) else events), events + 1024, self._lists
        while done < events:
            rows, numbers = np.empty(room, np.int32), np.empty(room, np.int32)
            before = done
            done, count = find_ranged(
                events, done, ranged, levels, lists.slots, lists.old,
                self.conditions.starts, lists.words, *columns.arrays, rows, numbers,
            )  # fmt: skip
            found.append((rows[:count], numbers[:count]))
            room = 2 * room if done == before else room
        return joined(found)

    def _see(self, columns: Columns) -> None:
        """Remember some values of each column, spread over the batch."""
        known, rows = columns.values.shape
        if rows:
            self._seen[:known] = columns.values[:, np.linspace(0, rows - 1, _SEEN).astype(np.int64)]

    def find_placed(self, x: Floats, y: Floats, grid: ShapeGrid, columns: Columns) -> Pairs:
        """Give the pairs of events and subscriptions in a grid whose condition they meet, by row."""
        found: list[Pairs] = []
        done, room = 0, len(x) + 1024
        while done < len(x):
            rows, numbers = np.empty(room, np.int32), np.empty(room, np.int32)
            before = done
            done, count = find_placed(
                x, y, done, *grid.to_look_up(len(x)),
                self.conditions.starts, self._lists.words, *columns.arrays, rows, numbers,
            )  # fmt: skip
            found.append((rows[:count], numbers[:count]))
            room = 2 * room if done == before else room
        return joined(found)


def joined(pairs: list[Any]) -> Pairs:
    """Put pairs one behind the other."""
    if len(pairs) == 1:
        return pairs[0]
    if not pairs:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    return np.concatenate([rows for rows, _ in pairs]), np.concatenate([numbers for _, numbers in pairs])
