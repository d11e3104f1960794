"""Assignments by flow: the volume against a naive count, the search against the optimum, local knowledge."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.drawing import draw, draw_network, draw_workload

from experiments.flow_optimum import place_exact
from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.plan.flow.baselines import centralised, hop_based
from whimbrel.plan.flow.model import FlowAssignment, FlowModel
from whimbrel.plan.flow.neighbourhood import plan_by_neighbourhoods
from whimbrel.plan.flow.tabu import place_by_flow
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.planners import plan_flow
from whimbrel.plan.settings import FlowSettings
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

LINE = Network(tuple(Broker(name) for name in "abcd"), (Link("a", "b"), Link("b", "c"), Link("c", "d")))
VIDEO = Feed("Video", 10, 100, "a")
FACES = Task("Faces", ("Video",), 1, 50, work=1)


def value_of(hosts, workload, network):
    return FlowAssignment(FlowModel(workload, network), hosts).value()


def naive_volume(hosts, workload, network):
    """Count every stream once for each broker that it goes to, times the hops."""
    graph = nx.Graph((link.a, link.b) for link in network.links)
    made = {**{feed.name: feed.at for feed in workload.feeds}, **hosts}
    ends = {(name, hosts[task.name]) for task in workload.tasks for name in task.inputs}
    ends |= {(delivery.stream, delivery.at) for delivery in workload.deliveries}
    return sum(
        workload.stream(name).bytes_s
        * (nx.shortest_path_length(graph, made[name], to) if made[name] != to else 0)
        for name, to in ends
    )


def test_a_task_runs_where_its_content_is_if_its_result_is_smaller():
    workload = Workload((VIDEO,), (FACES,), (Delivery("Faces", "d"),))
    assert place_by_flow(workload, LINE) == {"Faces": "a"}
    assert value_of({"Faces": "a"}, workload, LINE).volume_b_s == 150
    assert value_of({"Faces": "d"}, workload, LINE).volume_b_s == 3000


def test_a_stream_goes_once_to_a_broker_that_runs_two_of_its_readers():
    bodies = Task("Bodies", ("Video",), 1, 50)
    workload = Workload((VIDEO,), (FACES, bodies), ())
    assert value_of({"Faces": "b", "Bodies": "b"}, workload, LINE).volume_b_s == 1000
    assert value_of({"Faces": "b", "Bodies": "c"}, workload, LINE).volume_b_s == 3000


def test_a_broker_without_capacity_is_left_out():
    network = Network((Broker("a", capacity=0.5), Broker("b"), Broker("c")), (Link("a", "b"), Link("b", "c")))
    workload = Workload((VIDEO,), (FACES,), (Delivery("Faces", "c"),))
    assert place_by_flow(workload, network) == {"Faces": "b"}
    assert place_exact(workload, network) == {"Faces": "b"}


def test_a_narrow_link_moves_a_task():
    narrow = Network(
        (Broker("a"), Broker("b"), Broker("c", capacity=0)),
        (Link("a", "b", bandwidth_b_s=100), Link("b", "c")),
    )
    grown = Task("Grown", ("Video",), 1, 2000, work=1)
    workload = Workload((Feed("Video", 1, 90, "a"),), (grown,), (Delivery("Grown", "c"),))
    assert place_by_flow(workload, narrow) == place_exact(workload, narrow) == {"Grown": "b"}


@pytest.mark.parametrize("planner", [place_by_flow, place_exact])
def test_what_cannot_be_assigned_is_told(planner):
    network = Network((Broker("a", capacity=0.5), Broker("b", capacity=0.5)), (Link("a", "b"),))
    with pytest.raises(NoPlanError, match="no assignment of 1 tasks"):
        planner(Workload((VIDEO,), (FACES,), ()), network)


def test_a_host_is_needed_for_every_task_and_a_place_for_every_feed():
    with pytest.raises(NetworkError, match="no broker is given for the task 'Faces'"):
        FlowAssignment(FlowModel(Workload((VIDEO,), (FACES,), ()), LINE), {})
    with pytest.raises(NetworkError, match="place what moves first"):
        FlowModel(Workload((Feed("Video", 1, 1, "bus"),), (), ()), LINE)


@given(st.integers(0, 10_000))
def test_the_volume_is_what_a_naive_count_gives_however_tasks_moved(seed):
    workload, network = draw(seed)
    rng = random.Random(seed)
    model = FlowModel(workload, network)
    flows = FlowAssignment(model, dict.fromkeys(model.tasks, "b0"))
    for _ in range(20):
        flows.move(rng.randrange(len(model.tasks)), rng.randrange(len(network.brokers)))
    assert flows.value().volume_b_s == pytest.approx(naive_volume(flows.hosts, workload, network))
    again = FlowAssignment(model, flows.hosts)
    assert again.value().overload == pytest.approx(flows.value().overload, abs=1e-6)
    assert again.load == pytest.approx(flows.load, abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_is_valid_and_never_below_the_optimum(seed):
    workload, network = draw(seed)
    best = value_of(place_exact(workload, network), workload, network)
    found = value_of(place_by_flow(workload, network), workload, network)
    assert best.is_valid
    assert found.is_valid
    assert best.volume_b_s <= found.volume_b_s * (1 + 1e-9) + 1e-6
    assert found.volume_b_s <= 1.05 * best.volume_b_s + 1e-6


@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_trying_everything(seed):
    rng = random.Random(seed)
    network = draw_network(rng, 3)
    workload = draw_workload(rng, network, 4)
    names = [task.name for task in workload.tasks]
    every = [{}]
    for name in names:
        every = [{**hosts, name: broker.name} for hosts in every for broker in network.brokers]
    best = min(value_of(hosts, workload, network) for hosts in every)
    assert best.is_valid
    found = value_of(place_exact(workload, network), workload, network)
    assert found.volume_b_s == pytest.approx(best.volume_b_s)


@pytest.mark.parametrize("seed", range(6))
def test_less_flows_than_with_any_baseline(seed):
    workload, network = draw(seed, (6, 10), (4, 8))
    found = value_of(place_by_flow(workload, network), workload, network)
    for baseline in (hop_based, centralised):
        assert found <= value_of(baseline(workload, network), workload, network)


def test_brokers_that_see_everything_settle_on_the_plan_of_one_that_does():
    workload, network = draw(4, (10, 10), (8, 8))
    settled = plan_by_neighbourhoods(workload, network, radius=10, patience=20)
    best = value_of(place_by_flow(workload, network), workload, network)
    assert settled.value.is_valid
    assert settled.value.volume_b_s == pytest.approx(best.volume_b_s)
    assert settled.value == value_of(settled.hosts, workload, network)


def test_brokers_that_see_little_hand_tasks_on_step_by_step():
    grown = Workload((VIDEO,), (Task("Grown", ("Video",), 1, 2_000),), (Delivery("Grown", "d"),))
    settled = plan_by_neighbourhoods(grown, LINE, radius=1)
    assert settled.hosts == {"Grown": "d"}
    assert settled.history == (5000, 4000, 3000, 3000)
    assert settled.messages > 0


def test_what_lies_beyond_the_vicinity_is_not_known():
    both = Task("Both", ("Video", "Alarm"), 1, 1)
    far = Workload((VIDEO, Feed("Alarm", 1, 9_000, "d")), (both,), ())
    assert plan_by_neighbourhoods(far, LINE, radius=1, start={"Both": "a"}).hosts == {"Both": "a"}
    assert plan_by_neighbourhoods(far, LINE, radius=3, start={"Both": "a"}).hosts == {"Both": "d"}


def test_a_plan_is_kept_if_little_would_be_saved(caplog):
    caplog.set_level("INFO", "whimbrel.plan")
    workload = Workload((VIDEO,), (FACES,), (Delivery("Faces", "d"),))
    louder = Workload((Feed("Video", 10, 4.9, "a"),), (FACES,), (Delivery("Faces", "d"),))

    def replan(workload: Workload, previous: dict[str, str], least_gain: float = 0.05) -> dict[str, str]:
        settings = FlowSettings(previous=previous, least_gain=least_gain)
        return dict(plan_flow(workload, LINE, settings=settings).hosts)

    assert replan(workload, {"Faces": "d"}) == {"Faces": "a"}
    assert replan(louder, {"Faces": "a"}) == {"Faces": "a"}
    assert replan(louder, {"Faces": "a"}, least_gain=0.0) == {"Faces": "d"}
    assert replan(workload, {"Faces": "gone"}) == {"Faces": "a"}
    logged = [record.getMessage() for record in caplog.records]
    assert [line.partition(" of ")[0] for line in logged] == [
        "planned again: 1",
        "planned again: 0",
        "planned again: 1",
        "planned again: 1",
    ]


@pytest.mark.parametrize("seed", range(4))
def test_grouped_tasks_that_are_made_of_each_other_run_on_one_broker(seed):
    workload, network = draw(seed)
    hosts = place_by_flow(workload, network, grouped=True)
    for task in workload.tasks:
        assert {hosts[name] for name in task.inputs if name in hosts} <= {hosts[task.name]}
    apart = value_of(place_by_flow(workload, network), workload, network)
    assert apart.volume_b_s <= value_of(hosts, workload, network).volume_b_s * (1 + 1e-9)
