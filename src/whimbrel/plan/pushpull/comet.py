"""Plan as the paper does: turn pushes into pulls greedily, in two phases, on a tree and its shorted forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from whimbrel.errors import NoPlanError
from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.plan import (
    Estimate,
    JunctionPlan,
    PushPullPlan,
    Stages,
    all_pushed,
    in_order,
    make_plan,
)
from whimbrel.plan.pushpull.tree import BALANCE, Junction, VirtualTrees, detection_tree, is_negated

Gain = Callable[[Estimate, Estimate], float]


def ratio(before: Estimate, after: Estimate) -> float:
    """Weigh a conversion by what it saves for the time that it takes (cost-to-delay ratio)."""
    slower = after.delay_s - before.delay_s
    return (before.cost_s - after.cost_s) / slower if slower > 0 else math.inf


def saving(before: Estimate, after: Estimate) -> float:
    """Weigh a conversion by what it saves alone."""
    return before.cost_s - after.cost_s


def plan_comet(
    composite: Composite,
    network: Network,
    *,
    balance: float = BALANCE,
    phases: int = 2,
    gain: Gain = ratio,
) -> PushPullPlan:
    """Plan a composite event with the heuristics of Comet (section IV).

    Converts the tree as it is, and shorted at each level: O(levels x inputs^2) estimates of a plan, each
    O(inputs). It never takes a conversion back.

    Raises
    ------
    NoPlanError
        If not even pushing everything is quick enough.
    """
    tree = detection_tree(network, composite, balance)
    trees = VirtualTrees(tree)
    away = [frozenset(), *(trees.from_level(level) for level in range(tree.height - 1, 0, -1))]
    return best_of(convert(composite, trees.without(some), phases=phases, gain=gain) for some in away)


def best_of(plans: Iterable[PushPullPlan | None]) -> PushPullPlan:
    """Return the cheapest plan of those that keep the tolerance."""
    found = [plan for plan in plans if plan is not None]
    kept = [plan for plan in found if plan.keeps_tolerance]
    if not kept:
        quickest = min(found, key=lambda plan: plan.estimate.delay_s)
        raise NoPlanError(
            f"{quickest.composite.name!r} cannot be known within {quickest.composite.tolerance_s:g} s: with "
            f"everything pushed it takes {quickest.estimate.delay_s:g} s; allow more, or add quicker links"
        )
    return min(kept, key=lambda plan: (plan.estimate.cost_s, plan.estimate.delay_s))


def convert(composite: Composite, tree: Junction, *, phases: int = 2, gain: Gain = ratio) -> PushPullPlan:
    """Turn as many pushes into pulls as the tolerance allows (Comet, section IV-B).

    In phase one by themselves, the best ratio of cost saved to delay first; in phase two together with
    others.
    """
    plan = make_plan(composite, all_pushed(tree))
    for phase, moves in enumerate((_singly, _together)):
        while phase < phases:
            options = [make_plan(composite, root) for root in moves(composite, plan.root)]
            better = [
                other
                for other in options
                if other.keeps_tolerance and other.estimate.cost_s < plan.estimate.cost_s * (1 - 1e-12)
            ]
            if not better:
                break
            weigh = gain if phase == 0 else saving
            now = plan.estimate
            plan = max(better, key=lambda other: weigh(now, other.estimate))
    return plan


def _singly(composite: Composite, planned: JunctionPlan) -> Iterator[JunctionPlan]:
    """Iterate over the plans in which one more input is pulled by itself; pulls go from rare to frequent."""

    def stages(at: JunctionPlan) -> Iterator[Stages]:
        pushed, *pulled = at.stages
        for number in _convertible(at):
            single = sorted(
                [*(one for stage in pulled for one in stage), number],
                key=lambda n: composite.rate_hz(at.junction.inputs[n].parts),
            )
            rest = tuple(n for n in pushed if n != number)
            yield in_order(at.junction, (rest, *((n,) for n in single)))

    return changed(planned, stages)


def _together(_composite: Composite, planned: JunctionPlan) -> Iterator[JunctionPlan]:
    """Iterate over the plans in which one more input is pulled together with others."""

    def stages(at: JunctionPlan) -> Iterator[Stages]:
        pushed, *pulled = at.stages
        for number in _convertible(at):
            rest = tuple(n for n in pushed if n != number)
            for place, stage in enumerate(pulled):
                joined = (rest, *pulled[:place], (*stage, number), *pulled[place + 1 :])
                yield in_order(at.junction, joined)

    return changed(planned, stages)


def _convertible(at: JunctionPlan) -> Iterator[int]:
    """Iterate over the pushed inputs that could be pulled: something that has to occur stays pushed."""
    pushed = at.stages[0]
    wanted = [number for number in pushed if not is_negated(at.junction.inputs[number])]
    yield from (number for number in pushed if len(wanted) > 1 or number not in wanted)


def changed(
    planned: JunctionPlan, stages: Callable[[JunctionPlan], Iterator[Stages]]
) -> Iterator[JunctionPlan]:
    """Iterate over the plans that differ at one junction."""
    for some in stages(planned):
        yield replace(planned, stages=some)
    for number, below in planned.below.items():
        for other in changed(below, stages):
            yield replace(planned, below={**planned.below, number: other})
