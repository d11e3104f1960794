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

import whimbrel as wb
from whimbrel.engine.session import Session
from whimbrel.graph.mobile import MobileQuery
from whimbrel.lang.following import focal as focal_objects
from whimbrel.lang.wbl import compile_text
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


def test_a_query_that_has_followed_nobody_says_so():
    detect = compile_text("coordinates plane define Slow detect Car(speed < 3)")
    buses = {"bus-1": 1, "bus-2": 0}
    events = [
        {"type": "Car", "time": 0, "source": name, "x": 0, "y": 0, "speed": speed}
        for name, speed in buses.items()
    ]
    for focal, missing in (
        ({"only": "bus-3"}, "no Car has a source and a place, and is what it asks for"),
        ({"listed": [{"key": "bus-3"}]}, "no Car with a place has a source that is on its list"),
        ({"where": "speed > 3"}, "no Car has a source and a place, and is what it asks for"),
        ({"only": "bus-2"}, None),
    ):
        session = Session(MobileQuery(detect, focal_objects("Car", **focal), "500 m", name="near"))
        session.push(events)
        session.close()
        said = () if missing is None else (f"'near' has followed nobody: {missing}",)
        assert session.warnings(0) == said


def test_a_query_that_comes_later_counts_what_is_remembered():
    detect = wb.compile("define Seen detect A(v > 0) as a assign v = a.v")
    policy = wb.MobilePolicy(refresh=wb.RefreshWhenQualityFalls("60 s"), quality=wb.Quality(0.5, 0.5))
    moving = wb.MobileQuery(detect, wb.focal("F"), wb.CircleInterest(1.0), "60 s", policy)
    before = [
        {"type": "A", "time": 1, "source": "s", "x": float(n % 2 * 5), "y": 0.0, "v": 1} for n in range(8)
    ]
    before.append({"type": "A", "time": 5, "source": "s", "x": 99.0, "y": 0.0, "v": 1})
    after = [
        {"type": "F", "time": 10, "source": "f", "x": 0.0, "y": 0.0},
        {"type": "F", "time": 20, "source": "f", "x": 5.0, "y": 0.0},
        {"type": "A", "time": 30, "source": "s", "x": 5.0, "y": 0.0, "v": 1},
    ]
    late = wb.Session(wb.compile("define Old detect A(v > 0) as a then F as f within 100 s"), name="old")
    late.push(before)
    late.add(moving, name="moving")
    early = wb.Session(moving)
    early.recall(before)
    told = []
    for session in (late, early):
        table = session.push(after)
        rows = [*table.to_pylist(), *session.close().to_pylist()]
        told.append(
            sorted((row["interest"], row["live"], row["delivery"]) for row in rows if row.get("delivery"))
        )
    assert told[0] == told[1]
    assert {interest for interest, *_ in told[0]} == {1, 2}
