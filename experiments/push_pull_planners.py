"""Push and pull plans to compare with: all pushed, the centre alone, and the very best of a small tree."""

from __future__ import annotations

from itertools import chain, combinations

from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.baselines import star
from whimbrel.plan.pushpull.best import plan_of_front, rank
from whimbrel.plan.pushpull.comet import best_of, convert
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent
from whimbrel.plan.pushpull.pareto import ParetoFronts
from whimbrel.plan.pushpull.plan import PushPullPlan, all_pushed, make_plan
from whimbrel.plan.pushpull.tree import Junction, VirtualTrees


def plan_all_push(composite: Composite, network: Network) -> PushPullPlan:
    """Send every event at once to where the composite event is wanted."""
    return best_of([make_plan(composite, all_pushed(star(network, composite)))])


def plan_centralised_greedily(composite: Composite, network: Network) -> PushPullPlan:
    """Turn pushes to the uppermost junction into pulls greedily."""
    return best_of([convert(composite, star(network, composite))])


def plan_exactly(composite: Composite, tree: Junction) -> PushPullPlan:
    """Find the very best plan of a tree, trying every choice of junctions: for small ones only."""
    trees, fronts = VirtualTrees(tree), ParetoFronts(composite)
    choices = chain.from_iterable(combinations(trees.names, count) for count in range(len(trees.names) + 1))
    return min((plan_of_front(composite, trees.without(away), fronts) for away in choices), key=rank)


def of_sources(
    network: Network, window_s: float, operator: str = "and", name: str = "composite"
) -> Composite:
    """Make the composite event of what all sources of a network send, wanted by its first consumer."""
    wants = network.consumers[0]
    parts = tuple(
        PrimitiveEvent(source.name, source.at, source.rate_hz or 0.0, source.size_b or 0.0)
        for source in network.sources
    )
    return Composite(name, operator, parts, window_s, wants.at, wants.latency_s)
