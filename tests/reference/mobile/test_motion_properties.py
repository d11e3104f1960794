"""Motions in interests: those of movers wherever they go, or those within the interest."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, plain, session
from tests.reference.data import order
from tests.reference.expressions import World
from tests.reference.mobile import Circle, found_in, timelines
from tests.reference.mobile.areas import lies_in
from tests.reference.mobile.deliveries import atoms_of
from tests.reference.mobile.strategies import mobile_queries, movements
from tests.reference.random_motions import crowds, encounter_graphs, motion_graphs, sample_lists
from tests.reference.tables import event_table

from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND

WORLD = World()
FEWER = settings(max_examples=max(8, settings.default.max_examples // 2))
WIDE = st.sampled_from((Circle(4.0), Circle(8.0), Circle(99.0)))


def following(graphs, motion):
    return st.tuples(graphs, WIDE).flatmap(
        lambda drawn: mobile_queries(graph=drawn[0], interest=drawn[1], motion=motion, excluding_itself=False)
    )


def said_between(graph, events, since, until):
    """What a session says after the watermark has passed `since` and until it has reached `until`."""
    running = session(graph, lateness=1000 * SECOND)
    if events:
        running.push(event_table(sorted(events, key=order)))
    running.advance(since - 1)
    return as_detections(running.close() if until is None else running.advance(until - 1))


def check_within(query, events):
    for line in timelines(query, events, WORLD):
        for one in line:
            chosen = atoms_of(query, one, one.start, events, WORLD)
            said = said_between(query.graph, chosen, one.start - query.lifetime, one.end)
            assert plain(said) == plain([each.detection for each in found_in(query, one, events, WORLD)])


def check_everywhere(query, events):
    by_id = {event.id: event for event in events}
    for line in timelines(query, events, WORLD):
        for one in line:
            said = said_between(query.graph, events, one.start - query.lifetime, one.end)
            inside = [
                each
                for each in said
                if all(lies_in(by_id[name], one.area, Coordinates.PLANE) for name in each.events)
            ]
            assert plain(inside) == plain([each.detection for each in found_in(query, one, events, WORLD)])


@FEWER
@given(following(motion_graphs(), "within the interest"), sample_lists(), movements(max_size=3))
def test_a_session_over_the_events_of_an_interest_finds_the_motions_within_it(query, samples, moves):
    check_within(query, [*samples, *moves])


@FEWER
@given(following(encounter_graphs(), "within the interest"), crowds(), movements(max_size=3))
def test_a_session_over_the_events_of_an_interest_finds_the_meetings_within_it(query, crowd, moves):
    check_within(query, [*crowd, *moves])


@FEWER
@given(following(motion_graphs(), "everywhere"), sample_lists(), movements(max_size=3))
def test_motions_are_those_of_one_run_of_which_every_event_lies_in_the_interest(query, samples, moves):
    check_everywhere(query, [*samples, *moves])


@FEWER
@given(following(encounter_graphs(), "everywhere"), crowds(), movements(max_size=3))
def test_meetings_are_those_of_one_run_of_which_every_event_lies_in_the_interest(query, crowd, moves):
    check_everywhere(query, [*crowd, *moves])
