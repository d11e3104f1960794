"""Rewrites of the operator graph: each gives the same detections for less work, in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from whimbrel.errors import UnknownNameError
from whimbrel.graph.operators import Graph
from whimbrel.graph.passes.drop_impossible import drop_impossible
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.passes.find_joins import find_joins
from whimbrel.graph.passes.fold_constants import fold_constants
from whimbrel.graph.passes.narrow_sequences import narrow_sequences
from whimbrel.graph.passes.order_conditions import order_conditions
from whimbrel.graph.passes.push_down_filters import push_down_filters
from whimbrel.graph.passes.share_common_parts import share_common_parts

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (
    drop_unused,
    narrow_sequences,
    fold_constants,
    push_down_filters,
    drop_impossible,
    find_joins,
    order_conditions,
    share_common_parts,
)


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """One rewrite that changed a graph: its name, and the graph before and after it."""

    name: str
    before: Graph
    after: Graph

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the operators that are new."""
        return _names_only_in(self.after, self.before)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the operators that are gone."""
        return _names_only_in(self.before, self.after)

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the operators that are there still, and different."""
        old = {operator.name: operator for operator in self.before.operators}
        return tuple(o.name for o in self.after.operators if o.name in old and old[o.name] != o)


def rewrite(graph: Graph, passes: Sequence[Pass] = PASSES, *, without: Collection[str] = ()) -> Graph:
    """Apply all rewrites, one after the other.

    Parameters
    ----------
    without
        Names of rewrites to leave out, to see what they are good for.
    """
    for apply in _chosen(passes, without):
        graph = apply(graph)
    return graph


def steps(
    graph: Graph, passes: Sequence[Pass] = PASSES, *, without: Collection[str] = ()
) -> list[RewriteStep]:
    """Apply all rewrites, and tell what each that changed something did."""
    found: list[RewriteStep] = []
    for apply in _chosen(passes, without):
        after = apply(graph)
        if after != graph:
            found.append(RewriteStep(apply.__name__, graph, after))
        graph = after
    return found


def _chosen(passes: Sequence[Pass], without: Collection[str]) -> list[Pass]:
    names = [apply.__name__ for apply in passes]
    for name in without:
        if name not in names:
            raise UnknownNameError("rewrite", name, names)
    return [apply for apply in passes if apply.__name__ not in without]


def _names_only_in(one: Graph, other: Graph) -> tuple[str, ...]:
    known = {operator.name for operator in other.operators}
    return tuple(operator.name for operator in one.operators if operator.name not in known)
