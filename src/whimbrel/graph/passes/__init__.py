"""Rewrites of the operator graph: each gives the same detections for less work, in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from whimbrel.graph.operators import Graph
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.passes.find_joins import find_joins

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (drop_unused, find_joins)


def rewrite(graph: Graph, passes: Sequence[Pass] = PASSES) -> Graph:
    """Apply all rewrites, one after the other."""
    for apply in passes:
        graph = apply(graph)
    return graph
