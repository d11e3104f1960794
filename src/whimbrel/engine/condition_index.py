"""The one index of conditions on single events: for the queries of a session and for subscriptions alike.

A condition is a conjunction of clauses on attributes, and perhaps a place. Each is found in one way, the one
that selects most: by a value that an attribute must have, by a range or a text, or through a grid of all
places. What an event costs follows the conditions it comes near to; adding and removing a condition costs the
same however many there are. The clauses that did not lead to a condition are tested on what was found.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from whimbrel.engine.condition_columns import ConditionColumns, WantedColumns
from whimbrel.engine.index_clauses import IndexClause
from whimbrel.engine.kernels import access_paths as kernels
from whimbrel.engine.kernels.condition_lookups import find_listed, find_placed, find_ranged
from whimbrel.engine.kernels.conditions import SUBSTRING
from whimbrel.engine.kernels.interval_tree import LEVELS
from whimbrel.engine.packed_conditions import ClauseRows, PackedConditions
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import Floats
from whimbrel.space.grid import Pairs, ShapeGrid, collected, joined
from whimbrel.space.kernels.lists import BIGGEST
from whimbrel.space.lists import Ints, Lists, lengthen
from whimbrel.space.places import PlaceSet

_KINDS = SUBSTRING + 1
_EVICTED = 1 << 16
_MORE = 1 << 12
"""So many words are made room for at once: more than a range can take, apart from lists."""
_SEEN = 64
"""So many values of each column tell how much a range selects."""


class ConditionIndex:
    """Conditions by number, and which of them events meet."""

    def __init__(self, coordinates: Coordinates = Coordinates.PLANE) -> None:
        self._lists = Lists()
        self._packed = PackedConditions(self._lists)
        self._grid = ShapeGrid(coordinates)
        self._numbers = _FreeNumbers()
        self._has_place: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._keys: Ints = np.zeros(0, np.int64)
        """What each condition is found by: the key of a list or of a range, 0 for its place."""
        self._uses: Ints = np.zeros((0, _KINDS), np.int64)
        self._sizes: Ints = np.zeros((0, _KINDS, kernels.LONGEST + 1), np.int64)
        self._ranges: Ints = np.zeros((0, LEVELS), np.int64)
        self._in_use: tuple[Ints, Ints] | None = None
        self._seen: Floats = np.zeros((0, _SEEN))
        self._listed = self._ranged = self._looked = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def nbytes(self) -> int:
        """The memory that all conditions take."""
        own = self._has_place.nbytes + self._keys.nbytes + self._packed.starts.nbytes
        return own + self._lists.nbytes + self._grid.nbytes + self._numbers.nbytes

    @property
    def wanted(self) -> WantedColumns:
        """The columns that conditions read."""
        return self._packed.wanted

    def add(
        self,
        count: int,
        clauses: tuple[IndexClause, ...] = (),
        own: ClauseRows | None = None,
        places: PlaceSet | None = None,
    ) -> Ints:
        """Take in conditions that share clauses, and may each have more and a place; give their numbers."""
        numbers = self._numbers.take(count)
        lengthen(self._has_place, self._numbers.next)
        lengthen(self._keys, self._numbers.next)
        self._has_place[numbers] = places is not None
        if places is not None:
            places.keep(self._grid, numbers)
        self._packed.add(numbers, clauses, own)
        if count:
            self._grid.put_in(self._choose_ways(numbers))
        return numbers

    def remove(self, numbers: Ints) -> None:
        """Forget conditions; their numbers may be given to others."""
        by_place = self._leave(numbers)
        self._grid.take_out(numbers[by_place])
        self._grid.forget(numbers[self._has_place[numbers]])
        self._numbers.give_back(numbers)

    def match(self, columns: ConditionColumns, x: Floats, y: Floats) -> Pairs:
        """Find the pairs of an event and a condition that it meets, by row; x and y may be empty."""
        events = columns.highs.shape[1]
        matches = [
            self._in_place(self._find_listed(events, columns), x, y),
            self._find_ranged(events, columns),
        ]
        if len(x) and len(self._grid):
            matches.append(self._find_placed(x, y, columns))
        matches = [pairs for pairs in matches if len(pairs[0])]
        rows, numbers = joined(matches)
        if len(matches) < 2:
            return rows, numbers
        order = np.argsort(rows, kind="stable")
        return rows[order], numbers[order]

    # -- ways to conditions ------------------------------------------------------------------------------

    def _choose_ways(self, numbers: Ints) -> Ints:
        """Choose a way to each condition; give those, old ones too, whose way is now their place."""
        self._in_use = None
        known, columns = len(self._uses), len(self._packed.wanted.names)
        if columns > known:
            for array in (self._uses, self._sizes, self._ranges, self._seen):
                array.resize((columns, *array.shape[1:]), refcheck=False)
            self._seen[known:] = np.nan
        lists, done, evicted = self._lists, 0, []
        while True:
            room = np.empty(_EVICTED, np.int64)
            done, gone = kernels.choose(
                numbers, done, self._has_place, self._packed.starts, self._keys,
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
        self._ranged = int(self._ranges.sum())
        return np.concatenate([placed, others])

    def _leave(self, numbers: Ints) -> npt.NDArray[np.bool_]:
        """Take conditions out of their lists, and forget what they ask; tell who was found by place."""
        by_place: npt.NDArray[np.bool_] = self._keys[numbers] == kernels.PLACE
        lists = self._lists
        kernels.leave(
            numbers, self._packed.starts, self._keys, self._uses, self._sizes, self._ranges,
            lists.slots, lists.old, lists.words, lists.free, lists.counters,
        )  # fmt: skip
        self._in_use = None
        self._listed -= len(numbers) - int(by_place.sum())
        self._ranged = int(self._ranges.sum())
        self._packed.remove(numbers)
        lists.go_on()
        return by_place

    # -- lookups -----------------------------------------------------------------------------------------

    def _find_listed(self, events: int, columns: ConditionColumns) -> Pairs:
        """Find the conditions that are in lists, whatever place they ask for."""
        if self._listed <= self._ranged:
            return joined([])
        lists = self._lists
        return collected(
            events,
            lambda done, *room: find_listed(
                events, done, self._uses, self._sizes, lists.slots, lists.old,
                self._packed.starts, lists.words, *columns.arrays, *room,
            ),
        )  # fmt: skip

    def _in_place(self, pairs: Pairs, x: Floats, y: Floats) -> Pairs:
        """Keep the pairs of listed conditions whose place, if they have one, the event lies in."""
        rows, numbers = pairs
        if not len(rows):
            return pairs
        placed = self._has_place[numbers]
        if not placed.any():
            return pairs
        kept = ~placed
        if len(x):
            kept[placed] = self._grid.hold(x[rows[placed]], y[rows[placed]], numbers[placed])
        return rows[kept], numbers[kept]

    def _find_ranged(self, events: int, columns: ConditionColumns) -> Pairs:
        """Find the conditions whose way is a range."""
        self._see(columns)
        ranged, levels = self._levels_in_use()
        if not len(ranged):
            return joined([])
        lists = self._lists
        return collected(
            events,
            lambda done, *room: find_ranged(
                events, done, ranged, levels, lists.slots, lists.old,
                self._packed.starts, lists.words, *columns.arrays, *room,
            ),
        )  # fmt: skip

    def _levels_in_use(self) -> tuple[Ints, Ints]:
        """List the levels of ranges in use, each with its column; worked out again after changes only."""
        if self._in_use is None:
            columns, levels = np.nonzero(self._ranges)
            self._in_use = np.ascontiguousarray(columns), np.ascontiguousarray(levels)
        return self._in_use

    def _see(self, columns: ConditionColumns) -> None:
        """Remember some values of each column, spread over the batch, instead of those seen longest ago."""
        known, rows = columns.values.shape
        if rows >= _SEEN:
            self._seen[:known] = columns.values[:, np.linspace(0, rows - 1, _SEEN).astype(np.int64)]
        else:
            for row in range(rows):
                self._looked = (self._looked + 1) % _SEEN
                self._seen[:known, self._looked] = columns.values[:, row]

    def _find_placed(self, x: Floats, y: Floats, columns: ConditionColumns) -> Pairs:
        """Find the conditions whose way is their place."""
        x, y = x.view(), y.view()
        x.flags.writeable = y.flags.writeable = False  # arrays that can be written to are another type
        places = self._grid.to_look_up(len(x))
        return collected(
            len(x),
            lambda done, *room: find_placed(
                x, y, done, *places, self._packed.starts, self._lists.words, *columns.arrays, *room
            ),
        )


class _FreeNumbers:
    """Numbers from 0 that nobody has: those that were given back first."""

    def __init__(self) -> None:
        self.next = 0
        self._free: Ints = np.zeros(0, np.int64)
        self._freed = 0

    def __len__(self) -> int:
        return self.next - self._freed

    @property
    def nbytes(self) -> int:
        return self._free.nbytes

    def take(self, count: int) -> Ints:
        again = min(count, self._freed)
        numbers = np.empty(count, np.int64)
        numbers[:again] = self._free[self._freed - again : self._freed]
        numbers[again:] = np.arange(self.next, self.next + count - again)
        self._freed -= again
        self.next += count - again
        return numbers

    def give_back(self, numbers: Ints) -> None:
        lengthen(self._free, self._freed + len(numbers))
        self._free[self._freed : self._freed + len(numbers)] = numbers
        self._freed += len(numbers)
