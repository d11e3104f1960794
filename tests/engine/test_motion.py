"""The engine finds the motions that the reference finds: on random motions, samples, batches and orders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import in_batches, plain, whole, with_snapshots
from tests.reference.random_motions import motion_graphs, sample_lists
from tests.reference.strategies import arrivals, cuts, expected

import whimbrel as wb

SECOND = 1_000_000

WARM = """
region R = box(0, 0, 4, 4)
define A detect T enters R margin 1 m between samples
define B detect T stays in R for 1 s
define C detect T stops for 1 s within 1 m
define D detect T approaches R by 1 m
"""


@pytest.fixture(scope="module", autouse=True)
def motion_kernels() -> None:
    rows = [{"id": str(n), "type": "T", "time": n, "x": 9.0 - 3 * n, "y": 1.0} for n in range(5)]
    wb.detect(wb.compile(WARM), rows)


@given(motion_graphs(), sample_lists())
def test_the_engine_finds_the_motions_that_the_reference_finds(graph, events):
    assert plain(whole(graph, events)) == plain(expected(graph, events))


@given(st.data(), motion_graphs(), sample_lists(), st.sampled_from([0, SECOND, 3 * SECOND]))
def test_batches_and_arrival_order_do_not_change_motions(data, graph, events, lateness):
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    assert plain(in_batches(graph, batches, lateness)) == plain(expected(graph, events))


@given(st.data(), motion_graphs(), sample_lists(), st.sampled_from([0, 2 * SECOND]))
def test_snapshots_do_not_change_motions(data, graph, events, lateness):
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    assert plain(with_snapshots(graph, batches, lateness)) == plain(expected(graph, events))
