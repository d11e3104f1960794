"""The oracle: Flink CEP itself answers, and its answers are those that its documentation promises.

A step is called after the letter that its events begin with, so `pattern(step("a"), step("b", "next"))`
over `"a1 c1 b1"` asks for an a right before a b. Times count up from 1, or are given as in `"a1@0 b1@9"`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from whimbrel.errors import QueryError

TOOLS = Path(__file__).parents[2] / "tools" / "flink"
sys.path.append(str(TOOLS))
oracle = pytest.importorskip("oracle", reason="tools/flink is not here")

LOOP = {"min": 1, "max": None}

pytestmark = pytest.mark.skipif(oracle.missing() is not None, reason=str(oracle.missing()))


@pytest.fixture(scope="module")
def flink():
    with oracle.Oracle() as running:
        yield running


def step(name, contiguity=None, quantifier=None, condition=None, **more):
    condition = condition or f"startswith(id, '{name}')"
    return {
        "name": name,
        "contiguity": contiguity,
        "condition": condition,
        "quantifier": quantifier or {},
        **more,
    }


def pattern(*steps, skip=None, **more):
    return {"steps": list(steps), "after_match_skip": {"strategy": "no_skip", **(skip or {})}, **more}


def group(*steps, contiguity=None, quantifier=None):
    return {"group": list(steps), "contiguity": contiguity, "quantifier": quantifier or {}}


def within(ms, kind="first_to_last"):
    return {"ms": ms, "type": kind}


def events(text, **attributes):
    made = []
    for place, word in enumerate(text.split(), start=1):
        name, _, time = word.partition("@")
        facts = {each: values[place - 1] for each, values in attributes.items()}
        made.append({"id": name, "type": "Event", "time": int(time or place), "attributes": facts})
    return made


def found(flink, asked, text, **attributes):
    answer = flink.answer(asked, events(text, **attributes))
    assert answer["error"] is None
    return [" ".join(match["events"]) for match in answer["matches"]]


def refusal(flink, asked, text="a1 b1"):
    answer = flink.answer(asked, events(text))
    assert answer["matches"] == []
    return answer["error"]


@pytest.mark.parametrize(
    ("contiguity", "matches"),
    [("next", []), ("followedBy", ["a1 b1"]), ("followedByAny", ["a1 b1", "a1 b2"])],
)
def test_contiguity_is_strict_or_relaxed_or_goes_on(flink, contiguity, matches):
    assert found(flink, pattern(step("a"), step("b", contiguity)), "a1 c1 b1 b2") == matches


@pytest.mark.parametrize(
    ("inside", "matches"),
    [
        ({"consecutive": True}, ["c1 a1 a2 b1", "c1 a1 b1"]),
        ({}, ["c1 a1 a2 a3 b1", "c1 a1 b1", "c1 a1 a2 b1"]),
        ({"combinations": True}, ["c1 a1 a2 a3 b1", "c1 a1 b1", "c1 a1 a3 b1", "c1 a1 a2 b1"]),
    ],
)
def test_a_loop_is_consecutive_or_relaxed_or_combines(flink, inside, matches):
    asked = pattern(step("c"), step("a", "followedBy", LOOP | inside), step("b", "followedBy"))
    assert found(flink, asked, "c1 d1 a1 a2 d2 a3 b1") == matches


def test_a_greedy_loop_takes_what_the_next_step_would_take_too(flink):
    either = "startswith(id, 'a') or startswith(id, 'b')"
    greedy = pattern(step("a", None, LOOP | {"greedy": True}), step("b", "followedBy", condition=either))
    assert found(flink, greedy, "a1 a2 b1") == ["a1 a2 b1", "a2 b1"]
    reluctant = pattern(step("a", None, LOOP), step("b", "followedBy", condition=either))
    assert found(flink, reluctant, "a1 a2 b1") == ["a1 a2", "a1 a2 b1", "a2 b1"]


WINDOW = {"min": 2, "max": 2, "window_ms": 2000}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("a1@0 b1@1000 b2@2000", ["a1 b1 b2"]),
        ("a1@0 b1@1000 b2@9000", ["a1 b1 b2"]),  # not bounded: the last gap of the loop
        ("a1@0 b1@2000 b2@3000", []),  # bounded instead: the gap before it, its end excluded
    ],
)
def test_flink_bounds_the_gap_before_a_loop_in_place_of_its_last_one(flink, text, matches):
    """Which is why the engine goes by what Flink's documentation says of times(n, window) instead."""
    assert found(flink, pattern(step("a"), step("b", "followedBy", WINDOW)), text) == matches


def test_flink_does_not_bound_the_gaps_of_a_loop_without_an_end(flink):
    loop = step("b", "followedBy", LOOP | {"window_ms": 2000})
    asked = pattern(step("a"), loop, step("c", "followedBy"))
    assert found(flink, asked, "a1@0 b1@1000 b2@9000 c1@9500") == ["a1 b1 b2 c1", "a1 b1 c1"]


def test_flink_refuses_a_window_that_is_longer_than_the_whole(flink):
    asked = pattern(step("a", None, WINDOW), within=within(1000))
    assert "cannot be larger than" in refusal(flink, asked)


@pytest.mark.parametrize("often", [{}, {"min": 3, "max": 3}, {"min": 2, "max": 5}, {"optional": True}])
def test_flink_refuses_until_where_there_is_no_loop(flink, often):
    asked = pattern(step("a", None, often | {"until": "startswith(id, 'u')"}))
    assert "only applicable to looping states" in refusal(flink, asked)


def test_until_ends_a_loop_and_its_event_is_not_taken(flink):
    loop = step("a", None, LOOP | {"until": "startswith(id, 'u')"})
    assert found(flink, pattern(loop, step("c", "followedBy")), "a1 a2 u1 a3 c1") == [
        "a1 a2 c1",
        "a1 c1",
        "a2 c1",
        "a3 c1",
    ]


@pytest.mark.parametrize(
    ("skip", "matches"),
    [
        ({}, ["b1 b2 b3 c1", "b1 b2 c1", "b1 c1", "b2 b3 c1", "b2 c1", "b3 c1"]),
        ({"strategy": "skip_to_next"}, ["b1 b2 b3 c1", "b2 b3 c1", "b3 c1"]),
        ({"strategy": "skip_past_last_event"}, ["b1 b2 b3 c1"]),
        ({"strategy": "skip_to_first", "step": "b"}, ["b1 b2 b3 c1", "b1 b2 c1", "b1 c1"]),
        ({"strategy": "skip_to_last", "step": "b"}, ["b1 b2 b3 c1", "b3 c1"]),
    ],
)
def test_skip_strategies_choose_among_the_matches(flink, skip, matches):
    asked = pattern(step("b", None, LOOP), step("c", "followedBy"), skip=skip)
    assert found(flink, asked, "b1 b2 b3 c1") == matches


def test_skipping_to_a_step_without_events_may_be_an_error(flink):
    steps = step("a"), step("c", "followedBy", {"optional": True}), step("b", "followedBy")
    strict = {"strategy": "skip_to_first", "step": "c", "throw_on_miss": True}
    assert "Could not skip to c" in refusal(flink, pattern(*steps, skip=strict))
    assert found(flink, pattern(*steps, skip=strict | {"throw_on_miss": False}), "a1 b1") == ["a1 b1"]


def test_an_absence_at_the_end_matches_when_its_time_has_passed(flink):
    asked = pattern(step("a"), step("b", "notFollowedBy"), within=within(10))
    assert found(flink, asked, "a1@0") == ["a1"]
    assert found(flink, asked, "a1@0 b1@9") == []
    assert found(flink, asked, "a1@0 b1@10") == ["a1"]


def test_an_absence_between_two_steps_forbids_its_event(flink):
    asked = pattern(step("a"), step("x", "notFollowedBy"), step("b", "followedBy"))
    assert found(flink, asked, "a1 c1 b1") == ["a1 b1"]
    assert found(flink, asked, "a1 c1 x1 b1") == []
    at_once = pattern(step("a"), step("x", "notNext"), step("b", "followedBy"))
    assert found(flink, at_once, "a1 c1 x1 b1") == ["a1 b1"]
    assert found(flink, at_once, "a1 x1 b1") == []


def test_within_excludes_its_end_and_reports_what_timed_out(flink):
    asked = pattern(step("a"), step("b", "followedBy"), within=within(10))
    assert found(flink, asked, "a1@0 b1@9") == ["a1 b1"]
    late = flink.answer(asked, events("a1@0 b1@10"))
    assert late == {"matches": [], "timeouts": [{"time": 10, "steps": {"a": ["a1"]}}], "error": None}


def test_a_window_to_the_event_before_bounds_the_last_gap_only(flink):
    asked = pattern(
        step("a"), step("b", "followedBy"), step("c", "followedBy"), within=within(10, "previous_to_current")
    )
    assert found(flink, asked, "a1@0 b1@50 c1@59") == ["a1 b1 c1"]
    assert found(flink, asked, "a1@0 b1@1 c1@11") == []


def test_a_group_repeats_as_a_whole(flink):
    pair = group(step("a"), step("b", "next"), quantifier={"min": 2, "max": 2})
    answer = flink.answer(pattern(pair, step("c", "next")), events("a1 b1 a2 b2 c1"))
    assert answer["matches"] == [
        {
            "events": ["a1", "b1", "a2", "b2", "c1"],
            "steps": {"a": ["a1", "a2"], "b": ["b1", "b2"], "c": ["c1"]},
        }
    ]


def test_keys_part_the_stream(flink):
    asked = pattern(step("a"), step("b", "next"), key=["car"])
    assert found(flink, asked, "a1 a2 b2 b1", car=[1, 2, 2, 1]) == ["a2 b2", "a1 b1"]


def test_equal_times_keep_their_order_and_others_are_sorted(flink):
    asked = pattern(step("a"), step("b", "next"))
    assert found(flink, asked, "b1@5 a1@4 b2@5 a2@5") == ["a1 b1"]
    assert found(flink, asked, "a1@5 b1@5") == ["a1 b1"]


def test_a_step_may_ask_for_a_type(flink):
    asked = pattern(step("a", type="Other"), step("b", "next"))
    given = events("a1 b1")
    assert flink.answer(asked, given)["matches"] == []
    given[0]["type"] = "Other"
    assert [match["events"] for match in flink.answer(asked, given)["matches"]] == [["a1", "b1"]]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("sum(a.v) = 4 and avg(a.v) = 2.0", True),
        ("count(a) = 3 and count(a.v) = 2", True),
        ("min(a.v) = 1 and max(a.v) = 3", True),
        ("first(a.v) = 1 and last(a.v) = 3", True),
        ("count(z) = 0 and sum(z.v) = 0", True),
        ("min(z.v) = 0 or v > 6", True),
        ("min(z.v) = 0 and v > 6", False),
        ("not (min(z.v) = 0)", False),
        ("v / 2 = 3.5 and v % -4 = -1 and -v < 1", True),
        ("v / 0 is null and v % 0 is null", True),
        ("v in (1, 7) and v not between 1 and 6", True),
        ("1 < v <= 7 and v != 8 and v * 2 - 1 >= 13", True),
        ("contains(id, '1') and not contains(id, '2')", True),
    ],
)
def test_conditions_read_the_event_and_those_taken_so_far(flink, condition, holds):
    asked = pattern(step("a", None, {"min": 3, "max": 3}), step("b", "next", condition=condition))
    matches = found(flink, asked, "a1 a2 a3 b1", v=[1, None, 3, 7])
    assert matches == (["a1 a2 a3 b1"] if holds else [])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (pattern(step("a"), step("b", "notFollowedBy")), "NotFollowedBy is not supported without windowTime"),
        (pattern(step("a", None, {"greedy": True})), "not applicable to singleton"),
        (pattern(step("a", None, {"until": "v > 1"})), "only applicable to looping states"),
        (pattern(step("a"), step("a", "next")), "Names must be unique"),
        (pattern(step("a"), step("b", "next", condition="id > 1")), "cannot compare b1 with 1"),
        (pattern(step("a"), group(step("b"), contiguity="notNext")), "no notNext with a group"),
    ],
)
def test_what_flink_refuses_is_answered_with_its_words(flink, asked, words):
    assert words in refusal(flink, asked)


def test_a_pattern_over_which_flink_never_ends_is_given_up(flink):
    endless = pattern(group(step("a", None, {"optional": True}), quantifier=LOOP), step("b", "next"))
    with oracle.Oracle(patience_s=3) as impatient:
        assert "no answer in 3 s" in refusal(impatient, endless)
        assert found(impatient, pattern(step("a"), step("b", "next")), "a1 b1") == ["a1 b1"]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("a.v > 1", "first\\(a.v\\) or last\\(a.v\\)"),
        ("v > 1 group by car", "more than a condition"),
        ("lower(id) = 'a'", "cannot call 'lower'"),
        ("v >", "ends too early|expected|end"),
    ],
)
def test_a_condition_that_no_pattern_can_have_is_refused(flink, condition, words):
    with pytest.raises(QueryError, match=words):
        flink.answer(pattern(step("a", condition=condition)), [])
