"""The reference for patterns of steps finds what Flink found, in its order, and what was worked by hand."""

from __future__ import annotations

import pytest
from tests.reference.steps import SkipMissed, TooLarge, find
from tests.steps.engine import flinks, taken_of
from tests.steps.recorded import recorded


def differing(records):
    """The seeds of the patterns for which the reference finds something else, or in another order."""
    return [each["seed"] for each in records if not agrees(each)]


def agrees(record):
    pattern, events = record["pattern"], record["events"]
    found = find(pattern, events)
    _, timeouts = flinks(pattern, events, record)
    return [match.taken for match in found.matches] == [
        taken_of(match["steps"]) for match in record["matches"]
    ] and sorted({(late.end, late.taken) for late in found.timeouts}) == timeouts


@pytest.mark.slow
def test_the_recording_is_found_in_its_order():
    assert differing(recorded()) == []


def step(name, contiguity=None, **quantifier):
    made = {"name": name, "contiguity": contiguity, "condition": f"k = '{name}'"}
    return made | ({"quantifier": quantifier} if quantifier else {})


def found(pattern, letters):
    """The matches over events named by letters and numbers, one a second: `found(..., "a1 b1")`."""
    events = [
        {"id": word, "type": "E", "time": 1000 * place, "attributes": {"k": word[0]}}
        for place, word in enumerate(letters.split())
    ]
    return [
        " ".join(sorted(sum((ids for _, ids in match.taken), ()))) for match in find(pattern, events).matches
    ]


def test_alternatives_give_what_each_branch_gives():
    either = {"either": [[step("b")], [step("c"), step("d", "next")]], "contiguity": "followedBy"}
    assert found({"steps": [step("a"), either]}, "a1 c1 d1 b1 c2 d2") == ["a1 c1 d1", "a1 b1"]


def test_alternatives_may_be_taken_in_turn():
    twice = {"min": 2, "max": 2, "consecutive": True}
    either = {"either": [[step("b")], [step("c")]], "contiguity": "next", "quantifier": twice}
    assert found({"steps": [step("a"), either]}, "a1 b1 c1 a2 c2 b2 a3 c3 a4 b4") == ["a1 b1 c1", "a2 b2 c2"]


def test_gaps_are_bounded_between_any_two_events():
    pattern = {"steps": [step("a", min=1, max=None), step("b", "followedBy")], "within_gaps_ms": 2000}
    assert found(pattern, "a1 a2 b1") == ["a1 a2 b1", "a2 b1"]
    assert found(pattern, "a1 x1 b1") == []


def test_a_loop_bounds_the_gaps_between_its_own_events():
    pattern = {
        "steps": [step("a"), step("b", "followedBy", min=2, max=3, window_ms=2000), step("c", "followedBy")]
    }
    assert found(pattern, "a1 x1 x2 b1 b2 x3 x4 c1") == ["a1 b1 b2 c1"]
    assert found(pattern, "a1 b1 x1 b2 c1") == []
    assert found(pattern, "a1 b1 b2 x1 b3 c1") == ["a1 b1 b2 c1"]


def test_an_absence_at_the_end_may_wait_for_a_gap():
    pattern = {"steps": [step("a"), step("b", "notFollowedBy")], "within_gaps_ms": 2000}
    assert found(pattern, "a1 x1 b1 a2 b2") == ["a1"]


def test_a_skip_that_misses_is_an_error_if_asked_for():
    skip = {"strategy": "skip_to_first", "step": "b", "throw_on_miss": True}
    pattern = {"steps": [step("a"), step("b", "next", optional=True)], "after_match_skip": skip}
    with pytest.raises(SkipMissed, match="b"):
        found(pattern, "a1")


def test_too_many_runs_are_given_up():
    pattern = {"steps": [step("a", min=1, max=None, combinations=True), step("b", "followedBy")]}
    with pytest.raises(TooLarge):
        found(pattern, " ".join(f"a{number}" for number in range(20)))
