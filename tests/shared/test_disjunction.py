"""`or`: either occurs."""

from __future__ import annotations

from tests.shared.backends import expect


def test_either_is_detected(backend):
    assert backend.pattern("A or B", "A@1s C@2s B@3s") == ["a1", "b1"]


def test_an_event_that_fits_both_is_detected_once(backend):
    assert backend.pattern("A(v > 1) as a or A(v < 3) as b", "A@1s:v=1 A@2s:v=2 A@3s:v=3") == [
        "a1",
        "a2",
        "a3",
    ]


def test_the_name_of_the_other_branch_is_null(backend):
    found = backend.detect("define D detect A as a or B as b assign a = a.v, b = b.v", "A@1s:v=1 B@2s:v=2")
    assert found == expect("D@1s:a=1: a1 ; D@2s:b=2: b1")


def test_both_names_are_bound_where_both_branches_fit(backend):
    text = "define D detect A(v > 1) as big or A(v < 3) as small assign big = big.v, small = small.v"
    found = backend.detect(text, "A@1s:v=1 A@2s:v=2 A@3s:v=3")
    assert found == expect("D@1s:small=1: a1 ; D@2s:big=2,small=2: a2 ; D@3s:big=3: a3")


def test_alternatives_may_end_a_sequence(backend):
    assert backend.pattern("A then (B or C) within 10 s", "A@1s C@2s B@3s") == ["a1 c1", "a1 b1"]


def test_alternatives_may_begin_a_sequence(backend):
    assert backend.pattern("(A or B) then C within 10 s", "A@1s B@2s C@3s") == ["a1 c1", "b1 c1"]


def test_alternatives_may_have_one_name(backend):
    found = backend.detect(
        "define D detect A then (B or C) as next within 10 s assign v = next.v", "A@1s B@2s:v=1 C@3s:v=2"
    )
    assert found == expect("D@1..2s:v=1: a1 b1 ; D@1..3s:v=2: a1 c1")


def test_alternatives_of_one_type_still_cannot_fill_two_parts_with_one_event(backend):
    pattern = "(A(v > 1) or A(v < 3)) as a and A as b within 10 s"
    assert backend.pattern(pattern, "A@1s:v=2") == []
    assert backend.pattern(pattern, "A@1s:v=2 A@2s:v=2") == ["a1 a2", "a1 a2"]


def test_a_sequence_may_be_an_alternative(backend):
    assert backend.pattern("(A then B within 5 s) or C", "A@1s B@2s C@3s") == ["a1 b1", "c1"]


def test_three_alternatives(backend):
    assert backend.pattern("A or B or C", "C@1s B@2s A@3s D@4s") == ["c1", "b1", "a1"]


def test_a_condition_may_read_the_branch_that_fits(backend):
    data = "A@1s:v=1 B@2s:v=5 A@3s:v=7"
    assert backend.pattern("A as a or B as b where a.v > 2 or b.v > 2", data) == ["b1", "a2"]


def test_alternatives_of_single_events_and_patterns_keep_their_group(backend):
    data = "A@1s:k=x C@2s:k=x B@2s:k=y E@3s:k=x B@4s:k=x"
    pattern = "A then (B or (C then E within 5 s)) within 1 h group by k"
    assert backend.pattern(pattern, data) == ["a1 c1 e1", "a1 b2"]
    assert backend.pattern("A then (B or C+) within 1 h group by k", data) == ["a1 c1", "a1 b2"]


def test_alternatives_of_events_and_definitions_keep_their_group(backend):
    text = "define Late detect C define D detect (A or Late) then B within 1 h group by k"
    found = backend.detect(text, "A@1s:k=x C@2s:k=x B@2s:k=y B@4s:k=x")
    assert found.events == ["a1 b2", "c1 b2"]
