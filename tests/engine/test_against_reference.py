"""The engine finds exactly what the reference finds: on random graphs, events, batches and orders."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import in_batches, plain, whole, with_snapshots
from tests.reference.strategies import arrivals, cuts, event_lists, expected, graphs

SECOND = 1_000_000


@given(graphs(), event_lists())
def test_the_engine_finds_what_the_reference_finds(graph, events):
    assert plain(whole(graph, events)) == plain(expected(graph, events))


@given(st.data(), graphs(), event_lists(), st.sampled_from([0, SECOND, 3 * SECOND]))
def test_batches_and_arrival_order_change_nothing(data, graph, events, lateness):
    arriving = data.draw(arrivals(events, lateness))
    batches = data.draw(cuts(arriving))
    assert plain(in_batches(graph, batches, lateness)) == plain(expected(graph, events))


@given(st.data(), graphs(), event_lists(), st.sampled_from([0, 2 * SECOND]))
def test_snapshot_and_restore_between_batches_change_nothing(data, graph, events, lateness):
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    assert plain(with_snapshots(graph, batches, lateness)) == plain(expected(graph, events))
