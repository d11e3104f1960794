"""Sequences of steps: how far they came, worked by hand."""

from __future__ import annotations

import pytest
from tests.steps.engine import compiled, rows, whole
from tests.steps.test_recorded import recorded

import whimbrel as wb
from whimbrel.graph.operators.step_pattern import StepPattern
from whimbrel.testing.events import events as events_of
from whimbrel.testing.events import table


def explained(pattern: str, events: str, **settings) -> wb.Explanation:
    rows = [{"id": f"e{number}"} | row for number, row in enumerate(events_of(events))]
    return wb.why(wb.compile(f"define X detect {pattern}"), table(rows), **settings)


def nearest(pattern: str, events: str) -> tuple[str, str, int]:
    miss = explained(pattern, events).misses[0]
    return miss.reasons[0].kind, str(miss.reasons[0]), miss.filled


def test_a_match_is_told_as_one():
    found = explained("A(v > 5) as a next A(v < 3) as b within 9 s", "A@0s:v=6 A@1s:v=2")
    assert found.matched
    assert found.misses == ()


def test_the_next_event_does_not_fit():
    pattern = "A(v > 5) as a next A(v < 3) as b within 9 s"
    assert nearest(pattern, "A@0s:v=6 A@1s:v=4 A@2s:v=2") == ("condition", "b: v was 4, needed < 3", 1)


def test_a_condition_that_reads_what_was_taken():
    pattern = "A(v > 5) as a followed by A(v < first(a.v) / 2) as b within 9 s"
    assert nearest(pattern, "A@0s:v=8 A@1s:v=5") == (
        "condition", "b: v was 5, needed < 4 (first(a.v) / 2)", 1,
    )  # fmt: skip


def test_time_ran_out():
    pattern = "A(v > 5) as a followed by A(v < 3) as b within 5 s"
    assert nearest(pattern, "A@0s#a1:v=8 A@5s:v=1") == (
        "time", "b: came 5 s after A a1 at 1970-01-01T00:00:00Z, needed less than 5 s", 1,
    )  # fmt: skip


def test_an_event_that_must_not_come():
    pattern = "A(v > 5) as a not followed by A(v = 0) as n followed by A(v = 3) as b within 9 s"
    kind, text, _ = nearest(pattern, "A@0s:v=8 A@1s#bad:v=0 A@2s:v=3")
    assert (kind, text) == ("present", "n: A bad at 1970-01-01T00:00:01Z came, which must not")


def test_no_event_came():
    pattern = "A(v > 5) as a next A(v < 3) as b within 9 s"
    assert nearest(pattern, "A@0s#a1:v=8") == (
        "nothing", "b: no event that could be b came after A a1 at 1970-01-01T00:00:00Z", 1,
    )  # fmt: skip


def test_an_absence_at_the_end_that_is_not_decided_yet():
    query = wb.compile("define X detect A(v > 5) as a not followed by A(v = 0) as n within 1 min")
    session = wb.Session(query)
    session.push(table("A@0s#a1:v=8 A@1s#a2:v=3"))
    (reason,) = session.why().misses[0].reasons
    assert (reason.kind, reason.text) == (
        "waiting", "everything is there; it is detected at 1970-01-01T00:01:00Z if nothing prevents it",
    )  # fmt: skip


def test_what_is_next_is_not_known():
    kind, text, _ = nearest("A(v > 5) as a not next A(v = 0) as n within 9 s", "A@0s#a1:v=8")
    assert (kind, text) == (
        "nothing", "no event came after A a1 at 1970-01-01T00:00:00Z, so that what is next is not known",
    )  # fmt: skip


def test_too_few_for_a_step():
    pattern = "A(v > 5) as a followed by A(v < 3){3} as b within 9 s"
    kind, text, _ = nearest(pattern, "A@0s:v=8 A@1s:v=1 A@2s:v=1")
    assert (kind, text) == ("few", "b: 2 events of b came, needed at least 3")


def test_events_of_a_loop_that_lie_too_far_apart():
    pattern = "A(v > 5) as a followed by A(v < 3){2} within 2 s between events as b within 9 s"
    kind, text, _ = nearest(pattern, "A@0s:v=8 A@1s#b1:v=1 A@5s#b2:v=1")
    assert (kind, text) == (
        "time",
        (
            "b: A b2 at 1970-01-01T00:00:05Z came 4 s after A b1 at 1970-01-01T00:00:01Z, "
            "needed less than 2 s between the events of b"
        ),
    )


def test_a_sum_over_nothing_is_zero():
    pattern = "A as a followed by B? as b followed by C(sum(b.v) > 2) as c within 9 s"
    kind, text, _ = nearest(pattern, "A@0s C@1s")
    assert kind == "condition"
    assert "sum(b.v) was 0" in text


def test_matches_that_were_skipped():
    found = explained("A as a next A as b within 9 s skip past last event", "A@0s#a1 A@1s#a2 A@2s#a3")
    assert found.matched
    kinds = {miss.parts[0][1].events: miss.reasons[0].kind for miss in found.misses}
    assert kinds[("a2",)] == "context"


@pytest.mark.parametrize("key", [None, "x"])
def test_groups_are_walked_apart(key):
    pattern = "A(v > 5) as a next A(v < 3) as b within 9 s group by k"
    found = explained(pattern, "A@0s:v=8,k=x A@1s:v=1,k=y A@2s:v=4,k=x", key=key)
    assert [str(reason) for miss in found.misses for reason in miss.reasons] == ["b: v was 4, needed < 3"]


def test_nothing_to_begin_with():
    kind, text, filled = nearest("A(v > 5) as a next A(v < 3) as b within 9 s", "A@0s:v=1")
    assert (kind, text, filled) == ("condition", "a: v was 1, needed > 5", 0)
    assert nearest("A(v > 5) as a next A(v < 3) as b within 9 s", "C@0s:v=1")[0] == "nothing"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_recorded_patterns_are_explained(seed):
    record = recorded()[seed]
    query = compiled(record["pattern"])
    found = wb.why(query, rows(record["events"]), time_unit="ms", limit=30)
    operator = next(each for each in query.graph.operators if isinstance(each, StepPattern))
    finding = next(each for each in found.findings if each.operator == operator.name)
    if not operator.counted:
        assert finding.detections == len(whole(record["pattern"], record["events"]).matches)
    starts = {example.events[0] for example in finding.examples}
    assert not starts & {miss.parts[0][1].events[0] for miss in finding.misses if miss.parts[0][1]}
    assert all(miss.reasons for miss in finding.misses)


def test_an_event_that_could_not_even_begin_is_told_with_what_kept_it_from():
    found = explained(
        "A(v > 5) as a next A(v < 3) as b within 9 s group by k", "A@0s:v=9,k=x A@1s:v=4,k=y", key="y"
    )
    (miss,) = found.misses
    assert str(miss.reasons[0]) == "a: v was 4, needed > 5"
    assert "k = y" in str(found)
