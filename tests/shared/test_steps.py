"""Sequences of steps: walking along the events, one by one."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

from whimbrel.errors import QueryError

ABSENCE = "define D detect A as a not followed by B as b within 10 s"


@pytest.mark.parametrize(
    ("contiguity", "matches"),
    [("next", []), ("followed by", ["a1 b1"]), ("followed by any", ["a1 b1", "a1 b2"])],
)
def test_contiguity_says_what_may_lie_between(backend, contiguity, matches):
    pattern = f"A {contiguity} B within 10 s among A, B, C"
    assert backend.pattern(pattern, "A@1s C@2s B@3s B@4s") == matches


def test_only_the_events_of_the_steps_are_walked_along_unless_others_are_named(backend):
    assert backend.pattern("A next B within 10 s", "A@1s C@2s B@3s") == ["a1 b1"]
    assert backend.pattern("A next B within 10 s among *", "A@1s C@2s B@3s") == []


@pytest.mark.parametrize(
    ("inside", "matches"),
    [
        ("consecutive", ["c1 a1 b1", "c1 a1 a2 b1"]),
        ("", ["c1 a1 b1", "c1 a1 a2 b1", "c1 a1 a2 a3 b1"]),
        ("combinations", ["c1 a1 b1", "c1 a1 a2 b1", "c1 a1 a2 a3 b1", "c1 a1 a3 b1"]),
    ],
)
def test_a_loop_is_consecutive_or_relaxed_or_combines(backend, inside, matches):
    pattern = f"C followed by A+ {inside} as a followed by B within 1 min among *"
    data = "C@1s D@2s A@3s A@4s D@5s A@6s B@7s"
    assert sorted(backend.pattern(pattern, data)) == sorted(matches)


def test_a_number_of_times_is_counted(backend):
    assert backend.pattern("A{2} as a next B within 1 min", "A@1s A@2s A@3s B@4s") == ["a2 a3 b1"]
    found = backend.pattern("A{1,2} consecutive as a next B within 1 min", "A@1s A@2s A@3s B@4s")
    assert sorted(found) == ["a2 a3 b1", "a3 b1"]


def test_a_greedy_loop_takes_what_the_next_step_would_take_too(backend):
    data = "A@1s:v=1 A@2s:v=1 A@3s:v=5"
    greedy = backend.pattern("A(v < 4)+ greedy as a followed by A as b within 1 min", data)
    assert sorted(greedy) == ["a1 a2 a3", "a2 a3"]
    plain = backend.pattern("A(v < 4)+ as a followed by A as b within 1 min", data)
    assert sorted(plain) == ["a1 a2", "a1 a2 a3", "a2 a3"]


def test_until_ends_a_loop_and_its_event_is_not_taken(backend):
    data = "A@1s A@2s U@3s A@4s C@5s"
    found = backend.pattern("A+ until U as a followed by C within 1 min", data)
    assert sorted(found) == ["a1 a2 c1", "a1 c1", "a2 c1", "a3 c1"]


def test_an_optional_step_may_be_missing(backend):
    pattern = "A next B optional as b next C within 1 min"
    assert backend.pattern(pattern, "A@1s B@2s C@3s A@4s C@5s") == ["a1 b1 c1", "a2 c2"]


def test_a_group_is_repeated_as_a_whole(backend):
    found = backend.detect(
        "define D detect (A as a next B as b){2} next C within 1 min assign n = count(a), m = last(b.v)",
        "A@1s B@2s:v=1 A@3s B@4s:v=2 C@5s",
    )
    assert found == expect("D@1..5s:n=2,m=2: a1 b1 a2 b2 c1")


def test_alternatives_give_what_each_branch_gives(backend):
    pattern = "A followed by (B or (C as c next D as d)) within 1 min"
    assert sorted(backend.pattern(pattern, "A@1s C@2s D@3s B@4s")) == ["a1 b1", "a1 c1 d1"]


# -- absence ------------------------------------------------------------------------------------------------


def test_the_very_next_event_may_be_forbidden(backend):
    pattern = "A not next X as x followed by B within 1 min among *"
    assert backend.pattern(pattern, "A@1s C@2s X@3s B@4s") == ["a1 b1"]
    assert backend.pattern(pattern, "A@1s X@2s B@3s") == []


def test_an_event_between_two_steps_may_be_forbidden(backend):
    pattern = "A not followed by X as x followed by B within 1 min among *"
    assert backend.pattern(pattern, "A@1s C@2s B@3s") == ["a1 b1"]
    assert backend.pattern(pattern, "A@1s C@2s X@3s B@4s") == []


def test_an_absence_at_the_end_is_certain_when_its_time_has_passed(backend):
    assert backend.detect(ABSENCE, "A@1s B@12s") == expect("D@1..11s: a1")
    assert backend.detect(ABSENCE, "A@1s") == expect("D@1..11s: a1")
    assert backend.detect(ABSENCE, "A@1s B@10s") == []


def test_an_absence_at_the_end_is_certain_before_1970_too(backend):
    found = backend.detect(ABSENCE, [{"id": "a1", "type": "A", "start": -90_000_000, "end": -90_000_000}])
    assert [(row["start"], row["end"]) for row in found] == [(-90_000_000, -80_000_000)]


# -- conditions and time ------------------------------------------------------------------------------------


def test_a_condition_reads_what_was_taken_before(backend):
    data = "A@1s:v=2 A@2s:v=5 A@3s:v=3 B@4s:v=4 B@5s:v=9"
    assert backend.pattern("A{3} as a followed by B(v > max(a.v)) within 1 min", data) == ["a1 a2 a3 b2"]
    assert backend.pattern("A{3} as a followed by B(v < avg(a.v)) within 1 min", data) == []


def test_a_loop_may_read_itself(backend):
    pattern = "A(count(a) = 0 or v > last(a.v)){3} as a next B within 1 min"
    assert backend.pattern(pattern, "A@1s:v=1 A@2s:v=3 A@3s:v=2 A@4s:v=4 B@5s") == ["a1 a2 a4 b1"]


def test_what_is_null_is_not_taken(backend):
    assert backend.pattern("A followed by B(v > 1) within 1 min", "A@1s B@2s:v=null B@3s:v=2") == ["a1 b2"]


def test_within_excludes_its_end(backend):
    assert backend.pattern("A followed by B within 2 s", "A@1s B@2999999us") == ["a1 b1"]
    assert backend.pattern("A followed by B within 2 s", "A@1s B@3s") == []


def test_a_step_may_be_bounded_by_the_event_before(backend):
    pattern = "A followed by B within 2 s from previous followed by C within 1 min"
    assert backend.pattern(pattern, "A@1s B@2s C@9s") == ["a1 b1 c1"]
    assert backend.pattern(pattern, "A@1s B@3s C@4s") == []


def test_every_gap_may_be_bounded(backend):
    pattern = "A+ as a followed by B within 1 min within 2 s between events"
    assert sorted(backend.pattern(pattern, "A@1s A@2s B@3s")) == ["a1 a2 b1", "a2 b1"]
    assert backend.pattern(pattern, "A@1s B@3s") == []


BOUNDED = "A followed by B{2,4} within 2 s between events as b followed by C within 1 min"


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ("A@0s B@1s B@2s C@3s", ["a1 b1 b2 c1"]),
        ("A@0s B@1s B@2999999us C@9s", ["a1 b1 b2 c1"]),  # the end is excluded
        ("A@0s B@1s B@3s C@4s", []),
        ("A@0s B@9s B@10s C@20s", ["a1 b1 b2 c1"]),  # before and behind the loop, any time may pass
        ("A@0s B@1s B@2s B@6s C@7s", ["a1 b1 b2 c1"]),  # the loop has enough, and is over
        ("A@0s B@1s B@2s B@3s C@4s", ["a1 b1 b2 b3 c1", "a1 b1 b2 c1"]),
    ],
)
def test_the_gaps_between_the_events_of_a_loop_may_be_bounded(backend, events, found):
    assert sorted(backend.pattern(BOUNDED, events)) == found


def test_a_loop_without_an_end_may_bound_its_gaps_too(backend):
    pattern = "A followed by B+ greedy within 2 s between events as b followed by C within 1 min"
    assert backend.pattern(pattern, "A@0s B@5s B@6s B@9s C@20s") == ["a1 b1 b2 c1"]
    pattern = "B+ combinations within 3 s between events as b followed by C within 1 min"
    assert sorted(backend.pattern(pattern, "B@1s B@2s B@4s C@20s")) == [
        "b1 b2 b3 c1", "b1 b2 c1", "b1 c1", "b2 b3 c1", "b2 c1", "b3 c1",
    ]  # fmt: skip


def test_a_loop_that_lacks_events_is_out_of_time_with_its_window(backend):
    found = backend.detect(
        f"define D detect {BOUNDED} timing out as Late", "A@0s B@1s B@2s C@9s A@10s B@11s B@15s"
    )
    assert [(row["type"], row["end"] // 1_000_000, row["events"]) for row in found] == [
        ("D", 9, ("a1", "b1", "b2", "c1")),
        ("Late", 13, ("a2", "b3")),
    ]


def test_a_match_that_waits_only_for_more_of_a_loop_does_not_hold_others_back(backend):
    pattern = "B{1,3} within 2 s between events as b followed by C as c within 1 min"
    query = f"define D detect {pattern} skip past last event"
    assert [row["events"] for row in backend.detect(query, "B@1s B@9s C@20s")] == [("b1", "c1")]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("sum(b.v) < 9", ["a1 c1"]),
        ("sum(b.v) = 0", ["a1 c1"]),
        ("sum(b.v) is null", []),
        ("count(b) = 0", ["a1 c1"]),
        ("count(b.v) = 0", ["a1 c1"]),
        ("avg(b.v) is null", ["a1 c1"]),
        ("avg(b.v) < 9", []),
        ("min(b.v) < 9", []),
        ("max(b.v) < 9", []),
        ("first(b.v) < 9", []),
        ("last(b.v) is null", ["a1 c1"]),
    ],
)
def test_nothing_adds_up_to_zero_and_has_no_other_value(backend, condition, found):
    pattern = f"A as a followed by B? as b followed by C({condition}) as c within 1 min"
    assert backend.pattern(pattern, "A@1s:v=1 C@3s:v=1.5") == found


def test_values_that_are_null_add_nothing(backend):
    pattern = "A as a followed by B+ as b followed by C(sum(b.v) = {}) as c within 1 min"
    assert backend.pattern(pattern.format(0), "A@1s:v=1 B@2s:v=null C@3s:v=1") == ["a1 b1 c1"]
    assert backend.pattern(pattern.format(2), "A@1s B@2s:v=null B@3s:v=2 C@4s") == ["a1 b1 b2 c1"]


def test_what_runs_out_of_time_is_told_if_asked_for(backend):
    found = backend.detect(
        "define D detect A as a followed by B as b within 5 s assign a = ids(a) timing out as Late",
        "A@1s A@3s B@7s",
    )
    assert [(row["type"], row["start"], row["end"], row["events"]) for row in found] == [
        ("Late", 1_000_000, 6_000_000, ("a1",)),
        ("D", 3_000_000, 7_000_000, ("a2", "b1")),
    ]


def test_runs_with_the_same_events_may_run_out_of_time_at_two_moments(backend):
    found = backend.detect(
        "define D detect A{1,2} combinations as a followed by B within 2 s from previous as b within 5 s"
        " assign a = ids(a) among * timing out as Late",
        "A@1s C@2s C@4s",
    )
    assert [(row["end"], row["events"]) for row in found] == [(3_000_000, ("a1",)), (6_000_000, ("a1",))]


# -- keys, skipping, counting -------------------------------------------------------------------------------


def test_keys_are_walked_along_apart(backend):
    data = "A@1s:k=x A@2s:k=y B@3s:k=y B@4s:k=x"
    found = backend.detect("define D detect A next B within 10 s group by k", data)
    assert found == expect("D@2..3s:k=y: a2 b1 ; D@1..4s:k=x: a1 b2")


@pytest.mark.parametrize(
    ("skip", "matches"),
    [
        ("", ["b1 b2 b3 c1", "b1 b2 c1", "b1 c1", "b2 b3 c1", "b2 c1", "b3 c1"]),
        ("skip to next", ["b1 b2 b3 c1", "b2 b3 c1", "b3 c1"]),
        ("skip past last event", ["b1 b2 b3 c1"]),
        ("skip to first c", ["b1 b2 b3 c1"]),
        ("skip to last b", ["b1 b2 b3 c1", "b3 c1"]),
    ],
)
def test_a_match_may_make_others_superfluous(backend, skip, matches):
    data = "B@1s B@2s B@3s C@4s"
    assert sorted(backend.pattern(f"B+ as b followed by C as c within 1 min {skip}", data)) == matches


def test_a_match_waits_for_others_that_began_before_and_might_make_it_superfluous(backend):
    """The runs that begin with b1 could still take more; when their time is over, the others are told."""
    found = backend.pattern("B+ as b followed by C within 1 min skip to first b", "B@1s B@2s C@3s")
    assert sorted(found) == ["b1 b2 c1", "b1 c1", "b2 c1"]


def test_a_skip_that_misses_may_be_an_error(backend):
    pattern = "A next B optional as b next C within 1 min skip to first b"
    assert backend.pattern(pattern, "A@1s C@2s") == ["a1 c1"]
    with pytest.raises(Exception, match="cannot skip to 'b'"):
        backend.pattern(f"{pattern} or fail", "A@1s C@2s")


def test_matches_may_be_counted_instead_of_listed(backend):
    found = backend.detect(
        "define D detect A+ combinations as a followed by B within 1 min"
        " assign n = matches, total = sum(a.v) counting matches",
        "A@1s:v=1 A@2s:v=2 A@3s:v=3 B@4s",
    )
    assert found == expect("D@1..4s:n=7,total=24: a1 a2 a3 b1")


@pytest.mark.parametrize(("drop", "matches"), [("oldest", ["a2 b1"]), ("newest", ["a1 b1"])])
def test_the_number_of_runs_may_be_limited(backend, drop, matches):
    pattern = f"A followed by B within 1 min limit 1 runs dropping {drop}"
    assert backend.pattern(pattern, "A@1s A@2s B@3s") == matches


def test_a_sequence_may_use_what_another_definition_detects(backend):
    text = "define Big detect A(v > 2) define D detect Big next Big as again within 1 min"
    assert backend.detect(text, "A@1s:v=3 A@2s:v=1 A@3s:v=5").events == ["a1 a3"]


def test_what_has_no_end_is_refused(backend):
    with pytest.raises(QueryError, match="within"):
        backend.pattern("A not followed by B as b", "A@1s", horizon=None)
