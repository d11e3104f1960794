"""Missing values: as in SQL."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

DATA = "A@1s:v=1 A@2s:v=2 A@3s:k=x A@4s:k=x,v=2"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("v > 1", "2 4"), ("not v > 1", "1"), ("not (v > 1)", "1"), ("v != 1", "2 4"), ("v = null", ""),
        ("v != null", ""), ("v is null", "3"), ("v is not null", "1 2 4"), ("not v is null", "1 2 4"),
        ("v > 1 or k = 'x'", "2 3 4"), ("v > 1 and k = 'x'", "4"), ("not (v > 1 and k = 'x')", "1"),
        ("v in (2, null)", "2 4"), ("v not in (2, null)", ""), ("v in (1, 2)", "1 2 4"),
        ("v not in (1)", "2 4"),
        ("v between 0 and 9", "1 2 4"), ("v not between 2 and 9", "1"), ("v + 1 > 0", "1 2 4"),
        ("coalesce(v, 7) > 1", "2 3 4"), ("null", ""), ("not null", ""), ("null is null", "1 2 3 4"),
        ("null or true", "1 2 3 4"), ("null and false or v = 1", "1"),
        ("coalesce(k, 'none') = 'none'", "1 2"),
        ("contains(k, 'x')", "3 4"), ("not contains(k, 'y')", "3 4"), ("abs(v) >= 0", "1 2 4"),
        ("coalesce(null, null, v) = 1", "1"),
    ],
)  # fmt: skip
def test_a_condition_holds_only_if_it_is_true(backend, condition, found):
    assert backend.pattern(f"A({condition})", DATA) == [f"a{number}" for number in found.split()]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("a.v < b.v", False), ("not a.v < b.v", False), ("a.v is null", True), ("b.v is not null", True),
        ("a.v < b.v or b.v = 1", True), ("a.v < b.v and b.v = 1", False),
        ("not (a.v < b.v and b.v = 2)", True),
        ("a.k = b.k", False), ("a.k != b.k", False), ("coalesce(a.v, b.v) = 1", True),
        ("a.v + b.v > 0", False), ("a.v + b.v is null", True), ("a.k = b.k or true", True),
        ("a.v in (1, b.v)", False), ("b.v in (a.v, 1)", True), ("b.v in (a.v, 2)", False),
        ("not b.v in (a.v, 2)", False), ("least(a.v, b.v) = 1 or b.v = 1", True),
    ],
)  # fmt: skip
def test_a_condition_on_two_events_holds_only_if_it_is_true(backend, condition, holds):
    found = backend.pattern(f"A as a then B as b within 9 s where {condition}", "A@1s B@2s:v=1 C@3s:k=x,v=1")
    assert found == (["a1 b1"] if holds else [])


def test_not_a_number_is_a_missing_value(backend):
    rows = [
        {"type": "A", "start": n, "end": n, "id": f"a{n}", "v": v} for n, v in enumerate([1.0, float("nan")])
    ]
    assert backend.pattern("A(v is null)", rows) == ["a1"]
    assert backend.detect("define D every 1 s detect A assign n = count(A.v), s = sum(A.v)", rows) == expect(
        "D@0..1us:n=1,s=1.0: a0 a1"
    )


def test_what_is_null_can_still_be_assigned(backend):
    assert backend.detect("define D detect A assign v = A.v, w = null, k = 1", "A@1s B@2s:v=1") == expect(
        "D@1s:k=1: a1"
    )


def test_a_null_in_an_absent_part_does_not_violate(backend):
    data = "A@1s:v=1 B@2s B@3s:k=x"
    assert backend.pattern("A as a then not B(v = a.v) for 5 s", data) == ["a1"]
    assert backend.pattern("A as a then not B(v is null) for 5 s", data) == []
