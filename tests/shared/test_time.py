"""Timestamps and durations."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

HOUR = 3_600_000_000
VALUES = [
    ("A.start", HOUR), ("A.end", 3 * HOUR), ("A.timestamp", 3 * HOUR), ("A.duration", 2 * HOUR),
    ("A.end - A.start", 2 * HOUR), ("A.start + 1 h", 2 * HOUR), ("A.end - 30 min", 2.5 * HOUR),
    ("30 min + A.start", 1.5 * HOUR), ("A.duration / 1 min", 120.0), ("A.duration * 2", 4 * HOUR),
    ("A.duration / 4", HOUR / 2), ("A.duration + 1 h 30 min", 3.5 * HOUR), ("A.duration % 90 min", HOUR / 2),
    ("A.duration > 1 h", True), ("A.start < timestamp '1970-01-01T02:00:00Z'", True),
    ("A.start = timestamp '1970-01-01T02:00:00+01:00'", True), ("timestamp '1970-01-01T01:00:00Z'", HOUR),
    ("-A.duration < 1 us", True), ("1 w = 7 d and 1 d = 24 hours", True),
    ("least(A.start, A.end)", HOUR), ("A.duration in (1 h, 120 min)", True), ("1500 ms = 1.5 s", True),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), VALUES, ids=[expression for expression, _ in VALUES])
def test_a_time_gives(backend, expression, value):
    assert backend.value(expression, "A@1..3h") == value


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("b.start - a.end > 1 s", ["a1 b2"]),
        ("b.start - a.end <= 1 s", ["a1 b1"]),
        ("b.end - a.start = b.timestamp - a.start and b.duration = 0 s", ["a1 b1", "a1 b2"]),
        ("a.end + 1 s = b.start", ["a1 b1"]),
        ("(b.end - a.start) / (a.end - a.start) > 2", ["a1 b2"]),
        ("b.start > timestamp '1970-01-01T00:00:03.5Z'", ["a1 b2"]),
    ],
)
def test_times_of_two_events_compare(backend, condition, found):
    data = "A@0..2s B@3s B@5s"
    assert backend.pattern(f"A as a then B as b within 9 s where {condition}", data) == found


def test_times_before_1970(backend):
    assert backend.pattern("A then B within 2 s", "A@-2s B@-1s") == ["a1 b1"]
    assert backend.value("A.start + 3 s", "A@-2s") == 1_000_000


def test_an_attribute_may_be_a_time(backend):
    rows = [{"type": "A", "start": 5, "end": 5, "id": "a1", "seen": "1970-01-01T00:00:01Z"}]
    condition = "seen < timestamp '1970-01-01T00:00:02Z'"
    text = f"event A(seen: timestamp) define D detect A({condition}) assign seen = A.seen"
    assert backend.detect(text, rows) == expect("D@5us:seen=1000000: a1")


def test_an_attribute_named_like_a_time_comes_first(backend):
    assert backend.value("A.duration", "A@1..3h:duration=5") == 5
    assert backend.value("A.timestamp", "A@1..3h:timestamp=5") == 5


def test_a_condition_may_ask_for_the_time(backend):
    assert backend.pattern("A(start >= timestamp '1970-01-01T00:00:02Z')", "A@1s A@2s A@3s") == ["a2", "a3"]
    assert backend.pattern("A(duration > 1 s)", "A@1s A@0..2s") == ["a2"]
