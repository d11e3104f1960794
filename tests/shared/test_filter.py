"""Conditions on single events."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect


def test_a_condition_keeps_the_events_that_meet_it(backend):
    found = backend.detect("define Fast detect A(v > 2)", "A@1s:v=1 A@2s:v=2 A@3s:v=3")
    assert found == expect("Fast@3s:v=3: a3")


def test_only_events_of_the_named_type_count(backend):
    assert backend.pattern("A", "A@1s B@2s A@3s") == ["a1", "a2"]


def test_no_events_no_detections(backend):
    assert backend.pattern("A(v > 2)", []) == []


def test_events_of_unknown_types_are_passed_over(backend):
    assert backend.pattern("A", "X@1s Y@2s:v=1") == []


def test_a_comma_means_and(backend):
    assert backend.pattern("A(v > 1, k = 'x')", "A@1s:v=2,k=x A@2s:v=2,k=y A@3s:v=1,k=x") == ["a1"]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("v = 2", "2"), ("v == 2", "2"), ("v != 2", "1 3"), ("v <> 2", "1 3"),
        ("v < 2", "1"), ("v <= 2", "1 2"), ("v > 2", "3"), ("v >= 2", "2 3"),
        ("1 < v < 3", "2"), ("1 <= v < 3", "1 2"), ("v in (1, 3)", "1 3"), ("v not in (1, 3)", "2"),
        ("v between 2 and 3", "2 3"), ("v not between 2 and 3", "1"), ("v = 1 or v = 3", "1 3"),
        ("not v = 1 and not v = 2", "3"), ("not (v = 1 or v = 2)", "3"), ("v > 1.5", "2 3"),
        ("true", "1 2 3"), ("false", ""), ("v = 1 or v = 2 and v = 3", "1"),
    ],
)  # fmt: skip
def test_a_comparison_keeps(backend, condition, kept):
    found = backend.detect(f"define D detect A({condition})", "A@1s:v=1 A@2s:v=2 A@3s:v=3")
    assert found.values("v") == [int(v) for v in kept.split()]


def test_where_may_hold_the_condition_too(backend):
    assert backend.pattern("A where A.v > 2", "A@1s:v=1 A@3s:v=3") == ["a2"]


def test_an_attribute_that_no_event_has_is_null(backend):
    assert backend.pattern("A(nowhere > 1)", "A@1s:v=1") == []


def test_true_and_false_can_be_tested(backend):
    data = "A@1s:on=true A@2s:on=false A@3s"
    assert backend.pattern("A(on)", data) == ["a1"]
    assert backend.pattern("A(not on)", data) == ["a2"]
    assert backend.pattern("A(on = false)", data) == ["a2"]


@pytest.mark.given_ids
def test_type_source_and_id_can_be_tested(backend):
    data = "A@1s!bus A@2s!tram A@3s"
    assert backend.pattern("A(source = 'bus')", data) == ["a1"]
    assert backend.pattern("A(srcid != 'bus')", data) == ["a2"]
    assert backend.pattern("A(id = 'a3')", data) == ["a3"]
    assert backend.pattern("A(type = 'A', source is null)", data) == ["a3"]


def test_a_detection_of_one_event_takes_over_its_attributes(backend):
    found = backend.detect("define D detect A(v > 1)", "A@1..3s:v=2,k=x,f=0.5,on=true")
    assert found == expect("D@1..3s:v=2,k=x,f=0.5,on=true: a1")


def test_a_declared_attribute_has_the_declared_type(backend):
    found = backend.detect("event A(v: float) define D detect A assign half = A.v / 2", "A@1s:v=3")
    assert found == expect("D@1s:half=1.5: a1")


def test_several_definitions_read_the_same_events(backend):
    found = backend.detect("define Low detect A(v < 2) define High detect A(v > 1)", "A@1s:v=1 A@2s:v=2")
    assert found == expect("Low@1s:v=1: a1 ; High@2s:v=2: a2")


def test_a_star_is_an_event_of_any_type(backend):
    assert backend.pattern("*(v > 1) as x", "A@1s:v=2 B@2s:v=1 C@3s:v=3") == ["a1", "c1"]


def test_a_star_in_a_pattern_may_be_of_the_same_type_as_another_part(backend):
    assert backend.pattern("* as x then B as b within 9 s", "A@1s B@2s B@3s") == ["a1 b1", "a1 b2", "b1 b2"]


def test_a_star_among_alternatives(backend):
    assert backend.pattern("(A or *(v > 1)) as x", "A@1s:v=2 B@2s:v=1 C@3s:v=3") == ["a1", "c1"]


def test_alternatives_know_which_one_a_star_was(backend):
    text = "define D detect A as a or *(v > 1) as z assign a = a.v, z = z.v"
    found = backend.detect(text, "A@1s:v=2 A@2s:v=1 C@3s:v=3")
    assert found == expect("D@1s:a=2,z=2: a1 ; D@2s:a=1: a2 ; D@3s:z=3: c1")


def test_a_star_does_not_stand_for_detections(backend):
    text = "define P detect A(v > 1) define D detect P as p and * as x within 9 s"
    assert backend.detect(text, "A@1s:v=2 B@2s").events == ["a1", "a1 b1"]
