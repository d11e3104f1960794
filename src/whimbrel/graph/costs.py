"""What a condition costs to test, and how many events are likely to pass it.

Nobody has counted yet when a query is compiled, so both go by the kind of the condition: an equality lets
fewer events through than a range, and a comparison costs less than the test of a region. The numbers only
have to be in the right order; no result depends on them.
"""

from __future__ import annotations

from whimbrel.graph.expressions import RELATIONS, Attribute, Binary, Call, Expr, Literal, PartRef, Unary

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
