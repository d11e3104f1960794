"""Mobile queries come and go while a session runs, and begin with what happened before they were there."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.engine.mobile.comparing import as_told, compiled, is_taken, sorted_told, told
from tests.reference.data import order
from tests.reference.matches import TooLarge
from tests.reference.mobile import deliveries
from tests.reference.mobile.strategies import mobile_queries, worlds_of_events
from tests.reference.tables import event_table

from whimbrel.engine.session import Session
from whimbrel.model.time import SECOND

TIMES = st.integers(0, 8).map(lambda second: second * SECOND)


def answer(query, events):
    assume(is_taken(query))
    try:
        return sorted_told([as_told(each) for each in deliveries(query, events, limit=5_000)])
    except TooLarge:
        reject()


@given(mobile_queries(), worlds_of_events(), TIMES)
def test_what_is_recalled_is_history_of_what_comes(query, events, begins):
    expected = answer(replace(query, begins=begins), events)
    session = Session(compiled(query))
    before = [each for each in events if each.end < begins]
    if before:
        session.recall(event_table(before), until=begins - 1)
    after = sorted((each for each in events if each.end >= begins), key=order)
    tables = [session.push(event_table(after))] if after else []
    found = [each for table in [*tables, session.close()] for each in told(table)]
    assert sorted_told(found) == expected
