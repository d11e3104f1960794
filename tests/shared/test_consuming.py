"""`consuming`: a detection uses up events."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("consumed", "found"),
    [
        ("a", ["a1 b1", "a2 b1"]),
        ("b", ["a1 b1", "a1 b2"]),
        ("a, b", ["a1 b1", "a2 b2"]),
        ("all", ["a1 b1", "a2 b2"]),
    ],
)
def test_the_events_of_the_named_parts_are_used_up(backend, consumed, found):
    pattern = f"A as a then B as b within 10 s consuming {consumed}"
    assert backend.pattern(pattern, "A@1s A@2s B@3s B@4s") == found


def test_only_a_detection_uses_up(backend):
    pattern = "A as a then B as b within 10 s where b.v > 1 consuming a"
    assert backend.pattern(pattern, "A@1s B@2s:v=1 B@3s:v=2 B@4s:v=3") == ["a1 b2"]


def test_another_definition_has_the_event_still(backend):
    text = """
        define One detect A as a then B as b within 10 s consuming a
        define Two detect A as a then B as b within 10 s consuming a
    """
    found = backend.detect(text, "A@1s B@2s B@3s")
    assert [(row["type"], *row["events"]) for row in found] == [("One", "a1", "b1"), ("Two", "a1", "b1")]


def test_another_case_has_the_event_still(backend):
    text = """
        define D
        case 0: detect A as a then B as b within 10 s consuming a
        case 1: detect A as a then C as c within 10 s consuming a
    """
    assert backend.detect(text, "A@1s B@2s C@3s B@4s C@5s").events == ["a1 b1", "a1 c1"]


def test_an_event_used_in_one_part_is_gone_from_the_others(backend):
    pattern = "A as a then A as b within 10 s consuming b"
    # a2 ends a1 and is used up: it begins nothing.
    assert backend.pattern(pattern, "A@1s A@2s A@3s") == ["a1 a2", "a1 a3"]


def test_a_single_event_may_be_consumed(backend):
    assert backend.pattern("A consuming A", "A@1s A@2s") == ["a1", "a2"]


def test_consumption_goes_by_the_order_not_by_arrival(backend):
    assert backend.pattern("A as a and B as b within 10 s consuming all", "B@1s A@2s B@3s A@4s") == [
        "b1 a1",
        "b2 a2",
    ]


def test_an_absence_consumes_when_it_is_detected(backend):
    pattern = "A as a then B as b then not C for 3 s within 10 s consuming a"
    assert backend.pattern(pattern, "A@1s B@2s B@3s") == ["a1 b1"]
