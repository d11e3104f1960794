"""Compute once what does not depend on any event.

`v > 3 * 60` becomes `v > 180`, `not v > 5` becomes `v <= 5`, and what is always true is left out. Nulls
behave as in SQL all the way down; only where a condition stands alone or behind `and` does null count as
false, because a condition holds only if it is true.
"""

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from whimbrel.graph.expressions import FALSE, TRUE, Binary, Call, Expr, Literal, Unary, conjuncts, transform
from whimbrel.graph.operators import Filter, Graph, Operator
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.wiring import fixed
from whimbrel.model.schema import Type

_NULL = Literal(None, None)

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": python.eq, "!=": python.ne, "<": python.lt, "<=": python.le, ">": python.gt, ">=": python.ge,
}  # fmt: skip
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": python.add, "-": python.sub, "*": python.mul, "/": python.truediv, "%": python.mod,
}  # fmt: skip


def fold_constants(graph: Graph) -> Graph:
    """Simplify every condition; leave out filters and conditions that are always true."""
    operators: list[Operator] = []
    passed_on: dict[str, str] = {}
    stays = fixed(graph)
    for operator in graph.operators:
        folded = operator.reading(passed_on).with_conditions(only_if_true)
        if isinstance(folded, Filter) and folded.condition == TRUE and folded.name not in stays:
            passed_on[folded.name] = folded.input
        else:
            operators.append(folded)
    changed = tuple(operators)
    return graph if changed == graph.operators else drop_unused(replace(graph, operators=changed))


def only_if_true(conditions: Iterable[Expr]) -> tuple[Expr, ...]:
    """Simplify conditions all of which have to be true; `(FALSE,)` if that can never be."""
    found: dict[Expr, None] = {}
    for condition in conditions:
        for clause in conjuncts(_truth(fold(condition))):
            if clause in (FALSE, _NULL):
                return (FALSE,)
            if clause != TRUE:
                found.setdefault(clause)
    return tuple(found)


def _truth(condition: Expr) -> Expr:
    """Simplify a condition of which only matters whether it is true."""
    match condition:
        case Binary("and" | "or" as word, left, right):
            left, right = (FALSE if side == _NULL else side for side in (_truth(left), _truth(right)))
            return _logic(replace(condition, left=left, right=right), word)
    return FALSE if condition == _NULL else condition


def fold(expr: Expr) -> Expr:
    """Simplify an expression without changing its value for any event, nulls included.

    >>> from whimbrel.graph.expressions import Attribute, format_expr
    >>> sixty, v = Literal(60, Type.INT), Attribute(None, "v")
    >>> format_expr(fold(Unary("not", Binary(">", v, Binary("*", sixty, Literal(3, Type.INT))))))
    'v <= 180'
    """
    return transform(expr, _fold_node)


def _fold_node(expr: Expr) -> Expr:
    match expr:
        case Binary("and" | "or" as word):
            return _logic(expr, word)
        case Unary("not", operand):
            return _negated(expr, operand)
        case Unary("-", Literal(int() | float() as value, kind)) if not isinstance(value, bool):
            return Literal(_wrapped(-value), kind, at=expr.at)
        case Binary(_, Literal(None), _) | Binary(_, _, Literal(None)):
            return replace(_NULL, at=expr.at)  # `and` and `or` have been looked at above
        case Binary(word, Literal() as left, Literal() as right):
            return _compared(expr, left, right) if word in _COMPARE else _computed(expr, left, right)
        case Call("is_null", (Literal(value),)):
            return Literal(value is None, Type.BOOL, at=expr.at)
        case Call("in" | "between", arguments) if all(isinstance(each, Literal) for each in arguments):
            spelt_out = fold(_spelt_out(expr))
            return spelt_out if isinstance(spelt_out, Literal) else expr
    return expr


def _logic(expr: Binary, word: str) -> Expr:
    """Simplify `and` and `or` where one side decides, or says nothing."""
    decides, silent = (FALSE, TRUE) if word == "and" else (TRUE, FALSE)
    if decides in (expr.left, expr.right):
        return decides
    if expr.left in (silent, expr.right):
        return expr.right
    return expr.left if expr.right == silent else expr


def _negated(expr: Unary, operand: Expr) -> Expr:
    match operand:
        case Literal(bool() as value):
            return Literal(not value, Type.BOOL, at=expr.at)
        case Literal(None):
            return operand
        case Unary("not", inner) if _is_condition(inner):
            return inner
        case Binary(word, left, right) if word in _OPPOSITE:
            return Binary(_OPPOSITE[word], left, right, at=expr.at)
    return expr


def _is_condition(expr: Expr) -> bool:
    """Tell whether an expression is surely true, false or null, and nothing else."""
    match expr:
        case Binary(word):
            return word in _COMPARE or word in ("and", "or")
        case Unary("not") | Call(
            "in" | "between" | "is_null" | "within_region" | "intersects" | "lies_in" | "same_place"
        ):
            return True
    return False


def _compared(expr: Binary, left: Literal, right: Literal) -> Expr:
    pair = _alike(left, right)
    return expr if pair is None else Literal(_COMPARE[expr.operator](*pair), Type.BOOL, at=expr.at)


def _alike(left: Literal, right: Literal) -> tuple[Any, Any] | None:
    """Give two constants as they are compared; None for those that only an error can come of."""
    if left.type is None or right.type is None:
        return None
    if left.type is right.type:
        return left.value, right.value
    if left.type.is_number and right.type.is_number:
        return float(left.value or 0), float(right.value or 0)
    return None


def _computed(expr: Binary, left: Literal, right: Literal) -> Expr:
    kinds = (left.type, right.type)
    a, b = left.value, right.value
    if not isinstance(a, int | float) or not isinstance(b, int | float) or expr.operator not in _ARITHMETIC:
        return expr
    if expr.operator in "/%" and b == 0:
        return expr
    if kinds == (Type.INT, Type.INT) and expr.operator != "/":
        return Literal(_wrapped(_ARITHMETIC[expr.operator](a, b)), Type.INT, at=expr.at)
    if expr.operator in "+-" and kinds in _TIMES:
        return Literal(_wrapped(_ARITHMETIC[expr.operator](a, b)), kinds[0], at=expr.at)
    if not all(kind is not None and kind.is_number for kind in kinds):
        return expr
    try:
        value = _ARITHMETIC[expr.operator](float(a), float(b))
    except OverflowError:
        return expr
    return Literal(value, Type.FLOAT, at=expr.at) if math.isfinite(value) else expr


_TIMES = ((Type.DURATION, Type.DURATION), (Type.TIMESTAMP, Type.DURATION))


def _wrapped(value: Any) -> Any:
    """Keep a whole number within 64 bits, as the engine does."""
    return value if isinstance(value, float) else (value + 2**63) % 2**64 - 2**63


def _spelt_out(expr: Call) -> Expr:
    value, *others = expr.arguments
    if expr.function == "between":
        return Binary("and", Binary(">=", value, others[0]), Binary("<=", value, others[1]), at=expr.at)
    found: Expr = Binary("=", value, others[0], at=expr.at)
    for other in others[1:]:
        found = Binary("or", found, Binary("=", value, other), at=expr.at)
    return found
