"""The conditions of an index, packed for the kernels; equal ones are kept once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whimbrel.engine.condition_columns import WantedColumns, hash_values
from whimbrel.engine.index_clauses import IndexClause, RangeClause, TextClause, ValueClause
from whimbrel.engine.kernels import conditions as kernels
from whimbrel.engine.values import BoolArray
from whimbrel.space.kernels.lists import allocate, exponent_for, release
from whimbrel.space.lists import Ints, Lists, lengthen

_HOW = {"startswith": kernels.PREFIX, "endswith": kernels.SUFFIX, "contains": kernels.SUBSTRING}
_COMPARED = (kernels.EQUAL, kernels.DIFFERENT, kernels.ONE_OF)


@dataclass(frozen=True, slots=True)
class ClauseRows:
    """Clauses of many conditions that ask alike: for each clause what it asks, and a row of operands.

    Where `present` is false, a condition does not have the clause.
    """

    names: tuple[str, ...]
    kinds: tuple[int, ...]
    ones: Ints
    twos: Ints
    present: BoolArray

    @classmethod
    def of_hashes(cls, names: tuple[str, ...], highs: Ints, lows: Ints) -> ClauseRows:
        """Ask for values that are hashed already; the hashes of null, 0 and 0, ask for nothing."""
        return cls(names, (kernels.EQUAL,) * len(names), highs, lows, (highs != 0) | (lows != 0))

    @classmethod
    def of(cls, conditions: Sequence[tuple[IndexClause, ...]]) -> ClauseRows:
        """Write conditions all of which have the same `shape`, clause by clause."""
        size = len(conditions[0]), len(conditions)
        ones, twos = np.empty(size, np.int64), np.empty(size, np.int64)
        for row, clauses in enumerate(zip(*conditions, strict=True)):
            if isinstance(clauses[0], ValueClause):
                values = [value for clause in clauses for value in clause.values]
                ones[row], twos[row] = hash_values(values, clauses[0].type)
            else:
                bounds = np.array([(clause.low, clause.high) for clause in clauses]) + _ONE_ZERO
                ones[row], twos[row] = bounds.view(np.int64).T
        names = tuple(clause.attribute for clause in conditions[0])
        return cls(names, tuple(map(_kind, conditions[0])), ones, twos, np.ones(size, np.bool_))


_ONE_ZERO = 0.0
"""Added to floats, so that there is no -0.0 beside 0."""


def shape(clauses: tuple[IndexClause, ...]) -> tuple[Any, ...] | None:
    """Tell conditions apart that cannot be written as rows of the same clauses; None if one cannot at all."""
    if any(isinstance(clause, TextClause) or _kind(clause) == kernels.ONE_OF for clause in clauses):
        return None
    return tuple((clause.attribute, clause.type, _kind(clause), clause.is_exact) for clause in clauses)


def _kind(clause: IndexClause) -> int:
    match clause:
        case RangeClause():
            return kernels.BETWEEN
        case TextClause(how=how):
            return _HOW[how]
        case ValueClause(values=(_,)):
            return kernels.DIFFERENT if clause.negated else kernels.EQUAL
    return kernels.ONE_OF


@dataclass(slots=True)
class _Shared:
    """A condition that several numbers have: its clauses, how many have it, and the blocks it takes."""

    clauses: tuple[IndexClause, ...]
    users: int
    blocks: list[tuple[int, int]]


class PackedConditions:
    """What each number asks of attributes; the words of `lists` hold it."""

    def __init__(self, lists: Lists) -> None:
        self.starts: Ints = np.zeros(0, np.int64)
        """Where the condition of a number starts; below 0 for a shared one, 0 for none."""
        self._lists = lists
        self._columns: dict[str, int] = {}
        self._shared: dict[int, _Shared] = {}
        self._known: dict[tuple[IndexClause, ...], int] = {}
        self.wanted = WantedColumns()
        """The columns that any condition reads."""

    def add(self, numbers: Ints, clauses: tuple[IndexClause, ...], own: ClauseRows | None) -> None:
        """Write the same clauses for all numbers, and for each clauses of its own."""
        if not len(numbers):
            return
        lengthen(self.starts, int(numbers.max()) + 1)
        start = self._share(clauses, len(numbers)) if clauses else 0
        if own is None:
            self.starts[numbers] = -start
            return
        pairs = zip(own.names, own.kinds, strict=True)
        asked = np.array([self._clause(name, kind) for name, kind in pairs], np.int64)
        lists, done = self._lists, 0
        while True:
            done = kernels.write_own(
                numbers, done, start, asked, own.ones, own.twos, own.present, self.starts,
                lists.words, lists.free, lists.counters,
            )  # fmt: skip
            if done == len(numbers):
                return
            lists.make_room(words=8 * len(asked) + 8)

    def _clause(self, name: str, kind: int) -> int:
        """Pack what is asked of a column, a new one if nobody has asked for it yet."""
        column = self._columns.setdefault(name, len(self._columns))
        wanted, names = self.wanted, tuple(self._columns)
        if kind == kernels.BETWEEN and name not in wanted.numbers:
            self.wanted = replace(wanted, names=names, numbers=wanted.numbers | {name})
        elif kind in _HOW.values() and name not in wanted.texts:
            self.wanted = replace(wanted, names=names, texts=wanted.texts | {name})
        elif kind in _COMPARED and name not in wanted.values:
            self.wanted = replace(wanted, names=names, values=wanted.values | {name})
        return int(kernels.clause_of(kind, column))

    def remove(self, numbers: Ints) -> None:
        """Forget the conditions of numbers."""
        starts = self.starts[numbers]
        own = starts[starts > 0]
        joined = kernels.release_own(own, self._lists.words, self._lists.free)
        used, counts = np.unique(
            np.concatenate([-starts[starts < 0], joined[joined > 0]]), return_counts=True
        )
        for start, count in zip(used.tolist(), counts.tolist(), strict=True):
            self._unshare(start, count)
        self.starts[numbers] = 0

    def _share(self, clauses: tuple[IndexClause, ...], users: int) -> int:
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

    def _write(self, clauses: tuple[IndexClause, ...], blocks: list[tuple[int, int]]) -> int:
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

    def _packed(self, clause: IndexClause, blocks: list[tuple[int, int]]) -> tuple[int, int, int]:
        """Write a clause as three words."""
        kind = _kind(clause)
        asked = self._clause(clause.attribute, kind)
        match clause:
            case RangeClause(_, low, high):
                bits = (np.array([low, high]) + _ONE_ZERO).view(np.int64)
                return asked, int(bits[0]), int(bits[1])
            case TextClause(_, _, text):
                content = text.encode()
                padded = np.frombuffer(content + bytes(8 - len(content) % 8), np.int64)
                return asked, self._block(padded, blocks), len(content)
            case ValueClause(_, values):
                hashed = np.stack(hash_values(values, clause.type), axis=1)
                if kind != kernels.ONE_OF:
                    return asked, int(hashed[0, 0]), int(hashed[0, 1])
                return asked, self._block(hashed.reshape(-1), blocks), len(values)
