"""Plans of `whimbrel.plan.pushpull`, as the simulator carries them out."""

from __future__ import annotations

from whimbrel.errors import NetworkError
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.plans import Planned
from whimbrel.plan.pushpull.plans import PushPullPlan as MadePlan
from whimbrel.plan.pushpull.tree import Junction as MadeJunction
from whimbrel.sim.pushpull.plan import Input, Junction, Leaf, PushPullPlan


def from_planner(plan: MadePlan) -> PushPullPlan:
    """Give what the simulator needs of a plan.

    Raises
    ------
    NetworkError
        If it is of alternatives, or has a part that must not occur anywhere but at the uppermost junction.
    """
    composite = plan.composite
    if composite.operator == "or":
        raise NetworkError("alternatives need no plan: each event is a detection", "push them all")
    order = tuple(part.name for part in composite.parts) if composite.operator == "seq" else None
    root = _junction(plan.root, composite)
    return PushPullPlan(root, composite.window_s, order, composite.request_b)


def _junction(planned: Planned, composite: Composite) -> Junction:
    turns = {number: turn for turn, stage in enumerate(planned.stages) for number in stage}
    inputs = []
    for number, each in enumerate(planned.junction.inputs):
        if isinstance(each, MadeJunction):
            inputs.append(Input(_junction(planned.below[number], composite), turns[number]))
        else:
            part = each.part
            leaf = Leaf(part.name, part.at, part.size_b)
            inputs.append(Input(leaf, turns[number], negated=part.is_negated))
    return Junction(planned.junction.at, planned.junction.at, tuple(inputs))
