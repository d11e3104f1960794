"""Messages over links, worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import NetworkError
from whimbrel.plan.contacts import ALWAYS, ContactPlan, PeriodicContacts
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.sim.clock import Clock
from whimbrel.sim.links import Links
from whimbrel.sim.messages import Message
from whimbrel.sim.outages import Failure
from whimbrel.sim.settings import Settings


class Line:
    """Brokers in a row, and when what arrived at the last one."""

    def __init__(self, *links, storage_b=math.inf, seed=0, **settings):
        names = "abcdef"[: len(links) + 1]
        brokers = tuple(Broker(name, storage_b=storage_b) for name in names)
        joined = tuple(Link(names[n], names[n + 1], **link) for n, link in enumerate(links))
        self.clock = Clock(seed)
        self.last = names[-1]
        self.links = Links(Network(brokers, joined), self.clock, Settings(**settings))
        self.arrived = []
        self.links.receive[self.last] = lambda _broker, content, _message: self.arrived.append(
            (content, pytest.approx(self.clock.now))
        )

    def send(self, time_s, size_b, content="m", **about):
        made = Message("a", self.last, [content], size_b, **about)
        self.clock.at(time_s, lambda: self.links.send(made))

    def run(self, until_s=math.inf):
        self.clock.run(until_s)
        return self.arrived


def content_of(drop):
    (content,) = drop.message.contents
    return content


def test_messages_take_turns_and_are_stored_before_they_go_on():
    line = Line(
        {"bandwidth_b_s": 100.0, "latency_s": 1.0, "cost": 2.0}, {"bandwidth_b_s": 50.0, "latency_s": 0.5}
    )
    line.send(0.0, 200.0, "first")
    line.send(0.0, 100.0, "second")
    # first: 2 s + 1 s, then 4 s + 0.5 s; second reaches b at 4 s and waits until 7 s for 2 s + 0.5 s.
    assert line.run() == [("first", 7.5), ("second", 9.5)]
    used = line.links.traffic
    assert (used.whole.bytes, used.whole.cost, used.whole.bdp) == (600.0, 300 * 2 + 300, 300 * 1 + 300 * 0.5)
    assert used.by_link["a", "b"].messages == 2
    assert sum(amount for _, amount in used.series("bytes")) == 600.0


def test_a_message_may_bring_several_something():
    brokers = tuple(Broker(name) for name in "abc")
    links = (Link("a", "b", latency_s=1.0), Link("b", "c", latency_s=1.0))
    clock, seen = Clock(), []
    network = Links(Network(brokers, links), clock)
    for name in "abc":
        network.receive[name] = lambda broker, content, _: seen.append((broker, content, clock.now))
    network.send(Message("a", "c", [1, 2], 10.0))
    network.send(Message("a", "a", [3], 10.0))
    clock.run()
    assert seen == [("a", 3, 0.0), ("c", 1, 2.0), ("c", 2, 2.0)]
    assert network.traffic.whole.bytes == 20.0
    assert (network.traffic.sent, network.traffic.arrived, network.traffic.on_their_way) == (3, 3, 0)


def test_a_message_waits_for_the_next_contact_and_is_cut_at_its_end():
    line = Line({"bandwidth_b_s": 10.0, "latency_s": 0.25, "contacts": PeriodicContacts(6.0, 4.0, 10.0)})
    line.send(5.0, 60.0)
    # Contacts from 10 to 14 and from 20 to 24: 40 bytes in the first, 20 in the second.
    assert line.run() == [("m", 22.25)]
    assert line.links.traffic.whole.messages == 1


def test_priority_decides_who_goes_when_the_link_comes_up():
    line = Line({"bandwidth_b_s": 10.0, "contacts": ContactPlan(((10.0, 100.0),))})
    line.send(0.0, 10.0, "data", priority=1)
    line.send(5.0, 10.0, "urgent", priority=0)
    assert line.run() == [("urgent", 11.0), ("data", 12.0)]


def test_after_the_last_contact_messages_stay_on_their_way():
    line = Line({"contacts": ContactPlan(((0.0, 1.0),))})
    line.send(2.0, 1.0)
    assert line.run() == []
    assert line.links.traffic.on_their_way == 1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"queue_b": 20.0}, "queue full"), ({"storage_b": 20.0}, "storage full")],
)
def test_what_does_not_fit_is_dropped_with_a_reason_the_worst_first(settings, reason):
    line = Line({"bandwidth_b_s": 10.0, "contacts": ContactPlan(((10.0, 100.0),))}, **settings)
    for content, priority in (("a", 1), ("b", 1), ("c", 0)):
        line.send(0.0, 10.0, content, priority=priority)
    assert [content for content, _ in line.run()] == ["c", "a"]
    assert [(content_of(drop), drop.reason) for drop in line.links.traffic.drops] == [("b", reason)]


def test_a_link_that_fails_delays_and_a_broker_that_fails_loses():
    failures = [Failure(0.5, 3.0, link=("b", "a")), Failure(10.0, 11.0, broker="b")]
    line = Line({"bandwidth_b_s": 10.0}, {"latency_s": 1.0}, failures=failures, recovers=False)
    line.send(0.0, 10.0, "late")
    line.send(9.5, 10.0, "gone")
    line.send(12.0, 10.0, "well")
    assert line.run() == [("late", 4.5), ("well", 14.0)]
    assert [(content_of(drop), drop.at, drop.reason) for drop in line.links.traffic.drops] == [
        ("gone", "b", "broker failed")
    ]


def test_failures_name_what_there_is():
    with pytest.raises(NetworkError, match="no link joins"):
        Line({}, failures=[Failure(0.0, 1.0, link=("a", "x"))])
    with pytest.raises(NetworkError, match="a broker or of a link"):
        Failure(0.0, 1.0)


def test_lost_messages_are_sent_again_if_they_are_reliable():
    line = Line({"bandwidth_b_s": 10.0, "loss": 0.5}, seed=3)
    for number in range(40):
        line.send(0.0, 1.0, number, reliable=number % 2 == 0)
    arrived = [content for content, _ in line.run()]
    used = line.links.traffic
    assert arrived == sorted(arrived)
    assert set(range(0, 40, 2)) <= set(arrived)
    assert {drop.reason for drop in used.drops} == {"lost on a link"}
    assert len(used.drops) == 40 - len(arrived)
    assert used.whole.messages == 40 + used.whole.repeated == used.whole.bytes


contacts = st.one_of(
    st.just(ALWAYS),
    st.builds(
        PeriodicContacts,
        st.integers(0, 5).map(float),
        st.integers(1, 5).map(float),
        st.integers(0, 5).map(float),
    ),
)
some_links = st.fixed_dictionaries(
    {
        "bandwidth_b_s": st.sampled_from([1.0, 7.0, 100.0, math.inf]),
        "latency_s": st.sampled_from([0.0, 0.1, 2.0]),
        "contacts": contacts,
        "loss": st.sampled_from([0.0, 0.3]),
    }
)


@given(
    st.lists(some_links, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30), st.booleans()), max_size=12),
    st.sampled_from([math.inf, 25.0]),
)
def test_nothing_is_lost_silently(links, messages, queue_b):
    line = Line(*links, queue_b=queue_b)
    for number, (time, size, reliable) in enumerate(messages):
        line.send(float(time), float(size), number, reliable=reliable)
    arrived = [content for content, _ in line.run()]
    dropped = [content_of(drop) for drop in line.links.traffic.drops]
    assert sorted(arrived + dropped) == list(range(len(messages)))
    assert line.links.traffic.on_their_way == 0
