"""What the rewrites make of a graph, step by step, in words and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from whimbrel.graph.costs import Observed
from whimbrel.graph.estimate import worth_sharing
from whimbrel.graph.operators import Graph
from whimbrel.graph.passes import PASSES, RewriteStep, steps
from whimbrel.graph.passes.share_prefixes import share_prefixes as find_beginnings_once


def rewritten(graph: Graph, rates: Mapping[str, float]) -> list[RewriteStep]:
    """Apply the rewrites that the engine applies to a query alone; give those that change something.

    `rates` are events a second by type: what is worth sharing depends on them.
    """

    def share_prefixes(graph: Graph) -> Graph:
        return find_beginnings_once(graph, partial(worth_sharing, observed=Observed(rates)))

    return steps(graph, (*PASSES, share_prefixes))


def step_words(step: RewriteStep) -> str:
    """Say in a line which operators a rewrite added, changed and dropped.

    >>> from whimbrel.lang.wbl import compile_text
    >>> graph = compile_text("define X detect A(1 < 2) as a then B as b within 5 s").graph
    >>> step_words(rewritten(graph, {})[0])
    'fold_constants: changes X.match; drops A[1 < 2]'
    """
    done = (("adds", step.added), ("changes", step.changed), ("drops", step.dropped))
    return f"{step.name}: " + "; ".join(f"{verb} {', '.join(names)}" for verb, names in done if names)


def step_document(step: RewriteStep) -> dict[str, Any]:
    """Say the same for programs."""
    return {
        "rewrite": step.name,
        "added": list(step.added),
        "changed": list(step.changed),
        "dropped": list(step.dropped),
    }
