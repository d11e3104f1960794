"""Time points: parts of a pattern that happen at a time, whatever comes."""

import pytest
from tests.shared.backends import expect

import whimbrel as wb

AT_10 = "time '1970-01-01T00:00:10Z'"
POINT = "@time:1970-01-01T00:00:10.000000Z"


def test_nothing_came_within_the_time_after_a_time_point(backend):
    quiet = f"{AT_10} as t then not B for 5 s"
    assert backend.pattern(quiet, "B@10s B@15001ms") == [POINT]
    assert backend.pattern(quiet, "B@10001ms") == []
    assert backend.pattern(quiet, "B@15s") == []


def test_what_began_before_the_time_point_or_ends_too_late_does_not_lie_in_between(backend):
    quiet = f"{AT_10} as t then not B for 5 s"
    assert backend.pattern(quiet, "B@9s..11s B@10s..12s B@14s..16s") == [POINT]
    assert backend.pattern(quiet, "B@11s..15s") == []


def test_the_detection_begins_and_ends_with_the_time(backend):
    found = backend.detect(f"define Quiet detect {AT_10} then not B for 5 s", "A@0s A@99s")
    assert found == expect(f"Quiet@10s..15s: {POINT}")
    assert found.places == [None]


@pytest.mark.parametrize("data", ["", "A@3s", "A@99s"], ids=["no events", "all before", "all after"])
def test_a_time_point_needs_no_events(backend, data):
    assert backend.pattern(f"{AT_10} then not B for 5 s", data) == [POINT]


def test_a_time_point_is_found_once_beside_keys_and_single_events(backend):
    found = backend.detect(
        f"""
        define Noon detect {AT_10}
        define Pair detect A as a then B as b within 5 s group by source
        define Single detect A(v > 1)
        """,
        "A@8s!s:v=2 B@9s!s A@9s!t:v=1 B@11s!t A@12s!u:v=3",
    )
    assert sorted(row["type"] for row in found) == ["Noon", "Pair", "Pair", "Single", "Single"]


def test_a_time_point_is_a_part_like_any_other(backend):
    assert backend.pattern(f"A as a then {AT_10} as t then B as b within 8 s", "A@1s A@4s B@11s B@13s") == [
        f"a2 {POINT} b1"
    ]
    assert backend.pattern(f"A as a then not {AT_10} then B as b within 9 s", "A@4s B@9s B@11s") == ["a1 b1"]
    assert backend.pattern(f"(A or {AT_10}) as x then B within 5 s", "A@4s B@8s B@12s") == [
        "a1 b1",
        f"{POINT} b2",
    ]


def test_any_event_is_no_time_point(backend):
    assert backend.pattern(f"* as x and {AT_10} as t within 5 s", "A@9s") == [f"a1 {POINT}"]


def test_the_id_of_a_detection_is_made_of_the_time(backend):
    text = f"define Quiet detect {AT_10} then not B for 5 s"
    other = text.replace("00:00:10Z", "00:00:10.000001Z")
    assert backend.detect(text, "A@0s").ids == wb.detect(wb.compile(text), []).column("id").to_pylist()
    assert backend.detect(text, "A@0s").ids != backend.detect(other, "A@0s").ids


def test_cpsl_from_a_time_point(backend):
    def found(line, data):
        return backend.detect(wb.cpsl(f"n: {line}", horizon="1 min").text, data, horizon="1 min").events

    assert found("!(10;5)B", "B@10s B@16s") == [POINT]
    assert found("!(10;5)B", "B@12s") == []
    assert found("=|(!(10;5)B;4)C", "C@15s C@16s C@20s") == [f"{POINT} c2"]
    assert found("!(!(10;5)B;4)C", "C@15s C@20s") == [POINT]
    assert found("!(10;5)(!(A;2)B)", "A@9s A@14s") == [
        POINT
    ]  # the first is not known in time, the second too late
    assert found("!(10;5)(!(A;2)B)", "A@11s") == []
    assert found("!(10;5)A && !(10;5)B", "C@1s") == [POINT]
    assert found("!(10;5)A || B", "B@1s") == ["b1", POINT]
