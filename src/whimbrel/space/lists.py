"""Many short lists of whole numbers, each found by a key, that grow without a pause.

The arrays are lengthened piece by piece where they stand, and the hash table gets a successor into which its
slots are moved a few at a time; see `whimbrel.space.kernels.lists`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from whimbrel.space.kernels.lists import BIGGEST, MOST_SLOTS, MOVED, TOP, USED, move_slots

Ints = npt.NDArray[np.int64]

_COUNTERS = 5
_EXPONENTS = 32
_FEWEST_SLOTS = 1 << 10
_LEAST, _MOST = 1 << 12, 1 << 19
"""Arrays grow by at least and at most so many items at once: filling these takes a millisecond or two."""
_MOVES = 1 << 12
"""So many slots are moved at least, whenever something changes."""


def lengthen(array: npt.NDArray[Any], size: int) -> None:
    """Make an array of one or two dimensions at least `size` long, where it stands; what is new is zero.

    The memory of large arrays is remapped by the system and not copied. No view of `array` may be in use.
    """
    if size > len(array):
        piece = min(max(len(array) // 2, _LEAST), _MOST)
        array.resize((max(size, len(array) + piece), *array.shape[1:]), refcheck=False)


class Lists:
    """A hash table from positive keys to lists; kernels work on its arrays and say if they need room."""

    def __init__(self) -> None:
        self.slots: Ints = np.zeros(2 * _FEWEST_SLOTS, np.int64)
        self.old: Ints = np.zeros(0, np.int64)
        self.words: Ints = np.zeros(_LEAST, np.int64)
        self.free: Ints = np.zeros(_EXPONENTS, np.int64)
        self.counters: Ints = np.zeros(_COUNTERS, np.int64)
        self.counters[TOP] = 1  # a list that starts at 0 has no block
        self._used = 0

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        return sum(array.nbytes for array in (self.slots, self.old, self.words, self.free, self.counters))

    @property
    def is_tight(self) -> bool:
        """Whether the table is about to need a successor."""
        return bool(self.counters[USED] + 64 > MOST_SLOTS * (len(self.slots) // 2))

    def make_room(self, words: int = 0) -> None:
        """Make more room for the kernels where they need it: for a list twice as long as any, or `words`."""
        if self.is_tight:
            self._move(len(self.old))
            self._begin_to_move()
        lengthen(self.words, int(self.counters[TOP]) + max(words, 2 << int(self.counters[BIGGEST])))

    def _begin_to_move(self) -> None:
        self.old = self.slots
        # Zeros are not written before they are used, so that this takes no time however large it is.
        self.slots = np.zeros(2 * len(self.old), np.int64)
        self.counters[MOVED] = 0
        self._used = int(self.counters[USED])

    def go_on(self, more: int = 0) -> None:
        """Move some slots to the new table, enough to be done long before it is full, and `more`."""
        if len(self.old):
            self._move(_MOVES + 8 * (int(self.counters[USED]) - self._used) + more)

    def _move(self, slots: int) -> None:
        if not len(self.old):
            return
        move_slots(self.slots, self.old, self.counters, slots)
        self._used = int(self.counters[USED])
        if self.counters[MOVED] == len(self.old) // 2:
            self.old = np.zeros(0, np.int64)
