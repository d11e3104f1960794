"""The operators that the thesis lists, made of windows and predicates as it says, and in the language.

Both ways find the same: the same events, with the same start and end.
"""

# ruff: noqa: ARG002 - an operator need not look at what is new

from __future__ import annotations

from typing import Any

import whimbrel as wb
from whimbrel.graph.custom import CustomOperator, Output, kappa, process_when, restriction, window
from whimbrel.graph.policies import Consumption, SelectionPolicy
from whimbrel.graph.query import Query
from whimbrel.lang.custom import custom_query
from whimbrel.model.time import SECOND, instant
from whimbrel.testing import detections, table

Found = list[tuple[float, float, tuple[str, ...]]]


class All(CustomOperator):
    """Everything that is selected is a detection."""

    def process(self, events):
        return [{}]


def found(query: Query, text: str) -> Found:
    """Start, end and events of the detections; times in seconds."""
    rows = wb.detect(query, table(text)).to_pylist()
    return sorted(
        (instant(r["start"]) / SECOND, instant(r["end"]) / SECOND, tuple(r["events"])) for r in rows
    )


def worked_out(text: str) -> Found:
    return sorted((row["start"] / SECOND, row["end"] / SECOND, row["events"]) for row in detections(text))


def agree(custom: Query, language: str, text: str, expected: str) -> None:
    assert found(custom, text) == worked_out(expected)
    assert found(wb.compile(f"define X detect {language}"), text) == worked_out(expected)


def query(operator: type[CustomOperator], inputs: Any, policy: SelectionPolicy, **more: Any) -> Query:
    return custom_query("X", operator, inputs, policy, **more)


def test_atoms():
    """A counting window of length 1 that shifts by one event; what it selects is consumed."""
    policy = SelectionPolicy((window("A"),), restriction("10 s"))
    custom = query(All, [("A", "v > 1")], policy, consumption=Consumption("selected"))
    agree(custom, "A(v > 1)", "A@1s#1:v=1 A@2s#2:v=2 B@3s#3:v=3 A@4s#4:v=4", "2s: 2; 4s: 4")


def test_negation():
    """A temporal window as long as the restriction window, in which there is nothing."""
    policy = SelectionPolicy(
        (window("A", shift="none"), window("B", "3 s", shift="none")),
        restriction("3 s", input="A"),
        (kappa("start(B) > end(A)"),),
        (process_when("|A| = 1"), process_when("|B| = 0"), process_when("|B| = all")),
    )
    agree(
        query(All, ["A", "B"], policy),
        "A as a then not B for 3 s",
        "A@0s#1 B@0s#2 A@5s#3 B@8s#4 A@9s#5 B@13s#6 A@20s#7 B@21s#8 A@30s#9",
        "0..3s: 1; 9..12s: 5; 30..33s: 9",
    )


def pairs(relation: str) -> Query:
    """Every a with every b: a stays while b goes through the restriction window, which starts with a."""
    policy = SelectionPolicy(
        (window("A", shift="none"), window("B")),
        restriction("10 s", input="A"),
        (kappa(relation),),
        (process_when("|A| >= 1"), process_when("|B| >= 1")),
    )
    return query(All, ["A", "B"], policy)


INTERVALS = "A@1..3s#a1 B@2..4s#b1 A@4..5s#a2 B@5..6s#b2 B@6..7s#b3"


def test_concatenation():
    """Two counting windows of length 1, start(A) < start(B): intervals may overlap."""
    agree(
        pairs("start(A) < start(B)"),
        "A as a and B as b within 10 s where a.start < b.start",
        INTERVALS,
        "1..4s: a1 b1; 1..6s: a1 b2; 1..7s: a1 b3; 4..6s: a2 b2; 4..7s: a2 b3",
    )


def test_sequence():
    """Two counting windows of length 1, end(A) < start(B): intervals may not overlap."""
    agree(
        pairs("end(A) < start(B)"),
        "A as a then B as b within 10 s",
        INTERVALS,
        "1..6s: a1 b2; 1..7s: a1 b3; 4..7s: a2 b3",
    )


class Runs(CustomOperator):
    """Two or three in a row, from the first event of the restriction window on."""

    def process(self, events):
        known = self.selected["A"]
        for size in range(max(2, len(known) - len(events) + 1), min(3, len(known)) + 1):
            yield Output({}, known[:size])
        self.exhausted = len(known) >= 3

    def close(self):
        return self.selected["A"][:1]


def test_iteration():
    """A window without end; the operator consumes; the restriction window shifts to the oldest event."""
    policy = SelectionPolicy((window("A", None, shift="none"),), restriction("10 s", shift="oldest"))
    custom = query(Runs, ["A"], policy, consumption=Consumption("named"))
    agree(
        custom,
        "A{2,3} as a within 10 s",
        "A@1s#1 A@2s#2 A@3s#3 A@4s#4 A@14s#5",
        "1..2s: 1 2; 1..3s: 1 2 3; 2..3s: 2 3; 2..4s: 2 3 4; 3..4s: 3 4; 4..14s: 4 5",
    )


class Either(CustomOperator):
    """Every event is a detection; the selection need not wait for the other window."""

    def process(self, events):
        self.finished = bool(events)
        return [Output({}, [event]) for event in events]


def test_alternation():
    """Two counting windows and the predicates |A| >= 0, |B| >= 0."""
    policy = SelectionPolicy(
        (window("A"), window("B")),
        restriction("10 s"),
        process_when=(process_when("|A| >= 0"), process_when("|B| >= 0")),
    )
    custom = query(Either, ["A", "B"], policy, consumption=Consumption("selected"))
    text = "A@1s#1 A@2s#2 B@3s#3 C@4s#4 A@30s#5 B@31s#6"
    agree(custom, "A or B", text, "1s: 1; 2s: 2; 3s: 3; 30s: 5; 31s: 6")


class WithFirst(CustomOperator):
    """The first event of the restriction window with each of the other type."""

    def open(self):
        self.first = None

    def process(self, events):
        self.first = self.first or events[0]
        return [Output({}, [self.first, event]) for event in events if event.type != self.first.type]


def test_parallelization():
    """Two counting windows and the predicates |A| >= 1, |B| >= 1."""
    policy = SelectionPolicy(
        (window("A", None, shift="none"), window("B", None, shift="none")),
        restriction("5 s"),
        process_when=(process_when("|A| >= 1"), process_when("|B| >= 1")),
    )
    agree(
        query(WithFirst, ["A", "B"], policy),
        "A and B within 5 s",
        "A@1s#a1 B@2s#b1 A@4s#a2 B@6s#b2 B@20s#b3 A@25s#a3 A@26s#a4",
        "1..2s: a1 b1; 2..4s: b1 a2; 1..6s: a1 b2; 4..6s: a2 b2; 20..25s: b3 a3",
    )


class AfterFirst(CustomOperator):
    """The event of the first window with each of the second."""

    def process(self, events):
        first = self.selected["A"][0]
        return [Output({}, [first, event]) for event in events if event.window == "B"]


def test_timing():
    """A temporal window: what happens within a time span."""
    policy = SelectionPolicy(
        (window("A", shift="none"), window("B", "5 s", shift="none")),
        restriction("5 s", input="A"),
        process_when=(process_when("|A| = 1"),),
    )
    agree(
        query(AfterFirst, ["A", "B"], policy),
        "A as a and B as b within 5 s from a",
        "B@0s#b0 A@1s#a1 B@1s#b1 B@6s#b2 B@7s#b3 A@7s#a2 B@12..13s#b4",
        "1s: a1 b1; 1..6s: a1 b2; 7s: a2 b3",
    )
