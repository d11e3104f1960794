"""Leave out the operators that no output needs."""

from __future__ import annotations

from dataclasses import replace

from whimbrel.graph.operators import Graph
from whimbrel.graph.wiring import below


def drop_unused(graph: Graph) -> Graph:
    """Give the graph without the operators that no output needs."""
    needed = below(graph, graph.outputs)
    kept = tuple(operator for operator in graph.operators if operator.name in needed)
    return graph if len(kept) == len(graph.operators) else replace(graph, operators=kept)
