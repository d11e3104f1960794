"""Find the best plan: the best one of each tree, over several trees and choices of junctions.

The paper turns pushes into pulls greedily and never takes one back, and shorts all junctions of a level or
none. Here the stages of all junctions are chosen together (`fronts.py`), junctions are shorted one by one,
and ways are tried with several balances of cost and delay. The plan of a centre that pulls everything itself
is among those tried, so that none is ever worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations

from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.comet import best_of, convert
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.fronts import Fronts, planned
from whimbrel.plan.pushpull.plans import PushPullPlan, all_pushed, make_plan
from whimbrel.plan.pushpull.tree import Junction, Shortings, detection_tree

BALANCES = (0.5, 0.0, 1.0)
MOST = 16
"""Plans that are kept for each junction of a large tree."""
MANY_INPUTS = 8
"""A junction with more inputs is planned greedily."""


def plan_pushpull(
    composite: Composite, network: Network, balances: Sequence[float] = BALANCES
) -> PushPullPlan:
    """Plan a composite event: the cheapest plan found that keeps its delay tolerance.

    Raises
    ------
    NoPlanError
        If not even pushing everything is quick enough.
    """
    trees = {detection_tree(network, composite, balance): None for balance in balances}
    return best_of(plan_tree(composite, tree) for tree in trees)


def plan_tree(composite: Composite, tree: Junction) -> PushPullPlan:
    """Find a good plan of a tree with any of its junctions shorted.

    Begins with none shorted, with each level, and with all, and goes on as long as one junction more or less
    makes the plan better.
    """
    search = _Search(composite, tree, Fronts(composite, MOST))
    levels = range(1, tree.height)
    starts = dict.fromkeys([frozenset(), *(search.shortings.from_level(level) for level in levels)])
    return min((search.improved(start) for start in starts), key=_rank)


def plan_exactly(composite: Composite, tree: Junction) -> PushPullPlan:
    """Find the very best plan of a tree, trying every choice of junctions: for small ones only."""
    shortings, fronts = Shortings(tree), Fronts(composite)
    choices = chain.from_iterable(
        combinations(shortings.names, count) for count in range(len(shortings.names) + 1)
    )
    return min((_of_front(composite, shortings.without(away), fronts) for away in choices), key=_rank)


class _Search:
    """The plans of a tree for every choice of junctions that was tried."""

    def __init__(self, composite: Composite, tree: Junction, fronts: Fronts) -> None:
        self.shortings = Shortings(tree)
        self._composite, self._fronts = composite, fronts
        self._plans: dict[frozenset[str], PushPullPlan] = {}

    def improved(self, away: frozenset[str]) -> PushPullPlan:
        """Short one junction more or less at a time, as long as it helps."""
        names = self.shortings.names
        tried = 0
        while tried < len(names):
            for name in names:
                tried += 1
                other = away ^ {name}
                if _rank(self.plan(other)) < _rank(self.plan(away)):
                    away, tried = other, 0
                if tried >= len(names):
                    break
        return self.plan(away)

    def plan(self, away: frozenset[str]) -> PushPullPlan:
        """Give the best plan without these junctions; a greedy one where one has too many inputs."""
        if away not in self._plans:
            tree = self.shortings.without(away)
            widest = max(len(each.inputs) for each in (tree, *tree.below()))
            self._plans[away] = (
                convert(self._composite, tree)
                if widest > MANY_INPUTS
                else _of_front(self._composite, tree, self._fronts)
            )
        return self._plans[away]


def _of_front(composite: Composite, tree: Junction, fronts: Fronts) -> PushPullPlan:
    """Give the cheapest plan of a tree that is quick enough, or one that pushes everything."""
    for point in fronts.of(tree):
        if point.delay_s <= composite.tolerance_s * (1 + 1e-12):
            return make_plan(composite, planned(tree, point))
    return make_plan(composite, all_pushed(tree))


def _rank(plan: PushPullPlan) -> tuple[bool, float, float]:
    """Order plans: those that are quick enough first, then by cost."""
    return (not plan.keeps_tolerance, plan.estimate.cost_s, plan.estimate.delay_s)
