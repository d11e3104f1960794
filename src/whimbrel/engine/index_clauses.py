"""What the index of conditions can look up: clauses on one attribute of an event, as plain data.

Whatever is read here means the same in the index as where conditions are computed over columns: a missing
value passes nothing, and a value of another type is for whoever asks to refuse or to pass by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from whimbrel.graph.clauses import Between, Comparison, IsTrue, OneOf, TextTest, read_clause
from whimbrel.graph.expressions import Attribute, Expr, Literal
from whimbrel.model.schema import Type

Value = bool | int | float | str
EXACT = 2**53
"""Below this whole numbers and floats are equal to each other as they should be."""


@dataclass(frozen=True, slots=True)
class ValueClause:
    """The attribute has one of some values; with `negated` it has another value than these."""

    attribute: str
    values: tuple[Value, ...]
    type: Type
    negated: bool = False

    @property
    def leads_to_few(self) -> bool:
        """Whether there is a list of the conditions that have this clause."""
        return len(self.values) == 1 and not self.negated

    @property
    def is_exact(self) -> bool:
        """Whether all numbers can be compared with floats and whole numbers alike."""
        return all(isinstance(value, str) or abs(value) < EXACT for value in self.values)


@dataclass(frozen=True, slots=True)
class RangeClause:
    """The attribute is a number (or a time) from `low` to `high`, both included."""

    attribute: str
    low: float
    high: float
    type: Type = Type.FLOAT
    leads_to_few = True

    @property
    def is_exact(self) -> bool:
        """Whether a whole number lies in it just if its float does."""
        return all(math.isinf(bound) or abs(bound) < EXACT for bound in (self.low, self.high))


@dataclass(frozen=True, slots=True)
class TextClause:
    """The attribute begins with, ends with or contains a text; `how` is the function of the language."""

    attribute: str
    how: str
    text: str
    type: Type = Type.STRING
    is_exact = True

    @property
    def leads_to_few(self) -> bool:
        """Whether there is a list of the conditions that have this clause."""
        return bool(self.text)


IndexClause = ValueClause | RangeClause | TextClause


def index_clause(expr: Expr) -> IndexClause | None:
    """Read a clause of a condition on one event as the index looks it up; None if it cannot."""
    match read_clause(expr):
        case Comparison(Attribute(None, name), ("=" | "!=") as operator, constant):
            return _values(name, (constant,), negated=operator == "!=")
        case OneOf(Attribute(None, name), choices):
            return _values(name, choices)
        case IsTrue(Attribute(None, name), wanted):
            return ValueClause(name, (wanted,), Type.BOOL)
        case TextTest(Attribute(None, name), how, text):
            return TextClause(name, how, text)
        case Between(Attribute(None, name), low, high):
            return _range(name, _bound(low), _bound(high), low.type)
        case Comparison(Attribute(None, name), ("<" | "<="), constant) as clause:
            return _range(name, -math.inf, _closed(clause, -math.inf), constant.type)
        case Comparison(Attribute(None, name), _, constant) as clause:
            return _range(name, _closed(clause, math.inf), math.inf, constant.type)
    return None


def narrowed(clauses: tuple[IndexClause, ...]) -> tuple[IndexClause, ...]:
    """Join the ranges of one attribute: `speed > 10 and speed <= 20` is one range."""
    ranges: dict[tuple[str, Type], RangeClause] = {}
    for clause in clauses:
        if isinstance(clause, RangeClause):
            known = ranges.get((clause.attribute, clause.type), clause)
            low, high = max(known.low, clause.low), min(known.high, clause.high)
            ranges[clause.attribute, clause.type] = RangeClause(clause.attribute, low, high, clause.type)
    return (*(clause for clause in clauses if not isinstance(clause, RangeClause)), *ranges.values())


def _values(name: str, choices: tuple[Literal, ...], *, negated: bool = False) -> ValueClause | None:
    values = tuple(choice.value for choice in choices if choice.value is not None)
    kinds = {Type.FLOAT if choice.type is Type.INT else choice.type for choice in choices}
    kind = kinds.pop() if len(kinds) == 1 else None
    if len(values) < len(choices) or kind in (None, Type.DURATION):
        return None
    return ValueClause(name, values, kind, negated)


def _bound(constant: Literal) -> float | None:
    value = constant.value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _closed(clause: Comparison, towards: float) -> float | None:
    """Turn a bound that does not count itself into the next number, which does."""
    bound = _bound(clause.constant)
    return bound if bound is None or clause.operator.endswith("=") else math.nextafter(bound, towards)


def _range(name: str, low: float | None, high: float | None, kind: Type | None) -> RangeClause | None:
    if low is None or high is None or kind is Type.DURATION:
        return None
    return RangeClause(name, low, high, Type.TIMESTAMP if kind is Type.TIMESTAMP else Type.FLOAT)
