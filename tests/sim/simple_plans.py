"""Plans that need no planner: to compare with, and to begin from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from whimbrel.sim.pushpull.plan import Input, Junction, Leaf, PushPullPlan


def all_push(plan: PushPullPlan) -> PushPullPlan:
    """Push everything to the root, through junctions that find nothing themselves."""
    inputs = tuple(replace(each, turn=0) for _, each in plan.leaves())
    return replace(plan, root=replace(plan.root, inputs=inputs))


def push_through(plan: PushPullPlan) -> PushPullPlan:
    """Push everything, and let each junction pass on only what it can join."""
    return replace(plan, root=_pushed(plan.root))


def _pushed(junction: Junction) -> Junction:
    return replace(junction, inputs=tuple(_turned(each, 0, _pushed) for each in junction.inputs))


def _turned(each: Input, turn: int, below: object) -> Input:
    child = below(each.child) if isinstance(each.child, Junction) and callable(below) else each.child
    return replace(each, child=child, turn=turn)


def rarest_first(plan: PushPullPlan, rates_min: Mapping[str, float]) -> PushPullPlan:
    """Push the rarest input of each junction, and pull the others one by one, the rarest first."""

    def turned(junction: Junction) -> Junction:
        order = sorted(
            range(len(junction.inputs)),
            key=lambda n: (junction.inputs[n].negated, _rate(junction.inputs[n], plan, rates_min)),
        )
        turns = {number: turn for turn, number in enumerate(order)}
        return replace(
            junction,
            inputs=tuple(_turned(each, turns[n], turned) for n, each in enumerate(junction.inputs)),
        )

    return replace(plan, root=turned(plan.root))


def _rate(each: Input, plan: PushPullPlan, rates_min: Mapping[str, float]) -> float:
    """Estimate how often an input happens: parts that meet within the window."""
    if isinstance(each.child, Leaf):
        return rates_min[each.child.name]
    rates = [_rate(other, plan, rates_min) for other in each.child.inputs if not other.negated]
    window_min, found = plan.window_s / 60, rates[0]
    for rate in rates[1:]:
        found *= 2 * rate * window_min
    return found
