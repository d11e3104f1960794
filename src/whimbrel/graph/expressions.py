"""Expressions over events: what conditions and assignments are made of.

Nulls behave as in SQL: a comparison with null is unknown, `and` and `or` are three-valued, a
condition holds only when it is true. Division by zero and NaN give null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from whimbrel.errors import Span
from whimbrel.model.schema import Type

GROUP = "group"
"""The part name under which an operator's partition keys are read, as in `group.location`."""


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of all expressions. `at` is where it stands in the query; it does not count for equality."""

    at: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant. `None` is null; durations and timestamps are microseconds with their type."""

    value: bool | int | float | str | None
    type: Type | None


TRUE = Literal(True, Type.BOOL)
FALSE = Literal(False, Type.BOOL)


@dataclass(frozen=True, slots=True)
class Attribute(Expr):
    """An attribute of a part of the pattern, or, where `part` is None, of the event under test.

    Every event also has `start`, `end` and `timestamp` (= end), `duration`, `type`, `source` (or
    `srcid`), `id`, and `x` and `y` (the centre of its location; `lon` and `lat` read the same);
    an attribute of that name in the data comes first.
    """

    part: str | None
    name: str


@dataclass(frozen=True, slots=True)
class PartRef(Expr):
    """A whole part of the pattern, as an argument of `count(a)`, `distance(a, b)` or `before(a, b)`."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`-x` or `not x`."""

    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`left operator right`; operators: or and = != < <= > >= + - * / %."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function or an aggregate applied to arguments. Names are lower case.

    `in` (value, then candidates), `between` (value, low, high), `is_null` and the temporal
    relations (`before`, `meets`, `overlaps`, ...) are calls too.
    """

    function: str
    arguments: tuple[Expr, ...]


AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "first", "last", "distinct"})
"""Functions over many events; `distinct` counts the different values."""

PLACE_RELATIONS = frozenset({"distance", "intersects", "lies_in", "same_place", "within_region"})
"""Functions of the locations of events: of two parts, or of a part and a region (text, well-known)."""

PLACE = ("@x", "@y", "@shape")
"""The hidden attributes that make up a location: its centre and, where it is more than a point, its shape."""

SHAPE = Attribute(None, "@shape")

KEPT = AGGREGATES | {"ids", "matches"}
"""Functions whose values are computed when a composite is made: aggregates, `ids(step)`, `matches`."""

RELATIONS: dict[str, str] = {
    "before": "a.end < b.start",
    "after": "a.start > b.end",
    "meets": "a.end = b.start",
    "met_by": "a.start = b.end",
    "overlaps": "a.start < b.start and b.start < a.end and a.end < b.end",
    "overlapped_by": "b.start < a.start and a.start < b.end and b.end < a.end",
    "starts": "a.start = b.start and a.end < b.end",
    "started_by": "a.start = b.start and a.end > b.end",
    "during": "a.start > b.start and a.end < b.end",
    "contains": "a.start < b.start and a.end > b.end",
    "finishes": "a.end = b.end and a.start > b.start",
    "finished_by": "a.end = b.end and a.start < b.start",
    "equals": "a.start = b.start and a.end = b.end",
    "concurrent": "a.start <= b.end and b.start <= a.end",
}
"""Temporal relations between two parts, and what each means. The first thirteen are Allen's."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """Give the expressions directly inside `expr`."""
    match expr:
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return left, right
        case Call(_, arguments):
            return arguments
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Give `expr` and everything inside it, outermost first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rebuild `expr` from the leaves up, passing every node through `change`."""
    old = children(expr)
    if old:
        new = tuple([transform(child, change) for child in old])
        # Most changes leave most expressions as they are.
        if any(one is not other for one, other in zip(old, new, strict=True)):
            expr = _with_children(expr, new)
    return change(expr)


def _with_children(expr: Expr, inside: tuple[Expr, ...]) -> Expr:
    match expr:
        case Unary(operator, _):
            return Unary(operator, inside[0], at=expr.at)
        case Binary(operator, _, _):
            return Binary(operator, inside[0], inside[1], at=expr.at)
        case Call(function, _):
            return Call(function, inside, at=expr.at)
    return expr


def parts_of(expr: Expr) -> frozenset[str | None]:
    """Name the parts that `expr` reads; None stands for the event under test."""
    found: set[str | None] = set()
    for node in walk(expr):
        if isinstance(node, Attribute):
            found.add(node.part)
        elif isinstance(node, PartRef):
            found.add(node.name)
    return frozenset(found)


def conjuncts(expr: Expr | None) -> tuple[Expr, ...]:
    """Split a condition at its top-level `and`s."""
    if expr is None:
        return ()
    if isinstance(expr, Binary) and expr.operator == "and":
        return conjuncts(expr.left) + conjuncts(expr.right)
    return (expr,)


def conjunction(conditions: tuple[Expr, ...]) -> Expr | None:
    """Join conditions with `and`; None where there are none."""
    joined: Expr | None = None
    for condition in conditions:
        joined = condition if joined is None else Binary("and", joined, condition)
    return joined


_PRECEDENCE = {
    "or": 1,
    "and": 2,
    "=": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
}
_NOT, _COMPARISON, _NEGATIVE, _ATOM = 3, 4, 7, 8


def format_expr(expr: Expr) -> str:
    """Write an expression as the Whimbrel language does, with the fewest parentheses."""
    return _format(expr, 0)


def _format(expr: Expr, outer: int) -> str:
    text, level = _text(expr)
    return f"({text})" if level < outer else text


def _text(expr: Expr) -> tuple[str, int]:
    match expr:
        case Literal(value, kind):
            return format_literal(value, kind), _ATOM
        case Attribute(part, name):
            return (f"{part}.{name}" if part else name), _ATOM
        case PartRef(name):
            return name or "this", _ATOM
        case Unary("not", operand):
            return f"not {_format(operand, _NOT)}", _NOT
        case Unary(_, operand):
            return f"-{_format(operand, _NEGATIVE)}", _NEGATIVE
        case Binary(operator, left, right):
            level = _PRECEDENCE[operator]
            # Comparisons do not chain, and a - (b - c) is not a - b - c.
            left_level = level + 1 if level == _COMPARISON else level
            right_level = level if operator in ("or", "and") else level + 1
            return f"{_format(left, left_level)} {operator} {_format(right, right_level)}", level
        case Call():
            return _call_text(expr)
    raise TypeError(f"not an expression: {expr!r}")


def _call_text(call: Call) -> tuple[str, int]:
    match call:
        case Call("in", (value, *choices)):
            listed = ", ".join(_format(choice, 0) for choice in choices)
            return f"{_format(value, _COMPARISON + 1)} in ({listed})", _COMPARISON
        case Call("between", (value, low, high)):
            bounds = f"{_format(low, _COMPARISON + 1)} and {_format(high, _COMPARISON + 1)}"
            return f"{_format(value, _COMPARISON + 1)} between {bounds}", _COMPARISON
        case Call("is_null", (value,)):
            return f"{_format(value, _COMPARISON + 1)} is null", _COMPARISON
        case Call("lies_in" | "within_region", (PartRef() as inner, outer)):
            return f"{_text(inner)[0]} in {_text(outer)[0]}", _COMPARISON
        case Call(name, (PartRef() as left, PartRef() as right)) if name in RELATIONS:
            return f"{_text(left)[0]} {name} {_text(right)[0]}", _COMPARISON
    return f"{call.function}({', '.join(_format(a, 0) for a in call.arguments)})", _ATOM


def format_literal(value: bool | int | float | str | None, kind: Type | None) -> str:
    """Write a constant as the Whimbrel language does."""
    from whimbrel.model.time import format_duration, format_instant

    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
        return f"'{escaped}'"
    if kind is Type.DURATION:
        return format_duration(int(value))
    if kind is Type.TIMESTAMP:
        return f"timestamp '{format_instant(int(value))}'"
    return repr(value)
