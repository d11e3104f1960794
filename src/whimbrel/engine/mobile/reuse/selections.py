"""Selections of operators, as sets of atomic events, and what those who own them agree to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whimbrel.engine.mobile.reuse.kernels.similarities import disparities, transposed
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True)
class EventSets:
    """Sets of events in compressed rows: row r has `ids[offsets[r]:offsets[r + 1]]`, sorted, each once.

    Parameters
    ----------
    offsets
        Where each row begins, and where the last one ends.
    ids
        Numbers of events; any whole numbers.
    weights
        How much each id counts, 1 unless given: cells of a grid have the number of events in them.
    """

    offsets: Int64Array
    ids: Int64Array
    weights: FloatArray | None = None

    @staticmethod
    def of(rows: Sequence[Collection[int]]) -> EventSets:
        """Make them of collections of ids.

        >>> EventSets.of([{3, 1}, set()]).offsets.tolist()
        [0, 2, 2]
        """
        ids = [number for row in rows for number in sorted(set(row))]
        sizes = [len(set(row)) for row in rows]
        return EventSets(offsets_of(np.array(sizes, np.int64)), np.array(ids, np.int64))

    @staticmethod
    def of_pairs(rows: Int64Array, ids: Int64Array, size: int) -> EventSets:
        """Make them of (row, id) in any order; one that comes twice counts once."""
        order = np.lexsort((ids, rows))
        rows, ids = rows[order], ids[order]
        kept = np.append(True, (rows[1:] != rows[:-1]) | (ids[1:] != ids[:-1]))[: len(rows)]
        return EventSets(offsets_of(np.bincount(rows[kept], minlength=size)), ids[kept])

    @staticmethod
    def counted(rows: Int64Array, ids: Int64Array, size: int) -> EventSets:
        """Make them of (row, id) in any order, each id as heavy as it comes often."""
        order = np.lexsort((ids, rows))
        rows, ids = rows[order], ids[order]
        first = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]) | (ids[1:] != ids[:-1]))[: len(rows)])
        weights = np.diff(np.append(first, len(rows))).astype(np.float64)
        return EventSets(offsets_of(np.bincount(rows[first], minlength=size)), ids[first], weights)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def rows(self) -> Int64Array:
        """The row of each id."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def values(self) -> FloatArray:
        """How much each id counts."""
        return np.ones(len(self.ids)) if self.weights is None else self.weights

    @cached_property
    def total(self) -> FloatArray:
        """How much all ids of each row count."""
        return np.bincount(self.rows, weights=self.values, minlength=len(self)).astype(np.float64)

    @cached_property
    def dense(self) -> tuple[Int64Array, int]:
        """The ids as numbers from 0 on, in the same order, and how many numbers there are."""
        if not len(self.ids):
            return self.ids, 0
        least, most = int(self.ids.min()), int(self.ids.max())
        if most - least <= 4 * len(self.ids) + 1024:  # numbers of rows of one step: no need to sort
            return self.ids - least, most - least + 1
        known, dense = np.unique(self.ids, return_inverse=True)
        return dense.astype(np.int64), len(known)

    def take(self, rows: Int64Array) -> EventSets:
        """Give some rows, in this order."""
        sizes = np.diff(self.offsets)[rows]
        offsets = offsets_of(sizes)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], sizes)
        return EventSets(offsets, self.ids[places], None if self.weights is None else self.weights[places])

    def united(self, groups: Int64Array, size: int) -> EventSets:
        """Unite the rows of each group."""
        return EventSets.of_pairs(groups[self.rows], self.ids, size)

    def marked(self) -> EventSets:
        """Give rows without ids one of their own: they are equal, which no common id would show."""
        empty = np.flatnonzero(np.diff(self.offsets) == 0)
        if not len(empty):
            return self
        mark = int(self.ids.max(initial=-1)) + 1
        return EventSets.of_pairs(
            np.append(self.rows, empty), np.append(self.ids, np.full(len(empty), mark)), len(self)
        )

    def turned(self, size: int) -> EventSets:
        """Give the rows that have each of the ids 0, 1, ... `size` - 1: incidence the other way round."""
        offsets, rows, _ = transposed.at(len(self.ids) + size)(self.offsets, self.ids, self.values, size)
        return EventSets(offsets, rows)


def offsets_of(sizes: Int64Array) -> Int64Array:
    """Tell where rows of these sizes begin, and where the last one ends."""
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Selections:
    """Selections that wait for a decision, those of an operator in the order of time.

    Parameters
    ----------
    owner
        The number of the operator instance: the operator of one query.
    atoms
        The atomic events that each depends on.
    """

    owner: Int64Array
    atoms: EventSets

    def __len__(self) -> int:
        return len(self.owner)

    def take(self, rows: Int64Array) -> Selections:
        """Give some of them, in this order."""
        return Selections(self.owner[rows], self.atoms.take(rows))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What the owner of each operator agrees to: selections better than this, or equal ones alone."""

    precision: FloatArray
    recall: FloatArray
    exact: BoolArray

    @staticmethod
    def same(owners: int, precision: float, recall: float | None = None, *, exact: bool = False) -> Tolerance:
        """All agree to the same; the threshold of recall is that of precision unless given."""
        recall = precision if recall is None else recall
        return Tolerance(np.full(owners, precision), np.full(owners, recall), np.full(owners, exact))

    def __len__(self) -> int:
        return len(self.precision)


def everybody(owners: int) -> BoolArray:
    """Let each operator stand for all others.

    Neighbours are a matrix: row a, column b tells whether selections of a may stand for those of b.

    >>> everybody(2).tolist()
    [[False, True], [True, False]]
    """
    return ~np.eye(owners, dtype=np.bool_)


def disparity(atoms: EventSets, used: EventSets, holders: EventSets) -> FloatArray:
    """Tell how far the interests behind each selection differ on its events (5.3); 0: not at all.

    Parameters
    ----------
    atoms
        The events of each selection, numbered as the rows of `holders`.
    used
        The interests behind each selection.
    holders
        For each event, the interests that hold it.
    """
    interests = int(max(used.ids.max(initial=-1), holders.ids.max(initial=-1))) + 1
    work = len(atoms.ids) * (1 + len(holders.ids) // max(len(holders), 1)) + len(used.ids)
    return disparities.at(work)(
        atoms.offsets, atoms.ids, used.offsets, used.ids, holders.offsets, holders.ids, interests
    )
