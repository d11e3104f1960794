"""Planners against each other and against trying everything."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.worlds import random_network, random_workload

from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan.cost import Objective, evaluate, violations
from whimbrel.plan.exact import solve
from whimbrel.plan.flow.model import FlowAssignment, FlowModel
from whimbrel.plan.flow.neighbourhood import plan_by_neighbourhoods
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.placement_model import PlacementModel
from whimbrel.plan.planners import (
    PLANNERS,
    plan_centralised,
    plan_exact,
    plan_flow,
    plan_greedy,
    planner_named,
)
from whimbrel.plan.routes import Routes, by_hops
from whimbrel.plan.settings import ExactSettings, FlowSettings, MigrationSettings, Movement, PlacementSettings
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


def cost_of(plan) -> float:
    return plan.costs.total.of(plan.objective)


def limited(rng: random.Random, network: Network, workload: Workload) -> tuple[Network, Workload]:
    """Add limits that bind now and then. Not for movers, whose limits planners take too strictly."""
    links = tuple(replace(link, bandwidth_b_s=rng.choice([40, 120, float("inf")])) for link in network.links)
    deliveries = tuple(replace(each, latency_s=rng.choice([3, 6, 100])) for each in workload.deliveries)
    return replace(network, links=links), replace(workload, deliveries=deliveries)


@given(st.integers(0, 10**6), st.sampled_from(Objective), st.booleans())
def test_the_exact_planner_finds_what_trying_everything_finds(seed, objective, has_limits):
    rng = random.Random(seed)
    movers = 0 if has_limits else rng.randrange(2)
    network = random_network(rng, rng.randrange(1, 5), movers=movers, capacity=has_limits)
    workload = random_workload(rng, network, rng.randrange(4))
    if has_limits:
        network, workload = limited(rng, network, workload)
    idle, busy = [], []
    for hosts in itertools.product(network.number, repeat=len(workload.tasks)):
        named = dict(zip(workload.task, hosts, strict=True))
        tried = evaluate(workload, network, named, objective)
        if not violations(workload, network, replace(tried, bounds_s=tried.delays_s)):
            idle.append(tried.total.of(objective))
        if not violations(workload, network, tried):
            busy.append(tried.total.of(objective))
    if idle:
        hosts, _ = solve(PlacementModel(workload, network, objective))
        found = evaluate(workload, network, hosts, objective)
        assert found.total.of(objective) == pytest.approx(min(idle), rel=1e-6, abs=1e-6)
    if not busy:
        with pytest.raises(NoPlanError, match="nothing satisfies everything"):
            plan_exact(workload, network, objective)
        return
    for planner in (plan_exact, plan_greedy, plan_centralised):
        try:
            plan = planner(workload, network, objective)
        except NoPlanError:
            assert has_limits
            continue
        assert plan.workload == workload
        assert not violations(workload, network, plan.costs)
        assert cost_of(plan) >= min(busy) - 1e-6


SITE = Network(
    (Broker("edge", capacity=1), Broker("cloud")),
    (Link("edge", "cloud", bandwidth_b_s=5_000, latency_s=0.1),),
)
FILTER = Task("Face", ("camera",), 1, 100, work=0.5, window_b=10)
CAMERA = Workload((Feed("camera", 10, 1000, "edge"),), (FILTER,), (Delivery("Face", "cloud", 1.0),))


PLACERS = [name for name in PLANNERS if name != "pushpull"]
"""The planners that give tasks hosts."""


@pytest.mark.parametrize("name", PLACERS)
def test_every_planner_runs_the_task_where_its_input_is(name):
    plan = planner_named(name)(CAMERA, SITE, Objective.BDP)
    assert plan.to_dict()["hosts"] == {"Face": "edge"}
    assert "Face runs on edge, because 100 % of what it reads comes from there" in plan.words()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tasks": (replace(FILTER, work=3),)}, "link edge - cloud would have to carry 10 kB/s, and can"),
        (
            {"deliveries": (Delivery("Face", "cloud", 0.05),)},
            "Face would reach cloud after 170 ms, or 171 ms when links and brokers are busy, and has to",
        ),
    ],
)
@pytest.mark.parametrize("name", [name for name in PLACERS if name != "flow"])
def test_what_cannot_be_satisfied_is_named(name, change, words):
    with pytest.raises(NoPlanError, match=words):
        planner_named(name)(replace(CAMERA, **change), SITE, Objective.BDP)


STAR = Network(
    (Broker("edge", capacity=0), Broker("east"), Broker("west")),
    (
        Link("edge", "east", 1_000, latency_s=0.05, cost=1),
        Link("edge", "west", 1_000, cost=2),
    ),
)
SHARED = Workload(
    (Feed("in", 1, 100, "edge"), Feed("other", 0.1, 500, "edge")),
    (Task("t", ("in",), 1, 10, work=1),),
    (Delivery("t", "edge", 0.3), Delivery("other", "east")),
)


@pytest.mark.parametrize("planner", [plan_greedy, plan_exact])
def test_what_is_late_only_when_links_are_busy_is_planned_again(planner):
    # In the east it is cheaper, and in time unless 500 bytes of what else is sent there are in the way.
    calm = replace(SHARED, deliveries=(Delivery("t", "edge", 0.8), Delivery("other", "east")))
    plan = planner(calm, STAR, Objective.COST)
    assert plan.hosts == {"t": "east"}
    assert plan.costs.delays_s[0] == pytest.approx(0.21)
    assert plan.costs.bounds_s[0] == pytest.approx(0.71, rel=0.01)
    again = planner(SHARED, STAR, Objective.COST)
    assert again.hosts == {"t": "west"}
    assert again.workload == SHARED
    assert "some plans would be late when links or brokers are busy" in again.words()
    late = replace(SHARED, deliveries=(Delivery("t", "edge", 0.1), Delivery("other", "east")))
    with pytest.raises(NoPlanError, match=r"t would reach edge after \d+ ms, or \d+ ms when links"):
        planner(late, STAR, Objective.COST)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_brokers_that_know_their_vicinity_keep_the_plan_s_promises(seed, radius):
    rng = random.Random(seed)
    network = random_network(rng, rng.randrange(1, 6), capacity=True)
    workload = random_workload(rng, network, rng.randrange(4))
    try:
        plan = plan_flow(workload, network, settings=FlowSettings(radius=radius))
    except NoPlanError as error:
        assert "found no plan" in str(error)  # noqa: PT017 - it may fail, and then says so
        return
    assert plan.hosts == plan_by_neighbourhoods(workload, network, radius).hosts
    assert not violations(workload, network, plan.costs)
    sees_all = all(
        Routes(network, by_hops).from_broker(broker.name).hops.max() <= radius for broker in network.brokers
    )
    if sees_all:
        assert cost_of(plan) == pytest.approx(cost_of(plan_flow(workload, network)))


def test_the_flow_planner_says_by_how_much_it_fails():
    with pytest.raises(NoPlanError, match="overloads neither broker nor link"):
        plan_flow(replace(CAMERA, tasks=(replace(FILTER, work=3),)), SITE)


def test_parts_that_are_not_connected_are_named():
    split = Network((Broker("edge"), Broker("cloud")))
    with pytest.raises(NoPlanError, match="no way leads from 'cloud' to 'edge'"):
        plan_greedy(CAMERA, split)


def test_an_unknown_planner_is_named():
    with pytest.raises(NetworkError, match="no planner is named 'greedi'; did you mean 'greedy'"):
        planner_named("greedi")


@given(st.integers(0, 10**6))
def test_flow_is_what_the_flow_planner_counts(seed):
    """The planners for flow count in their own way, for speed; it is the same sum."""
    rng = random.Random(seed)
    network = random_network(rng, rng.randrange(1, 6))
    workload = random_workload(rng, network, rng.randrange(4))
    hosts = {task.name: rng.choice(list(network.number)) for task in workload.tasks}
    told = evaluate(workload, network, hosts, Objective.FLOW).running.flow_b_s
    assert told == pytest.approx(FlowAssignment(FlowModel(workload, network), hosts).value().volume_b_s)


@pytest.mark.parametrize("planner", [plan_greedy, plan_exact, plan_flow])
def test_previous_hosts_stay_unless_others_save_enough(planner):
    # On the edge 100 bytes a second cross the link, in the cloud 10,000.
    wide = Network(SITE.brokers, (Link("edge", "cloud", bandwidth_b_s=50_000, latency_s=0.1),))
    kind = (
        FlowSettings
        if planner is plan_flow
        else ExactSettings
        if planner is plan_exact
        else PlacementSettings
    )

    def hosts(previous: str, least_gain: float) -> str:
        made = planner(CAMERA, wide, settings=kind(previous={"Face": previous}, least_gain=least_gain))
        return made.hosts["Face"]

    assert hosts("cloud", 0.05) == "edge"
    assert hosts("cloud", 0.995) == "cloud"
    assert hosts("edge", 0.05) == "edge"
    assert hosts("gone", 0.995) == "edge"
    kept = planner(CAMERA, wide, settings=kind(previous={"Face": "cloud"}, least_gain=0.995))
    assert "Note: the previous hosts stay: others would save 99 %." in kept.words()
    # What no longer satisfies everything does not stay.
    settings = kind(previous={"Face": "cloud"}, least_gain=0.995)
    assert planner(CAMERA, SITE, settings=settings).hosts == {"Face": "edge"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PlacementSettings(least_gain=-1), "least_gain is -1"),
        (lambda: ExactSettings(time_limit_s=0), "time_limit_s is 0"),
        (lambda: FlowSettings(radius=0), "radius is 0; a broker sees"),
        (lambda: FlowSettings(radius=1, grouped=True), "neither group tasks"),
        (lambda: MigrationSettings(window_s=0), "window_s is 0"),
        (
            lambda: MigrationSettings(coordinated=True, movement=Movement.LINEAR),
            "agree by messages plan once",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, words):
    with pytest.raises(NetworkError, match=words):
        make()
