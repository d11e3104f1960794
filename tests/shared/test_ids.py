"""Ids: the same on every backend and every replay."""

from __future__ import annotations

import itertools

SEQUENCE = "define D detect A then B within 10 s"


def test_the_id_of_a_detection_is_known_for_all_time(backend):
    # Stored detections, other backends and other releases rely on this very text.
    assert backend.detect(SEQUENCE, "A@1s#a B@2s#b").ids == ["8c07f4d2a1e38e8f37b8b99462fc4a2f"]


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


def test_an_event_without_an_id_gets_one_of_source_times_number_and_type(backend):
    rows = [
        {"type": "A", "start": 1, "end": 1, "source": "bus"},
        {"type": "A", "start": 2, "end": 5, "source": "bus"},
        {"type": "B", "start": 7, "end": 7},
    ]
    assert backend.pattern("A or B", rows) == ["bus:1:000000:A", "bus:2-5:000000:A", ":7:000000:B"]


def test_events_without_ids_at_the_same_time_are_told_apart(backend):
    rows = [{"type": "A", "start": 1, "end": 1, "source": "bus"} for _ in range(3)]
    assert backend.pattern("A", rows) == ["bus:1:000000:A", "bus:1:000001:A", "bus:1:000002:A"]


def test_events_are_listed_once_and_in_order(backend):
    pair = "define Pair detect A then B within 9 s"
    text = f"{pair} define D detect Pair as p and Pair as q within 9 s where p.end < q.end"
    assert backend.detect(text, "A@1s B@2s B@3s")[0]["events"] == ("a1", "b1", "b2")


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
