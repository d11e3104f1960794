"""What a subscription asks of one event, as plain data; read from the Whimbrel language or from values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from whimbrel.engine.index_clauses import IndexClause, Value, ValueClause, index_clause, narrowed
from whimbrel.errors import DataError, QueryError
from whimbrel.graph.clauses import InRegion, read_clause
from whimbrel.graph.expressions import Expr, conjuncts, format_expr
from whimbrel.graph.operators import Derive, Filter, Source, TimePoints
from whimbrel.lang.wbl.compile import compile_text
from whimbrel.model.schema import Coordinates, Type

ALIASES = {"srcid": "source", "lon": "x", "lat": "y"}
TIMES = frozenset({"start", "end", "timestamp", "duration"})
_SUPPORTED = (
    "a subscription is made of comparisons of an attribute with a constant, 'in (...)', 'between', "
    "startswith, endswith, contains and 'this in Region', joined by commas or 'and'; "
    "for more, deploy a query in a Session"
)


@dataclass(frozen=True, slots=True)
class SubscriptionClauses:
    """All that a subscription asks: clauses, and perhaps a region (WKT)."""

    clauses: tuple[IndexClause, ...] = ()
    region: str | None = None

    def and_also(self, other: SubscriptionClauses) -> SubscriptionClauses:
        """Ask both."""
        if self.region is not None and other.region is not None:
            raise DataError("a subscription has one place; join the two into one polygon")
        return SubscriptionClauses(narrowed(self.clauses + other.clauses), self.region or other.region)


def of_type(event_type: str) -> SubscriptionClauses:
    """Ask for events of one type."""
    return SubscriptionClauses((ValueClause("type", (event_type,), Type.STRING),))


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
        clauses.append(ValueClause(_name(name), (plain,), _type_of(plain)))
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
    moved = type(error).__new__(type(error))
    QueryError.__init__(moved, error.message, at, error.hint)
    return moved.located_in(text)


def _conditions(filters: tuple[Source | Filter, ...]) -> SubscriptionClauses:
    asked = SubscriptionClauses()
    for operator in filters:
        assert isinstance(operator, Filter)
        for clause in conjuncts(operator.condition):
            asked = asked.and_also(_asked(clause))
    return asked


def _asked(expr: Expr) -> SubscriptionClauses:
    match read_clause(expr):
        case InRegion(region, "within_region"):
            return SubscriptionClauses(region=region)
    clause = index_clause(expr)
    if clause is None:
        raise QueryError(f"{format_expr(expr)!r} cannot be part of a subscription", hint=_SUPPORTED)
    return SubscriptionClauses((replace(clause, attribute=_name(clause.attribute)),))


def _name(name: str) -> str:
    name = ALIASES.get(name, name)
    if name in TIMES:
        raise QueryError(f"a subscription does not read {name!r}", hint="it reads type, place and attributes")
    return name


def _type_of(value: Value) -> Type:
    if isinstance(value, bool):
        return Type.BOOL
    return Type.STRING if isinstance(value, str) else Type.FLOAT
