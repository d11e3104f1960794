"""Find the best plan: the best one of each tree, over several trees and choices of junctions.

The paper turns pushes into pulls greedily and never takes one back, and shorts all junctions of a level or
none. Here the stages of all junctions are chosen together (`pareto.py`), junctions are shorted one by one,
and ways are tried with several balances of cost and delay. The plan of a centre that pulls everything itself
is among those tried, so that none is ever worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.comet import best_of, convert
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.pareto import ParetoFronts, ParetoPoint, planned
from whimbrel.plan.pushpull.plan import PushPullPlan, all_pushed, make_plan
from whimbrel.plan.pushpull.tree import Junction, VirtualTrees, detection_tree

BALANCES = (0.5, 0.0, 1.0)
FEW_PARTS = 9
"""Up to so many, the best plan of a centre is worked out, too."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried for a tree."""

    most: int
    """Plans that are kept for each junction."""
    widest: int
    """Inputs of a junction of which all orders are tried: with more, only from rare to frequent."""


SMALL_TREE = Effort(most=16, widest=8)
LARGE_TREE = Effort(most=4, widest=4)
FEW_JUNCTIONS = 8
"""A tree with more is large."""
MANY_JUNCTIONS = 40
"""In a tree with more, the search begins with no junction shorted only."""
FEW_STARTS = 2
"""From how many choices of junctions the search begins in a large tree."""
WIDEST_START = 24
"""It does not begin where a junction has more inputs than these."""
MOST_INPUTS = 12
"""A junction is not shorted if the one above it had more inputs then."""


def plan_pushpull(
    composite: Composite, network: Network, balances: Sequence[float] = BALANCES
) -> PushPullPlan:
    """Plan a composite event: the cheapest plan found that keeps its delay tolerance.

    For each of a few trees, some choices of junctions; each costs O(3^inputs) at the junctions that it
    changes, or O(inputs^2) at those with many inputs (`pareto`).

    Raises
    ------
    NoPlanError
        If not even pushing everything is quick enough.
    """
    trees = {detection_tree(network, composite, balance): None for balance in balances}
    plans = [plan_tree(composite, tree) for tree in trees]
    if len(composite.parts) <= FEW_PARTS:
        plans += _centre(composite, next(iter(trees)))
    return best_of(plans)


def plan_tree(composite: Composite, tree: Junction) -> PushPullPlan:
    """Find a good plan of a tree with any of its junctions shorted.

    Begins with none shorted, with each level, and with all (in a large tree with the best of these), and goes
    on as long as one junction more or less makes the plan better.
    """
    junctions = sum(1 for _ in tree.below())
    is_small = junctions <= FEW_JUNCTIONS
    search = _Search(composite, tree, SMALL_TREE if is_small else LARGE_TREE)
    levels = (search.trees.from_level(level) for level in range(1, tree.height))
    starts: list[frozenset[str]] = list(dict.fromkeys([frozenset(), *levels]))
    if junctions > MANY_JUNCTIONS:
        starts = starts[:1]
    elif not is_small:
        narrow = [start for start in starts if not start or search.most_inputs(start) <= WIDEST_START]
        starts = sorted(narrow, key=search.rank)[:FEW_STARTS]
    plans = [search.plan(min((search.improved(start) for start in starts), key=search.rank))]
    if is_small and search.most_inputs(frozenset()) > SMALL_TREE.widest:
        plans.append(convert(composite, tree))
    return min(plans, key=rank)


def _centre(composite: Composite, tree: Junction) -> list[PushPullPlan]:
    trees = VirtualTrees(tree)
    return [plan_of_front(composite, trees.without(trees.names), ParetoFronts(composite))]


class _Search:
    """The plans of a tree for every choice of junctions that was tried.

    Only the junctions above one that is shorted, or no longer so, are worked out again: what the others can
    do is known (`ParetoFronts`, `VirtualTrees`).
    """

    def __init__(self, composite: Composite, tree: Junction, effort: Effort) -> None:
        self.trees = VirtualTrees(tree)
        self._composite, self._effort = composite, effort
        self._fronts = ParetoFronts(composite, effort.most, effort.widest)
        self._ranks: dict[frozenset[str], tuple[bool, float, float]] = {}

    def improved(self, away: frozenset[str]) -> frozenset[str]:
        """Short one junction more or less at a time, as long as it helps."""
        names = self.trees.names
        tried = 0
        while tried < len(names):
            for name in names:
                tried += 1
                other = away ^ {name}
                if self._may_be_better(name, other, away) and self.rank(other) < self.rank(away):
                    away, tried = other, 0
                if tried >= len(names):
                    break
        return away

    def _may_be_better(self, name: str, other: frozenset[str], away: frozenset[str]) -> bool:
        """Tell whether shorting a junction, or no longer shorting it, adds a good plan at all above it.

        What is above depends on cost and delay only. So where every plan of a junction has become no better
        than one that it had, nothing above it can become better.
        """
        for above in self.trees.above[name]:
            if above not in away:
                changed = self.trees.at(above, other)
                if len(changed.inputs) > MOST_INPUTS:
                    return False
                before, now = self._fronts.of(self.trees.at(above, away)), self._fronts.of(changed)
                if all(any(_is_beaten(point, by) for by in before) for point in now):
                    return False
        return True

    def rank(self, away: frozenset[str]) -> tuple[bool, float, float]:
        """Order choices of junctions by the best plan without these."""
        if away not in self._ranks:
            points = self._fronts.of(self.trees.without(away))
            point = next((each for each in points if _keeps(self._composite, each.delay_s)), points[-1])
            late = not _keeps(self._composite, point.delay_s)
            self._ranks[away] = (late, point.cost_s, point.delay_s)
        return self._ranks[away]

    def most_inputs(self, away: frozenset[str]) -> int:
        """Count the inputs of the junction that has most, without these."""
        tree = self.trees.without(away)
        return max(len(each.inputs) for each in (tree, *tree.below()))

    def plan(self, away: frozenset[str]) -> PushPullPlan:
        """Return the best plan without these junctions."""
        return plan_of_front(self._composite, self.trees.without(away), self._fronts)


def plan_of_front(composite: Composite, tree: Junction, fronts: ParetoFronts) -> PushPullPlan:
    """Return the cheapest plan of a tree that is quick enough, or one that pushes everything."""
    for point in fronts.of(tree):
        if _keeps(composite, point.delay_s):
            return make_plan(composite, planned(tree, point))
    return make_plan(composite, all_pushed(tree))


def _is_beaten(point: ParetoPoint, by: ParetoPoint) -> bool:
    return by.cost_s <= point.cost_s and by.delay_s <= point.delay_s


def _keeps(composite: Composite, delay_s: float) -> bool:
    return delay_s <= composite.tolerance_s * (1 + 1e-12)


def rank(plan: PushPullPlan) -> tuple[bool, float, float]:
    """Order plans: those that are quick enough first, then by cost."""
    return (not plan.keeps_tolerance, plan.estimate.cost_s, plan.estimate.delay_s)
