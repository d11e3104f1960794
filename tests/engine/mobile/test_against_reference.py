"""The engine tells of every interest what the reference tells, however events arrive."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.engine.mobile.comparing import as_told, compiled, in_batches, is_taken, sorted_told, with_snapshots
from tests.reference.matches import TooLarge
from tests.reference.mobile import Always, Box, Circle, Focal, MobileQuery, deliveries
from tests.reference.mobile.strategies import PLAIN, mobile_queries, moved_to, movements, worlds_of_events
from tests.reference.mobile.test_motion_properties import following
from tests.reference.random_motions import crowds, encounter_graphs, motion_graphs, sample_lists
from tests.reference.strategies import FEW, arrivals, cuts

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


@given(
    mobile_queries(
        interest=Box(3.0, 3.0), completeness="strong", snap_m=2.0, excluding_itself=False, refresh=Always()
    ),
    worlds_of_events(),
    TELLINGS,
)
def test_interests_in_one_area_share_a_run_if_that_is_asked_for(query, events, deliver):
    query = replace(query, deliver=deliver)
    answer = expected(query, events)
    assert sorted_told(in_batches(compiled(query), [events])) == answer


@pytest.mark.slow
@pytest.mark.parametrize("motion", ["everywhere", "within the interest"])
@pytest.mark.parametrize(("graphs", "samples"), [(motion_graphs, sample_lists), (encounter_graphs, crowds)])
@FEW
@given(data=st.data())
def test_motions_and_meetings(graphs, samples, motion, data):
    query = data.draw(following(graphs(), motion))
    events = [*data.draw(samples()), *data.draw(movements(max_size=4))]
    answer = expected(query, events)
    batches = data.draw(cuts(data.draw(arrivals(events, SECOND))))
    assert sorted_told(in_batches(compiled(query), batches, SECOND)) == answer
