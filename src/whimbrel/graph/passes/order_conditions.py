"""Test the conditions first that are cheap and let little through.

`where near(a, b) and a.lane = 2` tests the lane first. Conditions of the same worth stand in the order of
their texts, so that `p and q` and `q and p` become one and the same condition, which queries can share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from whimbrel.graph.costs import rank
from whimbrel.graph.expressions import Binary, Expr, conjuncts, format_expr
from whimbrel.graph.operators import Filter, Graph, JoinPattern, Operator


def order_conditions(graph: Graph) -> Graph:
    """Put the conditions of filters and patterns into the order in which testing them costs the least."""
    ordered = tuple(_ordered(operator) for operator in graph.operators)
    unchanged = all(one is other for one, other in zip(ordered, graph.operators, strict=True))
    return graph if unchanged else replace(graph, operators=ordered)


def _ordered(operator: Operator) -> Operator:
    match operator:
        case Filter() if len(conjuncts(operator.condition)) > 1:
            return replace(operator, condition=_joined(operator.condition))
        case JoinPattern() if operator.conditions or operator.absent:
            absent = tuple(replace(each, conditions=_sorted(each.conditions)) for each in operator.absent)
            return replace(operator, conditions=_sorted(operator.conditions), absent=absent)
    return operator


def _sorted(conditions: Iterable[Expr]) -> tuple[Expr, ...]:
    clauses = [clause for condition in conditions for clause in conjuncts(condition)]
    return tuple(sorted(dict.fromkeys(clauses), key=lambda clause: (rank(clause), format_expr(clause))))


def _joined(condition: Expr) -> Expr:
    first, *others = _sorted((condition,))
    for other in others:
        first = Binary("and", first, other, at=condition.at)
    return first
