"""Plans of `whimbrel.plan.pushpull`, as the simulator carries them out."""

from __future__ import annotations

from whimbrel.plan.pushpull.plans import Planned
from whimbrel.plan.pushpull.plans import PushPullPlan as MadePlan
from whimbrel.plan.pushpull.tree import Junction as MadeJunction
from whimbrel.sim.pushpull.plan import Input, Junction, Leaf, PushPullPlan


def from_planner(plan: MadePlan) -> PushPullPlan:
    """Give what the simulator needs of a plan."""
    composite = plan.composite
    order = tuple(part.name for part in composite.parts) if composite.operator == "seq" else None
    root = _junction(plan.root)
    is_any = composite.operator == "or"
    return PushPullPlan(
        root, composite.window_s, order, is_any, composite.request_b, is_amid=composite.is_amid
    )


def _junction(planned: Planned) -> Junction:
    turns = {number: turn for turn, stage in enumerate(planned.stages) for number in stage}
    inputs = []
    for number, each in enumerate(planned.junction.inputs):
        if isinstance(each, MadeJunction):
            inputs.append(
                Input(_junction(planned.below[number]), turns[number], path=each.path, delay_s=each.delay_s)
            )
        else:
            part = each.part
            leaf = Leaf(part.name, part.at, part.size_b)
            inputs.append(
                Input(leaf, turns[number], negated=part.is_negated, path=each.path, delay_s=each.delay_s)
            )
    return Junction(planned.junction.at, planned.junction.at, tuple(inputs))
