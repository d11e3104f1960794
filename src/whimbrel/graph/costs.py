"""What a condition costs to test, and how many events are likely to pass it.

Nobody has counted yet when a query is compiled, so both go by the kind of the condition: an equality lets
fewer events through than a range, and a comparison costs less than the test of a region. The numbers only
have to be in the right order; no result depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whimbrel.graph.expressions import RELATIONS, Attribute, Binary, Call, Expr, Literal, PartRef, Unary
from whimbrel.model.time import END_OF_TIME, SECOND, format_duration

_CALLS = {"in": 1.0, "between": 2.0, "is_null": 1.0, "distance": 12.0, "same_place": 14.0} | dict.fromkeys(
    ("within_region", "intersects", "lies_in"), 60.0
)
_OWN_FUNCTION = 100.0
"""A function that is none of the cheap ones: perhaps one written in Python."""

_PASSING = {"=": 0.1, "!=": 0.9, "<": 0.3, "<=": 0.3, ">": 0.3, ">=": 0.3}
_CALLS_PASSING = {
    "between": 0.2,
    "is_null": 0.1,
    "within_region": 0.1,
    "intersects": 0.1,
    "lies_in": 0.1,
    "same_place": 0.05,
}
_UNKNOWN = 0.5


def cost(expr: Expr) -> float:
    """Estimate the work of computing `expr` for one event; a comparison of an attribute with a constant is 2.

    >>> cost(Binary(">", Attribute("a", "speed"), Literal(5, None)))
    2.0
    """
    match expr:
        case Literal():
            return 0.0
        case Attribute() | PartRef():
            return 1.0
        case Unary(_, operand):
            return 0.5 + cost(operand)
        case Binary(_, left, right):
            return 1.0 + cost(left) + cost(right)
        case Call(function, arguments):
            own = float(len(arguments)) if function in RELATIONS else _CALLS.get(function, _OWN_FUNCTION)
            return own + sum(cost(argument) for argument in arguments)
    return _OWN_FUNCTION


def passing(condition: Expr) -> float:
    """Estimate which share of the events, or of the combinations, a condition is true for.

    >>> passing(Binary("=", Attribute("a", "lane"), Literal(2, None)))
    0.1
    """
    match condition:
        case Literal(value):
            return 1.0 if value is True else 0.0
        case Unary("not", operand):
            return 1.0 - passing(operand)
        case Binary("and", left, right):
            return passing(left) * passing(right)
        case Binary("or", left, right):
            return 1.0 - (1.0 - passing(left)) * (1.0 - passing(right))
        case Binary("<" | "<=", Call("distance"), _) | Binary(">" | ">=", _, Call("distance")):
            return 0.05
        case Binary(operator):
            return _PASSING.get(operator, _UNKNOWN)
        case Call("in", arguments):
            return min(0.1 * (len(arguments) - 1), 1.0)
        case Call(function):
            return _CALLS_PASSING.get(function, _UNKNOWN)
    return _UNKNOWN


def rank(condition: Expr) -> float:
    """Give by how much a condition thins out what is tested after it, for what it costs: least first.

    Testing in this order costs the least if the conditions do not depend on each other.
    """
    return (passing(condition) - 1.0) / max(cost(condition), 0.5)


# -- how many combinations and events there are, where nobody has counted ----------------------------------

SAME_KEY = 0.01
"""The share of pairs of events with equal keys, where nobody has counted."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen of the events so far."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """Events a second by type; 1 where none is given."""
    same: Mapping[str, float] = field(default_factory=dict)
    """The share of pairs of events that have the same value of a key; `SAME_KEY` where none is given."""


@dataclass(frozen=True, slots=True)
class StateEstimate:
    """How many events an operator remembers, and how that number comes about."""

    events: float | None
    """None: without bound."""
    formula: str

    def __str__(self) -> str:
        if self.events is None:
            return self.formula
        return f"about {rounded(self.events)} {'event' if self.events == 1 else 'events'} ({self.formula})"


NOTHING = StateEstimate(0.0, "nothing to remember")


def events_over(length: int, rate: float) -> StateEstimate:
    """Estimate how many events come in a stretch of time (microseconds), at so many events a second."""
    if length >= END_OF_TIME:
        return StateEstimate(None, "without bound")
    if length == 0:
        return NOTHING
    unit = "event/s" if rate == 1 else "events/s"
    return StateEstimate(length / SECOND * rate, f"{format_duration(length)} x {rate:,.6g} {unit}")


def rounded(events: float) -> str:
    """Write a number of events as precisely as an estimate deserves."""
    return f"{events:,.0f}" if events >= 10 or events == int(events) else f"{events:.2g}"
