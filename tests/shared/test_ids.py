"""Ids: the same on every backend and every replay."""

from __future__ import annotations

import itertools

import pytest
from tests.reference.identity import made_ids

SEQUENCE = "define D detect A then B within 10 s"


@pytest.mark.given_ids
def test_the_id_of_a_detection_is_known_for_all_time(backend):
    # Stored detections, other backends and other releases rely on this very text.
    assert backend.detect(SEQUENCE, "A@1s#a B@2s#b").ids == ["8c07f4d2a1e38e8f37b8b99462fc4a2f"]


@pytest.mark.given_ids
def test_the_id_does_not_depend_on_the_times_and_values(backend):
    one, other = backend.detect(SEQUENCE, "A@1s#a B@2s#b"), backend.detect(SEQUENCE, "A@5s#a:v=1 B@7s#b:v=2")
    assert one.ids == other.ids


def test_the_id_does_not_depend_on_the_order_of_the_rows(backend):
    rows = ["A@1s#a", "A@2s#b", "B@3s#c"]
    answers = {tuple(backend.detect(SEQUENCE, " ".join(order)).ids) for order in itertools.permutations(rows)}
    assert len(answers) == 1


def test_the_id_does_not_depend_on_the_other_definitions(backend):
    alone = backend.detect(SEQUENCE, "A@1s#a B@2s#b")
    beside = backend.detect(f"define Other detect A(v > 1) {SEQUENCE}", "A@1s#a B@2s#b")
    assert alone.ids == beside.ids


def test_different_events_make_different_ids(backend):
    found = backend.detect(SEQUENCE, "A@1s A@2s B@3s B@4s")
    assert len(set(found.ids)) == 4


def test_different_types_make_different_ids(backend):
    found = backend.detect(
        "define D detect A then B within 9 s define E detect A then B within 9 s", "A@1s B@2s"
    )
    assert len(set(found.ids)) == 2


def test_the_parts_in_another_order_make_another_id(backend):
    found = backend.detect("define D detect A as a and A as b within 9 s", "A@1s A@2s")
    assert len(set(found.ids)) == 2


def test_detections_of_different_cases_of_one_event_make_different_ids(backend):
    text = "define P case 0: detect A assign v = 1 case 1: detect A assign v = 2 define D detect P"
    found = backend.detect(text, "A@1s")
    assert found.values("v") == [1, 2]
    assert len(set(found.ids)) == 2


def test_results_of_two_groups_over_the_same_events_make_different_ids(backend):
    text = """
        define P case 0: detect A assign k = 'x' case 1: detect A assign k = 'y'
        define D every 10 s detect P assign k = group.k group by k
    """
    found = backend.detect(text, "A@1s")
    assert found.values("k") == ["x", "y"]
    assert len(set(found.ids)) == 2


def test_an_event_without_an_id_gets_one_of_source_times_content_number_and_type(backend):
    rows = [
        {"type": "A", "start": 1, "end": 1, "source": "bus", "speed": 7.5},
        {"type": "A", "start": 2, "end": 5, "source": "bus"},
        {"type": "B", "start": 7, "end": 7, "speed": 7.0, "line": "M4"},
    ]
    # Like the ids of detections, these are known for all time.
    assert backend.pattern("A or B", rows) == [
        "bus:1:db4d731be2668372:000000:A",
        "bus:2-5:0000000000000000:000000:A",
        ":7:dea1672f739ab18f:000000:B",
    ]


def test_equal_events_without_ids_are_told_apart(backend):
    rows = [{"type": "A", "start": 1, "end": 1, "source": "bus"} for _ in range(3)]
    nothing = "0" * 16
    assert backend.pattern("A", rows) == [f"bus:1:{nothing}:00000{number}:A" for number in range(3)]


def test_what_no_query_reads_tells_events_without_ids_apart(backend):
    rows = [{"type": "A", "start": 1, "end": 1, "source": "bus", "seat": seat} for seat in ("1a", "1b", "1a")]
    assert sorted(backend.pattern("A", rows)) == sorted(made_ids(rows))


def test_whole_numbers_count_alike_however_they_are_written(backend):
    whole = [{"type": "A", "start": 1, "end": 1, "v": 5}, {"type": "A", "start": 2, "end": 2, "v": 6}]
    floats = [row | {"v": float(row["v"])} for row in whole]
    assert backend.pattern("A", whole) == backend.pattern("A", floats) == made_ids(whole)


def test_a_declared_type_does_not_change_the_id(backend):
    rows = [{"type": "A", "start": 1, "end": 1, "v": 5}]
    declared = backend.detect("event A(v: string) define D detect A where A.v = '5'", rows)
    assert declared.events == made_ids(rows)


def test_events_without_ids_stand_by_what_they_say_not_as_they_came(backend):
    rows = [{"type": "A", "start": 1, "end": 1, "source": "bus", "v": v} for v in range(4)]
    in_order = " ".join(sorted(made_ids(rows)))
    assert backend.pattern("A{4} within 1 min", rows) == [in_order]
    assert backend.pattern("A{4} within 1 min", rows[::-1]) == [in_order]


def test_events_are_listed_once_and_in_order(backend):
    pair = "define Pair detect A then B within 9 s"
    text = f"{pair} define D detect Pair as p and Pair as q within 9 s where p.end < q.end"
    assert backend.detect(text, "A@1s B@2s B@3s")[0]["events"] == ("a1", "b1", "b2")


@pytest.mark.given_ids
def test_a_definition_can_read_the_ids_of_the_detections_it_is_made_of(backend):
    text = f"{SEQUENCE} define P detect D as d and C as c within 9 s assign d = d.id, c = c.id"
    found = backend.detect(text, "A@1s#a B@2s#b C@3s#c")
    assert found.values("d") == ["8c07f4d2a1e38e8f37b8b99462fc4a2f"]
    assert found.values("c") == ["c"]


def test_two_definitions_made_of_one_detection_can_be_told_by_its_id(backend):
    text = f"""
        {SEQUENCE}
        define P detect D as d and C as c within 9 s assign d = d.id
        define Q detect D as d and E as e within 9 s assign d = d.id
        define R detect P as p and Q as q within 9 s where p.d = q.d
    """
    found = backend.detect(text, "A@1s#a1 B@2s#b A@1s#a2 C@3s#c E@3s#e")
    assert found.events == ["a1 b c e", "a2 b c e"]
