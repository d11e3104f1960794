"""What to compare with: everything is sent, or only the broker that wants the composite event decides."""

from __future__ import annotations

from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.comet import best_of
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.pareto import ParetoFronts, planned
from whimbrel.plan.pushpull.plan import PushPullPlan, make_plan
from whimbrel.plan.pushpull.tree import BALANCE, Junction, Shortings, detection_tree


def star(network: Network, composite: Composite, balance: float = BALANCE) -> Junction:
    """Give the tree in which all parts go to the uppermost junction by themselves."""
    shortings = Shortings(detection_tree(network, composite, balance))
    return shortings.without(shortings.names)


def plan_centralised(composite: Composite, network: Network) -> PushPullPlan:
    """Find the best plan in which only the uppermost junction pulls (Akdere and others, VLDB 2008): exact."""
    tree = star(network, composite)
    plans = [make_plan(composite, planned(tree, point)) for point in ParetoFronts(composite).of(tree)]
    return best_of(plans)
