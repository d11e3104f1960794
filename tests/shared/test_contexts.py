"""Contexts: which combinations an event completes, and which events they use up."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

CONTEXTS = {
    "each": ["a1 b1", "a2 b1", "a1 b2", "a2 b2"],
    "recent": ["a2 b1", "a2 b2"],
    "chronicle": ["a1 b1", "a2 b2"],
    "first-matching": ["a1 b1", "a2 b2"],
    "continuous": ["a1 b1", "a2 b1"],
    "cumulative": ["a1 a2 b1"],
}


@pytest.mark.parametrize("context", CONTEXTS)
def test_the_context_chooses(backend, context):
    found = backend.pattern(f"A then B within 10 s context {context}", "A@1s A@2s B@3s B@4s")
    assert found == CONTEXTS[context]


def test_each_is_the_default(backend):
    assert backend.pattern("A then B within 10 s", "A@1s A@2s B@3s B@4s") == CONTEXTS["each"]


def test_recent_takes_the_newest_from_the_last_part_on(backend):
    # At c1: b2 is newer than b1, and then a2 is the newest a before it.
    data = "A@1s B@2s A@3s B@4s A@5s C@6s"
    assert backend.pattern("A then B then C within 10 s context recent", data) == ["a2 b2 c1"]


def test_recent_leaves_events_for_later(backend):
    assert backend.pattern("A then B within 10 s context recent", "A@1s B@2s B@3s") == ["a1 b1", "a1 b2"]


def test_chronicle_tries_the_oldest_only(backend):
    pattern = "A as a then B as b within 10 s where b.v > a.v context chronicle"
    # b1 is not above a1, and a2 is not tried; nothing is used up, so b2 finds a1 again.
    assert backend.pattern(pattern, "A@1s:v=5 A@2s:v=1 B@3s:v=3 B@4s:v=9") == ["a1 b2"]


def test_first_matching_tries_until_one_holds(backend):
    pattern = "A as a then B as b within 10 s where b.v > a.v context first-matching"
    assert backend.pattern(pattern, "A@1s:v=5 A@2s:v=1 B@3s:v=3 B@4s:v=9") == ["a2 b1", "a1 b2"]


def test_what_has_been_used_is_gone(backend):
    for context in ("chronicle", "first-matching", "continuous", "cumulative"):
        assert backend.pattern(f"A then B within 10 s context {context}", "A@1s B@2s B@3s") == ["a1 b1"]


def test_continuous_uses_each_beginning_with_its_oldest_combination(backend):
    pattern = "A then B then C within 10 s context continuous"
    assert backend.pattern(pattern, "A@1s A@2s B@3s B@4s C@5s C@6s") == ["a1 b1 c1", "a2 b1 c1"]


def test_cumulative_reads_the_latest_of_each_part(backend):
    text = "define D detect A as a then B as b within 10 s assign v = a.v context cumulative"
    assert backend.detect(text, "A@1s:v=1 A@2s:v=2 B@3s") == expect("D@1..3s:v=2: a1 a2 b1")


def test_cumulative_takes_only_what_holds(backend):
    pattern = "A as a then B as b within 10 s where a.v < b.v context cumulative"
    assert backend.pattern(pattern, "A@1s:v=1 A@2s:v=9 A@3s:v=2 B@4s:v=5 B@5s:v=10") == ["a1 a3 b1", "a2 b2"]


def test_groups_use_up_their_own_events(backend):
    data = "A@1s:k=x A@2s:k=y B@3s:k=x B@4s:k=y B@5s:k=x"
    assert backend.pattern("A then B within 10 s group by k context chronicle", data) == ["a1 b1", "a2 b2"]


def test_within_bounds_what_the_oldest_may_be(backend):
    assert backend.pattern("A then B within 2 s context chronicle", "A@1s A@3s B@4s") == ["a2 b1"]


def test_an_absence_in_the_context_chronicle(backend):
    pattern = "A then not X then B within 10 s context chronicle"
    assert backend.pattern(pattern, "A@1s X@2s A@3s B@4s") == []
    pattern = "A then not X then B within 10 s context first-matching"
    assert backend.pattern(pattern, "A@1s X@2s A@3s B@4s") == ["a2 b1"]


def test_patterns_that_wait_are_taken_by_deadline(backend):
    pattern = "A as a then not B for 5 s context first-matching"
    assert backend.detect(f"define D detect {pattern}", "A@1s A@2s") == expect("D@1..6s: a1 ; D@2..7s: a2")
