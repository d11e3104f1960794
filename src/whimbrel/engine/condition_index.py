"""One index over the tests of all deployed queries, so that their cost follows the matches.

A test is a condition on one event. If it demands that an attribute equals a constant, or lies in a
range, that part goes into the index (equality first, it selects more) and the rest is only tried on
the events the index lets through. A batch is sorted once by each indexed attribute, and the tests find
their rows in it: equalities by the values that occur, ranges by binary search, one search a test. In a batch
of a few events it is these that look for the tests: one comparison with all bounds at once.
Tests that ask for a place and for no value are found through a grid of all their regions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.condition_templates import ConditionTemplate, TemplateInstance, hollow
from whimbrel.engine.evaluate import true_rows
from whimbrel.engine.region_index import RegionTests, place
from whimbrel.engine.streams import ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, FloatArray, Int64Array, decoded
from whimbrel.graph.clauses import Between, Comparison, read_clause
from whimbrel.graph.expressions import Attribute, Expr, Literal, conjunction, conjuncts
from whimbrel.model.schema import Type

FEW = 4
"""Fewer events than this look for the tests that they may pass; of more, each test looks for its events."""


@dataclass(frozen=True, slots=True)
class ValueInterval:
    """Values from `low` to `high`; the bounds themselves count where `closed` says so."""

    low: float | int | None = None
    high: float | int | None = None
    low_closed: bool = True
    high_closed: bool = True

    def holds(self, value: float | int) -> bool:
        """Tell whether a value lies in it."""
        above = self.low is None or value > self.low or (self.low_closed and value == self.low)
        below = self.high is None or value < self.high or (self.high_closed and value == self.high)
        return above and below


@dataclass(eq=False, slots=True)
class IndexedTest:
    """A condition, what is left of it to try on the events that the index gives, and who asks."""

    rest: TemplateInstance | None
    whole: Expr
    stream: OperatorStream


@dataclass
class _Values:
    """Tests that demand a certain value of one attribute."""

    tests: dict[Any, list[IndexedTest]] = field(default_factory=dict)
    kinds: Counter[type] = field(default_factory=Counter)
    """Of which types the values are, and how many of each."""

    def add(self, value: Any, test: IndexedTest) -> None:
        self.tests.setdefault(value, []).append(test)
        self.kinds[type(value)] += 1

    def remove(self, value: Any, test: IndexedTest) -> None:
        self.tests[value].remove(test)
        self.kinds -= Counter({type(value): 1})
        if not self.tests[value]:
            del self.tests[value]

    def suits(self, column: Column) -> bool:
        """Tell whether a column can have the values."""
        if column.type is Type.STRING:
            return self.kinds.keys() <= {str}
        return column.type is not None and column.type.is_number and self.kinds.keys() <= {int, float}

    def look_up(self, column: Column, rows: Int64Array) -> Iterator[tuple[IndexedTest, Int64Array]]:
        """Give the tests whose value occurs, and the rows that have it."""
        values, codes = _coded(column)
        if column.null is not None:
            codes, rows = codes[~column.null], rows[~column.null]
        present = [(code, self.tests[value]) for code, value in enumerate(values) if value in self.tests]
        if not present:
            return
        order = np.argsort(codes, kind="stable")
        ordered, codes = rows[order], codes[order]
        wanted = np.array([code for code, _ in present])
        begins, stops = (np.searchsorted(codes, wanted, side).tolist() for side in ("left", "right"))
        for (_, tests), begin, stop in zip(present, begins, stops, strict=True):
            if stop > begin:
                found = ordered[begin:stop]
                for test in tests:
                    yield test, found


def _coded(column: Column) -> tuple[list[Any], Any]:
    """Give the different values of a column, and for every row which it has."""
    if column.type is Type.STRING:
        array = column.values
        if not pa.types.is_dictionary(array.type):
            array = decoded(array).dictionary_encode()
        codes = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        if len(array.dictionary) > 2 * len(codes) + 16:
            used, codes = np.unique(codes, return_inverse=True)
            return array.dictionary.take(pa.array(used)).to_pylist(), codes
        return decoded(array.dictionary).to_pylist(), codes
    values, codes = np.unique(column.values, return_inverse=True)
    return values.tolist(), codes


@dataclass
class _Ranges:
    """Tests that demand one attribute to lie in a range."""

    tests: list[tuple[ValueInterval, IndexedTest]] = field(default_factory=list)
    _bounds: tuple[FloatArray, FloatArray] | None = None

    def add(self, wanted: ValueInterval, test: IndexedTest) -> None:
        self.tests.append((wanted, test))
        self._bounds = None

    def look_up(self, column: Column, rows: Int64Array) -> Iterator[tuple[IndexedTest, Int64Array]]:
        """Give the tests in whose range any value lies, and the rows that have it."""
        values = column.values
        if column.null is not None:
            values, rows = values[~column.null], rows[~column.null]
        return self._around(values, rows) if len(values) < FEW else self._between(values, rows)

    def _around(self, values: Any, rows: Int64Array) -> Iterator[tuple[IndexedTest, Int64Array]]:
        """Look for the tests around each of a few values."""
        if self._bounds is None:
            lows = [-np.inf if wanted.low is None else wanted.low for wanted, _ in self.tests]
            highs = [np.inf if wanted.high is None else wanted.high for wanted, _ in self.tests]
            self._bounds = np.array(lows, np.float64), np.array(highs, np.float64)
        low, high = self._bounds
        found: dict[int, list[int]] = {}
        for value, row in zip(values.tolist(), rows.tolist(), strict=True):
            # As floats, numbers that differ may be equal: it is the range itself that decides.
            for number in np.flatnonzero((low <= value) & (value <= high)).tolist():
                if self.tests[number][0].holds(value):
                    found.setdefault(number, []).append(row)
        for number, passing in found.items():
            yield self.tests[number][1], np.array(passing, np.int64)

    def _between(self, values: Any, rows: Int64Array) -> Iterator[tuple[IndexedTest, Int64Array]]:
        """Look for the values between the bounds of each test."""
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        begins = _places(ordered, [(r.low, r.low_closed) for r, _ in self.tests], 0)
        stops = _places(ordered, [(r.high, not r.high_closed) for r, _ in self.tests], len(ordered))
        for (_, test), begin, stop in zip(self.tests, begins, stops, strict=True):
            if stop > begin:
                yield test, np.sort(rows[order[begin:stop]])


def _places(ordered: Any, bounds: list[tuple[float | int | None, bool]], default: int) -> list[int]:
    found = [default] * len(bounds)
    for side in ("left", "right"):
        asked = [
            n for n, (bound, left) in enumerate(bounds) if bound is not None and left == (side == "left")
        ]
        if asked:
            places = np.searchsorted(ordered, np.array([bounds[n][0] for n in asked]), side=side)
            for number, place in zip(asked, places.tolist(), strict=True):
                found[number] = place
    return found


class TypeIndex:
    """The tests of all queries on events of one type."""

    def __init__(self) -> None:
        self.streams: dict[Expr | None, OperatorStream] = {}
        self._values: dict[str, _Values] = {}
        self._ranges: dict[str, _Ranges] = {}
        self._regions: RegionTests[IndexedTest] = RegionTests()
        self._others: list[IndexedTest] = []
        self._forms: dict[Any, ConditionTemplate] = {}
        self._waiting: dict[Expr, OperatorStream] = {}
        """Tests that are not in the index yet."""
        self._by_value: dict[Expr, tuple[_Values, Any, IndexedTest]] = {}
        """Where tests are that can be taken out by themselves."""

    def add(self, condition: Expr | None, stream: OperatorStream) -> None:
        """Take in a test."""
        self.streams[condition] = stream
        if condition is not None:
            self._waiting[condition] = stream

    def remove(self, condition: Expr | None) -> None:
        """Forget a test."""
        del self.streams[condition]
        if condition is None or self._waiting.pop(condition, None) is not None:
            return
        if condition in self._by_value:
            values, value, test = self._by_value.pop(condition)
            values.remove(value, test)
            if test.rest is not None:
                test.rest.form.remove(test.rest)
        else:
            self._clear()

    def _clear(self) -> None:
        """Begin anew: who goes cannot be taken out alone."""
        self._values, self._ranges, self._others, self._forms = {}, {}, [], {}
        self._regions, self._by_value = RegionTests(), {}
        self._waiting = {each: stream for each, stream in self.streams.items() if each is not None}

    def _build(self) -> None:
        """Put the tests into the index that came since it was last used."""
        for condition, stream in self._waiting.items():
            self._place(condition, stream)
        self._waiting = {}

    def _place(self, condition: Expr, stream: OperatorStream) -> None:
        """Put a test where it is found with the least work."""
        clauses = conjuncts(condition)
        for number, clause in enumerate(clauses):
            found = equality(clause)
            if found is not None:
                test = self._test(clauses[:number] + clauses[number + 1 :], condition, stream)
                values = self._values.setdefault(found[0], _Values())
                values.add(found[1], test)
                self._by_value[condition] = values, found[1], test
                return
        for clause in clauses:
            wanted = place(clause)
            if wanted is not None:
                self._regions.add(wanted, self._test(clauses, condition, stream))
                return
        for number, clause in enumerate(clauses):
            bounds = interval(clause)
            if bounds is not None:
                test = self._test(clauses[:number] + clauses[number + 1 :], condition, stream)
                self._ranges.setdefault(bounds[0], _Ranges()).add(bounds[1], test)
                return
        self._others.append(self._test(clauses, condition, stream))

    def _test(self, clauses: tuple[Expr, ...], whole: Expr, stream: OperatorStream) -> IndexedTest:
        rest = conjunction(clauses)
        if rest is None:
            return IndexedTest(None, whole, stream)
        hollowed = hollow(rest)
        form = self._forms.setdefault((hollowed.clauses, hollowed.kinds), ConditionTemplate.of(hollowed))
        return IndexedTest(form.add(rest, hollowed.constants), whole, stream)

    def feed(self, rows: Int64Array, context: ExecutionContext) -> list[OperatorStream]:
        """Tell every stream which of the rows pass its test; give those that have any."""
        self._build()
        frame = RowsFrame(context, context.atoms, rows)
        found: list[tuple[OperatorStream, Int64Array]] = []
        asked: dict[ConditionTemplate, list[tuple[IndexedTest, Int64Array]]] = {}
        if None in self.streams:
            found.append((self.streams[None], rows))
        for test, candidates in self._candidates(frame):
            if test.rest is None:
                found.append((test.stream, candidates))
            else:
                asked.setdefault(test.rest.form, []).append((test, candidates))
        for form, tests in asked.items():
            conditions = [(test.rest, each) for test, each in tests if test.rest is not None]
            found += [(tests[place][0].stream, each) for place, each in form.sift(conditions, context)]
        touched = [(stream, each) for stream, each in found if len(each)]
        for stream, each in touched:
            stream.new = each
        return [stream for stream, _ in touched]

    def _candidates(self, frame: RowsFrame) -> Iterator[tuple[IndexedTest, Int64Array]]:
        for name, by_value in self._values.items():
            column = frame.column(None, name)
            if by_value.suits(column):
                yield from by_value.look_up(column, frame.rows)
            else:
                yield from _one_by_one([t for group in by_value.tests.values() for t in group], frame)
        for name, by_range in self._ranges.items():
            column = frame.column(None, name)
            if column.type is not None and column.type.is_number:
                yield from by_range.look_up(column, frame.rows)
            else:
                yield from _one_by_one([test for _, test in by_range.tests], frame)
        if self._regions.suits(frame):
            yield from self._regions.look_up(frame)
        else:
            yield from ((test, frame.rows) for _, test in self._regions.tests)
        for test in self._others:
            yield test, frame.rows


def _one_by_one(tests: list[IndexedTest], frame: RowsFrame) -> Iterator[tuple[IndexedTest, Int64Array]]:
    """Test the whole condition, where a column is of a type the index does not know (or of none yet)."""
    for test in tests:
        yield IndexedTest(None, test.whole, test.stream), frame.rows[true_rows(test.whole, frame)]


def equality(clause: Expr) -> tuple[str, Any] | None:
    """Read `attribute = constant`."""
    match read_clause(clause):
        case Comparison(Attribute(None, name), "=", Literal(value, kind)) if _is_indexed(value, kind):
            return name, value
    return None


def interval(clause: Expr) -> tuple[str, ValueInterval] | None:
    """Read a comparison of an attribute with a number, or `between`, as a range."""
    match read_clause(clause):
        case Between(Attribute(None, name), low, high) if _is_number(low.value) and _is_number(high.value):
            return name, ValueInterval(low.value, high.value)  # type: ignore[arg-type]
        case Comparison(Attribute(None, name), ("<" | "<=" | ">" | ">=") as operator, bound):
            if not _is_number(bound.value) or not _is_indexed(bound.value, bound.type):
                return None
            closed = operator.endswith("=")
            if operator.startswith(">"):
                return name, ValueInterval(low=bound.value, low_closed=closed)  # type: ignore[arg-type]
            return name, ValueInterval(high=bound.value, high_closed=closed)  # type: ignore[arg-type]
    return None


def _is_indexed(value: object, kind: Type | None) -> bool:
    return value is not None and kind not in (Type.TIMESTAMP, Type.DURATION)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
