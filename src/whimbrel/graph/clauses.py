"""What a clause of a condition asks of an attribute, or of the place of an event; read nowhere else.

The index of conditions, the store, Spark's filters and the search for contradictions all go by what is read
here. What it does not know is None, and has to be tested as it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from whimbrel.graph.expressions import Attribute, Binary, Call, Expr, Literal, PartRef, Unary

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
"""Each comparison, and what it becomes when its sides change places."""
TEXT_TESTS = frozenset({"startswith", "endswith", "contains"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """`attribute operator constant`, in this order."""

    attribute: Attribute
    operator: str
    constant: Literal


@dataclass(frozen=True, slots=True)
class Between:
    """`attribute between low and high`; both bounds count."""

    attribute: Attribute
    low: Literal
    high: Literal


@dataclass(frozen=True, slots=True)
class OneOf:
    """`attribute in (...)`, of constants."""

    attribute: Attribute
    choices: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class TextTest:
    """The attribute begins with, ends with or contains a text, as `function` says."""

    attribute: Attribute
    function: str
    text: str


@dataclass(frozen=True, slots=True)
class IsTrue:
    """The attribute is true, or, where `wanted` is false, it is false."""

    attribute: Attribute
    wanted: bool


@dataclass(frozen=True, slots=True)
class IsNull:
    """The attribute is missing."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class InRegion:
    """The event lies in a region (well-known text), or, of `intersects`, its shape meets it."""

    region: str
    function: str


@dataclass(frozen=True, slots=True)
class NearPoint:
    """The event is at most some metres from a point (well-known text)."""

    point: str
    metres: float


Clause = Comparison | Between | OneOf | TextTest | IsTrue | IsNull | InRegion | NearPoint


def literal(expr: Expr) -> Literal | None:
    """Read a constant that is written out."""
    return expr if isinstance(expr, Literal) else None


def read_clause(expr: Expr, constant: Callable[[Expr], Literal | None] = literal) -> Clause | None:
    """Read one clause of a condition; None if it is of another form.

    `constant` reads the side that is compared with. Attributes may be those of any part of a pattern, places
    are those of the event under test.

    >>> from whimbrel.graph.expressions import format_expr
    >>> read_clause(Binary("<", Literal(5, None), Attribute(None, "v"))).operator
    '>'
    """
    match expr:
        case Binary(operator, left, right) if operator in FLIPPED:
            return _comparison(operator, left, right, constant)
        case Call("between", (Attribute() as attribute, one, other)):
            low, high = constant(one), constant(other)
            return None if low is None or high is None else Between(attribute, low, high)
        case Call("in", (Attribute() as attribute, *choices)):
            read = [known for choice in choices if (known := constant(choice)) is not None]
            return OneOf(attribute, tuple(read)) if len(read) == len(choices) else None
        case Call(function, (Attribute() as attribute, Literal(str() as text))) if function in TEXT_TESTS:
            return TextTest(attribute, function, text)
        case Attribute():
            return IsTrue(expr, wanted=True)
        case Unary("not", Attribute() as attribute):
            return IsTrue(attribute, wanted=False)
        case Call("is_null", (Attribute() as attribute,)):
            return IsNull(attribute)
        case Call("within_region" | "intersects", (PartRef(None), Literal(str() as region))):
            return InRegion(region, expr.function)
    return None


def _comparison(
    operator: str, left: Expr, right: Expr, constant: Callable[[Expr], Literal | None]
) -> Comparison | NearPoint | None:
    compared = constant(right)
    if compared is None:
        operator, left, compared = FLIPPED[operator], right, constant(left)
    match left, compared:
        case Attribute(), Literal():
            return Comparison(left, operator, compared)
        case Call("distance", (PartRef(None), Literal(str() as point))), Literal(int() | float() as metres):
            return NearPoint(point, float(metres)) if operator in ("<", "<=") else None
    return None
