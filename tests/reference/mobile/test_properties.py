"""What must hold of every mobile query, whatever it asks: the lemmas and guarantees of mobile CEP."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, plain, session
from tests.reference.data import order
from tests.reference.expressions import World
from tests.reference.matches import TooLarge
from tests.reference.mobile import Always, Circle, deliveries, found_in, timelines
from tests.reference.mobile.additional_time import additional_time
from tests.reference.mobile.areas import lies_in
from tests.reference.mobile.deliveries import atoms_of
from tests.reference.mobile.knowing import found_among
from tests.reference.mobile.measures import keeps_order, measured
from tests.reference.mobile.quality import quality_of, read_by
from tests.reference.mobile.query import Quality
from tests.reference.mobile.strategies import ANCHORED, FOCAL, PLAIN, mobile_queries, worlds_of_events
from tests.reference.strategies import FEATURES, event_lists, graphs
from tests.reference.tables import event_table

from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND, TIME_POINT

PLANE = Coordinates.PLANE
WORLD = World(limit=5_000)
EVERYWHERE = Circle(1e6)


def told(query, events):
    try:
        return deliveries(query, events, limit=WORLD.limit)
    except TooLarge:
        reject()


def among(query, events):
    try:
        return found_among(query.graph, events, WORLD)
    except TooLarge:
        reject()


def interests_of(query, events):
    return [one for line in timelines(query, events, WORLD) for one in line]


def ids(found):
    return sorted(each.id for each in found)


@given(graphs(max_definitions=3), event_lists(), st.integers(0, 9 * SECOND))
def test_what_is_known_by_a_watermark_depends_on_the_events_up_to_it_alone(graph, events, watermark):
    seen = [event for event in events if event.end <= watermark]
    try:
        known = [found_among(graph, chosen, WORLD) for chosen in (events, seen)]
    except TooLarge:
        reject()
    one, other = (ids(each for each in found if each.known <= watermark) for found in known)
    assert one == other


@given(mobile_queries(), worlds_of_events())
def test_every_event_of_every_delivery_lies_in_its_interest(query, events):
    by_id = {event.id: event for event in events}
    interests = {(one.focal, one.number): one for one in interests_of(query, events)}
    for each in told(query, events):
        interest = interests[each.focal, each.interest]
        for name in each.detection.events:
            if name.startswith(TIME_POINT):
                continue  # it happens everywhere
            assert lies_in(by_id[name], interest.area, PLANE)
            assert interest.end is None or by_id[name].end < interest.end


@given(mobile_queries(), worlds_of_events())
def test_what_is_told_is_known_in_its_time_and_history_lives_no_longer_than_asked(query, events):
    interests = {(one.focal, one.number): one for one in interests_of(query, events)}
    for each in told(query, events):
        interest = interests[each.focal, each.interest]
        assert interest.start - query.lifetime <= each.known
        assert interest.end is None or each.known < interest.end
        assert each.live == (each.known >= interest.start)
        assert each.live or query.lifetime


@given(mobile_queries(), worlds_of_events(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(query, events, random):
    shuffled = random.sample(events, len(events))
    assert [each.id for each in told(query, shuffled)] == [each.id for each in told(query, events)]


@given(mobile_queries(), worlds_of_events())
def test_interests_of_one_object_follow_each_other_and_begin_with_a_location_update(query, events):
    for line in timelines(query, events, WORLD):
        assert [one.number for one in line] == list(range(1, len(line) + 1))
        for one, other in itertools.pairwise(line):
            assert one.end is not None
            assert one.start < one.end <= other.start
            assert query.silent is not None or one.end == other.start
        for one in line:
            assert one.samples[-1].end == one.start


@given(mobile_queries(FEATURES - ANCHORED), worlds_of_events())
def test_lemma_1_a_bounded_query_needs_nothing_from_before_its_initialization_points(query, events):
    assume(query.is_bounded)
    for interest in interests_of(query, events):
        since = interest.start - query.lifetime
        all_before = list(atoms_of(replace(query, lifetime=10**12), interest, interest.start, events, WORLD))
        expected = [
            each
            for each in among(query, all_before)
            if since <= each.known and (interest.end is None or each.known < interest.end)
        ]
        assert ids(found_in(query, interest, events, WORLD)) == ids(expected)


@given(mobile_queries(FEATURES - ANCHORED, refresh=Always(), lifetime=3 * SECOND), worlds_of_events())
def test_lemma_2_without_an_event_in_the_difference_of_two_interests_nothing_has_to_be_found_anew(
    query, events
):
    assume(query.is_bounded and not query.excluding_itself)
    back = max(additional_time(query.graph).values(), default=0)
    for line in timelines(query, events, WORLD):
        for one, other in itertools.pairwise(line):
            since = other.start - query.lifetime
            recent = [e for e in read_by(query.graph, events) if since - back <= e.end < other.start]
            if any(lies_in(e, one.area, PLANE) != lies_in(e, other.area, PLANE) for e in recent):
                continue
            history = [each for each in found_in(query, other, events, WORLD) if each.known < other.start]
            kept_on = replace(query, lifetime=one.start - since if one.start > since else 0)
            before = [e for e in found_in(kept_on, one, events, WORLD) if since <= e.known < other.start]
            assert one.end == other.start or query.silent is not None
            if one.end == other.start:
                assert ids(history) == ids(before)


@given(mobile_queries(FEATURES - ANCHORED), worlds_of_events())
def test_history_and_then_live_is_all_there_is_without_a_gap(query, events):
    assume(query.is_bounded)
    for interest in interests_of(query, events):
        found = found_in(query, interest, events, WORLD)
        history = [each for each in found if each.known < interest.start]
        cut_there = replace(interest, end=interest.start)
        from_there = found_in(replace(query, lifetime=0), interest, events, WORLD)
        assert ids(history) == ids(found_in(query, cut_there, events, WORLD))
        assert ids([*history, *from_there]) == ids(found)


@given(
    mobile_queries(interest=EVERYWHERE, lifetime=10**12, silent=None, excluding_itself=False),
    worlds_of_events(),
)
def test_an_interest_in_everything_is_told_all_that_the_plain_query_finds(query, events):
    placed = [event for event in events if event.points]
    for line in timelines(query, events, WORLD):
        assert ids(found_in(query, line[-1], events, WORLD)) == ids(among(query, placed))


@given(
    mobile_queries(FEATURES - ANCHORED, interest=EVERYWHERE, lifetime=0, silent=None, excluding_itself=False),
    worlds_of_events(),
)
def test_with_lifetime_0_each_detection_is_told_in_the_one_interest_that_is_there_when_it_is_known(
    query, events
):
    assume(query.is_bounded)
    plain_ones = among(query, [event for event in events if event.points])
    for line in timelines(query, events, WORLD):
        seen = [each for one in line for each in found_in(query, one, events, WORLD)]
        assert ids(seen) == ids([each for each in plain_ones if each.known >= line[0].start])


@given(mobile_queries(PLAIN, excluding_itself=False), worlds_of_events())
def test_of_a_plain_query_one_run_for_all_finds_what_each_interest_finds(query, events):
    everywhere = among(query, events)
    for interest in interests_of(query, events):
        mine = [
            each
            for each in everywhere
            if all(lies_in(atom, interest.area, PLANE) for atom in each.atoms)
            and interest.start - query.lifetime <= each.known
            and (interest.end is None or each.known < interest.end)
        ]
        assert ids(found_in(query, interest, events, WORLD)) == ids(mine)


@given(mobile_queries(), worlds_of_events())
def test_a_session_that_begins_at_the_initialization_point_has_said_it_when_the_switch_comes(query, events):
    for interest in interests_of(query, events):
        chosen = atoms_of(query, interest, interest.start, events, WORLD)
        try:
            expected = found_in(query, interest, events, WORLD)
        except TooLarge:
            reject()
        running = session(query.graph, lateness=100 * SECOND)
        if chosen:
            running.push(event_table(sorted(chosen, key=order)))
        running.advance(interest.start - query.lifetime - 1)
        said = as_detections(running.close() if interest.end is None else running.advance(interest.end - 1))
        assert plain(said) == plain([each.detection for each in expected])


@given(mobile_queries(deliver="changes"), worlds_of_events())
def test_changes_add_up_to_what_each_interest_has(query, events):
    everything = told(replace(query, deliver="all"), events)
    shown: dict[object, set[str]] = {}
    at_switch: dict[object, dict[int, set[str]]] = {}
    for each in told(query, events):
        mine = shown.setdefault(each.focal, set())
        if each.change == "removed":
            mine.remove(each.detection_id)
        elif each.change == "added":
            assert each.detection_id not in mine
            mine.add(each.detection_id)
        else:
            assert each.detection_id in mine
        at_switch.setdefault(each.focal, {}).setdefault(each.interest, set())
        if each.change != "removed":
            at_switch[each.focal][each.interest].add(each.detection_id)
    for each in everything:
        assert each.detection_id in at_switch[each.focal][each.interest]
    assert sum(len(s) for by in at_switch.values() for s in by.values()) == len(everything)


@given(mobile_queries(deliver="new"), worlds_of_events())
def test_what_is_new_is_told_once_and_nothing_is_left_out(query, events):
    new = [(each.focal, each.detection_id) for each in told(query, events)]
    everything = [(each.focal, each.detection_id) for each in told(replace(query, deliver="all"), events)]
    assert len(set(new)) == len(new)
    assert set(new) == set(everything)


@given(mobile_queries(), worlds_of_events())
def test_deliveries_have_ids_of_their_own_and_come_in_spatio_temporal_order(query, events):
    found = told(query, events)
    assert len({each.id for each in found}) == len(found)
    for order_asked in ("arrival", "spatial", "spatio-temporal"):
        assert keeps_order(replace(query, order=order_asked), found)


@given(mobile_queries(lifetime=0, order="temporal"), worlds_of_events())
def test_with_lifetime_0_the_spatio_temporal_order_is_one_of_time(query, events):
    assert keeps_order(query, told(query, events))


@given(mobile_queries(FEATURES - ANCHORED, of="situations"), worlds_of_events())
def test_situations_are_those_of_one_run_that_meet_the_interest(query, events):
    everywhere = {each.id for each in among(query, events)}
    assert {each.detection_id for each in told(query, events)} <= everywhere


@given(mobile_queries(PLAIN, silent=None), worlds_of_events())
def test_of_a_plain_query_situations_are_no_fewer_than_those_of_events(query, events):
    of_events = {each.told for each in told(replace(query, excluding_itself=False), events)}
    situations = {each.told for each in told(replace(query, of="situations"), events)}
    assert of_events <= situations


STRONG = st.sampled_from((Circle(1.5), Circle(2.2)))


def strong(features):
    return STRONG.flatmap(
        lambda shape: mobile_queries(
            features,
            interest=shape,
            completeness="strong",
            snap_m=2.0,
            refresh=Always(),
            excluding_itself=False,
        )
    )


@given(strong(FEATURES), worlds_of_events())
def test_strong_completeness_tells_all_who_share_an_area_the_same_for_the_time_that_they_share(query, events):
    lines = timelines(query, events, WORLD)
    try:
        found = [(one, found_in(query, one, events, WORLD, lines)) for line in lines for one in line]
    except TooLarge:
        reject()
    for one, mine in found:
        for other, theirs in found:
            if one.area != other.area and not same_circle(one, other):
                continue
            since = max(one.start, other.start)
            until = min(x.end if x.end is not None else 10**15 for x in (one, other))
            assert ids([e for e in mine if since <= e.known < until]) == ids(
                [e for e in theirs if since <= e.known < until]
            )


def same_circle(one, other):
    return one.area.centre == other.area.centre


@given(strong(FEATURES - ANCHORED), worlds_of_events())
def test_for_bounded_queries_weak_completeness_is_strong(query, events):
    assume(query.is_bounded)
    weak = told(replace(query, completeness="weak"), events)
    assert sorted(each.id for each in told(query, events)) == sorted(each.id for each in weak)


# Quality.


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_precision_and_recall_change_places_with_the_areas(true, used):
    one, other = quality_of(true, used), quality_of(used, true)
    assert one == Quality(other.recall, other.precision)
    assert 0.0 <= one.precision <= 1.0
    assert (one == Quality(1.0, 1.0)) == (true == used)


@given(mobile_queries(refresh=Always()), worlds_of_events())
def test_a_query_that_always_switches_has_quality_1_at_every_update(query, events):
    for interest in interests_of(query, events):
        assert measured(query, interest, events, WORLD) == [Quality(1.0, 1.0)]


@pytest.mark.slow
def test_random_mobile_queries_tell_something():
    from collections import Counter

    from hypothesis import settings

    seen: Counter[str] = Counter()

    # Few have history or several interests: enough examples, always the same, that chance decides nothing.
    @settings(max_examples=1200, database=None, derandomize=True)
    @given(mobile_queries(), worlds_of_events(max_size=14))
    def run(query, events):
        found = told(query, events)
        seen["all"] += 1
        seen["told"] += bool(found)
        seen["history"] += any(not each.live for each in found)
        seen["live"] += any(each.live for each in found)
        seen["several"] += len({each.interest for each in found}) > 1
        seen["own"] += query.focal.type != FOCAL

    run()
    assert seen["told"] > seen["all"] / 5
    assert min(seen["history"], seen["live"], seen["several"], seen["own"]) > seen["all"] / 20
