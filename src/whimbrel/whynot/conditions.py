"""Why a condition is not true: which of its parts fails, with the values it saw, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np

from whimbrel.engine.evaluate import COMPARISONS, Frame, evaluate, true_rows
from whimbrel.engine.programs import is_relation, spell_out_relations
from whimbrel.engine.streams import ExecutionContext, RowsFrame
from whimbrel.engine.values import BoolArray, Column, FloatArray, nothing
from whimbrel.graph.clauses import FLIPPED
from whimbrel.graph.expressions import (
    GROUP,
    PLACE_RELATIONS,
    Attribute,
    Binary,
    Call,
    Expr,
    Literal,
    PartRef,
    Unary,
    children,
    conjuncts,
    format_expr,
    parts_of,
)
from whimbrel.model.schema import Type
from whimbrel.whynot.events import first
from whimbrel.whynot.words import METRES, clock, shortened, value_text

FAR = 1.0
"""How far off a condition is that has no measure: another text, a missing value."""
OTHER_THINGS = 2.0
"""How far off a condition is that tells apart what a pattern is about, as `a.ship < b.ship` does."""


@dataclass(frozen=True, slots=True)
class NamedRows:
    """Rows under the names that expressions know them by; the names of absent alternatives read as null."""

    context: ExecutionContext
    size: int
    frames: Mapping[str | None, RowsFrame | None]
    columns: dict[tuple[str | None, str], Column] = field(default_factory=dict)
    """Those that were read already: a condition is tried, measured and put into words."""

    def __len__(self) -> int:
        return self.size

    def column(self, part: str | None, name: str) -> Column:
        """Read the column that `part.name` stands for."""
        key = (part, name)
        if key not in self.columns:
            frame = self.frames.get(part)
            self.columns[key] = nothing(self.size) if frame is None else frame.column(part, name)
        return self.columns[key]

    def attributes(self, part: str | None) -> dict[str, Column]:
        """Collect all attributes of a part."""
        frame = self.frames.get(part)
        return {} if frame is None else frame.attributes(part)

    def known(self, expr: Expr) -> Column:
        """Compute an aggregate over a repeated part."""
        names = parts_of(expr) - {GROUP}
        frame = self.frames.get(next(iter(names), None))
        return nothing(self.size) if frame is None else frame.known(expr)


def holds(condition: Expr, frame: Frame) -> BoolArray:
    """Tell for every row whether a condition is true."""
    return true_rows(spell_out_relations(condition), frame)


def failing(condition: Expr, frame: Frame) -> tuple[Expr, ...]:
    """List the parts of a condition, joined by `and`, that are not true of the one row of a frame."""
    return tuple(conjunct for conjunct in conjuncts(condition) if not holds(conjunct, frame)[0])


def shortfall(condition: Expr, frame: Frame) -> FloatArray:
    """Measure how far every row is from fulfilling a condition: 0 where it is true, at most 1 a part."""
    return _shortfall(spell_out_relations(condition), frame)


def _shortfall(condition: Expr, frame: Frame) -> FloatArray:
    match condition:
        case Binary("and", left, right):
            return _shortfall(left, frame) + _shortfall(right, frame)
        case Binary("or", left, right):
            return np.minimum(_shortfall(left, frame), _shortfall(right, frame))
        case Binary("<" | ">" | "!=", Attribute(one, name), Attribute(other, same)) if (
            name == same and one != other
        ):
            missed = np.full(len(frame), OTHER_THINGS)
        case Binary(operator, left, right) if operator in COMPARISONS:
            missed = _difference(evaluate(left, frame), evaluate(right, frame))
        case Call("between", (value, low, high)):
            column = evaluate(value, frame)
            bounds = [_difference(column, evaluate(bound, frame)) for bound in (low, high)]
            missed = np.minimum(*bounds)
        case _:
            missed = np.full(len(frame), FAR)
    return np.where(true_rows(condition, frame), 0.0, missed)


def _difference(left: Column, right: Column) -> FloatArray:
    """Compute the difference of two columns as a share of the larger value, for those that have a size."""
    kinds = (left.type, right.type)
    if None in kinds or Type.STRING in kinds or Type.BOOL in kinds:
        return np.full(len(left), FAR)
    one, other = left.values.astype(np.float64), right.values.astype(np.float64)
    size = np.maximum(np.abs(one), np.abs(other))
    if Type.TIMESTAMP in kinds:
        size = np.full(len(left), 3600e6)  # instants have no size; an hour off is far
    with np.errstate(all="ignore"):
        share = np.where(size > 0, np.abs(one - other) / size, 0.0)
    share = np.where(left.nulls | right.nulls | ~np.isfinite(share), FAR, share)
    return np.clip(share, 0.0, FAR)


# -- in words --------------------------------------------------------------------------------------------


def missing_values(condition: Expr, frame: Frame) -> tuple[str, ...]:
    """Name the attributes and places that a condition reads and the one row of a frame does not have."""
    names: dict[str, None] = {}
    todo = [condition]
    while todo:
        expr = todo.pop()
        if isinstance(expr, Attribute):
            if evaluate(expr, frame).nulls[0]:
                names.setdefault(format_expr(expr))
        elif isinstance(expr, Call) and expr.function in PLACE_RELATIONS:
            for part in expr.arguments:
                if isinstance(part, PartRef) and frame.column(part.name, "@x").nulls[0]:
                    names.setdefault(f"the location of {part.name or 'the event'}")
        elif not isinstance(expr, Call) or expr.function not in ("is_null", "coalesce"):
            todo += reversed(children(expr))
    return tuple(names)


def said(condition: Expr, frame: Frame) -> str:
    """Say with its values why a condition is not true of the one row of a frame.

    >>> from whimbrel.graph.expressions import Attribute, Binary, Literal
    >>> from whimbrel.engine.operators.aggregate import ResultsFrame
    >>> from whimbrel.engine.streams import OperatorStream
    >>> from whimbrel.engine.row_store import RowStore
    >>> speed = Column(Type.FLOAT, np.array([28.0]))
    >>> context = ExecutionContext(OperatorStream("events", RowStore()))
    >>> frame = ResultsFrame(context, 1, named={"speed": speed})
    >>> said(Binary(">", Attribute(None, "speed"), Literal(30, Type.INT)), frame)
    'speed was 28, needed > 30'
    """
    if not is_relation(condition) and _is_unknown(condition, frame):
        gone = missing_values(condition, frame)
        if gone:
            listed = " and ".join(gone)
            return f"{listed} {'is' if len(gone) == 1 else 'are'} missing, needed {shortened(condition)}"
    return _said(condition, frame)


def _is_unknown(condition: Expr, frame: Frame) -> bool:
    return bool(evaluate(spell_out_relations(condition), frame).nulls[0])


@singledispatch
def _said(condition: Expr, frame: Frame) -> str:
    return f"{shortened(condition)} was {_value(condition, frame)}, needed true"


@_said.register
def _(condition: Binary, frame: Frame) -> str:
    if condition.operator == "and":
        return " and ".join(said(each, frame) for each in failing(condition, frame))
    if condition.operator == "or":
        return f"{said(condition.left, frame)}; or {said(condition.right, frame)}"
    left, operator, right = condition.left, condition.operator, condition.right
    if isinstance(left, Literal):
        left, operator, right = right, FLIPPED.get(operator, operator), left
    unit = _unit(left) or _unit(right)
    seen, wanted = _value(left, frame, unit), _value(right, frame, unit)
    if seen == wanted and operator in ("<", "<=", ">", ">="):  # they differ in digits that are not shown
        seen, wanted = _value(left, frame, unit, exact=True), _value(right, frame, unit, exact=True)
    behind = "" if isinstance(right, Literal) else f" ({shortened(right)})"
    return f"{shortened(left)} was {seen}, needed {operator} {wanted}{behind}"


@_said.register
def _(condition: Unary, frame: Frame) -> str:
    inner = condition.operand
    if isinstance(inner, Call) and inner.function == "is_null":
        return f"{shortened(inner.arguments[0])} is missing"
    if isinstance(inner, Call) and inner.function in _HOW_PLACES_LIE:
        return f"{_how_they_lie(inner, frame, _HOW_PLACES_LIE[inner.function][0])}, needed not"
    return f"{shortened(inner)} was true, needed not ({_leaves(inner, frame)})"


@_said.register
def _(condition: Call, frame: Frame) -> str:
    name, arguments = condition.function, condition.arguments
    if is_relation(condition):
        spans = ", ".join(_span(part, frame) for part in arguments if isinstance(part, PartRef))
        return f"{spans}, needed {format_expr(condition)}"
    if name == "between":
        value, low, high = arguments
        unit = _unit(value)
        bounds = f"{_value(low, frame, unit)} and {_value(high, frame, unit)}"
        return f"{shortened(value)} was {_value(value, frame, unit)}, needed between {bounds}"
    if name == "in":
        listed = ", ".join(_value(argument, frame) for argument in arguments[1:])
        return f"{shortened(arguments[0])} was {_value(arguments[0], frame)}, needed one of {listed}"
    if name == "is_null":
        return f"{shortened(arguments[0])} was {_value(arguments[0], frame)}, needed none"
    if name in _HOW_PLACES_LIE:
        return _how_they_lie(condition, frame, _HOW_PLACES_LIE[name][1])
    return f"{shortened(condition)} was {_value(condition, frame)}, needed true ({_leaves(condition, frame)})"


def _value(expr: Expr, frame: Frame, unit: str = "", *, exact: bool = False) -> str:
    column = evaluate(spell_out_relations(expr), frame)
    return value_text(first(column), column.type, unit, exact=exact)


def _unit(expr: Expr) -> str:
    """Determine the unit of an expression, where that can be told."""
    match expr:
        case Call("distance", _):
            return METRES
        case Call("abs" | "least" | "greatest" | "coalesce" | "round", arguments):
            return next((unit for argument in arguments if (unit := _unit(argument))), "")
        case Binary("+" | "-", left, right):
            return _unit(left) or _unit(right)
    return ""


def _leaves(expr: Expr, frame: Frame) -> str:
    """List the values that an expression reads."""
    values_of: dict[str, str] = {}
    todo = [expr]
    while todo:
        each = todo.pop()
        if isinstance(each, Attribute) or (isinstance(each, Call) and each.function == "distance"):
            values_of.setdefault(format_expr(each), _value(each, frame, _unit(each)))
        else:
            todo += reversed(children(each))
    return ", ".join(f"{name} was {value}" for name, value in values_of.items()) or "it reads nothing"


_HOW_PLACES_LIE = {
    "within_region": ("{} lies in {}", "{} lies outside {}"),
    "lies_in": ("{} lies in {}", "{} does not lie in {}"),
    "intersects": ("{} meets {}", "{} does not meet {}"),
    "same_place": ("{} is in the same place as {}", "{} is not in the same place as {}"),
}
"""What is said where a test of places holds, and where it does not."""


def _how_they_lie(test: Call, frame: Frame, sentence: str) -> str:
    one, two, *more = test.arguments
    relation = sentence.format(_place(one, frame), _place(two, frame))
    if test.function not in ("intersects", "same_place"):
        return relation
    apart = Call("distance", (one, two))
    behind = f", needed at most {_value(more[0], frame, METRES)}" if more else ""
    return f"{relation}: they are {_value(apart, frame, METRES)} apart{behind}"


def _place(part: Expr, frame: Frame) -> str:
    if not isinstance(part, PartRef):
        return shortened(part)
    x, y = (value_text(first(frame.column(part.name, axis)), Type.FLOAT) for axis in ("@x", "@y"))
    return f"{part.name or 'the event'} at ({x}, {y})"


def _span(part: PartRef, frame: Frame) -> str:
    start, end = (first(frame.column(part.name, name)) for name in ("start", "end"))
    if start is None or end is None:
        return f"{part.name} has no times"
    when = f"at {clock(start)}" if start == end else f"from {clock(start)} to {clock(end)}"
    return f"{part.name} was {when}"
