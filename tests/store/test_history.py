"""What a store holds is the history of queries that follow something live, without a gap."""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.mobile.comparing import compiled, sorted_told, told
from tests.engine.mobile.test_running import answer
from tests.reference.data import order
from tests.reference.mobile.strategies import mobile_queries, worlds_of_events
from tests.reference.strategies import FEW
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.model.time import SECOND
from whimbrel.store import Store

TIMES = st.integers(0, 8).map(lambda second: second * SECOND)


@pytest.mark.slow
@FEW
@given(mobile_queries(), worlds_of_events(), TIMES)
def test_stored_events_are_history_and_pushed_ones_follow_without_a_gap(query, events, begins):
    expected = answer(replace(query, begins=begins), events)
    before = [each for each in events if each.end < begins]
    after = sorted((each for each in events if each.end >= begins), key=order)
    with TemporaryDirectory() as folder:
        store = Store.create(folder, coordinates="plane")
        if before:
            store.append(event_table(before))
        session = store.session(compiled(query), at=begins)
        tables = [session.push(event_table(after))] if after else []
        found = [each for table in [*tables, session.close()] for each in told(table)]
    assert sorted_told(found) == expected


def test_events_of_before_the_seam_come_too_late_and_are_counted():
    with TemporaryDirectory() as folder:
        store = Store.create(folder, coordinates="plane")
        near = wb.follow(wb.compile("define Seen detect Slow"), "a", type="Car", within="9 m")
        session = store.session(near, at=60 * SECOND)
        session.push([{"type": "Car", "time": 59, "source": "a", "x": 1.0, "y": 0.0}])
        assert session.counts.late == 1
