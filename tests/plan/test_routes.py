"""Shortest ways, and when links are up."""

from __future__ import annotations

import pytest

from whimbrel.errors import NetworkError
from whimbrel.plan.contacts import ALWAYS, ContactPlan, PeriodicContacts
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.routes import Routes, by_cost, by_delay, by_hops

SQUARE = Network(
    tuple(Broker(name) for name in "abcde"),
    (
        Link("a", "b", latency_s=1, cost=5, bandwidth_b_s=10),
        Link("b", "c", latency_s=1, cost=5, bandwidth_b_s=20),
        Link("a", "d", latency_s=3, cost=1),
        Link("d", "c", latency_s=3, cost=1, contacts=PeriodicContacts(100, 1)),
        Link("a", "c", latency_s=9, cost=20),
    ),
)


def test_a_way_is_shortest_by_what_is_asked():
    assert Routes(SQUARE).path("a", "c") == ("a", "b", "c")
    assert Routes(SQUARE, by_cost).path("a", "c") == ("a", "d", "c")
    assert Routes(SQUARE, by_hops).path("a", "c") == ("a", "c")
    assert Routes(SQUARE, by_delay).path("d", "c") == ("d", "a", "b", "c")


def test_all_measures_are_told_along_the_way():
    routes = Routes(SQUARE)
    ways, to = routes.from_broker("a"), SQUARE.number["c"]
    told = (ways.weight[to], ways.latency_s[to], ways.hops[to], ways.narrowest_b_s[to])
    assert told == (2, 2, 2, 10)
    assert [link.cost for link in routes.links("a", "c")] == [5, 5]


def test_where_no_way_leads():
    with pytest.raises(NetworkError, match="no way leads from 'a' to 'e'"):
        Routes(SQUARE).path("a", "e")


def test_contacts_by_turns():
    contacts = PeriodicContacts(down_s=8, up_s=2, phase_s=3)
    assert contacts.after(0) == (3, 5)
    assert contacts.after(4) == (3, 5)
    assert contacts.after(5) == (13, 15)
    assert contacts.after(-6) == (-7, -5)
    assert (contacts.longest_wait_s, contacts.share) == (8, 0.2)


def test_listed_contacts():
    contacts = ContactPlan(((1, 2), (5, 6)))
    assert contacts.after(0) == (1, 2)
    assert contacts.after(2) == (5, 6)
    assert contacts.after(6) is None
    assert (contacts.longest_wait_s, contacts.share) == (3, pytest.approx(2 / 6))
    assert ALWAYS.after(7) == (7, float("inf"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Network(()), "without brokers"),
        (lambda: Network((Broker("a"), Broker("a"))), "two brokers are named 'a'"),
        (lambda: Network((Broker("edge"),), (Link("edge", "edgy"),)), "did you mean 'edge'"),
        (lambda: Network((Broker("a"),), (Link("a", "a"),)), "leads to where it begins"),
        (lambda: Network((Broker("a", area=(0, 0, 0, 1)),)), "area of broker 'a' is empty"),
        (lambda: Network((Broker("a"), Broker("b")), (Link("a", "b", loss=1),)), "loses everything"),
        (
            lambda: Network((Broker("a"), Broker("b")), (Link("a", "b", latency_s=float("nan")),)),
            "latency of nan",
        ),
        (lambda: ContactPlan(((2, 1),)), "list contacts as"),
        (lambda: PeriodicContacts(1, 0), "up time above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(NetworkError, match=words):
        make()
