"""Every kind of reason, worked by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

import whimbrel as wb
from whimbrel.testing.events import events as events_of
from whimbrel.testing.events import table


def explained(query: str, events: str, **settings) -> wb.Explanation:
    rows = [{"id": f"e{number}"} | row for number, row in enumerate(events_of(events))]
    return wb.why(wb.compile(query), table(rows), **settings)


def nearest(query: str, events: str, **settings) -> wb.whynot.Miss:
    return explained(query, events, **settings).misses[0]


def reasons(query: str, events: str, **settings) -> list[tuple[str, str]]:
    return [(reason.kind, str(reason)) for reason in nearest(query, events, **settings).reasons]


BRAKE = """
define Brake
  detect P(speed > 30) as a then P as b within 5 s
  where b.speed < a.speed / 2
  assign drop = a.speed - b.speed
  group by vehicle
"""


# -- what was found ------------------------------------------------------------------------------------


def test_a_match_is_told_as_one():
    found = explained(BRAKE, "P@0s#p1:speed=40,vehicle=A P@3s#p2:speed=10,vehicle=A")
    assert found.matched
    assert [finding.detections for finding in found.findings] == [1]
    assert found.findings[0].examples[0].events == ("p1", "p2")
    assert found.misses == ()


def test_a_match_of_another_group_is_not_asked_for():
    events = "P@0s:speed=40,vehicle=A P@3s:speed=10,vehicle=A P@0s:speed=40,vehicle=B P@3s:speed=30,vehicle=B"
    assert not explained(BRAKE, events, key="B").matched
    assert explained(BRAKE, events, key={"vehicle": "A"}).matched


# -- conditions ----------------------------------------------------------------------------------------


def test_a_condition_on_one_event_shows_the_value():
    events = "P@0s#p1:speed=28,vehicle=A P@3s#p2:speed=10,vehicle=A"
    assert reasons(BRAKE, events) == [("condition", "a: speed was 28, needed > 30")]
    assert [seen and seen.events for _, seen in nearest(BRAKE, events).parts] == [("p1",), ("p2",)]


def test_a_condition_between_parts_shows_both_sides():
    events = "P@0s#p1:speed=40,vehicle=A P@3s#p2:speed=25,vehicle=A"
    assert reasons(BRAKE, events) == [("condition", "b: b.speed was 25, needed < 20 (a.speed / 2)")]
    assert nearest(BRAKE, events).filled == 1


def test_a_distance_is_in_metres():
    query = "define Near detect A as a and B as b within 10 s where distance(a, b) < 500 m"
    assert reasons(query, "A@0s(0,0) B@1s(612,0)") == [
        ("condition", "b: distance(a, b) was 612 m, needed < 500 m")
    ]


def test_only_the_failing_conditions_are_named():
    query = "define X detect A(v > 1 and w > 5 and k = 'x')"
    assert reasons(query, "A@0s:v=3,w=2,k=y") == [
        ("condition", "A: w was 2, needed > 5"),
        ("condition", "A: k was 'y', needed = 'x'"),
    ]


def test_the_event_with_the_least_wrong_comes_first():
    query = "define X detect A(v > 10)"
    found = explained(query, "A@0s#far:v=1 A@1s#near:v=9 A@2s#off:v=5", limit=2)
    assert [miss.parts[0][1].events for miss in found.misses] == [("near",), ("off",)]
    assert dict(found.findings[0].more) == {"condition": 1}


@pytest.mark.parametrize(
    ("condition", "attributes", "text"),
    [
        ("v between 2 and 4", "v=7", "v was 7, needed between 2 and 4"),
        ("k in ('bus', 'tram')", "k=car", "k was 'car', needed one of 'bus', 'tram'"),
        ("not contains(k, 'a')", "k=car", "contains(k, 'a') was true, needed not (k was 'car')"),
        ("contains(k, 'z')", "k=car", "contains(k, 'z') was false, needed true (k was 'car')"),
        ("v > 3 or k = 'x'", "v=1,k=y", "v was 1, needed > 3; or k was 'y', needed = 'x'"),
        ("moving", "moving=false", "moving was false, needed true"),
        ("k is null", "k=y", "k was 'y', needed none"),
        ("5 < v", "v=2", "v was 2, needed > 5"),
        ("v * 2 > w", "v=2,w=9", "v * 2 was 4, needed > 9 (w)"),
        ("end - start > 1 min", "v=1", "end - start was 0 s, needed > 1 min"),
        ("start > timestamp '2024-05-01T12:00:00Z'", "v=1",
         "start was 1970-01-01T00:00:00Z, needed > 2024-05-01T12:00:00Z"),
        ("v > 0.1234567", "v=0.1234566", "v was 0.1234566, needed > 0.1234567"),
    ],
)  # fmt: skip
def test_conditions_in_words(condition, attributes, text):
    assert reasons(f"define X detect A({condition})", f"A@0s:{attributes}") == [("condition", f"A: {text}")]


def test_a_region_is_told_with_the_place():
    query = "region Depot = box(0, 0, 10, 10) define X detect A(this in Depot)"
    ((kind, text),) = reasons(query, "A@0s(12,5)")
    assert (kind, text[:45]) == ("condition", "A: the event at (12, 5) lies outside POLYGON ")
    outside = "region Depot = box(0, 0, 10, 10) define X detect A(this not in Depot)"
    assert reasons(outside, "A@0s(2,5)")[0][1].startswith("A: the event at (2, 5) lies in POLYGON")


def test_a_temporal_relation_is_told_with_the_times():
    query = "define X detect A as a and B as b within 1 min where a during b"
    assert reasons(query, "A@5..9s B@6..20s") == [
        (
            "condition",
            (
                "b: a was from 1970-01-01T00:00:05Z to 1970-01-01T00:00:09Z, "
                "b was from 1970-01-01T00:00:06Z to 1970-01-01T00:00:20Z, needed a during b"
            ),
        )
    ]


def test_a_missing_value_is_a_reason_of_its_own():
    assert reasons("define X detect A(v > 3)", "A@0s:v=null,w=1 B@0s:v=1") == [
        ("null", "A: v is missing, needed v > 3")
    ]
    near = "define Near detect A as a and B as b within 10 s where distance(a, b) < 5 m"
    assert reasons(near, "A@0s(0,0) B@1s") == [
        ("null", "b: the location of b is missing, needed distance(a, b) < 5.0")
    ]


# -- order and time ------------------------------------------------------------------------------------


def test_an_event_that_came_before():
    query = "define X detect A as a then B as b within 10 s"
    assert reasons(query, "A@5s B@2s") == [("order", "b: b came 3 s before a, needed after it")]


def test_an_event_that_came_at_the_same_time():
    query = "define X detect A as a then B as b within 10 s"
    assert reasons(query, "A@5s B@5s") == [("order", "b: b came at the same time as a, needed after it")]


def test_an_event_that_began_too_early():
    query = "define X detect A as a then B as b within 10 s"
    assert reasons(query, "A@1..5s B@4..6s") == [
        ("order", "b: b started at 1970-01-01T00:00:04Z, before a had ended at 1970-01-01T00:00:05Z")
    ]


def test_time_ran_out():
    query = "define X detect A as a then B as b within 5 min"
    assert reasons(query, "A@0s B@380s") == [
        ("time", "b: b ended 6 min 20 s after a started, needed within 5 min")
    ]


def test_time_ran_out_from_one_part():
    query = "define X detect A as a then B as b then C as c within 5 min from a within 1 h"
    assert reasons(query, "A@0s B@1s C@380s") == [
        ("time", "c: c came 6 min 20 s after a, needed within 5 min")
    ]


def test_one_event_cannot_be_two_parts():
    query = "define X detect A as a and A as b within 5 s"
    assert reasons(query, "A@0s") == [("same", "b: the same event already is a")]


# -- groups --------------------------------------------------------------------------------------------


def test_events_of_different_groups():
    query = "define X detect A as a then B as b within 5 s group by vehicle"
    assert reasons(query, "A@0s:vehicle=x B@1s:vehicle=y") == [
        ("group", "b: vehicle was 'y', needed 'x' as before")
    ]


# -- nothing came --------------------------------------------------------------------------------------


def test_a_type_that_never_came():
    query = "define X detect Leave as a then Arrived as b within 5 s"
    assert reasons(query, "Leave@0s Arrive@2s") == [
        ("nothing", "b: no event of type Arrived came at all; did you mean 'Arrive'?")
    ]


def test_no_event_at_all():
    found = explained("define X detect A as a then B as b within 5 s", "C@0s")
    assert [str(reason) for reason in found.misses[0].reasons] == [
        "a: no event of type A came at all",
        "b: no event of type B came at all",
    ]
    assert found.types == {"C": 1}


def test_no_event_of_the_group():
    query = "define X detect A as a then B as b then C as c within 9 s group by k"
    found = nearest(query, "A@0s:k=x B@1s:k=x D@2s:k=x")
    assert [str(reason) for reason in found.reasons] == ["c: no event of type C came at all"]
    assert found.filled == 2


def test_a_definition_without_detections_is_explained_too():
    query = "define Fast detect P(speed > 50) define Two detect Fast as a then Fast as b within 1 min"
    found = explained(query, "P@0s:speed=48 P@9s:speed=20")
    two, fast = found.findings
    assert (two.definition, two.is_output, str(two.misses[0].reasons[0])) == (
        "Two", True, "a: nothing was detected as Fast, see there",
    )  # fmt: skip
    assert (fast.definition, fast.is_output, str(fast.misses[0].reasons[0])) == (
        "Fast", False, "P: speed was 48, needed > 50",
    )  # fmt: skip
    assert [miss.definition for miss in found.misses] == ["Two", "Fast", "Fast"]


# -- absence -------------------------------------------------------------------------------------------


def test_an_absent_part_that_was_there():
    query = "define Late detect Leave as a then not Arrive for 1 h group by source"
    found = nearest(query, "Leave@0m!t1 Arrive@50m#e9!t1")
    assert [(reason.kind, str(reason)) for reason in found.reasons] == [
        ("present", "Arrive: Arrive e9 at 1970-01-01T00:50:00Z came within 1 h after a")
    ]
    assert found.reasons[0].events[0].events == ("e9",)
    assert found.filled == 1


@pytest.mark.parametrize(
    ("pattern", "events", "where"),
    [
        ("A as a then not N then B as b within 1 min", "A@0s N@1s#n B@2s", "between a and b"),
        ("not N then B as b within 1 min", "N@1s#n B@2s", "before b, within 1 min"),
        ("A as a then not N within 1 min", "A@0s N@1s#n", "after a, within 1 min"),
    ],
)
def test_where_an_absent_part_was(pattern, events, where):
    ((kind, text),) = reasons(f"define X detect {pattern}", events)
    assert (kind, text.partition("Z came ")[2]) == ("present", where)


def test_an_absence_with_a_condition_that_reads_another_part():
    query = "define X detect A as a then not N(v > a.v) as n then B as b within 1 min"
    assert explained(query, "A@0s:v=5 N@1s:v=4 B@2s").matched
    assert reasons(query, "A@0s:v=5 N@1s:v=6 B@2s")[0][0] == "present"


# -- selection, consumption, contexts ------------------------------------------------------------------


def test_first_takes_another_event():
    query = "define X detect A as a then first B as b within 1 min"
    found = explained(query, "A@0s B@1s#b1 B@2s#b2")
    assert found.matched
    assert found.misses == ()  # a is in a detection


def test_last_takes_another_event():
    query = "define X detect last A as a then B as b within 1 min"
    found = explained(query, "A@0s#a1 A@1s#a2 B@2s")
    assert [(reason.kind, str(reason)) for reason in found.misses[0].reasons] == [
        ("selected", "a: last a takes A a2 at 1970-01-01T00:00:01Z")
    ]


def test_an_event_that_was_used_up():
    query = "define X detect A as a then B as b within 1 min consuming b"
    found = explained(query, "A@0s#a1 A@1s#a2 B@2s#b1")
    assert [(reason.kind, str(reason)) for reason in found.misses[0].reasons] == [
        (
            "consumed",
            (
                "b: B b1 at 1970-01-01T00:00:02Z was used up by the detection of "
                "events a1, b1 from 1970-01-01T00:00:00Z to 1970-01-01T00:00:02Z"
            ),
        )
    ]
    assert found.misses[0].parts[0][1].events == ("a2",)


@pytest.mark.parametrize("context", ["chronicle", "first-matching"])
def test_a_context_uses_events_up(context):
    query = f"define X detect A as a then B as b within 1 min context {context}"
    assert reasons(query, "A@0s#a1 A@1s#a2 B@2s#b1")[0][0] == "consumed"


def test_recent_takes_the_newest():
    query = "define X detect A as a then B as b within 1 min context recent"
    ((kind, text),) = reasons(query, "A@0s#a1 A@1s#a2 B@2s#b1")
    assert (kind, text[:47]) == ("context", "recent takes the newest combination: events a2,")


def test_chronicle_tries_the_oldest_only():
    query = "define X detect A as a then B as b within 1 min where a.v = b.v context chronicle"
    found = explained(query, "A@0s#a1:v=1 A@1s#a2:v=2 B@2s:v=2")
    assert {miss.parts[0][1].events: miss.reasons[0].kind for miss in found.misses} == {
        ("a1",): "condition",
        ("a2",): "context",
    }


def test_a_cumulative_detection_contains_its_matches():
    query = "define X detect A as a then B as b within 1 min context cumulative"
    found = explained(query, "A@0s A@1s B@2s A@3s#late")
    assert found.matched
    assert [miss.parts[0][1].events for miss in found.misses] == [("late",)]


# -- repetition ----------------------------------------------------------------------------------------


def test_too_few_in_a_row():
    query = "define X detect A(v < 5){3} as a within 1 min"
    found = nearest(query, "A@0s:v=1 A@1s:v=2")
    assert [(reason.kind, str(reason)) for reason in found.reasons] == [
        ("few", "a: 2 events of a came in a row, needed at least 3")
    ]
    assert found.filled == 2


def test_a_repetition_that_took_too_long():
    query = "define X detect A{3} as a within 10 s"
    assert reasons(query, "A@0s A@5s A@12s") == [
        ("time", "a: 3 of a took 12 s (until 1970-01-01T00:00:12Z), needed within 10 s")
    ]


def test_a_repetition_that_was_ended():
    query = "define X detect A{3} as a until C within 1 min"
    assert reasons(query, "A@0s A@5s C@6s#c1 A@12s") == [
        ("ended", "a: C c1 at 1970-01-01T00:00:06Z came before there were 3 of a")
    ]


def test_a_repetition_inside_a_pattern_is_told_apart():
    query = "define X detect A{3} as a then B as b within 1 min"
    found = explained(query, "A@0s A@1s B@9s")
    assert str(found.misses[0].reasons[0]) == "a: no repetition of a was long enough, see X.a"
    assert found.findings[1].definition == "X, X.a"
    assert str(found.findings[1].misses[0].reasons[0]) == "a: 2 events of a came in a row, needed at least 3"


# -- alternatives --------------------------------------------------------------------------------------


def test_an_event_of_an_alternative_that_nearly_fits():
    query = "define X detect (A(v > 5) or B(v > 9)) as ab then C as c within 1 min"
    found = explained(query, "A@0s#a1:v=2 B@1s#b1:v=8 C@2s")
    assert [str(miss.reasons[0]) for miss in found.misses] == [
        "ab: v was 8, needed > 9",
        "ab: v was 2, needed > 5",
    ]


# -- windows -------------------------------------------------------------------------------------------

JAM = """
define Jam(lane, cars, mean) over 10 min every 10 min
  detect P(speed < 10)
  assign lane = group.lane, cars = count(P), mean = avg(P.speed)
  having cars > 2 and mean < 5
  group by lane
"""


def test_having_shows_the_results():
    found = explained(JAM, "P@1s:speed=4,lane=1 P@2s:speed=8,lane=1 P@3s:speed=3,lane=2")
    assert [(str(miss.key), [str(reason) for reason in miss.reasons]) for miss in found.misses] == [
        ("{'lane': 1}", ["cars was 2, needed > 2", "mean was 6, needed < 5"]),
        ("{'lane': 2}", ["cars was 1, needed > 2"]),
    ][::-1]
    assert found.misses[0].parts[0][0] == "window 1970-01-01T00:00:00Z to 1970-01-01T00:10:00Z"


def test_a_window_without_events_of_an_input():
    query = "define Busy every 1 h detect A and outer B assign n = count(A), m = count(B) group by k"
    found = explained(query, "B@1s:k=x B@2s:k=x A@3s:k=y")
    assert found.matched
    assert [(reason.kind, str(reason)) for reason in found.misses[0].reasons] == [
        ("empty", "A: no A in the window")
    ]


def test_no_window_at_all():
    assert reasons(JAM, "Q@1s:speed=4,lane=1") == [("nothing", "P: no event of type P came at all")]


def test_a_window_that_counts_events_and_has_too_few():
    query = "define Recent over 5 events every 3 events within 1 h detect A assign n = count(A)"
    assert reasons(query, "A@1s A@2s") == [
        ("few", "A: 2 events came; a result is due at every 3 events of a group")
    ]


def test_events_between_windows():
    query = "define X over 1 s every 5 s detect A assign n = count(A)"
    assert reasons(query, "A@1s A@2s") == [("empty", "A: 2 events came; none of them in a window")]


# -- key and time --------------------------------------------------------------------------------------


def test_only_what_lies_around_the_time_is_told():
    events = "P@0s#p1:speed=40,vehicle=A P@3s#p2:speed=10,vehicle=A "
    events += "P@60s#p3:speed=40,vehicle=A P@61s:speed=30,vehicle=A"
    assert explained(BRAKE, events, at=2_000_000).matched
    found = explained(BRAKE, events, at="1970-01-01T00:01:01Z")
    assert not found.matched
    assert [miss.parts[0][1].events for miss in found.misses] == [("p3",)]
    assert explained(BRAKE, events, at="1970-01-01T00:01:01Z", around="2 min").matched


def test_a_key_that_no_event_has():
    found = explained(BRAKE, "P@0s:speed=40,vehicle=truck-1", key="truck1")
    assert found.notes == ("no event that the query reads has vehicle = truck1; did you mean 'truck-1'?",)


def test_a_key_that_only_groups():
    query = "define X(v) detect A(v > 5) assign v = A.v group by k"
    found = explained(query, "A@0s:v=3,k=x A@1s:v=4,k=y A@2s:v=9,k=y", key="y")
    assert [(dict(miss.key), str(miss.reasons[0])) for miss in found.misses] == [
        ({"k": "y"}, "A: v was 4, needed > 5")
    ]
    assert found.findings[0].detections == 1


def test_a_key_of_a_join():
    query = "define X detect A as a then B as b within 5 s where a.car = b.car and b.v > 3"
    found = explained(query, "A@0s:car=x B@1s:car=x,v=1 A@2s:car=y B@3s:car=y,v=2", key={"car": "x"})
    assert [str(miss.reasons[0]) for miss in found.misses] == ["b: v was 1, needed > 3"]


@pytest.mark.parametrize(
    ("query", "key", "message"),
    [
        (BRAKE, {"vehikle": "A"}, "did you mean 'vehicle'"),
        ("define X detect A", "A", "nothing in it says `group by`"),
        ("define X detect A then B within 5 s group by k, source", "A", "say which one 'A' is a value of"),
    ],
)
def test_a_key_that_the_query_does_not_have(query, key, message):
    with pytest.raises(wb.QueryError, match=message):
        explained(query, "A@0s", key=key)


def test_around_needs_a_time():
    with pytest.raises(wb.QueryError, match="say which time"):
        explained(BRAKE, "P@0s:speed=1", around="1 min")


def test_a_text_is_no_query():
    with pytest.raises(wb.WhimbrelError, match="compile it first"):
        wb.why(BRAKE, table("A@0s"))


def test_columns_may_have_other_names():
    rows = [{"type": "Position", "seen": 0, "v": 28.0}]
    query = wb.compile("define Fast detect Position(speed > 30)")
    answer = wb.why(query, rows, columns={"time": "seen", "speed": "v"})
    assert answer.misses[0].reasons[0].text == "speed was 28, needed > 30"
    with pytest.raises(wb.DataError, match="no column is named 't', to be used as 'time'"):
        wb.why(query, rows, columns={"time": "t"})


# -- late, duplicate, rejected -------------------------------------------------------------------------


def test_what_took_no_part_is_told():
    rows = [
        {"id": "e1", "type": "A", "time": 100, "k": "x"},
        {"id": "e2", "type": "A", "time": 10, "k": "x"},
        {"id": "e3", "type": "A", "time": 10, "k": "y"},
        {"id": "e1", "type": "A", "time": 100, "k": "x"},
        {"id": None, "type": "A", "time": 100, "k": "x"},
    ]
    query = wb.compile("define X detect A as a then A as b within 5 s group by k")
    found = wb.why(query, pa.Table.from_pylist(rows).to_reader(1), key="x", lateness="5 s")
    assert [(each.kind, each.count) for each in found.unprocessed] == [
        ("late", 2), ("duplicate", 1), ("rejected", 1),
    ]  # fmt: skip
    late, duplicate, rejected = found.unprocessed
    assert late.shown == ("A e2 at 1970-01-01T00:00:10Z came more than 5 s late",)
    assert duplicate.shown == ("A e1 at 1970-01-01T00:01:40Z had an id that was processed before",)
    assert rejected.shown[0].startswith("row 5: id is missing in {")


# -- effort --------------------------------------------------------------------------------------------


def test_the_search_ends_and_says_so():
    events = " ".join(f"A@{n}s B@{n}.5s:v=1" for n in range(60))
    query = "define X detect A as a then B as b then B(v > 5) as c within 1 h"
    found = explained(query, events, effort=50)
    assert "the search ended after 50 steps" in found.findings[0].notes[0]
    with pytest.raises(wb.QueryError, match="at least 1"):
        explained(query, events, limit=0)
