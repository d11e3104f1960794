"""The engine finds exactly what the reference finds: on random graphs, events, batches and orders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, in_batches, plain, session, whole, with_snapshots
from tests.reference.identity import identified
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


def without_ids(events):
    return event_table(events).drop_columns(["id"])


@given(st.data(), graphs(), event_lists())
def test_events_without_ids_get_those_of_the_reference_in_any_order(data, graph, events):
    rows = data.draw(st.permutations(events))
    answer = expected(graph, identified(events))
    assert plain(as_detections(detect(Query(graph), without_ids(rows)))) == plain(answer)


@pytest.mark.slow
@given(st.data(), graphs(), event_lists(), st.sampled_from([0, SECOND, 3 * SECOND]))
def test_events_without_ids_get_the_same_ones_however_they_are_cut(data, graph, events, lateness):
    arriving = data.draw(arrivals(events, lateness))
    running, found = session(graph, lateness=lateness), []
    for batch in data.draw(cuts(arriving)):
        if batch:
            found.append(running.push(without_ids(batch)))
        saved = running.snapshot()
        running = session(graph, lateness=lateness)
        running.restore(saved)
    found.append(running.close())
    answer = expected(graph, identified(events))
    assert plain([each for table in found for each in as_detections(table)]) == plain(answer)


@given(graphs(), event_lists())
def test_detections_are_the_same_whether_ids_are_made_or_given(graph, events):
    given_ones = detect(Query(graph), event_table(identified(events)))
    made = detect(Query(graph), without_ids(events))
    assert made.to_pylist() == given_ones.to_pylist()


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


def test_a_pattern_over_windows_remembers_their_events_until_it_is_known():
    query = compile_text("""
        define Jam over 10 s every 1 s detect A as a assign n = count(a) having n > 1
        define X detect Jam as j then B as b within 5 s from j
    """)
    events = given_events("A@500ms A@9900ms B@14s C@16s C@18s C@20s C@22s C@24s C@26s C@40s")
    one_by_one = in_batches(query.graph, [[event] for event in events])
    assert plain(one_by_one) == plain(expected(query.graph, events)) != []
