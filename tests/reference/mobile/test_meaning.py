"""The meaning of mobile queries against timelines worked by hand, most of them those of the thesis."""

from __future__ import annotations

from dataclasses import replace

import pytest
import shapely
from tests.reference import Event, admit
from tests.reference.building import absent, attr, is_, query, sequence, together
from tests.reference.data import hull, order
from tests.reference.expressions import World
from tests.reference.functions import Round
from tests.reference.mobile import (
    Ahead,
    Along,
    Always,
    Box,
    Circle,
    Every,
    Focal,
    Made,
    MobileQuery,
    Moved,
    Outline,
    Quality,
    Refused,
    WhenQualityFalls,
    deliveries,
    timelines,
)
from tests.reference.mobile.additional_time import additional_time
from tests.reference.mobile.areas import area, lies_in, snapped
from tests.reference.mobile.best_effort import completeness, forbidden
from tests.reference.mobile.deliveries import atoms_of
from tests.reference.mobile.measures import keeps_order, measured
from tests.reference.mobile.quality import falls_to, quality_of
from tests.reference.mobile.strategies import FOCAL, moved_to
from tests.reference.notation import given

from whimbrel.graph.expressions import Binary
from whimbrel.graph.operators import (
    Derive,
    DeriveCase,
    Filter,
    Graph,
    Source,
    clock,
)
from whimbrel.graph.policies import Context, Select
from whimbrel.lang.wbl import compile_text
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND

PLANE, GLOBE = Coordinates.PLANE, Coordinates.LONLAT
WORLD = World()
ACCIDENTS = query(types="A")
"""Every event A is an accident."""


def asked(graph=ACCIDENTS, focal=None, interest=None, **more):
    return MobileQuery(graph, focal or Focal(FOCAL), interest or Circle(1.0), **more)


def told(mobile, text, *moves):
    """Each delivery as words: interest, h or l for historical or live, and its events."""
    events = [*given(text), *(event for each in moves for event in moved_to(each))]
    return [
        f"{each.interest}{'l' if each.live else 'h'} {' '.join(each.detection.events)}"
        for each in deliveries(mobile, events)
    ]


def spans(mobile, *moves, text=""):
    """The interests as words: number, start, end."""
    events = [*given(text), *(event for each in moves for event in moved_to(each))]
    return [
        f"{one.number} {one.start / SECOND:g}-{'' if one.end is None else f'{one.end / SECOND:g}'}"
        for line in timelines(mobile, events, WORLD)
        for one in line
    ]


WEST_THEN_EAST = [(10, 0, 0), (20, 5, 0)]


# Interests, historical and live (definitions 1 to 3).


def test_the_stream_of_an_interest_is_its_history_and_then_what_happens_live():
    accidents = "A@6s(0,0) A@8s(5,0) A@12s(1,0) A@13s(9,9) A@16s(5,1) A@22s(5,0) A@23s(0,0) A@3s(0,0)"
    found = told(asked(lifetime=5 * SECOND), accidents, WEST_THEN_EAST)
    assert found == ["1h a1", "1l a3", "2h a5", "2l a6"]


def test_with_history_an_earlier_event_may_be_told_after_a_later_one():
    found = told(asked(lifetime=25 * SECOND), "A@5s(5,0) A@15s(0,0)", WEST_THEN_EAST)
    assert found == ["1l a2", "2h a1"]


def test_an_event_at_the_very_time_of_a_switch_is_live_in_the_new_interest_and_in_no_other():
    both = told(asked(interest=Circle(9.0)), "A@20s(2,0)", WEST_THEN_EAST)
    assert both == ["2l a1"]


def test_history_includes_what_is_just_as_old_as_asked():
    found = told(asked(lifetime=5 * SECOND), "A@5s(0,0) A@4999999us(0,0)", [(10, 0, 0)])
    assert found == ["1h a1"]


def test_nothing_is_told_before_the_first_location_update():
    assert told(asked(interest=Circle(99.0)), "A@1s(0,0) A@10s(0,0) A@99s(0,0)", WEST_THEN_EAST) == [
        "1l a2",
        "2l a3",
    ]
    assert told(asked(), "A@1s(0,0)") == []


def test_every_object_has_interests_of_its_own():
    one, other = moved_to([(1, 0, 0)], "f"), moved_to([(2, 0, 0)], "g")
    found = deliveries(asked(), [*given("A@3s(0,0)"), *one, *other])
    assert [(each.focal, each.interest) for each in found] == [("f", 1), ("g", 1)]
    assert len({each.id for each in found}) == 2


def test_focal_objects_can_be_named_or_meet_a_condition():
    events = given("F@1s!f(0,0):v=1 F@1s!g(0,0):v=2 F@5s!g(0,0):v=1 F@1s(0,0) F@2s!h A@3s(0,0) A@6s(0,0)")

    def followed(**which):
        return {each.focal for each in deliveries(asked(focal=Focal(FOCAL, **which)), events)}

    assert followed() == {"f", "g"}  # h has no place, and one update comes from nobody
    assert followed(only=frozenset({"g"})) == {"g"}
    assert followed(condition=is_("v", "=", 2)) == {"g"}
    assert spans(
        asked(focal=Focal(FOCAL, condition=is_("v", "=", 1))), text="F@1s!f(0,0):v=1 F@2s!f(0,0):v=2"
    ) == ["1 1-"]


def test_its_own_events_count_unless_they_are_excluded():
    events = given("A@1s!f(0,0) A@2s!f(0,0) A@3s!g(0,0)")
    mine = asked(focal=Focal("A", only=frozenset({"f"})))
    assert [each.detection.events for each in deliveries(mine, events)] == [("a1",), ("a2",), ("a3",)]
    others = asked(focal=Focal("A", only=frozenset({"f"})), excluding_itself=True)
    assert [each.detection.events for each in deliveries(others, events)] == [("a3",)]


# What lies in an interest.


def test_the_border_belongs_to_the_interest_and_so_must_the_whole_of_a_location():
    found = told(asked(interest=Circle(2.0)), "A@1s(2,0) A@1s(2.1,0) A@1s", [(0, 0, 0)])
    assert found == ["1l a1"]
    wide = Event("wide", "A", SECOND, SECOND, polygon=((0.0, 0.0), (3.0, 0.0), (0.0, 1.0)))
    assert not lies_in(wide, Round(shapely.Point(0, 0), 2.0), PLANE)
    assert lies_in(wide, Round(shapely.Point(0, 0), 3.0), PLANE)


def test_time_points_are_in_every_interest():
    noon = clock(5 * SECOND)
    graph = Graph((noon, Derive("X", "X", (DeriveCase(noon.name, "t"),))), ("X",))
    (found,) = deliveries(asked(graph), moved_to([(1, 0, 0)]))
    assert found.live
    assert found.known == 5 * SECOND


def test_a_detection_has_no_events_outside_of_its_interest():
    pair = query(sequence("A a, B b", 9), types="AB")
    assert told(asked(pair), "A@1s(5,0) A@2s(0,0) B@3s(1,0)", [(0, 0, 0)]) == ["1l a2 b1"]


def test_what_began_in_one_interest_does_not_go_on_in_the_next_but_is_found_there_if_it_lies_there():
    pair = query(sequence("A a, B b", 9), types="AB")
    text = "A@18s(2.5,0) A@19s(0,0) B@21s(3,0)"
    assert told(asked(pair, interest=Circle(2.5)), text, WEST_THEN_EAST) == ["2l a1 b1"]


# Shapes.


def shape_at(interest, *places, coordinates=PLANE, **attributes):
    samples = [
        Event(str(n), FOCAL, n, n, "f", x, y, attributes=attributes) for n, (x, y) in enumerate(places)
    ]
    return area(asked(interest=interest), samples, coordinates)


def holds(where, x, y, coordinates=PLANE):
    return lies_in(Event("p", "A", 0, 0, None, x, y), where, coordinates)


def test_a_box_and_an_outline_lie_around_the_object():
    assert shape_at(Box(4.0, 2.0), (10.0, 10.0)).bounds == (8.0, 9.0, 12.0, 11.0)
    assert shape_at(Outline(((0.0, 0.0), (2.0, 0.0), (0.0, 2.0))), (5.0, 5.0)).bounds == (5.0, 5.0, 7.0, 7.0)


def test_ahead_is_where_the_object_last_went_and_all_around_before_it_went_anywhere():
    assert isinstance(shape_at(Ahead(5.0, 90.0), (0.0, 0.0), (0.0, 0.0)), Round)
    north = shape_at(Ahead(5.0, 90.0), (1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (0.0, 1.0))
    assert holds(north, 0.0, 5.9)
    assert holds(north, 1.0, 3.0)
    assert not holds(north, 0.0, 0.5)
    assert not holds(north, 3.0, 2.0)


def test_along_a_route_is_near_the_line_that_the_object_said_last():
    route = shape_at(Along("route", 1.0), (0.0, 0.0), route="LINESTRING (0 0, 10 0, 10 10)")
    assert holds(route, 5.0, 1.0)
    assert holds(route, 10.5, 9.0)
    assert not holds(route, 5.0, 5.0)
    assert shape_at(Along("route", 1.0), (0.0, 0.0), route=None) is None


def test_a_function_makes_an_interest_of_the_samples_or_none():
    last_two = Made(
        lambda samples: Round(shapely.Point(0, 0), 1.0 * len(samples)) if len(samples) > 1 else None
    )
    assert told(asked(interest=last_two), "A@1s(0,0) A@3s(2,0)", [(0, 0, 0), (2, 9, 9)]) == ["2l a2"]


def test_on_the_globe_a_circle_is_round_and_other_shapes_are_measured_where_the_object_is():
    assert holds(shape_at(Circle(1000.0), (10.0, 60.0), coordinates=GLOBE), 10.017, 60.0, GLOBE)
    assert not holds(shape_at(Circle(1000.0), (10.0, 60.0), coordinates=GLOBE), 10.019, 60.0, GLOBE)
    box = shape_at(Box(2000.0, 2000.0), (10.0, 60.0), coordinates=GLOBE)
    assert holds(box, 10.017, 60.008, GLOBE)
    assert not holds(box, 10.019, 60.0, GLOBE)
    across = shape_at(Box(2000.0, 2000.0), (179.999, 0.0), coordinates=GLOBE)
    assert holds(across, -179.995, 0.0, GLOBE)
    east = shape_at(Ahead(1000.0, 60.0), (179.998, 0.0), (-179.999, 0.0), coordinates=GLOBE)
    assert holds(east, -179.992, 0.0, GLOBE)
    assert not holds(east, 179.999, 0.0, GLOBE)


# When it switches (algorithms 3.4 and 3.5).


def test_an_interest_lasts_until_the_next_switch_and_the_last_one_to_the_end_of_the_input():
    assert spans(asked(), [(1, 0, 0), (2, 0, 0), (4, 3, 0)]) == ["1 1-2", "2 2-4", "3 4-"]


def test_of_updates_of_one_time_the_last_in_the_total_order_counts():
    events = given("F@1s#x!f(0,0) F@1s#y!f(5,0) A@2s(5,0)")
    assert len(timelines(asked(), events, WORLD)[0]) == 1
    assert [each.interest for each in deliveries(asked(), events)] == [1]


def test_timed_means_more_than_the_time_since_the_last_switch():
    moves = [(0, 0, 0), (2, 0, 0), (2.5, 0, 0), (4, 0, 0), (5, 0, 0)]
    assert spans(asked(refresh=Every(2 * SECOND)), moves) == ["1 0-2.5", "2 2.5-5", "3 5-"]


def test_moved_means_more_than_the_distance_from_the_place_of_the_last_switch():
    moves = [(0, 0, 0), (1, 2, 0), (2, 2.1, 0), (3, 0.2, 0), (4, 0, 0)]
    assert spans(asked(refresh=Moved(2.0)), moves) == ["1 0-2", "2 2-4", "3 4-"]


def test_precision_is_of_what_was_used_and_recall_of_what_was_wanted():
    found = quality_of(true={"e1", "e3", "e4", "e5"}, used={"e2", "e3", "e4", "e5", "e6"})
    assert found == Quality(precision=3 / 5, recall=3 / 4)
    assert quality_of(set(), {"e1"}) == Quality(precision=0.0, recall=1.0)
    assert quality_of(set(), set()) == Quality(1.0, 1.0)


def test_one_quality_is_less_than_another_only_in_both():
    assert Quality(0.5, 0.5) < Quality(0.6, 0.6)
    assert not Quality(0.5, 0.9) < Quality(0.6, 0.8)
    assert not Quality(0.5, 0.6) < Quality(0.6, 0.6)


def test_a_quality_that_is_just_the_threshold_is_too_low():
    assert falls_to(Quality(0.9, 1.0), Quality(0.9, 0.9))
    assert falls_to(Quality(1.0, 0.5), Quality(0.9, 0.9))
    assert not falls_to(Quality(0.91, 0.91), Quality(0.9, 0.9))


def test_quality_looks_at_the_recent_events_of_both_interests():
    # At 20 s the old interest has a1 and a2, the new one a2: precision 1/2. At 30 s there are none: 0/0 is 1.
    text, moves = "A@15s(-1,0) A@18s(2,0)", [(10, 0, 0), (20, 2, 0), (30, 3, 0)]
    mobile = asked(interest=Circle(2.0), refresh=WhenQualityFalls(Quality(0.5, 0.5), 6 * SECOND))
    assert spans(mobile, moves, text=text) == ["1 10-20", "2 20-"]
    lower = asked(interest=Circle(2.0), refresh=WhenQualityFalls(Quality(0.4, 0.4), 6 * SECOND))
    assert spans(lower, moves, text=text) == ["1 10-"]


def test_quality_counts_both_ends_of_its_time_and_only_what_the_query_reads():
    text, moves = "A@14s(0,0) A@20s(4,0) B@19s(0,0)", [(10, 0, 0), (20, 4, 0)]
    mobile = asked(interest=Circle(1.0), refresh=WhenQualityFalls(Quality(0.1, 0.1), 6 * SECOND))
    assert spans(mobile, moves, text=text) == ["1 10-20", "2 20-"]
    assert spans(mobile, moves, text="B@14s(0,0) B@20s(4,0)") == ["1 10-"]


def test_quality_is_measured_at_every_update_over_the_whole_time_of_an_interest():
    mobile = asked(interest=Circle(2.0), refresh=Moved(9.0), lifetime=5 * SECOND)
    events = [
        *given("A@6s(1,0) A@15s(2,0) A@18s(-1,0) A@40s(4,0) A@4s(0,0)"),
        *moved_to([(10, 0, 0), (20, 2, 0)]),
    ]
    (interest,) = timelines(mobile, events, WORLD)[0]
    assert measured(mobile, interest, events, WORLD) == [Quality(1.0, 1.0), Quality(2 / 3, 2 / 3)]


def test_with_threshold_1_every_update_switches():
    refresh = WhenQualityFalls(Quality(1.0, 1.0), SECOND)
    assert spans(asked(refresh=refresh), [(1, 0, 0), (2, 0, 0)]) == spans(
        asked(refresh=Always()), [(1, 0, 0), (2, 0, 0)]
    )


def test_a_silent_object_has_no_interest_until_it_speaks_again():
    mobile = asked(silent=5 * SECOND, refresh=Moved(100.0))
    moves = [(1, 0, 0), (6, 0, 0), (20, 0, 0)]
    assert spans(mobile, moves) == ["1 1-11", "2 20-25"]
    assert told(mobile, "A@11s(0,0) A@12s(0,0) A@25s(0,0)", moves) == ["1l a1", "2l a3"]


def test_silence_is_noticed_just_after_its_time():
    mobile = asked(silent=5 * SECOND)
    (one,) = timelines(mobile, moved_to([(1, 0, 0)]), WORLD)[0]
    assert one.end == 6 * SECOND + 1
    assert told(mobile, "A@6s(0,0) A@6000001us(0,0)", [(1, 0, 0)]) == ["1l a1"]


def test_a_query_that_is_added_and_removed_knows_the_updates_between_but_looks_back_all_the_same():
    mobile = asked(lifetime=9 * SECOND, begins=5 * SECOND, ends=15 * SECOND)
    moves = [(1, 0, 0), (10, 0, 0), (20, 0, 0)]
    assert spans(mobile, moves) == ["1 10-15"]
    assert told(mobile, "A@2s(0,0) A@14s(0,0) A@15s(0,0)", moves) == ["1h a1", "1l a2"]


def test_late_updates_are_set_aside_and_those_that_come_again_count_once():
    first, late, last = moved_to([(10, 0, 0), (10.5, 50, 0), (20, 5, 0)])
    accidents = given("A@12s(0,0) A@22s(5,0)")
    batches = [[first], [last, first], [late], accidents[:1], [last], accidents[1:]]
    admitted = admit(batches, lateness_us=9 * SECOND)
    assert admitted.late == [late]
    assert admitted.duplicate == [first, last]
    in_order = sorted([first, last, *accidents], key=order)
    assert [each.id for each in deliveries(asked(), admitted.processed)] == [
        each.id for each in deliveries(asked(), in_order)
    ]


def test_an_object_that_jumps_has_a_new_interest_where_it_lands():
    mobile = asked(lifetime=30 * SECOND, refresh=Moved(1.0))
    assert told(mobile, "A@5s(900,0) A@12s(0,0) A@21s(900,0)", [(10, 0, 0), (20, 900, 0)]) == [
        "1l a2",
        "2h a1",
        "2l a3",
    ]


# Initialization points (Lemma 1).


def two_levels(lower, upper):
    """A definition Y of A then B, and X of Y then C."""
    return Graph(
        (
            *(Source(name, name) for name in "ABC"),
            sequence("A a, B b", lower),
            Derive("Y", "Y", (DeriveCase("m", None),)),
            _named(sequence("Y y, C c", upper), "n"),
            Derive("X", "X", (DeriveCase("n", None),)),
        ),
        ("X",),
    )


def _named(operator, name):
    return replace(operator, name=name)


def test_additional_times_are_sums_along_the_longest_path_from_each_source():
    assert additional_time(two_levels(1, 9)) == {"A": 10 * SECOND, "B": 10 * SECOND, "C": 9 * SECOND}


def inside(mobile, interest, events):
    chosen = atoms_of(mobile, interest, interest.start, events, WORLD)
    return [event.id for event in chosen if event.type != FOCAL]


def test_an_interest_begins_at_the_initialization_points_of_its_own_start():
    mobile = asked(two_levels(1, 9), interest=Circle(9.0), lifetime=10 * SECOND)
    events = [*given("A@-1s(0,0) A@0s(0,0) C@0s(0,0) C@1s(0,0)"), *moved_to([(12, 0, 0), (20, 0, 0)])]
    first, second = timelines(mobile, events, WORLD)[0]
    assert inside(mobile, second, events) == ["a2", "c2"]
    assert inside(mobile, first, events) == ["a1", "a2", "c1", "c2"]


def test_what_is_preferred_may_lie_twice_as_far_back():
    unordered = query(together("A a, B b first", 5), types="AB")
    assert additional_time(unordered)["B"] == 10 * SECOND
    # (a1, b1) ends at 5 s and is preferred to (a1, b2), which ends at 9 s: b1 lies 8 s before that.
    assert told(asked(unordered), "B@1s(0,0) A@5s(0,0) B@9s(0,0)", [(9, 0, 0)]) == []


def test_what_waits_for_windows_of_the_grid_needs_their_length_once_more():
    graph = compile_text("""
        define Jam over 10 s every 1 s detect A as a assign n = count(a) having n > 1
        define X detect Jam as j then B as b within 5 s from j
    """).graph
    assert additional_time(graph) == {"A": 25 * SECOND, "B": 15 * SECOND}
    # The window of a1 and a2 ends with a2; B counts when no window up to B is open any more, at 24 s.
    assert told(asked(graph, interest=Circle(9.0)), "A@0s(0,0) A@9s(0,0) B@13s(0,0)", [(22, 0, 0)]) == [
        "1l a1 a2 b1"
    ]


# Covering sequences, weak and strong completeness (definitions 7 to 10).

IS_MORE_THAN_TEN = is_(Binary("+", attr("a.v"), attr("b.v")), ">", 10)
SUMS = query(together("A a, B b", 4, conditions=(IS_MORE_THAN_TEN,), context=Context.CHRONICLE), types="AB")
PAIRS = query(sequence("A a, A b", 4, context=Context.CHRONICLE), types="A")
"""One A after the other, each used once: which ones make a pair depends on the first."""


def test_of_two_covering_sequences_it_is_the_one_from_the_initialization_point():
    # From a1 on, b1 meets a1 first, which is too little; from a2 on, it would meet a2.
    # The initialization point is 5 s - 2 s - 4 s, before both.
    text = "A@1s(0,0):v=5 A@2s(0,0):v=8 B@4s(0,0):v=3 A@8s(0,0):v=5 B@9s(0,0):v=7"
    assert told(asked(SUMS, lifetime=2 * SECOND), text, [(5, 0, 0), (9, 0, 0)]) == ["2l a3 b2"]
    assert told(asked(SUMS, lifetime=2 * SECOND), text, [(5, 0, 0), (10, 0, 0)]) == ["1l a3 b2", "2h a3 b2"]


def every_three_seconds(*seconds):
    return " ".join(f"A@{second}s#a{second}(0,0)" for second in seconds)


def test_what_a_run_says_that_uses_events_up_depends_on_where_it_began():
    text = every_three_seconds(0, 3, 6, 9, 12, 15)
    assert told(asked(PAIRS), text, [(10, 0, 0)]) == ["1l a12 a15"]
    assert told(asked(PAIRS), text, [(12, 0, 0)]) == ["1l a9 a12"]


STRONG = {"interest": Circle(2.0), "completeness": "strong", "snap_m": 1.0}


def by_car(mobile, text, *cars):
    events = [*given(text), *(event for car in cars for event in car)]
    return [(each.focal, *each.detection.events) for each in deliveries(mobile, events)]


def test_who_shares_an_area_is_told_the_same_if_completeness_is_strong():
    text, cars = (
        every_three_seconds(0, 3, 6, 9, 12, 15),
        (moved_to([(10, 0, 0)], "f"), moved_to([(12, 0.2, 0)], "g")),
    )
    assert by_car(asked(PAIRS, interest=Circle(2.0)), text, *cars) == [
        ("f", "a12", "a15"),
        ("g", "a9", "a12"),
    ]
    assert by_car(asked(PAIRS, **STRONG), text, *cars) == [("f", "a12", "a15"), ("g", "a12", "a15")]


def test_a_shared_run_is_kept_for_as_long_as_somebody_who_comes_may_look_back_to_it():
    text = every_three_seconds(6, 9, 12, 15, 33, 36, 39, 42, 45)
    late = moved_to([(40, 0, 0)], "g")
    long_gone, just_gone = (moved_to([(10, 0, 0), (left, 50, 0)], "f") for left in (13, 36))
    assert ("g", "a42", "a45") in by_car(asked(PAIRS, **STRONG), text, long_gone, late)
    assert ("g", "a39", "a42") in by_car(asked(PAIRS, **STRONG), text, just_gone, late)


def test_areas_are_snapped_to_the_nearest_point_of_a_grid():
    assert snapped((0.6, -0.4), 1.0, PLANE) == (1.0, 0.0)
    assert snapped((0.5, -0.5), 1.0, PLANE) == (1.0, 0.0)
    lon, lat = snapped((10.0003, 60.0), 100.0, GLOBE)
    assert abs(lon - 10.0003) < 100 / 55_000
    assert abs(lat - 60.0) < 100 / 111_000


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"order": "temporal", "lifetime": SECOND}, "order temporal needs lifetime 0"),
        ({"completeness": "strong"}, "needs a grid"),
        (
            {"completeness": "strong", "snap_m": 1.0, "interest": Ahead(5.0, 90.0)},
            "depends on the place alone",
        ),
        ({"completeness": "strong", "snap_m": 1.0, "excluding_itself": True}, "cannot leave out"),
    ],
)
def test_what_cannot_be_kept_is_refused(more, why):
    with pytest.raises(Refused, match=why):
        asked(**more)


def test_orders_ask_for_more_or_less():
    events = [*given("A@6s(0,0) A@8s(5,0) A@12s(1,0) A@16s(5,1)"), *moved_to(WEST_THEN_EAST)]
    west_old, west_new, east = deliveries(asked(lifetime=5 * SECOND), events)

    def kept(*told):
        orders = ("arrival", "spatial", "spatio-temporal")
        return [name for name in orders if keeps_order(asked(order=name), told)]

    assert kept(west_old, west_new, east) == ["arrival", "spatial", "spatio-temporal"]
    assert kept(west_new, west_old, east) == ["arrival", "spatial"]
    assert kept(west_old, east, west_new) == ["arrival"]
    of_another = replace(east, focal="g")
    assert kept(of_another, west_old, west_new) == ["arrival", "spatial", "spatio-temporal"]


# What waits for time: absences and windows.


def test_an_absence_that_is_not_certain_at_the_switch_is_decided_anew_by_the_next_interest():
    alone = query(sequence("A a", 99, absent=(absent("B n", 0, None, 5),)), types="AB")
    mobile = asked(alone, interest=Circle(3.0))
    assert told(mobile, "A@13s(0,0)", WEST_THEN_EAST) == ["1l a1"]
    assert told(mobile, "A@17s(0,0)", WEST_THEN_EAST) == []
    assert told(mobile, "A@17s(2.5,0)", WEST_THEN_EAST) == ["2l a1"]
    assert told(mobile, "A@17s(2.5,0) B@18s(0,0)", WEST_THEN_EAST) == ["2l a1"]  # B lies outside
    assert told(mobile, "A@17s(2.5,0) B@21s(4,0)", WEST_THEN_EAST) == []


def counting(every):
    return compile_text(f"define X every {every} s detect A as a assign n = count(a)").graph


def test_a_window_belongs_to_the_interest_that_is_there_when_it_has_passed():
    text = "A@22s(0,0) A@28s(0,0) A@31s(0,0)"
    every_second = [(second, 0, 0) for second in range(10, 50)]
    first, second = deliveries(asked(counting(10)), [*given(text), *moved_to(every_second)])
    assert [first.interest_start / SECOND, second.interest_start / SECOND] == [29, 39]
    assert [first.detection.attributes["n"], second.detection.attributes["n"]] == [2, 1]
    assert first.live
    assert first.detection.end == 28 * SECOND


def test_a_window_that_is_open_at_the_switch_is_counted_anew():
    events = [*given("A@12s(0,0) A@17s(2.5,0) A@28s(5,0)"), *moved_to([(10, 0, 0), (15, 5, 0), (30, 5, 0)])]
    found = deliveries(asked(counting(20), interest=Circle(3.0)), events)
    assert [(each.interest, *each.detection.events) for each in found] == [(2, "a2"), (3, "a3")]


# Motion.

STAYING = compile_text("""
    coordinates plane
    region Depot = box(-9, -9, 9, 9)
    define X detect A as a stays in Depot for 10 s gap 5 s
""").graph
STAY = " ".join(f"A@{second}s!truck(0,0)" for second in range(0, 60, 4))


def test_motion_is_that_of_the_mover_wherever_it_goes():
    moves = [(20, 0, 0), (30, 1, 0), (40, 0, 0)]
    assert told(asked(STAYING, interest=Circle(5.0)), STAY, moves) == []
    assert told(asked(STAYING, interest=Circle(5.0)), STAY, [(5, 0, 0), *moves]) == ["1l a1 a2"]
    far = asked(STAYING, interest=Circle(5.0), lifetime=60 * SECOND)
    assert told(far, STAY, [(20, 20, 0)]) == []


def test_who_excludes_itself_is_not_told_how_it_moves():
    mobile = asked(STAYING, focal=Focal("A"), interest=Circle(5.0), refresh=Moved(9.0))
    assert len(deliveries(mobile, given(STAY))) == 1
    assert deliveries(replace(mobile, excluding_itself=True), given(STAY)) == []


def test_motion_within_the_interest_begins_anew_with_every_run():
    mobile = asked(STAYING, interest=Circle(5.0), motion="within the interest")
    found = told(mobile, STAY, [(20, 0, 0), (40, 1, 0)])
    assert [each[:2] for each in found] == ["1l", "2l"]


# Situations.


def test_situations_are_chosen_by_place_and_may_have_events_outside():
    pair = query(sequence("A a, B b", 9), types="AB")
    text = "A@21s(5,0) B@22s(9,0) A@41s(50,0) B@42s(51,0)"
    assert told(asked(pair), text, WEST_THEN_EAST) == []
    assert told(asked(pair, of="situations"), text, WEST_THEN_EAST) == ["2l a1 b1"]


def test_a_situation_that_is_known_after_the_switch_is_told_by_the_next_interest():
    text = "A@12s(0,0) A@17s(0,0) A@28s(0,0)"
    mobile = asked(counting(20), interest=Circle(9.0), of="situations")
    found = deliveries(mobile, [*given(text), *moved_to([(10, 0, 0), (19.9, 0, 0), (30, 0, 0)])])
    assert [(each.interest, each.detection.attributes["n"]) for each in found] == [(2, 2), (3, 1)]


# What is delivered.


def test_new_tells_each_detection_once_also_when_the_object_comes_back():
    moves = [(10, 0, 0), (20, 5, 0), (30, 0, 0)]
    text = "A@9s(0,0) A@29s(1,0)"
    assert told(asked(lifetime=30 * SECOND), text, moves) == ["1h a1", "3h a1", "3h a2"]
    assert told(asked(lifetime=30 * SECOND, deliver="new"), text, moves) == ["1h a1", "3h a2"]


def test_changes_say_what_comes_what_stays_and_what_goes():
    mobile = asked(interest=Circle(3.0), lifetime=30 * SECOND, deliver="changes", ends=40 * SECOND)
    events = [*given("A@9s(0,0) A@11s(2.5,0) A@21s(5,0)"), *moved_to(WEST_THEN_EAST)]
    assert [(e.interest, e.change, *e.detection.events) for e in deliveries(mobile, events)] == [
        (1, "added", "a1"),
        (1, "added", "a2"),
        (2, "removed", "a1"),
        (2, "kept", "a2"),
        (2, "added", "a3"),
        (2, "removed", "a2"),
        (2, "removed", "a3"),
    ]


# Best effort.


def test_best_effort_may_leave_out_but_not_make_up():
    events = [*given("A@9s(0,0) A@12s(1,0) A@13s(3,0) A@21s(5,0)"), *moved_to(WEST_THEN_EAST)]
    full = deliveries(asked(lifetime=5 * SECOND), events)
    assert forbidden(full, full[1:]) == []
    assert completeness(full, full[1:]) == 2 / 3
    assert forbidden(full, [*full, full[0]]) == [full[0]]
    elsewhere = deliveries(asked(lifetime=5 * SECOND, interest=Circle(9.0)), events)
    assert [each.detection.events for each in forbidden(full, elsewhere)] == [("a3",)]
    assert completeness([], []) == 1.0


def test_a_shape_of_nothing_holds_nothing():
    assert hull([]) is None
    assert not lies_in(Event("p", "A", 0, 0, None, 0.0, 0.0), None, PLANE)


def test_filters_and_selections_are_those_of_the_plain_query():
    fast = Graph(
        (Source("A", "A"), Filter("f", "A", is_("v", ">", 1)), Derive("X", "X", (DeriveCase("f", None),))),
        ("X",),
    )
    assert told(asked(fast), "A@1s(0,0):v=1 A@2s(0,0):v=2", [(0, 0, 0)]) == ["1l a2"]
    assert Select.EACH.value == "each"
