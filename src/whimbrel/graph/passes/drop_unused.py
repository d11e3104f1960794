"""Leave out the operators that no output needs."""

from __future__ import annotations

from dataclasses import replace

from whimbrel.graph.operators import Graph


def drop_unused(graph: Graph) -> Graph:
    """Give the graph without the operators that no output needs."""
    needed = set(graph.outputs)
    for operator in reversed(graph.operators):
        if operator.name in needed:
            needed.update(operator.inputs)
    kept = tuple(operator for operator in graph.operators if operator.name in needed)
    return graph if len(kept) == len(graph.operators) else replace(graph, operators=kept)
