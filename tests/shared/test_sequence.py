"""`then`: one event after another."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

from whimbrel.errors import QueryError


def test_the_second_comes_after_the_first(backend):
    found = backend.detect("define D detect A then B within 10 s", "A@1s B@3s")
    assert found == expect("D@1..3s: a1 b1")


def test_the_wrong_order_is_no_sequence(backend):
    assert backend.pattern("A then B within 10 s", "B@1s A@3s") == []


def test_events_at_the_same_time_do_not_follow_each_other(backend):
    assert backend.pattern("A then B within 10 s", "A@1s B@1s") == []


def test_one_microsecond_later_is_later(backend):
    assert backend.pattern("A then B within 10 s", "A@1000000us B@1000001us") == ["a1 b1"]


def test_every_combination_is_a_detection(backend):
    found = backend.pattern("A then B within 10 s", "A@1s A@2s B@3s B@4s")
    assert found == ["a1 b1", "a2 b1", "a1 b2", "a2 b2"]


def test_within_includes_its_bound(backend):
    assert backend.pattern("A then B within 2 s", "A@1s B@3s B@3000001us") == ["a1 b1"]


def test_within_counts_from_the_start_of_the_first(backend):
    assert backend.pattern("A then B within 3 s", "A@0..2s B@3s") == ["a1 b1"]
    assert backend.pattern("A then B within 3 s", "A@0..2s B@3..4s") == []


def test_three_events_follow_each_other(backend):
    found = backend.detect("define D detect A then B then C within 10 s", "A@1s C@2s B@3s C@4s")
    assert found == expect("D@1..4s: a1 b1 c2")


def test_a_bound_between_two_events_counts_from_end_to_end(backend):
    data = "A@0..2s B@3..4s B@3..5s"
    assert backend.pattern("A as a then B within 2 s from a", data) == ["a1 b1"]


def test_a_bound_may_reach_over_parts_between(backend):
    data = "A@1s B@2s C@3s C@5s"
    assert backend.pattern("A as a then B then C within 2 s from a", data, horizon="1 min") == ["a1 b1 c1"]


def test_an_unbounded_sequence_needs_a_horizon(backend):
    with pytest.raises(QueryError, match="horizon"):
        backend.pattern("A then B", "A@1s B@2s")
    assert backend.pattern("A then B", "A@1s B@2s B@20s", horizon="5 s") == ["a1 b1"]


def test_a_condition_may_compare_the_parts(backend):
    data = "A@1s:v=1 A@2s:v=5 B@3s:v=3"
    assert backend.pattern("A as a then B as b within 10 s where b.v > a.v", data) == ["a1 b1"]
    assert backend.pattern("A as a then B(v > a.v) within 10 s", data) == ["a1 b1"]


def test_texts_of_two_parts_compare(backend):
    data = "A@1s:k=x A@2s:k=y B@3s:k=x"
    assert backend.pattern("A as a then B as b within 10 s where a.k = b.k", data) == ["a1 b1"]
    assert backend.pattern("A as a then B as b within 10 s where a.k > b.k", data) == ["a2 b1"]


def test_one_type_may_fill_several_parts_but_no_event_two(backend):
    assert backend.pattern("A as a then A as b within 10 s", "A@1s A@2s A@3s") == ["a1 a2", "a1 a3", "a2 a3"]


def test_a_part_has_the_name_of_its_type(backend):
    assert backend.pattern("A then B within 10 s where A.v = B.v", "A@1s:v=1 B@2s:v=2 B@3s:v=1") == ["a1 b2"]


def test_assignments_read_all_parts(backend):
    text = "define D detect A as a then B as b within 10 s assign rise = b.v - a.v, both = a.v + b.v"
    assert backend.detect(text, "A@1s:v=2 B@2s:v=7") == expect("D@1..2s:rise=5,both=9: a1 b1")


def test_without_assign_a_sequence_has_its_group_keys(backend):
    found = backend.detect("define D detect A then B within 10 s group by k", "A@1s:k=x,v=1 B@2s:k=x,v=2")
    assert found == expect("D@1..2s:k=x: a1 b1")


def test_a_sequence_inside_a_sequence_counts_as_one_part(backend):
    data = "A@1s B@2s C@3s D@4s"
    assert backend.pattern("(A then B) then (C then D) within 10 s", data) == ["a1 b1 c1 d1"]
