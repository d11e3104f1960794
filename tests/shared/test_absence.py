"""`not`: what did not happen."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

# Between two events.


def test_nothing_came_between(backend):
    assert backend.pattern("A then not B then C within 10 s", "A@1s C@3s") == ["a1 c1"]


def test_something_came_between(backend):
    assert backend.pattern("A then not B then C within 10 s", "A@1s B@2s C@3s") == []


def test_between_leaves_out_its_bounds(backend):
    assert backend.pattern("A then not B then C within 10 s", "A@1s B@1s B@3s C@3s") == ["a1 c1"]


def test_between_wants_the_whole_interval(backend):
    assert backend.pattern("A then not B then C within 10 s", "A@1s B@2..4s C@3s") == ["a1 c1"]
    assert backend.pattern("A then not B then C within 10 s", "A@1..2s B@2..3s C@4s") == ["a1 c1"]


def test_only_the_pair_around_it_is_spoilt(backend):
    assert backend.pattern("A then not B then C within 10 s", "A@1s B@2s A@3s C@4s") == ["a2 c1"]


def test_the_absent_event_may_have_conditions(backend):
    data = "A@1s B@2s:v=1 C@3s"
    assert backend.pattern("A then not B(v > 1) then C within 10 s", data) == ["a1 c1"]
    assert backend.pattern("A then not B(v > 0) then C within 10 s", data) == []


def test_the_absent_event_may_be_compared_with_the_others(backend):
    pattern = "A as a then not B(v = a.v) then C as c within 10 s"
    assert backend.pattern(pattern, "A@1s:v=1 B@2s:v=2 C@3s") == ["a1 c1"]
    assert backend.pattern(pattern, "A@1s:v=1 B@2s:v=1 C@3s") == []


def test_the_absent_event_counts_in_its_own_group_only(backend):
    data = "A@1s:k=x B@2s:k=y C@3s:k=x"
    assert backend.pattern("A then not B then C within 10 s group by k", data) == ["a1 c1"]


def test_two_absences_in_one_sequence(backend):
    pattern = "A then not X then B then not Y then C within 10 s"
    assert backend.pattern(pattern, "A@1s Y@2s B@3s X@4s C@5s") == ["a1 b1 c1"]
    assert backend.pattern(pattern, "A@1s X@2s B@3s C@5s") == []
    assert backend.pattern(pattern, "A@1s B@3s Y@4s C@5s") == []


# Before the first.


@pytest.mark.parametrize(("time", "found"), [("2s", []), ("1s", []), ("999999us", ["b1"])])
def test_nothing_came_before_as_far_back_as_within_reaches(backend, time, found):
    assert backend.pattern("not A then B within 5 s", f"A@{time} B@6s") == found


def test_before_means_wholly_before(backend):
    assert backend.pattern("not A then B within 5 s", "A@1..2s B@2s") == ["b1"]


def test_the_first_of_a_crowd_has_nothing_before_it(backend):
    assert backend.pattern("not A as x then A as a within 5 s", "A@1s A@3s A@9s") == ["a1", "a3"]


# After the last, for a time.


def test_nothing_came_for_a_time(backend):
    found = backend.detect("define D detect A then not B for 5 s", "A@1s")
    assert found == expect("D@1..6s: a1")


@pytest.mark.parametrize(
    ("time", "found"), [("1s", ["a1"]), ("1000001us", []), ("6s", []), ("6000001us", ["a1"])]
)
def test_the_time_includes_its_end_and_not_its_beginning(backend, time, found):
    assert backend.pattern("A then not B for 5 s", f"A@1s B@{time}") == found


def test_what_lasts_beyond_the_time_does_not_count(backend):
    assert backend.pattern("A then not B for 5 s", "A@1s B@2..7s") == ["a1"]


def test_each_event_waits_for_itself(backend):
    found = backend.detect("define D detect A then not B for 5 s", "A@1s A@4s B@8s A@9s")
    assert found == expect("D@1..6s: a1 ; D@9..14s: a3")


def test_the_time_may_reach_beyond_within(backend):
    pattern = "define D detect A then B then not C for 5 s within 3 s"
    assert backend.detect(pattern, "A@1s B@2s") == expect("D@1..7s: a1 b1")
    assert backend.detect(pattern, "A@1s B@2s C@7s") == []
    assert backend.detect(pattern, "A@1s B@5s") == []


def test_the_one_that_should_come_is_known_by_its_key(backend):
    text = "define D detect A as a then not B as b for 5 s where b.v = a.v assign v = a.v"
    assert backend.detect(text, "A@1s:v=1 A@2s:v=2 B@3s:v=2") == expect("D@1..6s:v=1: a1")


def test_groups_wait_apart(backend):
    data = "A@1s:k=x A@2s:k=y B@3s:k=x"
    assert backend.detect("define D detect A then not B for 5 s group by k", data) == expect(
        "D@2..7s:k=y: a2"
    )


# After the last, within the whole.


def test_nothing_came_within_the_whole(backend):
    assert backend.detect("define D detect A then not B within 5 s", "A@0..2s") == expect("D@0..5s: a1")


@pytest.mark.parametrize(("time", "found"), [("5s", []), ("5000001us", ["a1"]), ("2s", ["a1"]), ("3s", [])])
def test_the_whole_counts_from_the_start(backend, time, found):
    assert backend.pattern("A then not B within 5 s", f"A@0..2s B@{time}") == found


def test_the_whole_is_bounded_after_several_events(backend):
    text = "define D detect A then B then not C within 10 s"
    assert backend.detect(text, "A@1s B@3s") == expect("D@1..11s: a1 b1")
    assert backend.detect(text, "A@1s B@3s C@11s") == []
    assert backend.detect(text, "A@1s C@2s B@3s") == expect("D@1..11s: a1 b1")


def test_absences_on_both_sides(backend):
    pattern = "not A then B then not C for 2 s within 5 s"
    assert backend.pattern(pattern, "B@6s") == ["b1"]
    assert backend.pattern(pattern, "A@5s B@6s") == []
    assert backend.pattern(pattern, "B@6s C@7s") == []


def test_the_absence_of_a_definition(backend):
    text = "define Big detect B(v > 2) define D detect A then not Big for 5 s"
    assert backend.detect(text, "A@1s B@2s:v=1") == expect("D@1..6s: a1")
    assert backend.detect(text, "A@1s B@2s:v=3") == []


def test_the_absence_of_alternatives(backend):
    assert backend.pattern("A then not (B or C) for 5 s", "A@1s B@9s") == ["a1"]
    assert backend.pattern("A then not (B or C) for 5 s", "A@1s C@2s") == []
