"""Brokers with local knowledge: they settle, never go round, and with all knowledge make the global plan."""

from __future__ import annotations

import math

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.drawing import draw
from tests.plan.flow.test_flow import value_of

from experiments.buildings import VIDEO_B_S, logical_test, nursing_home
from experiments.flow_optimum import place_exact
from whimbrel.errors import NetworkError
from whimbrel.plan.flow.baselines import centralised, hop_based
from whimbrel.plan.flow.model import FlowAssignment, FlowModel
from whimbrel.plan.flow.neighbourhood import STEPS, flooded, plan_by_neighbourhoods
from whimbrel.plan.flow.tabu import place_by_flow
from whimbrel.plan.planners import plan_flow
from whimbrel.plan.settings import FlowSettings


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_brokers_settle_on_hosts_that_are_there_and_tell_their_volume(seed, radius):
    workload, network = draw(seed, (3, 6), (3, 5))
    settled = plan_by_neighbourhoods(workload, network, radius)
    assert len(settled.history) < STEPS
    assert set(settled.hosts) == set(workload.task)
    assert set(settled.hosts.values()) <= set(network.number)
    again = value_of(settled.hosts, workload, network)
    assert settled.value.volume_b_s == pytest.approx(again.volume_b_s)
    assert settled.value.overload == pytest.approx(again.overload, abs=1e-9)
    assert settled.messages >= len(network.brokers)


@pytest.mark.slow
@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_brokers_that_see_everything_make_the_global_plan(seed):
    workload, network = draw(seed, (3, 6), (3, 5))
    whole = value_of(place_by_flow(workload, network), workload, network)
    settled = plan_by_neighbourhoods(workload, network, len(network.brokers))
    assert settled.value.volume_b_s == pytest.approx(whole.volume_b_s)
    assert settled.value.is_valid


@pytest.mark.slow
@pytest.mark.parametrize("every", [100.0, 150.0, 200.0, 250.0, 300.0])
def test_who_sees_the_server_finds_the_best_of_the_logical_test(every):
    test = logical_test(every)
    best = value_of(place_exact(test.workload, test.network), test.workload, test.network).volume_b_s
    volumes = [plan_by_neighbourhoods(test.workload, test.network, radius).value for radius in range(1, 7)]
    assert all(value.is_valid for value in volumes)
    assert [value.volume_b_s for value in volumes[3:]] == pytest.approx([best] * 3)
    assert min(value.volume_b_s for value in volumes) >= best * (1 - 1e-9)
    assert best <= value_of(hop_based(test.workload, test.network), test.workload, test.network).volume_b_s


def test_short_sight_costs_most_where_there_is_most_to_do():
    test = logical_test(100.0)
    near, far = (plan_by_neighbourhoods(test.workload, test.network, radius) for radius in (1, 4))
    assert near.value.volume_b_s > 1.2 * far.value.volume_b_s
    assert near.messages < far.messages
    assert near.bytes < far.bytes


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_a_flood_is_passed_on_by_all_who_hear_of_it_with_hops_left(seed, radius):
    workload, network = draw(seed)
    graph = nx.Graph((link.a, link.b) for link in network.links)
    start = network.brokers[0].name
    heard, sent, speakers = {start}, 0, [start]
    for _ in range(radius):
        sent += len(speakers)
        speakers = sorted({name for speaker in speakers for name in graph[speaker]} - heard)
        heard |= set(speakers)
    assert flooded(FlowModel(workload, network), 0, radius) == sent


@pytest.mark.slow
@settings(max_examples=6)
@given(
    st.floats(0.0, 1.0),
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from([22_000.0, 25_000.0, math.inf]),
    st.sampled_from([0.3, 1.0, 3.0, math.inf]),
)
def test_by_flow_never_more_flows_in_the_home_than_by_hops_or_to_the_centre(
    left, floors, rooms, capacity, videos
):
    home = nursing_home(
        floors, rooms, left=left, capacity=capacity, bandwidth_b_s=max(videos, 5.1 * left) * VIDEO_B_S
    )
    found = value_of(place_by_flow(home.workload, home.network), home.workload, home.network)
    for hosts in (
        hop_based(home.workload, home.network),
        centralised(home.workload, home.network, at="server"),
    ):
        assert not value_of(hosts, home.workload, home.network).beats(found)


def test_a_home_has_a_number_of_floors_and_rooms_for_each_building():
    assert len(nursing_home(1, 2).network.brokers) == 3 * 2 + 2
    with pytest.raises(NetworkError, match="one for each of A, B1 and B2"):
        nursing_home((1, 2))


def test_packets_are_filled_one_by_one():
    home = nursing_home(1, 1, left=0.1)
    model = FlowModel(home.workload, home.network)
    hosts = centralised(home.workload, home.network, at="server")
    # Videos of 225 packets a frame over 1, 2 and 3 links; climate and faces come on top.
    videos = 20 * 225 * (1 + 2 + 3)
    assert videos < FlowAssignment(model, hosts).packets_s(1_500.0) < videos + 3


@pytest.mark.slow
@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 10.0]))
def test_replanning_is_valid_and_never_worse_than_staying_if_that_is_possible(seed, louder):
    workload, network = draw(seed, (3, 5), (3, 4))
    hosts = place_by_flow(workload, network)
    feeds = tuple(
        type(feed)(feed.name, feed.rate_hz * (louder if n == 0 else 1.0), feed.size_b, feed.at)
        for n, feed in enumerate(workload.feeds)
    )
    changed = type(workload)(feeds, workload.tasks, workload.deliveries)
    again = value_of(
        plan_flow(changed, network, settings=FlowSettings(previous=hosts)).hosts, changed, network
    )
    assert again.is_valid
    assert not value_of(hosts, changed, network).beats(again)
