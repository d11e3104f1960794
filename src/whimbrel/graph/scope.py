"""Which part names can be read from a stream."""

from __future__ import annotations

from whimbrel.graph.expressions import Expr, conjunction
from whimbrel.graph.operators.base import Graph, Operator


def scope(graph: Graph, name: str) -> dict[str, bool]:
    """Give the part names inside the composites of stream `name`, and whether each is repeated.

    A stream of plain events has none.
    """
    operator = graph[name]
    found: dict[str, bool] = {}
    for member in operator.members:
        found |= scope(graph, member.stream) | ({member.alias: False} if member.alias is not None else {})
    return (
        dict.fromkeys(found, True) if operator.repeats else found | dict.fromkeys(operator.own_parts, False)
    )


def only_part(graph: Graph, name: str) -> str | None:
    """Name the only part of the composites of a stream, if there is just one that does not repeat."""
    names = scope(graph, name)
    return next(iter(names)) if len(names) == 1 and not any(names.values()) else None


def selection(graph: Graph, name: str) -> tuple[Operator, Expr | None]:
    """Give the operator whose events stream `name` selects from, and the condition of the selection."""
    operator, conditions = graph[name], list[Expr]()
    while operator.passes_on is not None:
        conditions += reversed(operator.conditions)
        operator = graph[operator.passes_on]
    return operator, conjunction(tuple(reversed(conditions)))
