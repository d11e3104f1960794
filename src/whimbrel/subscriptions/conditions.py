"""The conditions of all subscriptions, packed for the kernels; equal ones are kept once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whimbrel.model.schema import Type
from whimbrel.space.kernels.lists import allocate, exponent_for, release
from whimbrel.space.lists import Ints, Lists, lengthen
from whimbrel.subscriptions.clauses import BetweenClause, Clause, Equals, HasText
from whimbrel.subscriptions.columns import WantedColumns, hash_values
from whimbrel.subscriptions.kernels import conditions as kernels

_HOW = {"startswith": kernels.PREFIX, "endswith": kernels.SUFFIX, "contains": kernels.SUBSTRING}


@dataclass(slots=True)
class _Shared:
    """A condition that several subscriptions have: its clauses, how many have it, and the blocks it takes."""

    clauses: tuple[Clause, ...]
    users: int
    blocks: list[tuple[int, int]]


class Conditions:
    """What each subscription asks of attributes, by its number; the words of `lists` hold it."""

    def __init__(self, lists: Lists) -> None:
        self.starts: Ints = np.zeros(0, np.int64)
        """Where the condition of a subscription starts; below 0 for a shared one, 0 for none."""
        self._lists = lists
        self._columns: dict[str, int] = {}
        self._shared: dict[int, _Shared] = {}
        self._known: dict[tuple[Clause, ...], int] = {}
        self._asks_numbers = self._asks_texts = False

    @property
    def wanted(self) -> WantedColumns:
        """The columns that any condition reads."""
        return WantedColumns(tuple(self._columns), self._asks_numbers, self._asks_texts)

    def column(self, name: str) -> int:
        """Give the number of a column, a new one if nobody has asked for it yet."""
        return self._columns.setdefault(name, len(self._columns))

    def give(
        self,
        numbers: Ints,
        clauses: tuple[Clause, ...],
        names: Sequence[str] = (),
        highs: Any = None,
        lows: Any = None,
    ) -> None:
        """Give subscriptions the same clauses, and each a value for some columns (hashes; 0, 0 for none)."""
        if not len(numbers):
            return
        lengthen(self.starts, int(numbers.max()) + 1)
        start = self._share(clauses, len(numbers)) if clauses else 0
        if not names:
            self.starts[numbers] = -start
            return
        columns = np.array([self.column(name) for name in names], np.int64)
        lists, done = self._lists, 0
        while True:
            done = kernels.write_own(
                numbers,
                done,
                start,
                columns,
                highs,
                lows,
                self.starts,
                lists.words,
                lists.free,
                lists.counters,
            )
            if done == len(numbers):
                return
            lists.make_room(words=8 * len(columns) + 8)

    def take(self, numbers: Ints) -> None:
        """Take the conditions of subscriptions away."""
        starts = self.starts[numbers]
        own = starts[starts > 0]
        joined = kernels.release_own(own, self._lists.words, self._lists.free)
        used, counts = np.unique(
            np.concatenate([-starts[starts < 0], joined[joined > 0]]), return_counts=True
        )
        for start, count in zip(used.tolist(), counts.tolist(), strict=True):
            self._unshare(start, count)
        self.starts[numbers] = 0

    def _share(self, clauses: tuple[Clause, ...], users: int) -> int:
        start = self._known.get(clauses)
        if start is None:
            blocks: list[tuple[int, int]] = []
            start = self._write(clauses, blocks)
            self._known[clauses] = start
            self._shared[start] = _Shared(clauses, 0, blocks)
        self._shared[start].users += users
        return start

    def _unshare(self, start: int, users: int) -> None:
        shared = self._shared[start]
        shared.users -= users
        if shared.users == 0:
            del self._known[shared.clauses], self._shared[start]
            for block, exponent in shared.blocks:
                release(self._lists.words, self._lists.free, block, exponent)

    def _write(self, clauses: tuple[Clause, ...], blocks: list[tuple[int, int]]) -> int:
        words = [len(clauses), 0]
        for clause in clauses:
            words += self._packed(clause, blocks)
        return self._block(np.array(words, np.int64), blocks)

    def _block(self, content: Ints, blocks: list[tuple[int, int]]) -> int:
        exponent = int(exponent_for(len(content)))
        lists = self._lists
        start = allocate(lists.words, lists.free, lists.counters, exponent)
        if start < 0:
            lists.make_room(words=1 << exponent)
            start = allocate(lists.words, lists.free, lists.counters, exponent)
        lists.words[start : start + len(content)] = content
        blocks.append((int(start), exponent))
        return int(start)

    def _packed(self, clause: Clause, blocks: list[tuple[int, int]]) -> tuple[int, int, int]:
        """Write a clause as three words."""
        column = self.column(clause.attribute)
        match clause:
            case BetweenClause(_, low, high):
                self._asks_numbers = True
                bits = (np.array([low, high]) + 0.0).view(
                    np.int64
                )  # there shall be one zero, not -0.0 beside it
                return int(kernels.clause_of(kernels.BETWEEN, column)), int(bits[0]), int(bits[1])
            case HasText(_, how, text):
                self._asks_texts = True
                content = text.encode()
                padded = np.frombuffer(content + bytes(8 - len(content) % 8), np.int64)
                return int(kernels.clause_of(_HOW[how], column)), self._block(padded, blocks), len(content)
            case Equals(_, values, kind, negated):
                return self._packed_values(column, values, kind, negated, blocks)

    def _packed_values(
        self, column: int, values: tuple[Any, ...], kind: Type, negated: bool, blocks: list[tuple[int, int]]
    ) -> tuple[int, int, int]:
        high, low = hash_values(values, kind)
        if len(values) == 1:
            what = kernels.DIFFERENT if negated else kernels.EQUAL
            return int(kernels.clause_of(what, column)), int(high[0]), int(low[0])
        start = self._block(np.stack([high, low], axis=1).reshape(-1), blocks)
        return int(kernels.clause_of(kernels.ONE_OF, column)), start, len(values)
