"""What is estimated of push and pull plans is what the simulator measures when it carries them out.

Seeds are fixed, and events many enough that chance is well within what is allowed. Rates are those of the
events that were drawn: how many there are is no matter of the estimate.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from tests.plan.pushpull.drawing import draw_tree
from tests.plan.pushpull.test_pushpull import every_plan

from experiments.poisson import poisson_events, run_plan, run_together
from experiments.push_pull_planners import plan_all_push, plan_centralised_greedily
from whimbrel.plan.pushpull.baselines import plan_centralised
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.comet import plan_comet
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent
from whimbrel.plan.pushpull.multi_query import plan_multi_query
from whimbrel.plan.pushpull.plan import make_plan
from whimbrel.plan.pushpull.tree import detection_tree, is_negated

WINDOW_S = 60.0
SEEDS = (0, pytest.param(1, marks=pytest.mark.slow))
PLANNERS = (plan_all_push, plan_centralised, plan_centralised_greedily, plan_comet, plan_pushpull)


def drawn(seed, operator="and", parts=4, *, negated=False):
    """Draw a tree whose links take their time, and a composite event whose parts meet now and then."""
    rng = random.Random(seed)
    network = draw_tree(rng, 7)
    links = [replace(link, bandwidth_b_s=50_000.0, latency_s=2.0) for link in network.links]
    network = replace(network, links=tuple(links))
    often = 3.0 if operator == "seq" else 1.0  # so that they meet in order about as often
    places = [f"v{n}" for n in range(1, 7)]
    made = [
        PrimitiveEvent(
            f"p{n}",
            rng.choice(places),
            often * rng.choice([0.3, 0.5, 0.9]) / WINDOW_S,
            rng.choice([200.0, 1_000.0]),
        )
        for n in range(parts)
    ]
    if negated:
        made[1] = replace(made[1], is_negated=True)
    return network, Composite("ce", operator, tuple(made), WINDOW_S, "v0", math.inf)


def with_events(composite, seed, windows=2_500):
    """Draw events for so many windows; give the composite event with the rates that came out."""
    rates = {part.name: part.rate_hz * 60 for part in composite.parts}
    events = poisson_events(rates, windows * WINDOW_S, np.random.default_rng(seed))
    parts = (replace(part, rate_hz=len(events[part.name]) / (windows * WINDOW_S)) for part in composite.parts)
    return replace(composite, parts=tuple(parts)), events


def check(plan, network, events, off=0.1):
    """Compare what was estimated of a plan with what is measured."""
    found = run_plan(plan, network, events)
    assert not found.missed
    assert not found.invented
    assert found.cost_a_minute == pytest.approx(plan.estimate.cost_s * 60, rel=off)
    assert len(found.delays_s) > 0
    assert found.delays_s.max() <= plan.estimate.delay_s
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("operator", "negated"), [("and", False), ("seq", False), ("and", True), ("seq", True), ("or", False)]
)
def test_plans_cost_what_is_estimated_and_take_no_longer(operator, negated, seed):
    network, composite = drawn(seed, operator, negated=negated)
    composite, events = with_events(composite, seed)
    quick = plan_all_push(composite, network).estimate.delay_s
    slow = plan_pushpull(composite, network).estimate.delay_s
    seen = {}
    for tolerance in (quick, (quick + slow) / 2, slow):
        wanted = replace(composite, tolerance_s=tolerance)
        for planner in PLANNERS:
            plan = planner(wanted, network)
            seen.setdefault(plan.words(), plan)
    assert len(seen) > 1 or operator == "or"
    for plan in random.Random(seed).sample(list(seen.values()), min(2, len(seen))):
        check(plan, network, events)


@pytest.mark.parametrize("seed", SEEDS)
def test_asking_for_what_must_not_occur_in_the_whole_window_costs_what_is_estimated(seed):
    network, _ = drawn(seed)
    parts = (
        PrimitiveEvent("p0", "v1", 0.2 / WINDOW_S, 200.0),
        PrimitiveEvent("p1", "v6", 1 / WINDOW_S, 1_000.0, is_negated=True),
    )
    composite = Composite("ce", "and", parts, WINDOW_S, "v0", math.inf, is_amid=False)
    composite, events = with_events(composite, seed)
    plan = plan_pushpull(composite, network)
    found = run_plan(plan, network, events)
    assert any(is_negated(plan.root.junction.inputs[number]) for number in plan.root.stages[-1])
    assert len(plan.root.stages) > 1
    assert found.cost_a_minute == pytest.approx(plan.estimate.cost_s * 60, rel=0.1)
    assert not found.missed
    assert not found.invented
    # From the last event, and so with the time in which something may still spoil it.
    assert found.delays_s.max() <= plan.estimate.delay_s + WINDOW_S


@pytest.mark.parametrize("operator", ["and", "seq"])
@pytest.mark.parametrize("seed", SEEDS)
def test_any_plan_costs_what_is_estimated(operator, seed):
    """Also one that no planner would make."""
    network, composite = drawn(seed + 10, operator)
    composite, events = with_events(composite, seed)
    plans = list(every_plan(detection_tree(network, composite)))
    for root in random.Random(seed).sample(plans, 2):
        check(make_plan(composite, root), network, events)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_plans_share_costs_what_is_estimated(seed):
    rng = random.Random(seed)
    network, composite = drawn(seed, parts=5)
    composite, events = with_events(composite, seed)
    several = [
        replace(composite, name=name, parts=tuple(rng.sample(composite.parts, 3)), window_s=window_s)
        for name, window_s in (("one", WINDOW_S), ("other", WINDOW_S), ("third", WINDOW_S / 2))
    ]
    several = [replace(each, tolerance_s=rng.choice([1_200.0, 3_600.0])) for each in several]
    plans = plan_multi_query(several, network)
    assert set(plans.plans) == {"one", "other", "third"}
    used = {part.name for each in several for part in each.parts}
    events = {name: atoms for name, atoms in events.items() if name in used}
    found = run_together(plans.plans, network, events)
    for name, each in found.items():
        assert not each.missed
        assert not each.invented
        assert each.delays_s.max() <= plans.plans[name].estimate.delay_s
        assert each.cost_a_minute == pytest.approx(plans.cost_s * 60, rel=0.1)
    alone = sum(plan.estimate.cost_s for plan in plans.plans.values())
    assert plans.cost_s <= alone
