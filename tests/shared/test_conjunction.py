"""`and`: all parts occur, in any order."""

from __future__ import annotations

from tests.shared.backends import expect


def test_both_occur_in_either_order(backend):
    found = backend.detect("define D detect A and B within 10 s", "A@1s B@3s A@5s")
    assert found == expect("D@1..3s: a1 b1 ; D@3..5s: b1 a2")


def test_both_may_occur_at_the_same_time(backend):
    assert backend.pattern("A and B within 10 s", "A@1s B@1s") == ["a1 b1"]


def test_within_spans_from_the_least_start_to_the_largest_end(backend):
    assert backend.pattern("A and B within 4 s", "A@2..3s B@1..5s B@1..6s") == ["a1 b1"]


def test_the_pair_is_complete_with_its_later_event(backend):
    found = backend.detect("define D detect A and B within 10 s", "B@1s A@4s")
    assert [(row["start"], row["end"]) for row in found] == [(1_000_000, 4_000_000)]


def test_a_bound_from_one_part_to_another_sets_their_order(backend):
    data = "B@1s A@2s B@4s B@7s"
    assert backend.pattern("A as a and B within 3 s from a", data) == ["a1 b2"]


def test_the_bound_allows_the_same_time_if_the_order_does(backend):
    # Same times and no source: the order goes by id, so a1 stands before b1 and c1 does not.
    assert backend.pattern("A as a and B within 3 s from a", "A@1s B@1s") == ["a1 b1"]
    assert backend.pattern("C as c and B within 3 s from c", "C@1s B@1s") == []


def test_one_type_twice_gives_both_ways_round(backend):
    found = backend.detect(
        "define D detect A as a and A as b within 10 s assign v = b.v", "A@1s:v=1 A@2s:v=2"
    )
    assert found == expect("D@1..2s:v=1: a1 a2 ; D@1..2s:v=2: a1 a2")
    assert len(set(found.ids)) == 2


def test_a_condition_tells_the_two_apart(backend):
    data = "A@1s:v=2 A@2s:v=1 A@3s:v=3"
    found = backend.pattern("A as a and A as b within 10 s where a.v < b.v", data)
    assert found == ["a1 a2", "a1 a3", "a2 a3"]


def test_three_parts_in_any_order(backend):
    assert backend.pattern("A and B and C within 10 s", "C@1s A@2s B@3s") == ["c1 a1 b1"]


def test_a_sequence_may_be_one_side(backend):
    assert backend.pattern("(A then B) and C within 10 s", "A@1s C@2s B@3s") == ["a1 c1 b1"]
    assert backend.pattern("(A then B) and C within 10 s", "B@1s C@2s A@3s") == []
