"""Who watches a session sees every step, and decides what is reported."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.engine.observer import Observer
from whimbrel.engine.session import Session
from whimbrel.errors import WhimbrelError

QUERY = wb.compile("define Fast detect Position as p where p.speed > 10")
EVENTS = [{"type": "Position", "time": 0, "speed": 20.0}, {"type": "Position", "time": 1, "speed": 30.0}]


class Counting(Observer):
    """Counts what comes out."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def stepped(self, pipeline):
        self.steps.append(sum(len(stream.new) for stream in pipeline.outputs))


class Silent(Counting):
    """Keeps what it sees to itself."""

    steps_always = True

    def report(self, *_):
        return None


def test_an_observer_sees_what_is_found_before_it_is_let_go_of():
    counting = Counting()
    session = Session(QUERY, observer=counting)
    assert session.push(EVENTS).num_rows + session.close().num_rows == 2
    assert sum(counting.steps) == 2


def test_an_observer_may_report_nothing_and_look_even_if_nothing_came():
    silent = Silent()
    session = Session(QUERY, observer=silent, lateness=None)
    assert session.push(EVENTS).num_rows == 0
    assert session.close().num_rows == 0
    assert silent.steps[0] == 0
    assert sum(silent.steps) == 2


def test_a_session_says_where_explanations_come_from(monkeypatch):
    monkeypatch.setattr(Session, "explainer", None)
    with pytest.raises(WhimbrelError, match=r"explanations are not loaded: use whimbrel\.Session, or import"):
        Session(QUERY).why()
