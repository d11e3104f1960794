"""Ways between many brokers at once are those that the search from each one finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.networks import hierarchy
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.routes import Routes, by_delay
from whimbrel.plan.trees import tree_of


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_ways_in_a_tree_are_the_shortest_ones(seed, size):
    draw = np.random.default_rng(seed)
    links = [
        Link(f"b{n}", f"b{draw.integers(n)}", draw.uniform(1, 9), draw.uniform(0, 5)) for n in range(1, size)
    ]
    network = Network(tuple(Broker(f"b{n}") for n in draw.permutation(size)), tuple(links))
    starts, ends = draw.integers(size, size=3), draw.integers(size, size=4)
    found = Routes(network, by_delay).between(starts, ends)
    slow = [Routes(network, by_delay).from_number(int(start)) for start in starts]
    np.testing.assert_allclose(found.delay_s, [ways.delay_s[ends] for ways in slow])
    np.testing.assert_allclose(found.narrowest_b_s, [ways.narrowest_b_s[ends] for ways in slow])


def test_a_ring_and_what_is_not_connected_are_no_trees():
    ring = (Link("a", "b"), Link("b", "c"), Link("c", "a"))
    brokers = tuple(Broker(name) for name in "abcd")
    assert tree_of(Network(brokers[:3], ring)) is None
    assert tree_of(Network(brokers, ring)) is None
    between = Routes(Network(brokers, ring), by_delay).between(np.array([0]), np.array([0, 1, 3]))
    assert between.delay_s.tolist() == [[0, 0, np.inf]]


def test_a_large_hierarchy_is_a_tree():
    network = hierarchy([(2, 2), (4, 4), (8, 8)])
    assert len(network.brokers) == 85
    assert tree_of(network) is not None
