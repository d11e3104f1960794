"""The part of a large network that plans look at, and costs that are found for all brokers at once."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.drawing import draw
from tests.plan.worlds import random_network, random_workload

from experiments.networks import grid, hierarchy
from whimbrel.errors import NoPlanError
from whimbrel.plan.areas import leaves
from whimbrel.plan.candidates import candidate_brokers
from whimbrel.plan.cost import Objective, evaluate, violations
from whimbrel.plan.exact import solve
from whimbrel.plan.greedy import place_greedily
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.picture import shown
from whimbrel.plan.placement_model import PlacementModel
from whimbrel.plan.planners import plan_centralised, plan_exact, plan_flow, plan_greedy
from whimbrel.plan.routes import Routes
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

TIERS = ((1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (96, 96))
FACTOR = 1.25
"""What local selection may cost more in a network that is no tree."""


def drawn(seed: int, brokers: int, tasks: int) -> tuple[Workload, Network]:
    """Draw a tree, with feeds and deliveries at a few of its brokers."""
    rng = random.Random(seed)
    names = [f"b{n}" for n in rng.sample(range(brokers), brokers)]
    links = tuple(
        Link(names[n], names[rng.randrange(n)], latency_s=rng.randrange(4), cost=rng.randrange(1, 4))
        for n in range(1, brokers)
    )
    network = Network(tuple(Broker(f"b{n}") for n in range(brokers)), links)
    return random_workload(rng, network, tasks), network


def cost(workload: Workload, network: Network, hosts: dict[str, str], objective: Objective) -> float:
    return evaluate(workload, network, hosts, objective).total.of(objective)


@given(st.integers(0, 10**6), st.sampled_from(Objective))
def test_in_a_tree_without_limits_the_best_hosts_are_on_the_ways(seed, objective):
    workload, network = drawn(seed, 3 + seed % 12, seed % 4)
    routes = Routes(network, objective.weight)
    few = candidate_brokers(workload, routes, more=0, small=0)
    assert few is not None
    found, best = (
        cost(workload, network, solve(PlacementModel(workload, network, objective, each))[0], objective)
        for each in (few, None)
    )
    assert found == pytest.approx(best, rel=1e-6, abs=1e-6)


@given(st.integers(0, 10**6), st.sampled_from(Objective))
def test_in_any_network_nearby_brokers_do_nearly_as_well(seed, objective):
    workload, network = draw(seed, brokers=(4, 12), tasks=(2, 4))
    rng = random.Random(seed)
    links = tuple(
        replace(link, latency_s=rng.choice([0.01, 0.05]), cost=rng.choice([1, 3])) for link in network.links
    )
    network = replace(network, links=links)
    routes = Routes(network, objective.weight)
    values = {}
    for more in (3, None):
        few = None if more is None else candidate_brokers(workload, routes, more=more, small=0)
        hosts = place_greedily(PlacementModel(workload, network, objective, few))
        costs = evaluate(workload, network, hosts, objective)
        is_valid = not violations(workload, network, costs)
        assert is_valid == (not PlacementModel(workload, network, objective).excess(hosts))
        values[more] = (not is_valid, costs.total.of(objective))
    if not values[3][0] and not values[None][0]:
        assert values[3][1] <= FACTOR * values[None][1] + 1e-6


@given(st.integers(0, 10**6), st.sampled_from(Objective))
def test_costs_of_all_brokers_at_once_are_those_of_each(seed, objective):
    rng = random.Random(seed)
    network = random_network(rng, rng.randrange(1, 6), movers=rng.randrange(2))
    workload = random_workload(rng, network, rng.randrange(1, 5))
    model = PlacementModel(workload, network, objective)
    hosts = {task.name: rng.choice(list(network.number)) for task in workload.tasks}
    group = rng.sample(workload.tasks, rng.randrange(1, len(workload.tasks) + 1))
    touched = dict.fromkeys(name for task in group for name in (*task.inputs, task.name))
    rest = sum(model.stream_cost(name, hosts) for name in model.streams if name not in touched)
    for broker, around in zip(model.candidates, model.costs_around(group, hosts), strict=True):
        tried = {**hosts, **{task.name: broker for task in group}}
        assert rest + around == pytest.approx(cost(workload, network, tried, objective), rel=1e-9, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 30))
def test_ways_in_a_tree_are_the_same_whether_searched_or_not(seed, brokers):
    _, network = drawn(seed, brokers, 0)
    with pytest.MonkeyPatch.context() as patch:
        level_by_level = Routes(network).from_number(seed % brokers)
        patch.setattr("whimbrel.plan.routes.MOST_LEVELS", 0)
        searched = Routes(network).from_number(seed % brokers)
    for name in Routes(network).from_number(0).__slots__:
        np.testing.assert_array_equal(getattr(level_by_level, name), getattr(searched, name))


def yard(network: Network, *, work: float = 0.0) -> Workload:
    """Two feeds in different corners that a chain of tasks in between makes something of."""
    first, *_, last = (broker.name for broker in leaves(network))
    feeds = (Feed("f", 10, 200, first), Feed("g", 10, 200, last))
    tasks = (
        Task("a", ("f",), 1, 200, work),
        Task("b", ("g",), 1, 200, work),
        Task("c", ("a", "b"), 1, 50, work),
    )
    # Each task works for up to half a second on what comes.
    return Workload(feeds, tasks, (Delivery("c", last, 3.0),))


def test_what_is_looked_at_are_ways_those_above_and_the_nearest():
    network = hierarchy(((1, 1), (3, 3), (15, 15)))
    workload = Workload((Feed("f", 1, 1, "fog-3-0-0"),), (), (Delivery("f", "fog-3-1-1"),))
    routes = Routes(network, Objective.BDP.weight)
    ways = ["cloud", "fog-1-0-0", "fog-2-0-0", "fog-3-0-0", "fog-3-1-1"]
    assert candidate_brokers(workload, routes, more=0) == tuple(ways)
    found = candidate_brokers(workload, routes, more=3)
    assert found is not None
    assert set(ways) < set(found)
    # All links are as long: the nearest others are one link away from the ways.
    assert {network[name].parent for name in set(found) - set(ways)} <= set(ways)
    assert len(found) == 8


def test_a_small_network_is_looked_at_whole():
    network = hierarchy()
    assert candidate_brokers(yard(network), Routes(network), more=0) is None
    assert plan_exact(yard(network), network).notes == ()


def test_brokers_that_can_run_nothing_are_not_counted():
    network = hierarchy(((1, 1), (3, 3), (15, 15)), capacity=1)
    feed, task = Feed("f", 1, 1, "fog-3-0-0"), Task("t", ("f",), 1, 1, work=2)
    workload = Workload((feed,), (task,), (Delivery("t", "fog-3-0-0"),))
    found = candidate_brokers(workload, Routes(network, Objective.BDP.weight), more=2)
    assert found is not None
    assert sum(network[name].capacity >= 2 for name in found) == 3 + 2


def test_where_those_nearby_have_no_room_more_are_looked_at():
    side = 16
    network = grid(side, side, capacity=0.0)
    far = f"{side - 1}-{side - 1}"
    brokers = tuple(replace(each, capacity=1.0) if each.name == far else each for each in network.brokers)
    network = replace(network, brokers=brokers)
    workload = Workload((Feed("f", 1, 1, "0-0"),), (Task("t", ("f",), 1, 1, 1.0),), (Delivery("t", "0-1"),))
    assert plan_greedy(workload, network).hosts == {"t": far}


@pytest.mark.slow
def test_a_delay_that_no_host_can_keep_is_told_at_once(monkeypatch):
    network = grid(16, 16)
    workload = replace(yard(network), deliveries=(Delivery("c", "15-15", latency_s=0.001),))
    looked = []
    monkeypatch.setattr(
        "whimbrel.plan.planners.place_greedily", lambda model: looked.append(model) or place_greedily(model)
    )
    with pytest.raises(NoPlanError, match="c would reach 15-15 after 150 ms, and has to after 1 ms"):
        plan_greedy(workload, network)
    assert [model.is_whole for model in looked] == [False]
    with pytest.raises(
        NoPlanError, match=r"nothing satisfies everything with the nearest \d+ of 256 brokers"
    ):
        plan_exact(workload, network)


def test_parts_of_a_large_network_that_are_not_connected_are_named():
    network = replace(grid(16, 16), links=grid(16, 16).links[:-2])
    with pytest.raises(NoPlanError, match="no way leads from"):
        plan_greedy(yard(network), network)


@pytest.mark.parametrize("planner", [plan_greedy, plan_flow, plan_exact, plan_centralised])
def test_ten_thousand_brokers_are_planned(planner):
    network = hierarchy(TIERS)
    workload = yard(network, work=0.5)
    assert len(network.brokers) > 10_000
    plan = planner(workload, network, Objective.FLOW)
    assert violations(workload, network, plan.costs) == ()
    if planner is not plan_centralised:
        # What passes the condition in one corner goes up 6 links and down 6; no more is to be sent.
        assert plan.costs.total.flow_b_s == 200 * 12
        assert (plan.hosts["a"], plan.hosts["b"]) == (workload.feeds[0].at, workload.feeds[1].at)
    if planner is plan_exact:
        assert plan.notes == ("34 of 10582 brokers were looked at: those nearby",)


def test_of_a_large_network_the_part_that_a_plan_is_about_is_drawn(tmp_path):
    network = hierarchy(TIERS)
    plan = plan_greedy(yard(network), network)
    part = shown(plan)
    assert set(plan.hosts.values()) <= set(part.number)
    assert {end for link in plan.costs.traffic_b_s for end in (link.a, link.b)} <= set(part.number)
    # Two corners, six levels up from each to what serves both, and the cloud above that.
    assert len(part.brokers) == 7 + 6 + 1
    plan.draw(str(tmp_path / "plan.svg"))
    assert "14 of 10,582 brokers" in (tmp_path / "plan.svg").read_text(encoding="utf-8")


def test_of_a_small_network_everything_is_drawn():
    network = hierarchy()
    assert shown(plan_greedy(yard(network), network)) is network
