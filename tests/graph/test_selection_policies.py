"""The selection policies of the built-in operators."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.reference.strategies import graphs

from whimbrel.errors import QueryError
from whimbrel.graph.operators import Absent, JoinPattern, Operator, PatternPart, Source, TimeOrder
from whimbrel.graph.operators.join_policy import orders_left
from whimbrel.graph.policies import Context, SelectionPolicy, Shift
from whimbrel.lang.wbl import compile_text
from whimbrel.model.time import END_OF_TIME, HOUR, MINUTE, SECOND


def operator(text: str, kind: str) -> Operator:
    graph = compile_text(text).graph
    (found,) = (each for each in graph.operators if each.word == kind)
    return found


def policy(text: str, kind: str = "match") -> SelectionPolicy:
    return operator(text, kind).selection_policy


def windows(found: SelectionPolicy) -> list[tuple]:
    return [(window.name, window.kind, window.length) for window in found.windows]


def texts(items) -> list[str]:
    return [str(item) for item in items]


def test_a_sequence_takes_one_event_of_each_part_in_order():
    found = policy("define S detect A as a then B as b then C as c within 5 s")
    assert windows(found) == [("a", "counting", 1), ("b", "counting", 1), ("c", "counting", 1)]
    assert texts(found.dependencies) == ["end(a) < start(b)", "end(b) < start(c)"]
    assert texts(found.process_when) == ["|a| = 1", "|b| = 1", "|c| = 1"]
    assert (found.restriction.length, found.restriction.shift) == (5 * SECOND, Shift("events", 1))


def test_a_conjunction_has_no_dependencies():
    found = policy("define S detect A as a and B as b within 5 s")
    assert (len(found.windows), found.dependencies) == (2, ())


def test_an_absence_is_an_empty_window_of_time():
    found = policy("define S detect A as a then not B as n for 1 h")
    assert windows(found) == [("a", "counting", 1), ("n", "temporal", HOUR)]
    assert texts(found.dependencies) == ["start(n) > end(a)"]
    assert texts(found.process_when) == ["|a| = 1", "|n| = 0"]
    assert found.restriction.length == HOUR


def test_an_absence_between_two_parts_lies_between_them():
    found = policy("define S detect A as a then not N as n then B as b within 1 h")
    assert ("n", "temporal", None) in windows(found)
    assert texts(found.dependencies) == ["end(a) < start(b)", "start(n) > end(a)", "end(n) < start(b)"]


def test_an_absence_at_the_front_reaches_back_as_far_as_the_pattern():
    found = policy("define S detect not N as n then B as b within 1 h")
    assert ("n", "temporal", HOUR) in windows(found)
    assert texts(found.dependencies) == ["end(n) < start(b)"]


def test_a_repetition_has_a_window_without_an_end():
    found = policy("define S detect A{2,5} as a within 1 min", "repeat")
    assert windows(found) == [("a", "counting", None)]
    assert texts(found.process_when) == ["|a| >= 2", "|a| <= 5"]
    assert found.restriction.length == MINUTE


def test_a_repetition_ends_before_its_closing_event():
    found = policy("define S detect A{2,} until C as a within 1 min", "repeat")
    assert windows(found) == [("a", "counting", None), ("C", "counting", 1)]
    assert texts(found.dependencies) == ["end(a) <= start(C)"]


@pytest.mark.parametrize(
    ("window", "kind", "length", "shift"),
    [
        ("over 10 min every 1 min", "temporal", 10 * MINUTE, Shift("time", MINUTE)),
        ("every 1 h", "temporal", HOUR, Shift("time", HOUR)),
        ("over 5 min", "temporal", 5 * MINUTE, Shift("events", 1)),
        ("over 100 events every 10 events within 1 h", "counting", 100, Shift("events", 10)),
        ("over 100 events within 1 h", "counting", 100, Shift("events", 1)),
    ],
)
def test_an_aggregate_has_the_window_that_is_written(window, kind, length, shift):
    found = policy(f"define S {window} detect A assign n = count(A)", "aggregate")
    (only,) = found.windows
    assert (only.kind, only.length, only.shift) == (kind, length, shift)
    assert texts(found.process_when) == ["|A| >= 1"]


def test_outer_inputs_of_an_aggregate_may_be_empty():
    found = policy("define S every 1 h detect A and outer B assign n = count(A)", "aggregate")
    assert (texts(found.process_when), found.process_all) == (["|A| >= 1"], True)
    found = policy("define S every 1 h detect outer A and outer B assign n = count(A)", "aggregate")
    assert (texts(found.process_when), found.process_all) == (["|A| >= 1", "|B| >= 1"], False)


@pytest.mark.parametrize("kind", ["source", "filter", "derive"])
def test_a_filter_takes_one_event_and_moves_on_by_one(kind):
    found = policy("define S detect A(v > 1)", kind)
    (only,) = found.windows
    assert (only.kind, only.length, only.shift) == ("counting", 1, Shift("events", 1))
    assert found.restriction.shift == Shift("events", 1)


def test_alternatives_take_an_event_of_any_branch():
    found = policy("define S detect (A or B) as x then C within 1 h", "merge")
    assert [window.name for window in found.windows] == ["x", "x.2"]
    assert not found.process_all


def test_first_and_last_shift_to_the_oldest_and_newest_event():
    found = policy("define S detect first A as a and last B as b and C as c within 1 h")
    assert [window.shift.by for window in found.windows] == ["oldest", "newest", "events"]


@pytest.mark.parametrize(
    ("context", "consumed", "shift"),
    [
        ("each", "none", "events"),
        ("recent", "none", "newest"),
        ("chronicle", "selected", "oldest"),
        ("first-matching", "selected", "oldest"),
        ("continuous", "selected", "events"),
        ("cumulative", "selected", "events"),
    ],
)
def test_a_context_says_where_windows_go_and_what_is_consumed(context, consumed, shift):
    match = operator(f"define S detect A as a then B as b within 1 h context {context}", "match")
    assert match.consumption.kind == consumed
    assert {window.shift.by for window in match.selection_policy.windows} == {shift}


def test_cumulative_takes_every_event_that_is_in_reach():
    found = policy("define S detect A as a then B as b within 1 h context cumulative")
    assert windows(found) == [("a", "temporal", HOUR), ("b", "temporal", HOUR)]
    assert texts(found.process_when) == ["|a| >= 1", "|b| >= 1"]


def test_named_parts_are_consumed():
    match = operator("define S detect A as a then B as b within 1 h consuming b", "match")
    assert match.consumption.kind == "named"


def test_a_gap_is_a_dependency_between_ends():
    found = policy("define S detect A as a and B as b within 5 min from a")
    assert texts(found.dependencies) == ["end(a) <= end(b)"]


def test_a_part_before_two_others_lets_these_give_way():
    parts = tuple(PatternPart(name, name) for name in "abc")
    match = JoinPattern("m", parts, HOUR, orders=(TimeOrder(0, 1), TimeOrder(0, 2)))
    assert texts(match.selection_policy.dependencies) == ["end(a) < start(b)", "start(c) > end(a)"]
    assert orders_left(match) == ()


def test_orders_that_windows_cannot_say_are_left():
    parts = tuple(PatternPart(name, name) for name in "abc")
    match = JoinPattern("m", parts, HOUR, orders=(TimeOrder(0, 1), TimeOrder(1, 2), TimeOrder(0, 2)))
    assert len(match.selection_policy.dependencies) == 3 - len(orders_left(match))


def test_what_is_remembered_for_ever_has_no_restriction():
    parts = (PatternPart("a", "a"), PatternPart("b", "b"))
    match = JoinPattern("m", parts, END_OF_TIME, absent=(Absent("c", "c", 1, None),), context=Context.EACH)
    assert match.selection_policy.restriction.length == END_OF_TIME


@given(graphs())
def test_every_operator_has_a_policy_that_keeps_the_rules_of_the_model(graph):
    for each in graph.operators:
        try:
            found = each.selection_policy
        except QueryError as error:  # the policy itself refuses what breaks a rule
            pytest.fail(f"{each}: {error}")
        names = {window.input for window in found.windows}
        assert names == set(each.inputs) or isinstance(each, Source)
