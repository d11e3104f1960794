"""Expressions in Python: values that remember how they were made, for the builder."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal as OneOf

from whimbrel.errors import DataError, QueryError, QueryTypeError
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.literals import short_unit
from whimbrel.model.length import LENGTHS
from whimbrel.model.time import (
    DAY,
    HOUR,
    MICROSECOND,
    MILLISECOND,
    MINUTE,
    SECOND,
    UNITS,
    format_instant,
    instant,
)

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\W\d]+)")
_PLACES = (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND))

Plain = bool | int | float | str | None | timedelta | datetime
"""Python values that stand for constants of the language."""


class ValueBuilder:
    """An expression of a query.

    Python's operators make new ones: `a["speed"] * 2 > 60`. Conditions are joined by `&` and `|` and
    turned round by `~`, because Python keeps `and`, `or` and `not` for itself.
    """

    __slots__ = ("declaration", "node")

    def __init__(self, node: t.Expression, declaration: t.ParamNode | None = None) -> None:
        self.node = node
        self.declaration = declaration

    def __repr__(self) -> str:
        from whimbrel.lang.wbl.printer import print_expression

        return f"<{print_expression(self.node)}>"

    def __bool__(self) -> bool:
        raise QueryTypeError(
            f"{self!r} is not yet true or false: it is part of a query",
            hint="join conditions with & and |, turn them round with ~, write x.between(1, 2) for a range",
        )

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._infix("+", other)

    def __radd__(self, other: Plain) -> ValueBuilder:
        return value(other)._infix("+", self)

    def __sub__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._infix("-", other)

    def __rsub__(self, other: Plain) -> ValueBuilder:
        return value(other)._infix("-", self)

    def __mul__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._infix("*", other)

    def __rmul__(self, other: Plain) -> ValueBuilder:
        return value(other)._infix("*", self)

    def __truediv__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._infix("/", other)

    def __rtruediv__(self, other: Plain) -> ValueBuilder:
        return value(other)._infix("/", self)

    def __mod__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._infix("%", other)

    def __rmod__(self, other: Plain) -> ValueBuilder:
        return value(other)._infix("%", self)

    def __neg__(self) -> ValueBuilder:
        return ValueBuilder(t.Negative(self.node))

    def __lt__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._compare("<", other)

    def __le__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._compare("<=", other)

    def __gt__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._compare(">", other)

    def __ge__(self, other: ValueBuilder | Plain) -> ValueBuilder:
        return self._compare(">=", other)

    def __eq__(self, other: object) -> ValueBuilder:  # type: ignore[override]
        return self._compare("=", _operand(other))

    def __ne__(self, other: object) -> ValueBuilder:  # type: ignore[override]
        return self._compare("!=", _operand(other))

    def __and__(self, other: ValueBuilder) -> ValueBuilder:
        return self._logic("and", other)

    def __or__(self, other: ValueBuilder) -> ValueBuilder:
        return self._logic("or", other)

    def __invert__(self) -> ValueBuilder:
        return ValueBuilder(t.Not(self.node))

    def in_(self, *choices: ValueBuilder | Plain) -> ValueBuilder:
        """Test whether the value is one of `choices`."""
        if not choices:
            raise QueryError("in_ needs at least one value")
        return ValueBuilder(t.Among(self.node, tuple(node_of(choice) for choice in choices)))

    def between(self, low: ValueBuilder | Plain, high: ValueBuilder | Plain) -> ValueBuilder:
        """Test whether the value lies from `low` to `high`, both included."""
        return ValueBuilder(t.BetweenNode(self.node, node_of(low), node_of(high)))

    def is_null(self) -> ValueBuilder:
        """Test whether the value is missing."""
        return ValueBuilder(t.IsNullNode(self.node))

    def is_not_null(self) -> ValueBuilder:
        """Test whether there is a value."""
        return ValueBuilder(t.IsNullNode(self.node, negated=True))

    def _infix(self, operator: str, other: ValueBuilder | Plain) -> ValueBuilder:
        return ValueBuilder(t.Infix(operator, self.node, node_of(other)))

    def _compare(self, operator: str, other: ValueBuilder | Plain) -> ValueBuilder:
        return ValueBuilder(t.Compare((self.node, node_of(other)), (operator,)))

    def _logic(self, operator: OneOf["and", "or"], other: ValueBuilder) -> ValueBuilder:
        return ValueBuilder(
            t.Logic(operator, (*_operands(operator, self.node), *_operands(operator, other.node)))
        )


def _operands(operator: str, node: t.Expression) -> tuple[t.Expression, ...]:
    return node.operands if isinstance(node, t.Logic) and node.operator == operator else (node,)


def _operand(other: object) -> ValueBuilder | Plain:
    if other is None or isinstance(other, ValueBuilder | bool | int | float | str | timedelta | datetime):
        return other
    raise QueryTypeError(f"a query cannot hold a {type(other).__name__}")


def all_of(conditions: tuple[ValueBuilder, ...]) -> ValueBuilder:
    """Join conditions with `and`."""
    joined = conditions[0]
    for condition in conditions[1:]:
        joined = joined & condition
    return joined


def node_of(item: ValueBuilder | Plain) -> t.Expression:
    """Build the tree of a value or of a constant."""
    if isinstance(item, ValueBuilder):
        return item.node
    if isinstance(item, timedelta):
        return _signed(item // timedelta(microseconds=1))
    if isinstance(item, datetime):
        return t.InstantNode(format_instant(instant(item)))
    if isinstance(item, int | float) and not isinstance(item, bool):
        if not math.isfinite(item):
            raise QueryTypeError(f"{item} is no number that a query can hold")
        return t.Negative(t.Constant(-item)) if item < 0 else t.Constant(item)
    return t.Constant(item)


def value(item: ValueBuilder | Plain) -> ValueBuilder:
    """Make a constant a value, so that it can stand on the left: `value(3) - a["x"]`."""
    return item if isinstance(item, ValueBuilder) else ValueBuilder(node_of(item))


def _signed(microseconds: int) -> t.Expression:
    size = t.QuantityNode(_split(abs(microseconds)))
    return t.Negative(size) if microseconds < 0 else size


def _split(microseconds: int) -> tuple[tuple[int, str], ...]:
    parts = []
    for unit, size in _PLACES:
        count, microseconds = divmod(microseconds, size)
        if count:
            parts.append((count, unit))
    return tuple(parts) or ((0, "s"),)


@dataclass(frozen=True, slots=True)
class Events:
    """A number of events, as the length of a window."""

    count: int


Duration = str | timedelta
"""A length of time: "5 min", "1 h 30 min" or a `timedelta`."""


def amount_of(given: Duration | Events) -> t.Amount:
    """Read a length of time, or a number of events."""
    if isinstance(given, Events):
        return t.Count(given.count)
    if isinstance(given, timedelta):
        return t.QuantityNode(_split(given // timedelta(microseconds=1)))
    return t.QuantityNode(_amounts(given, frozenset(UNITS), "duration", "'10 s' or '1 h 30 min'"))


def length_of(given: str | float) -> t.Expression:
    """Read a length such as "500 m"; a bare number is in metres."""
    if not isinstance(given, str):
        return node_of(given)
    return t.QuantityNode(_amounts(given, frozenset(LENGTHS), "length", "'500 m' or '1.5 km'"))


def _amounts(
    text: str, units: frozenset[str], what: str, example: str
) -> tuple[tuple[int | float, str], ...]:
    amounts: list[tuple[int | float, str]] = []
    position = 0
    while position < len(text.rstrip()):
        match = _AMOUNT.match(text, position)
        if match is None or match[2].lower() not in units:
            break
        number = match[1]
        amounts.append((float(number) if "." in number else int(number), short_unit(match[2])))
        position = match.end()
    else:
        if amounts:
            return tuple(amounts)
    raise DataError(f"{text!r} is no {what}; write for example {example}")
