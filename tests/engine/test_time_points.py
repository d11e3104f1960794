"""Time points in sessions: when they come, to whom, and what of them is remembered."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.lang.builder import absent, at_time, define, event, program
from whimbrel.model.time import SECOND

QUIET = "define Quiet detect time '1970-01-01T00:00:10Z' as t then not B for 5 s"
POINT = "@time:1970-01-01T00:00:10.000000Z"


def at(second: float, kind: str = "A", **more: object) -> dict:
    return {"type": kind, "time": second, **more}


def quiet(**settings) -> wb.Session:
    return wb.Session(wb.compile(QUIET), **settings)


def test_it_is_due_when_the_time_has_passed_without_any_event():
    session = quiet()
    assert session.advance(15 * SECOND - 1).num_rows == 0
    found = session.advance(15 * SECOND)
    assert found.column("events").to_pylist() == [[POINT]]
    assert session.close().num_rows == 0


def test_time_points_are_not_counted_as_events_and_move_no_clock():
    session = quiet()
    session.push([at(3), at(4, "B")])
    assert session.watermark == 4 * SECOND - 1
    session.close()
    assert (session.counts.received, session.counts.processed) == (2, 2)


@pytest.mark.parametrize("lateness", [0, 3 * SECOND])
def test_a_time_before_the_first_event_counts_as_any_other(lateness):
    """What was not seen did not happen: the session began after the time point, and nothing came in it."""
    session = quiet(lateness=lateness)
    assert session.push([at(100, "B")]).num_rows == 1
    late = quiet(lateness=lateness)
    assert late.push([at(12, "B"), at(100, "B")]).num_rows == 0


def test_a_query_that_starts_later_sees_no_time_points_of_before():
    session = wb.Session(wb.compile("define Any detect A"))
    session.push([at(11)])
    session.add(wb.compile(QUIET))
    assert session.close().num_rows == 1  # the A
    session = wb.Session(wb.compile("define Any detect A"))
    session.push([at(9)])
    session.add(wb.compile(QUIET))
    assert sorted(session.close().column("type").to_pylist()) == ["Any", "Quiet"]
    beside = session.beside(wb.compile(QUIET))
    assert beside.close().num_rows == 0


def test_a_snapshot_knows_which_time_points_have_passed():
    for moment, left in ((9, 1), (12, 1), (15, 0)):
        session = quiet()
        session.advance(moment * SECOND)
        restored = quiet()
        restored.restore(session.snapshot())
        assert restored.close().num_rows == left, moment


def test_events_taken_back_leave_time_points_where_they_are():
    session = quiet(remember="1 h")
    session.push([at(12, "B", id="b"), at(20, "B", id="c")])
    session.advance(16 * SECOND)
    changed = session.invalidate("b")
    assert changed.detections.column("events").to_pylist() == [[POINT]]
    assert session.invalidate(POINT).events == 0
    assert session.close().num_rows == 0


def test_a_time_point_stands_in_the_total_order_by_its_id():
    pair = "define Pair detect A as a and time '1970-01-01T00:00:10Z' as t within 5 s from a"
    for name, count in (("@", 1), ("@time:9", 0), ("a", 0)):
        assert wb.detect(wb.compile(pair), [at(10, id=name)]).num_rows == count, name
    assert wb.detect(wb.compile(pair), [at(10)]).num_rows == 1  # the id that is made begins with a colon
    assert wb.detect(wb.compile(pair), [at(10, source="s")]).num_rows == 0
    assert wb.detect(wb.compile(pair), [at(10, id="@", source="s")]).num_rows == 0


def test_events_of_such_a_type_are_rejected():
    session = quiet()
    session.push([at(1, "@time:1970-01-01T00:00:10.000000Z")])
    assert session.counts.rejected == 1
    assert "types that begin with '@time:' are time points" in session.counts.reasons


def test_the_builder_says_the_same():
    quiet_since = at_time(10 * SECOND, as_="t").then(absent(event("B"), for_="5 s"))
    query = program(define("Quiet", detect=quiet_since)).compile()
    assert query.graph == wb.compile(QUIET).graph


def test_subscriptions_are_about_events():
    with pytest.raises(wb.QueryError, match="not about a single event"):
        wb.Subscriptions().add("s", "time '1970-01-01T00:00:10Z'")


def test_why_nothing_was_found_from_a_time_point():
    answer = wb.why(wb.compile(QUIET), [at(12, "B", id="b1")])
    (miss,) = answer.misses
    assert [str(seen) for _, seen in miss.parts] == ["time '1970-01-01T00:00:10Z'"]
    assert "b1" in miss.reasons[0].text
    session = quiet()
    session.push([at(3)])
    assert session.why().misses[0].reasons[0].text == "time '1970-01-01T00:00:10Z' has not come yet"
