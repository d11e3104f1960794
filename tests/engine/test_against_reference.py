"""The engine finds exactly what the reference finds: on random graphs, events, batches and orders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, in_batches, plain, whole, with_snapshots
from tests.reference.notation import given as given_events
from tests.reference.random_worlds import worlds
from tests.reference.strategies import FEATURES, arrivals, cuts, event_lists, expected, graphs
from tests.reference.tables import event_table

from whimbrel import detect
from whimbrel.graph.query import Query
from whimbrel.lang.wbl import compile_text

SECOND = 1_000_000


@given(graphs(), event_lists())
def test_the_engine_finds_what_the_reference_finds(graph, events):
    assert plain(whole(graph, events)) == plain(expected(graph, events))


@given(worlds, graphs(FEATURES - {"cell"}), event_lists(max_size=9))
def test_anywhere_on_the_globe_the_engine_finds_what_the_reference_finds(world, graph, events):
    graph, events = world.graph(graph), world.events(events)
    rows = event_table(events)
    rows = rows.rename_columns([{"x": "lon", "y": "lat"}.get(name, name) for name in rows.column_names])
    assert plain(as_detections(detect(Query(graph), rows))) == plain(expected(graph, events))


@given(st.data(), graphs(), event_lists(), st.sampled_from([0, SECOND, 3 * SECOND]))
def test_batches_and_arrival_order_change_nothing(data, graph, events, lateness):
    arriving = data.draw(arrivals(events, lateness))
    batches = data.draw(cuts(arriving))
    assert plain(in_batches(graph, batches, lateness)) == plain(expected(graph, events))


@given(st.data(), graphs(), event_lists(), st.sampled_from([0, 2 * SECOND]))
def test_snapshot_and_restore_between_batches_change_nothing(data, graph, events, lateness):
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    assert plain(with_snapshots(graph, batches, lateness)) == plain(expected(graph, events))


@pytest.mark.xfail(
    strict=True,
    reason="an event that an alternative over different streams shares with another part is two triggers",
)
def test_an_alternative_over_different_streams_is_one_trigger():
    query = compile_text("""
        define Copy detect A
        define Pair(v) detect (A as a or Copy as c) and A as b within 5 s assign v = 1 context recent
    """)
    events = given_events("A@0s A@0s")
    assert plain(whole(query.graph, events)) == plain(expected(query.graph, events))
