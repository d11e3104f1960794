"""Events that last, and events at the same time."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect


def test_a_detection_spans_its_events(backend):
    found = backend.detect("define D detect A and B within 1 min", "A@2..9s B@1..5s")
    assert found == expect("D@1..9s: b1 a1")


def test_what_lasts_is_followed_after_its_end(backend):
    assert backend.pattern("A then B within 1 min", "A@1..5s B@3..6s B@5..6s B@6..7s") == ["a1 b3"]


def test_what_lasts_is_complete_at_its_end(backend):
    # a1 ends after b1 has come and gone: the pair is complete with a1.
    assert backend.pattern("A as a and B as b within 1 min where b during a", "A@1..9s B@2..3s") == ["b1 a1"]


def test_the_order_goes_by_end_then_start(backend):
    assert backend.pattern("A{3} within 1 min", "A@4..5s A@1..5s A@2..3s") == ["a3 a2 a1"]


@pytest.mark.given_ids
def test_equal_times_go_by_source_then_id(backend):
    data = "A@1s!b#p A@1s!a#q A@1s#r A@1s!a#o"
    assert backend.pattern("A{4} within 1 min", data) == ["r o q p"]


def test_sources_compare_by_code_point(backend):
    assert backend.pattern("A{3} within 1 min", "A@1s!é#1 A@1s!z#2 A@1s!Z#3") == ["3 2 1"]


def test_many_events_at_the_same_time_are_all_combined(backend):
    data = "A@1s A@1s A@1s B@2s B@2s"
    assert len(backend.pattern("A then B within 1 min", data)) == 6
    assert len(backend.pattern("A and B within 1 min", data)) == 6
    assert backend.pattern("A as a and A as b within 1 min where a.id < b.id", data) == [
        "a1 a2",
        "a1 a3",
        "a2 a3",
    ]


def test_oldest_among_equal_times_is_the_first_in_order(backend):
    assert backend.pattern("A then B within 1 min context chronicle", "A@1s!b#p A@1s!a#q B@2s") == ["q b1"]
    assert backend.pattern("A then B within 1 min context recent", "A@1s!b#p A@1s!a#q B@2s") == ["p b1"]


def test_windows_count_equal_times_in_order(backend):
    text = "define D over 1 events within 1 min detect A assign v = last(A.v)"
    assert backend.detect(text, "A@1s!b:v=1 A@1s!a:v=2").values("v") in ([1, 2], [2, 1])


def test_a_detection_has_the_source_its_events_share(backend):
    text = "define Pair detect A then B within 9 s define D detect Pair assign who = Pair.source"
    assert backend.detect(text, "A@1s!bus B@2s!bus").values("who") == ["bus"]
    assert backend.detect(text, "A@1s!bus B@2s!tram").values("who") == [None]
    assert backend.detect(text, "A@1s!bus B@2s").values("who") == [None]
