"""Links and brokers that fail: ways round them, and tasks that go on where they were."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.test_fragment_session import rows
from tests.reference.strategies import event_lists, graphs
from tests.reference.tables import event_table
from tests.sim.test_query_run import HOSTS, QUERY, cars, how, line, networks

from experiments.query_run import QuerySettings, run_query
from whimbrel import detect
from whimbrel.graph.fragments import cut
from whimbrel.graph.query import Query
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.sim.clock import Clock
from whimbrel.sim.links import Links
from whimbrel.sim.messages import Message
from whimbrel.sim.outages import Failure
from whimbrel.sim.settings import Settings

LINKS = (("cloud", "left"), ("left", "far"), ("cloud", "right"), ("far", "right"))
times = st.floats(0.0, 12.0, allow_nan=False)


@st.composite
def failures(draw, links):
    """A few links and brokers that fail at any time, and come back."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        start = draw(times)
        end = start + draw(st.sampled_from([0.01, 0.4, 3.0, 20.0]))
        if draw(st.booleans()):
            found.append(Failure(start, end, broker=draw(st.sampled_from(HOSTS))))
        else:
            found.append(Failure(start, end, link=draw(st.sampled_from(links))))
    return tuple(found)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.data(), graphs(), event_lists(), networks(), how)
def test_whatever_fails_and_moves_the_detections_are_those_of_one_process(data, graph, events, network, how):
    if not events:
        return
    links = LINKS
    if data.draw(st.booleans(), label="ring"):
        network = replace(network, links=(*network.links, Link("far", "right", latency_s=0.3)))
    else:
        links = LINKS[:3]
    capacity = data.draw(st.sampled_from([math.inf, 1.0]))
    network = replace(network, brokers=tuple(replace(each, capacity=capacity) for each in network.brokers))
    query, table = Query(graph), event_table(events)
    tasks = [piece.name for piece in cut(query)]
    hosts = st.sampled_from(HOSTS)
    how = replace(
        how,
        failures=data.draw(failures(links)),
        notice_s=data.draw(st.sampled_from([0.0, 1.0, math.inf])),
        checkpoint_s=data.draw(st.sampled_from([0.0, 2.0, math.inf])),
        work=dict.fromkeys(tasks, 0.05),
    )
    moves = data.draw(st.lists(st.tuples(times, st.sampled_from(tasks), hosts), max_size=3))
    placement = {task: data.draw(hosts) for task in tasks}
    found = run_query(query, table, network, placement, moves=moves, settings=how)
    expected = rows([detect(query, table)])
    for consumer in ("one", "two"):
        assert rows([found.detections[consumer]]) == expected
    assert found.late == 0
    assert found.traffic.on_their_way == 0
    assert not found.traffic.drops
    assert all(move.started_s is not None for move in found.moves)


@pytest.mark.parametrize("checkpoint_s", [0.0, 3.0, math.inf])
def test_a_broker_that_fails_comes_back_to_where_it_was(checkpoint_s):
    fails = (Failure(8.2, 12.7, broker="edge"), Failure(15.5, 16.5, broker="edge"))
    how = QuerySettings(failures=fails, checkpoint_s=checkpoint_s)
    found = run_query(QUERY, cars(), line(latency_s=0.1), {"Fast": "edge", "Pair": "edge"}, settings=how)
    assert rows([found.detections["app"]]) == rows([detect(QUERY, cars())])
    stable = found.notes["stable"]
    assert (stable["checkpoints"] > 0) == math.isfinite(checkpoint_s)
    assert stable["log_b"] > 0
    assert stable["replayed"] > 0
    # What happened while the broker was down is told when it is back.
    assert found.delays_s["app"].max() == pytest.approx(12.7 - 9 + 0.1)


def test_without_recovery_a_broker_that_fails_forgets_and_streams_go_on():
    how = QuerySettings(failures=(Failure(8.2, 8.7, broker="edge"),), recovers=False)
    found = run_query(QUERY, cars(), line(), {"Fast": "edge", "Pair": "edge"}, settings=how)
    expected = rows([detect(QUERY, cars())])
    some = rows([found.detections["app"]])
    # Pairs are (6, 9), (7, 16), (8, 17), (9, 18) and (16, 19): the first three begin before the failure.
    assert some == [row for row in expected if row in some]
    assert len(some) == 2


class Ring:
    """Four brokers in a ring, a - b - c - d - a: from a to c by b, as d is further."""

    def __init__(self, *failures, **settings):
        links = tuple(
            Link(a, b, latency_s=latency, bandwidth_b_s=10.0)
            for a, b, latency in (("a", "b", 1.0), ("b", "c", 1.0), ("c", "d", 3.0), ("d", "a", 3.0))
        )
        self.clock = Clock()
        network = Network(tuple(Broker(name) for name in "abcd"), links)
        self.links = Links(network, self.clock, Settings(failures=failures, **settings))
        self.arrived = []
        self.links.receive["c"] = lambda _broker, content, _message: self.arrived.append(
            (content, pytest.approx(self.clock.now))
        )

    def send(self, time_s, content="m"):
        made = Message("a", "c", [content], 10.0)
        self.clock.at(time_s, lambda: self.links.send(made))

    def run(self):
        self.clock.run()
        return self.arrived


def test_messages_go_round_a_link_that_fails_once_that_is_known():
    ring = Ring(Failure(2.0, 60.0, link=("b", "c")), notice_s=5.0)
    for time in (0.0, 3.0, 10.0, 61.0):
        ring.send(time, time)
    # The first reaches b at 2 s, the second at 5 s; there they wait until 7 s, and go back by a and d.
    # The third goes by d from the start, and so comes before the second. The last finds b as it was.
    assert ring.run() == [(0.0, 17.0), (10.0, 18.0), (3.0, 19.0), (61.0, 65.0)]
    assert ring.links.traffic.on_their_way == 0


def test_messages_go_round_a_broker_that_fails_for_good():
    ring = Ring(Failure(0.5, math.inf, broker="b"), notice_s=0.0)
    ring.send(1.0)
    # By d: 1 + 3 and 1 + 3 seconds.
    assert ring.run() == [("m", 9.0)]


def test_what_was_on_a_link_to_a_broker_that_failed_is_sent_again():
    ring = Ring(Failure(1.5, 3.0, broker="b"), notice_s=math.inf)
    ring.send(0.0)
    # It would reach b at 2 s. It is sent again when b is back: 3 + 1 + 1, then 1 + 1.
    assert ring.run() == [("m", 7.0)]
    assert ring.links.traffic.whole.repeated == 1
    assert ring.links.traffic.whole.bytes == 30.0


def test_where_no_way_is_left_messages_wait():
    fails = [Failure(0.0, 20.0, link=("b", "c")), Failure(0.0, 40.0, link=("d", "c"))]
    ring = Ring(*fails, notice_s=0.0)
    ring.send(1.0)
    assert ring.run() == [("m", 22.0)]
