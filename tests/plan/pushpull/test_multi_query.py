"""Plans for several composite events: what they share, what does not fit, what changes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.pushpull.drawing import draw_composite, draw_tree
from tests.plan.pushpull.test_pushpull import BOTH, FORK, OFTEN

from whimbrel.plan.contacts import PeriodicContacts
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent
from whimbrel.plan.pushpull.multi_query import (
    cost_of,
    load_of,
    load_together,
    overloaded,
    plan_multi_query,
    priced,
    replan,
)

THIRD = PrimitiveEvent("third", "b", 0.002, 100)
OTHER = Composite("other", "and", (OFTEN, THIRD), 10, "sink", 360)


def test_what_two_plans_send_alike_counts_once():
    twin = replace(BOTH, name="twin")
    plans = plan_multi_query([BOTH, twin], FORK)
    single = plan_multi_query([BOTH], FORK)
    requests = 56 * 0.001
    assert plans.cost_s == pytest.approx(single.cost_s + requests)


def test_a_plan_uses_what_is_sent_anyway():
    eager = replace(BOTH, tolerance_s=360)
    together = plan_multi_query([eager, replace(OTHER, tolerance_s=3600)], FORK)
    apart = (
        plan_multi_query([eager], FORK).cost_s
        + plan_multi_query([replace(OTHER, tolerance_s=3600)], FORK).cost_s
    )
    assert together.cost_s < apart


def test_what_does_not_fit_is_left_out_by_priority():
    narrow = replace(FORK, links=(replace(FORK.links[0], bandwidth_b_s=3.6), *FORK.links[1:]))
    # On so narrow a link what waited for it takes some 1,490 s; there is no time for pulls.
    urgent, other = replace(BOTH, tolerance_s=1_880), replace(OTHER, tolerance_s=1_880)
    plans = plan_multi_query([urgent, other], narrow, priority={"other": 1.0})
    assert set(plans.plans) == {"other"}
    assert "the link from mid to sink would carry" in plans.left_out["both"]
    assert overloaded(plans) == []
    assert set(plan_multi_query([urgent, other], narrow, priority={"both": 1.0}).plans) == {"both"}


def test_what_cannot_be_planned_is_told_and_the_rest_is_planned():
    plans = plan_multi_query([BOTH, replace(OTHER, tolerance_s=10)], FORK)
    assert set(plans.plans) == {"both"}
    assert "cannot be known within 10 s" in plans.left_out["other"]


def test_only_what_is_touched_is_planned_again(caplog):
    caplog.set_level("INFO", "whimbrel.plan")
    rng = random.Random(5)
    network = draw_tree(rng, 12)
    several = [draw_composite(rng, network, 3, name=f"ce{n}") for n in range(4)]
    several = [replace(each, tolerance_s=9000) for each in several]
    plans = plan_multi_query(several, network, rounds=0)
    used = {frozenset(hop) for hop, _ in load_of(plans.plans["ce0"])}
    dearer = replace(
        network,
        links=tuple(
            replace(link, cost=link.cost * 3) if frozenset((link.a, link.b)) in used else link
            for link in network.links
        ),
    )
    again = replan(plans, dearer)
    for name, plan in plans.plans.items():
        is_touched = any(frozenset(hop) in used for hop, _ in load_of(plan))
        assert (again.plans[name] is plan) == (not is_touched)
        fresh = plan_pushpull(plan.composite, dearer)
        assert again.plans[name].estimate.cost_s == pytest.approx(fresh.estimate.cost_s)
    fewer = replan(again, dearer, remove=["ce1"], add=[replace(BOTH, at="v0", parts=several[0].parts)])
    assert set(fewer.plans) == {"ce0", "ce2", "ce3", "both"}
    assert all(fewer.plans[name] is again.plans[name] for name in ("ce0", "ce2", "ce3"))
    assert caplog.messages[-1] == "planned again: 1 of 4 plans sought anew, 3 as before, 0 events left out"


def test_a_plan_can_be_priced_for_another_network():
    plan = plan_pushpull(BOTH, FORK)
    double = replace(FORK, links=tuple(replace(link, cost=2 * link.cost) for link in FORK.links))
    assert priced(plan, FORK) == plan
    assert priced(plan, double).estimate.cost_s == pytest.approx(2 * plan.estimate.cost_s)


# -- properties --------------------------------------------------------------------------------------------


def draw_several(rng, brokers=8, count=3):
    """Draw a tree, and composite events that have parts in common."""
    network = draw_tree(rng, brokers)
    pool = draw_composite(rng, network, 5).parts
    several = []
    for number in range(count):
        parts = tuple(rng.sample(pool, rng.randint(2, 3)))
        operator = rng.choice(["and", "and", "seq"])
        tolerance = rng.choice([1800, 3600, 9000])
        several.append(Composite(f"ce{number}", operator, parts, rng.choice([30, 120]), "v0", tolerance))
    return network, several


def squeezed(rng, network):
    """Give some links little bandwidth, and some brokers little storage."""
    links = [replace(link, bandwidth_b_s=rng.choice([1e6, 20.0, 2.0])) for link in network.links]
    brokers = [replace(each, storage_b=rng.choice([1e9, 1e9, 2_000.0])) for each in network.brokers]
    return replace(network, links=tuple(links), brokers=tuple(brokers))


@given(st.integers(0, 10_000))
def test_shared_plans_never_cost_more_than_single_ones(seed):
    network, several = draw_several(random.Random(seed))
    plans = plan_multi_query(several, network)
    single = sum(plan_pushpull(plan.composite, network).estimate.cost_s for plan in plans.plans.values())
    assert plans.cost_s <= single * (1 + 1e-9)
    assert all(plan.keeps_tolerance for plan in plans.plans.values())
    # What they share is at least what any of them needs, and at most what all do.
    loads = [load_of(plan) for plan in plans.plans.values()]
    for key, rate in load_together(plans.plans.values()).items():
        each = [load.get(key, 0.0) for load in loads]
        assert max(each) * (1 - 1e-9) <= rate <= sum(each) * (1 + 1e-9)
    assert cost_of(plans.load, network) == pytest.approx(plans.cost_s)


@given(st.integers(0, 10_000))
def test_what_is_kept_fits_and_nothing_is_left_out_for_what_matters_less(seed):
    rng = random.Random(seed)
    network, several = draw_several(rng)
    network = squeezed(rng, network)
    several = [replace(each, tolerance_s=1e6) for each in several]
    priority = {each.name: float(rank) for rank, each in enumerate(rng.sample(several, len(several)))}
    plans = plan_multi_query(several, network, priority=priority, rounds=0)
    assert overloaded(plans) == []
    assert overloaded(plan_multi_query(several, network, priority=priority)) == []
    assert set(plans.plans) | set(plans.left_out) == {each.name for each in several}
    assert set(plans.left_out) == set(plans.waiting)
    # As if what matters less were not there at all.
    for name in plans.left_out:
        above = [each for each in several if priority[each.name] >= priority[name]]
        assert name in plan_multi_query(above, network, priority=priority, rounds=0).left_out


def changed_network(rng, network):
    """Make one link dearer, cheaper, slower or quicker."""
    place = rng.randrange(len(network.links))
    link = network.links[place]
    about = rng.choice(
        [
            {"cost": link.cost * 4},
            {"cost": link.cost / 4},
            {"contacts": PeriodicContacts(rng.choice([10, 600]), 60)},
        ]
    )
    links = [replace(each, **about) if n == place else each for n, each in enumerate(network.links)]
    return replace(network, links=tuple(links)), link


@given(st.integers(0, 10_000))
def test_planning_again_is_as_good_as_before_and_from_scratch_and_touches_what_changed(seed):
    rng = random.Random(seed)
    network, several = draw_several(rng)
    plans = plan_multi_query(several, network, rounds=0)
    other, link = changed_network(rng, network)
    again = replan(plans, other)
    scratch = plan_multi_query(several, other, rounds=0)
    assert set(again.plans) == set(scratch.plans)
    assert set(again.left_out) == set(scratch.left_out)
    assert overloaded(again) == []
    assert again.cost_s <= scratch.cost_s * (1 + 1e-9)
    for name, plan in again.plans.items():
        assert plan.keeps_tolerance
        assert priced(plan, other).estimate.cost_s == pytest.approx(plan.estimate.cost_s)
        if name in plans.plans:
            uses = any({link.a, link.b} == set(hop) for hop, _ in load_of(plans.plans[name]))
            assert uses or plan is plans.plans[name]


def test_what_could_not_be_planned_is_tried_again():
    hasty = replace(OTHER, tolerance_s=200)
    plans = plan_multi_query([BOTH, hasty], FORK)
    assert set(plans.left_out) == {"other"}
    quick = replace(FORK, links=(replace(FORK.links[0], contacts=PeriodicContacts(30, 60)), *FORK.links[1:]))
    again = replan(plans, quick)
    assert set(again.plans) == {"both", "other"}
    assert not again.left_out
    cut = replan(again, replace(quick, links=quick.links[:2]))
    assert set(cut.left_out) == {"both", "other"}
    assert "no way leads from" in cut.left_out["both"]
    assert set(replan(cut, quick).plans) == {"both", "other"}


def test_what_is_kept_until_it_is_asked_for_needs_storage():
    plan = plan_multi_query([BOTH], FORK)
    assert plan.plans["both"].root.below[0].stages == ((1,), (0,))
    small = replace(FORK, brokers=tuple(replace(each, storage_b=500.0) for each in FORK.brokers))
    # At a, 10 bytes a second are kept for longer than the 120 s until they can be asked for.
    assert any(said.startswith("broker a would keep") for said in overloaded(replace(plan, network=small)))
