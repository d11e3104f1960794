"""What a subscription asks of one event, as plain data; read from the Whimbrel language or from values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from whimbrel.errors import DataError, QueryError
from whimbrel.graph.clauses import Between, Comparison, InRegion, IsTrue, OneOf, TextTest, read_clause
from whimbrel.graph.expressions import Attribute, Expr, Literal, conjuncts, format_expr
from whimbrel.graph.operators import Derive, Filter, Source, TimePoints
from whimbrel.lang.wbl.compile import compile_text
from whimbrel.model.schema import Coordinates, Type

Value = bool | int | float | str
ALIASES = {"srcid": "source", "lon": "x", "lat": "y"}
TIMES = frozenset({"start", "end", "timestamp", "duration"})
_SUPPORTED = (
    "a subscription is made of comparisons of an attribute with a constant, 'in (...)', 'between', "
    "startswith, endswith, contains and 'this in Region', joined by commas or 'and'; "
    "for more, deploy a query in a Session"
)


@dataclass(frozen=True, slots=True)
class Equals:
    """The attribute has one of some values; with `negated` it has another value than these."""

    attribute: str
    values: tuple[Value, ...]
    type: Type
    negated: bool = False


@dataclass(frozen=True, slots=True)
class BetweenClause:
    """The attribute is a number (or a time) from `low` to `high`, both included."""

    attribute: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class HasText:
    """The attribute begins with, ends with or contains a text; `how` is the function of the language."""

    attribute: str
    how: str
    text: str


Clause = Equals | BetweenClause | HasText


@dataclass(frozen=True, slots=True)
class SubscriptionClauses:
    """All that a subscription asks: clauses, and perhaps a region (WKT)."""

    clauses: tuple[Clause, ...] = ()
    region: str | None = None

    def and_also(self, other: SubscriptionClauses) -> SubscriptionClauses:
        """Ask both."""
        if self.region is not None and other.region is not None:
            raise DataError("a subscription has one place; join the two into one polygon")
        return SubscriptionClauses(_narrowed(self.clauses + other.clauses), self.region or other.region)


def _narrowed(clauses: tuple[Clause, ...]) -> tuple[Clause, ...]:
    """Join the ranges of one attribute: `speed > 10 and speed <= 20` is one range."""
    ranges: dict[str, BetweenClause] = {}
    for clause in clauses:
        if isinstance(clause, BetweenClause):
            known = ranges.get(clause.attribute, clause)
            low, high = max(known.low, clause.low), min(known.high, clause.high)
            ranges[clause.attribute] = BetweenClause(clause.attribute, low, high)
    return (*(clause for clause in clauses if not isinstance(clause, BetweenClause)), *ranges.values())


def of_type(event_type: str) -> SubscriptionClauses:
    """Ask for events of one type."""
    return SubscriptionClauses((Equals("type", (event_type,), Type.STRING),))


def of_values(values: Mapping[str, object]) -> SubscriptionClauses:
    """Ask for equal attributes."""
    clauses = []
    for name, value in values.items():
        if not isinstance(value, bool | int | float | str | np.integer | np.floating):
            raise DataError(
                f"attribute {name!r} cannot equal a {type(value).__name__}; give a number or a text"
            )
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, float) and not math.isfinite(plain):
            raise DataError(f"attribute {name!r} cannot equal {plain}; give a finite number")
        clauses.append(Equals(_name(name), (plain,), _type_of(plain)))
    return SubscriptionClauses(tuple(clauses))


@lru_cache(maxsize=4096)
def of_text(text: str, coordinates: Coordinates) -> SubscriptionClauses:
    """Read one event of a pattern: `Taxi(state = 'free', this in box(0, 0, 9, 9))`."""
    graph = _compiled(text, text, "", coordinates)
    source = graph[0]
    assert isinstance(source, Source)
    return of_type(source.event_type).and_also(_conditions(graph[1:]))


@lru_cache(maxsize=4096)
def of_condition(text: str, coordinates: Coordinates) -> SubscriptionClauses:
    """Read conditions on one event: `state = 'free' and speed > 30`."""
    return _conditions(_compiled(f"Event({text})", text, "Event(", coordinates)[1:])


def _compiled(pattern: str, text: str, before: str, coordinates: Coordinates) -> tuple[Source | Filter, ...]:
    head = f"coordinates {coordinates.value} define Subscription detect "
    try:
        operators = compile_text(head + pattern).graph.operators
    except QueryError as error:
        raise _moved(error, len(head) + len(before), text) from None
    kept = tuple(o for o in operators if isinstance(o, Source | Filter))
    others = [
        o for o in operators if isinstance(o, TimePoints) or not isinstance(o, Source | Filter | Derive)
    ]
    if others or len([o for o in kept if isinstance(o, Source)]) != 1 or not isinstance(kept[0], Source):
        raise QueryError(f"{text!r} is not about a single event", hint=_SUPPORTED)
    return kept


def _moved(error: QueryError, columns: int, text: str) -> QueryError:
    """Let an error point into the text that the user wrote."""
    at = error.at
    if at is not None and at.line == 1:
        end = at.end_column - columns if at.end_line == 1 else at.end_column
        at = replace(at, column=max(1, at.column - columns), end_column=max(2, end))
    made = type(error).__new__(type(error))
    QueryError.__init__(made, error.message, at, error.hint)
    return made.located_in(text)


def _conditions(filters: tuple[Source | Filter, ...]) -> SubscriptionClauses:
    asked = SubscriptionClauses()
    for operator in filters:
        assert isinstance(operator, Filter)
        for clause in conjuncts(operator.condition):
            asked = asked.and_also(_asked(clause))
    return asked


def _asked(clause: Expr) -> SubscriptionClauses:
    match read_clause(clause):
        case InRegion(region, "within_region"):
            return SubscriptionClauses(region=region)
        case Between(Attribute(None, name), low, high):
            return _between(name, low.value, high.value, low.type, clause)
        case OneOf(Attribute(None, name), choices):
            return _equals(name, choices, clause)
        case TextTest(Attribute(None, name), function, text):
            return SubscriptionClauses((HasText(_name(name), function, text),))
        case IsTrue(Attribute(None, name), wanted):
            return SubscriptionClauses((Equals(_name(name), (wanted,), Type.BOOL),))
        case Comparison(Attribute(None, name), operator, constant):
            return _compared(name, operator, constant, clause)
    raise _unsupported(clause)


def _compared(name: str, operator: str, constant: Literal, clause: Expr) -> SubscriptionClauses:
    if operator in ("=", "!="):
        return _equals(name, [constant], clause, negated=operator == "!=")
    if operator in ("<", "<="):
        return _between(name, -math.inf, _closed(constant.value, operator, -math.inf), constant.type, clause)
    return _between(name, _closed(constant.value, operator, math.inf), math.inf, constant.type, clause)


def _unsupported(clause: Expr) -> QueryError:
    return QueryError(f"{format_expr(clause)!r} cannot be part of a subscription", hint=_SUPPORTED)


def _name(name: str) -> str:
    name = ALIASES.get(name, name)
    if name in TIMES:
        raise QueryError(f"a subscription does not read {name!r}", hint="it reads type, place and attributes")
    return name


def _type_of(value: Value) -> Type:
    if isinstance(value, bool):
        return Type.BOOL
    return Type.STRING if isinstance(value, str) else Type.FLOAT


def _equals(
    name: str, choices: Sequence[Literal], clause: Expr, *, negated: bool = False
) -> SubscriptionClauses:
    values = tuple(choice.value for choice in choices if choice.value is not None)
    kinds = {Type.FLOAT if choice.type is Type.INT else choice.type for choice in choices}
    if len(values) < len(choices) or len(kinds) > 1 or Type.DURATION in kinds:
        raise _unsupported(clause)
    kind = kinds.pop() or _type_of(values[0])
    return SubscriptionClauses((Equals(_name(name), values, kind, negated),))


def _closed(bound: Value | None, operator: str, towards: float) -> float | None:
    """Turn a bound that does not count itself into the next number, which does."""
    if not isinstance(bound, int | float) or isinstance(bound, bool):
        return None
    return float(bound) if operator in ("<=", ">=") else math.nextafter(float(bound), towards)


def _between(name: str, low: object, high: object, kind: Type | None, clause: Expr) -> SubscriptionClauses:
    bounds = [float(b) for b in (low, high) if isinstance(b, int | float) and not isinstance(b, bool)]
    if len(bounds) < 2 or kind is Type.DURATION:
        raise _unsupported(clause)
    return SubscriptionClauses((BetweenClause(_name(name), bounds[0], bounds[1]),))
