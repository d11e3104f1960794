"""Relations between the times of two events."""

from __future__ import annotations

import pytest

# One event of B for each relation that A@20..40s can have to it.
OTHERS = {
    "before": "B@50..60s",
    "after": "B@0..10s",
    "meets": "B@40..60s",
    "met_by": "B@0..20s",
    "overlaps": "B@30..60s",
    "overlapped_by": "B@10..30s",
    "starts": "B@20..60s",
    "started_by": "B@20..30s",
    "during": "B@10..60s",
    "contains": "B@25..35s",
    "finishes": "B@10..40s",
    "finished_by": "B@30..40s",
    "equals": "B@20..40s",
}
EVENTS = "A@20..40s#a " + " ".join(f"{other}#{name}" for name, other in OTHERS.items())


def related(backend, relation: str) -> set[str]:
    found = backend.pattern(f"A as a and B as b within 1 h where a {relation} b", EVENTS)
    return {event for pair in found for event in pair.split()} - {"a"}


@pytest.mark.parametrize("relation", OTHERS)
def test_exactly_one_interval_stands_in_the_relation(backend, relation):
    assert related(backend, relation) == {relation}


def test_concurrent_events_share_an_instant(backend):
    assert related(backend, "concurrent") == OTHERS.keys() - {"before", "after"}


@pytest.mark.parametrize(
    ("relation", "other"),
    [
        ("before", "B@2s"), ("after", "B@0s"), ("equals", "B@1s"), ("concurrent", "B@1s"),
        ("starts", "B@1..3s"), ("finishes", "B@0..1s"), ("during", "B@0..3s"), ("meets", "B@1..3s"),
        ("met_by", "B@0..1s"),
    ],
)  # fmt: skip
def test_a_point_event_has_relations_too(backend, relation, other):
    assert backend.pattern(f"A as a and B as b within 1 h where a {relation} b", f"A@1s {other}") != []


def test_relations_join_with_and_or_not(backend):
    pattern = "A as a and B as b within 1 h where not (a before b or a after b) and not a concurrent b"
    assert backend.pattern(pattern, EVENTS) == []


def test_a_relation_may_stand_in_a_part(backend):
    assert backend.pattern("A as a and B(this during a) as b within 1 h", "A@0..9s B@1..2s B@8..10s") == [
        "b1 a1"
    ]


def test_a_relation_may_relate_detections(backend):
    stay = "define Stay detect A then B within 1 min"
    text = f"{stay} define D detect Stay as s and C as c within 1 h where c during s"
    assert backend.detect(text, "A@1s C@2s B@3s C@4s").events == ["a1 c1 b1"]
