"""What to compare with: everything is sent, or only the broker that wants the composite event decides."""

from __future__ import annotations

from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.comet import best_of
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.pareto import ParetoFronts, planned
from whimbrel.plan.pushpull.plan import PushPullPlan, make_plan
from whimbrel.plan.pushpull.tree import BALANCE, Junction, VirtualTrees, detection_tree


def star(network: Network, composite: Composite, balance: float = BALANCE) -> Junction:
    """Return the tree in which all parts go to the uppermost junction by themselves."""
    trees = VirtualTrees(detection_tree(network, composite, balance))
    return trees.without(trees.names)


def plan_centralised(composite: Composite, network: Network) -> PushPullPlan:
    """Find the best plan in which only the uppermost junction pulls: exact, in O(3^parts).

    Akdere, Cetintemel and Tatbul, VLDB 2008, to which Comet is compared (section II-D).
    """
    tree = star(network, composite)
    plans = [make_plan(composite, planned(tree, point)) for point in ParetoFronts(composite).of(tree)]
    return best_of(plans)
