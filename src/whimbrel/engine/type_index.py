"""The events of one type, and the streams that ask for those that pass a condition.

While the conditions on a type are few, or little has been tried, all of them are computed on all events:
those that differ in nothing but constants together. From then on the index finds them, and what it cannot
look up is computed on the events that it gives. Both ways let the same events through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from whimbrel.engine.condition_columns import read_columns
from whimbrel.engine.condition_index import ConditionIndex
from whimbrel.engine.condition_templates import ConditionTemplate, TemplateInstance, hollow, rows_passing
from whimbrel.engine.index_clauses import IndexClause, ValueClause, index_clause, narrowed
from whimbrel.engine.kernels.condition_lookups import find_listed
from whimbrel.engine.packed_conditions import ClauseRows, shape
from whimbrel.engine.region_tests import RegionTest, place_kind, places_of, region_test
from whimbrel.engine.streams import ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, FloatArray, Int64Array, nothing
from whimbrel.graph.expressions import SHAPE, Expr, conjunction, conjuncts
from whimbrel.model.schema import Coordinates, Type
from whimbrel.space.geometry import FARTHEST_M
from whimbrel.space.kernels.jit import Allowance

FEW = 16
"""So many conditions are computed on all events; more are looked up."""
PAIRS_A_TURN, TURNS = 128, 100
"""Pairs of an event and a condition that are computed in the time of a turn of a loop in Python; and so many
turns are the least that computing takes, be it for a single event."""

COMPUTED = Allowance.from_environment()
"""How much may still be computed before machine code for the index is worth loading, or compiling."""


@dataclass(eq=False, slots=True)
class SelectionTest:
    """A condition, who asks, and how it is tried."""

    condition: Expr
    stream: OperatorStream
    computed: TemplateInstance | None = None
    """What is computed on events: all of it, or, of one in the index, what that cannot look up."""
    clauses: tuple[IndexClause, ...] = ()
    """What the index looks up."""
    region: RegionTest | None = None
    rest: Expr | None = None
    number: int = -1
    """In the index; -1 while it is not there."""

    def read(self, coordinates: Coordinates) -> bool:
        """Part what the index can look up from the rest; tell whether it would lead to this test."""
        clauses: list[IndexClause] = []
        rest: list[Expr] = []
        self.region, self.number = None, -1
        for expr in conjuncts(self.condition):
            clause = index_clause(expr)
            if clause is not None and _column_type(clause) is not None:
                clauses.append(clause)
                continue
            rest.append(expr)
            region = region_test(expr)
            if self.region is None and region is not None and place_kind(region, coordinates):
                self.region = region
        self.clauses, self.rest = narrowed(tuple(clauses)), conjunction(tuple(rest))
        return self.region is not None or any(clause.leads_to_few for clause in clauses)


def _column_type(clause: IndexClause) -> Type | None:
    """Choose the type of column that a clause can be looked up in; None for none, FLOAT for both numbers."""
    if clause.is_exact:
        return clause.type
    values = clause.values if isinstance(clause, ValueClause) else (None,)
    return Type.INT if all(type(value) is int and abs(value) < 2**63 for value in values) else None


def _suits(wanted: Type, column: Type) -> bool:
    return column is wanted or (wanted is Type.FLOAT and column.is_number)


class TypeIndex:
    """The conditions of all queries on events of one type."""

    def __init__(self) -> None:
        self.streams: dict[Expr | None, OperatorStream] = {}
        self._tests: dict[Expr, SelectionTest] = {}
        self._new: dict[SelectionTest, None] = {}
        """The tests that no event has been tried on yet."""
        self._computed: dict[SelectionTest, None] = {}
        """The tests that are tried on all events, and are not in the index."""
        self._unread: dict[SelectionTest, None] = {}
        """Those of them that the index may be able to look up."""
        self._indexed = _IndexedTests(Coordinates.PLANE)
        self._templates: dict[Any, ConditionTemplate] = {}

    def add(self, condition: Expr | None, stream: OperatorStream) -> None:
        """Take in a condition; None lets all events through."""
        self.streams[condition] = stream
        if condition is not None:
            test = self._tests[condition] = SelectionTest(condition, stream)
            self._new[test] = None

    def remove(self, condition: Expr | None) -> None:
        """Forget a condition."""
        del self.streams[condition]
        if condition is None:
            return
        test = self._tests.pop(condition)
        self._compute(test, None)
        if test.number >= 0:
            self._indexed.remove(test)
        for tests in (self._new, self._computed, self._unread):
            tests.pop(test, None)

    def feed(self, rows: Int64Array, context: ExecutionContext) -> list[OperatorStream]:
        """Tell every stream which of the rows pass its condition; give those that have any."""
        frame = RowsFrame(context, context.atoms, rows)
        self._settle(frame)
        passing: list[tuple[OperatorStream, Int64Array]] = []
        if None in self.streams:
            passing.append((self.streams[None], rows))
        tried = [(test, rows) for test in self._computed]
        if len(self._indexed):
            candidates, unsuited = self._indexed.candidates(frame)
            tried += [(test, some) for test, some in candidates if test.computed is not None]
            passing += [(test.stream, some) for test, some in candidates if test.computed is None]
            passing += [(t.stream, rows_passing(t.condition, context, context.atoms, rows)) for t in unsuited]
        passing += _passing(tried, context)
        touched = [(stream, some) for stream, some in passing if len(some)]
        for stream, some in touched:
            stream.new = some
        return [stream for stream, _ in touched]

    def _settle(self, frame: RowsFrame) -> None:
        """Decide for new tests whether they are computed or looked up; for all, once that has come to pay."""
        coordinates = frame.context.coordinates or Coordinates.PLANE
        if self._indexed.coordinates is not coordinates:  # they were not known before
            self._new |= dict.fromkeys(self._indexed)
            self._indexed = _IndexedTests(coordinates)
        if not self._new and not self._unread:
            return
        if self._pays(len(frame)):
            self._look_up([*self._unread, *self._new], coordinates)
            self._unread = {}
        else:
            self._unread |= self._new
        for test in self._new:
            if test.number < 0:
                self._compute(test, test.condition)
                self._computed[test] = None
        self._new = {}

    def _look_up(self, tests: list[SelectionTest], coordinates: Coordinates) -> None:
        """Put those tests into the index that it leads to."""
        looked_up = [test for test in tests if test.read(coordinates)]
        self._indexed.add(looked_up)
        for test in looked_up:
            self._computed.pop(test, None)
            self._compute(test, test.rest)

    def _pays(self, events: int) -> bool:
        """Tell whether looking up costs less than computing all conditions, machine code included."""
        if len(self._indexed):
            return True
        many = len(self._computed) + len(self._new)
        if many < FEW or COMPUTED.is_endless:
            return False
        return find_listed.is_loaded or not COMPUTED.covers(TURNS + events * many / PAIRS_A_TURN)

    def _compute(self, test: SelectionTest, condition: Expr | None) -> None:
        """Let something else be computed for a test."""
        if test.computed is not None:
            template = test.computed.form
            template.remove(test.computed)
            if template.is_empty:
                del self._templates[template.key]
        test.computed = None if condition is None else self._instance(condition)

    def _instance(self, condition: Expr) -> TemplateInstance:
        hollowed = hollow(condition)
        key = hollowed.clauses, hollowed.kinds
        if key not in self._templates:
            self._templates[key] = ConditionTemplate.of(hollowed)
        return self._templates[key].add(condition, hollowed.constants)


def _passing(
    tried: list[tuple[SelectionTest, Int64Array]], context: ExecutionContext
) -> Iterator[tuple[OperatorStream, Int64Array]]:
    """Compute what is computed for tests, those of one template together."""
    by_template: dict[ConditionTemplate, list[tuple[SelectionTest, Int64Array]]] = {}
    for test, rows in tried:
        assert test.computed is not None
        by_template.setdefault(test.computed.form, []).append((test, rows))
    for template, tests in by_template.items():
        asked = [(test.computed, rows) for test, rows in tests if test.computed is not None]
        for number, rows in template.sift(asked, context):
            yield tests[number][0].stream, rows


class _IndexedTests:
    """The tests that the index finds."""

    def __init__(self, coordinates: Coordinates) -> None:
        self.coordinates = coordinates
        self._tests: dict[int, SelectionTest] = {}
        self._wanted: dict[str, dict[Type, dict[SelectionTest, None]]] = {}
        """The tests that read each attribute, by the type of column that they are looked up in."""
        self._placed: dict[SelectionTest, None] = {}

    @cached_property
    def _index(self) -> ConditionIndex:
        return ConditionIndex(self.coordinates)

    def __len__(self) -> int:
        return len(self._tests)

    def __iter__(self) -> Iterator[SelectionTest]:
        return iter(self._tests.values())

    def add(self, tests: Iterable[SelectionTest]) -> None:
        """Put tests into the index, those that ask alike together."""
        alike: dict[Any, list[SelectionTest]] = {}
        for test in tests:
            kind = None if test.region is None else place_kind(test.region, self.coordinates)
            alike.setdefault((shape(test.clauses) or test.clauses, kind), []).append(test)
        for (_, kind), group in alike.items():
            clauses = group[0].clauses
            places = places_of([test.region for test in group if test.region is not None], kind)
            if clauses and shape(clauses) is not None:
                own = ClauseRows.of([test.clauses for test in group])
                numbers = self._index.add(len(group), own=own, places=places)
            else:
                numbers = self._index.add(len(group), clauses, places=places)
            for number, test in zip(numbers.tolist(), group, strict=True):
                self._enter(number, test)

    def _enter(self, number: int, test: SelectionTest) -> None:
        self._tests[number] = test
        test.number = number
        for clause in test.clauses:
            kind = _column_type(clause)
            assert kind is not None
            self._wanted.setdefault(clause.attribute, {}).setdefault(kind, {})[test] = None
        if test.region is not None:
            self._placed[test] = None

    def remove(self, test: SelectionTest) -> None:
        """Take a test out."""
        self._index.remove(np.array([test.number]))
        del self._tests[test.number]
        test.number = -1
        for clause in test.clauses:
            kind = _column_type(clause)
            assert kind is not None
            self._wanted[clause.attribute][kind].pop(test, None)
        self._placed.pop(test, None)

    def candidates(
        self, frame: RowsFrame
    ) -> tuple[list[tuple[SelectionTest, Int64Array]], dict[SelectionTest, None]]:
        """Find the tests that events pass as far as the index knows, and the rows of these events.

        Give also the tests that ask for something that the columns do not have: texts where there are
        numbers, points where there are shapes. They have to be computed.
        """
        unsuited: dict[SelectionTest, None] = {}

        def column_of(name: str) -> Column:
            column = frame.column(None, name)
            if column.type is None:
                return column
            for wanted, tests in self._wanted.get(name, {}).items():
                if tests and not _suits(wanted, column.type):
                    unsuited.update(tests)
            return column if column.type in _LOOKED_UP else nothing(len(column))

        columns = read_columns(self._index.wanted, len(frame), column_of)
        x = y = np.zeros(0)
        if self._placed and frame.column(None, SHAPE.name).type is not None:
            unsuited.update(self._placed)
        elif self._placed:
            x, y = (_coordinate(frame.column(None, axis)) for axis in ("@x", "@y"))
        matches = _by_number(*self._index.match(columns, x, y))
        candidates = [(self._tests[number], frame.rows[rows]) for number, rows in matches]
        return [(test, rows) for test, rows in candidates if test not in unsuited], unsuited


_LOOKED_UP = frozenset({Type.BOOL, Type.INT, Type.FLOAT, Type.TIMESTAMP, Type.STRING})


def _by_number(rows: Any, numbers: Any) -> Iterator[tuple[int, Any]]:
    """Part rows by the condition that they were found for."""
    if not len(numbers):
        return
    # Sorting numbers of two bytes takes a tenth of the time.
    order = np.argsort(numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers, kind="stable")
    rows, numbers = rows[order], numbers[order]
    changes = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
    for begin, end in pairwise((0, *changes, len(numbers))):
        yield int(numbers[begin]), rows[begin:end]


def _coordinate(column: Column) -> FloatArray:
    """Read one coordinate of points; NaN where there is none, or none that a grid takes."""
    if column.type is None:
        return np.zeros(0)
    values = np.ascontiguousarray(column.values, np.float64)
    return np.where(column.nulls | (np.abs(values) > FARTHEST_M), np.nan, values)
