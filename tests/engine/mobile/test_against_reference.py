"""The engine tells of every interest what the reference tells, however events arrive."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.engine.mobile.comparing import as_told, compiled, in_batches, is_taken, sorted_told, with_snapshots
from tests.reference.matches import TooLarge
from tests.reference.mobile import Circle, Focal, MobileQuery, deliveries
from tests.reference.mobile.strategies import PLAIN, mobile_queries, moved_to, worlds_of_events
from tests.reference.strategies import arrivals, cuts

from whimbrel.graph.operators import Derive, DeriveCase, TimePoints
from whimbrel.lang.wbl import compile_text
from whimbrel.model.time import SECOND, TIME_POINT

TELLINGS = st.sampled_from(["all", "new", "changes"])


def expected(query, events):
    assume(is_taken(query))
    try:
        return sorted_told([as_told(each) for each in deliveries(query, events, limit=5_000)])
    except TooLarge:
        reject()


@given(mobile_queries(PLAIN), worlds_of_events())
def test_what_is_found_once(query, events):
    answer = expected(query, events)
    assert sorted_told(in_batches(compiled(query), [events])) == answer


@given(mobile_queries(), worlds_of_events())
def test_everything_at_once(query, events):
    answer = expected(query, events)
    assert sorted_told(in_batches(compiled(query), [events])) == answer


@given(st.data(), mobile_queries(), worlds_of_events(), st.sampled_from([0, SECOND, 3 * SECOND]), TELLINGS)
def test_batches_and_arrival_order_change_nothing(data, query, events, lateness, deliver):
    query = replace(query, deliver=deliver)
    answer = expected(query, events)
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    assert sorted_told(in_batches(compiled(query), batches, lateness)) == answer


@given(st.data(), mobile_queries(), worlds_of_events(), st.sampled_from([0, 2 * SECOND]), TELLINGS)
def test_snapshots_change_nothing(data, query, events, lateness, deliver):
    query = replace(query, deliver=deliver)
    answer = expected(query, events)
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    assert sorted_told(with_snapshots(compiled(query), batches, lateness)) == answer


def test_a_definition_of_a_window_or_a_time_point():
    """What it makes of windows is known later than it ends; the time point is an event like others."""
    text = "define X over 4 s every 2 s detect A as a assign n = count(a)"
    graph = compile_text(text).graph
    clock = TimePoints("clock", f"{TIME_POINT}1970-01-01T00:00:04.000000Z")
    graph = replace(
        graph,
        operators=tuple(
            replace(each, cases=(*each.cases, DeriveCase("clock", "t"))) if isinstance(each, Derive) else each
            for each in (clock, *graph.operators)
        ),
    )
    query = MobileQuery(graph, Focal("F"), Circle(1.0))
    events = moved_to([(0, 0.0, 0.0)])
    answer = sorted_told([as_told(each) for each in deliveries(query, events)])
    assert sorted_told(in_batches(compiled(query), [events])) == answer
