"""`first` and `last`: which of several events."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("A then B", ["a1 b1", "a2 b1", "a1 b2", "a2 b2"]),
        ("each A then B", ["a1 b1", "a2 b1", "a1 b2", "a2 b2"]),
        ("first A then B", ["a1 b1", "a1 b2"]),
        ("last A then B", ["a2 b1", "a2 b2"]),
        ("A then first B", ["a1 b1", "a2 b1"]),
        # When b1 comes it is the last so far; what has been detected is not taken back.
        ("A then last B", ["a1 b1", "a2 b1", "a1 b2", "a2 b2"]),
        ("first A then first B", ["a1 b1"]),
        ("last A then first B", ["a2 b1"]),
    ],
)
def test_a_sequence_takes(backend, pattern, found):
    assert backend.pattern(f"{pattern} within 10 s", "A@1s A@2s B@3s B@4s") == found


def test_the_last_is_the_last_before_each_end(backend):
    assert backend.pattern("last A then B within 10 s", "A@1s B@2s A@3s B@4s") == ["a1 b1", "a2 b2"]


def test_the_choice_is_among_those_that_hold(backend):
    data = "A@1s:v=1 A@2s:v=9 B@3s:v=5"
    assert backend.pattern("last A as a then B as b within 10 s where a.v < b.v", data) == ["a1 b1"]


def test_the_choice_is_made_in_each_group(backend):
    data = "A@1s:k=x A@2s:k=x A@3s:k=y B@4s:k=x B@5s:k=y"
    assert backend.pattern("last A then B within 10 s group by k", data) == ["a2 b1", "a3 b2"]


def test_of_a_pair_in_any_order_the_first_stays(backend):
    assert backend.pattern("first A and B within 10 s", "A@1s B@2s A@3s") == ["a1 b1"]


def test_of_a_pair_in_any_order_the_last_so_far_counts(backend):
    assert backend.pattern("last A and B within 10 s", "A@1s B@2s A@3s") == ["a1 b1", "b1 a2"]


def test_among_equal_times_the_order_decides(backend):
    assert backend.pattern("last A then B within 10 s", "A@1s A@1s B@3s") == ["a2 b1"]
    assert backend.pattern("first A then B within 10 s", "A@1s A@1s B@3s") == ["a1 b1"]


def test_an_absence_is_judged_after_the_choice(backend):
    pattern = "last A as a then B as b then not C(v = a.v) for 2 s within 10 s"
    assert backend.pattern(pattern, "A@1s:v=1 A@2s:v=2 B@3s C@4s:v=2") == []
    assert backend.pattern(pattern, "A@1s:v=1 A@2s:v=2 B@3s C@4s:v=1") == ["a2 b1"]


def test_an_absence_between_is_judged_before_the_choice(backend):
    pattern = "last A as a then not C(v = a.v) then B as b within 10 s"
    assert backend.pattern(pattern, "A@1s:v=1 A@2s:v=2 C@3s:v=2 B@4s") == ["a1 b1"]
