"""Test the conditions first that are cheap and let little through.

`where near(a, b) and a.lane = 2` tests the lane first. Conditions of the same worth stand in the order of
their texts, so that `p and q` and `q and p` become one and the same condition, which queries can share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from whimbrel.graph.costs import rank
from whimbrel.graph.expressions import Expr, conjuncts, format_expr
from whimbrel.graph.operators import Graph


def order_conditions(graph: Graph) -> Graph:
    """Put the conditions of filters and patterns into the order in which testing them costs the least."""
    ordered = tuple(operator.with_conditions(_sorted) for operator in graph.operators)
    unchanged = all(one is other for one, other in zip(ordered, graph.operators, strict=True))
    return graph if unchanged else replace(graph, operators=ordered)


def _sorted(conditions: Iterable[Expr]) -> tuple[Expr, ...]:
    clauses = [clause for condition in conditions for clause in conjuncts(condition)]
    if len(clauses) < 2:
        return tuple(clauses)
    return tuple(sorted(dict.fromkeys(clauses), key=lambda clause: (rank(clause), format_expr(clause))))
