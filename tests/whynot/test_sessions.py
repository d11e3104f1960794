"""Asking a running session."""

from __future__ import annotations

import pytest

import whimbrel as wb

LATE = "define Late detect Leave as a then not Arrive for 1 h group by source"


def leave(minute: int, truck: str, kind: str = "Leave") -> dict:
    return {"id": f"{kind}{minute}{truck}", "type": kind, "time": 60 * minute, "source": truck}


def test_an_absence_that_is_not_decided_yet():
    session = wb.Session(wb.compile(LATE))
    session.push([leave(0, "t1"), leave(10, "t2")])
    found = session.why(key="t1")
    assert not found.matched
    assert [(reason.kind, reason.text) for reason in found.misses[0].reasons] == [
        ("waiting", "everything is there; it is detected at 1970-01-01T01:00:00Z if nothing prevents it")
    ]
    assert [(each.kind, each.count) for each in found.unprocessed] == [("waiting", 1)]
    assert str(found).startswith("not matched for source = t1\n1 event remembered: Leave (1)")


def test_asking_changes_nothing():
    asked, left_alone = wb.Session(wb.compile(LATE)), wb.Session(wb.compile(LATE))
    for session in (asked, left_alone):
        session.push([leave(0, "t1"), leave(10, "t2")])
    asked.why()
    assert asked.counts == left_alone.counts
    assert asked.close().to_pydict() == left_alone.close().to_pydict()


def test_late_events_are_told_and_kept():
    session = wb.Session(wb.compile(LATE))
    session.push([leave(30, "t1")])
    session.push([leave(40, "t1", "Arrive")])
    session.push([leave(35, "t1", "Arrive")])
    (late, waiting) = session.why(key="t1").unprocessed
    assert late.shown == ("Arrive Arrive35t1 t1 at 1970-01-01T00:35:00Z came more than 0 s late",)
    assert waiting.kind == "waiting"
    assert session.take_late().num_rows == 1


def test_what_is_forgotten_is_not_explained_unless_it_was_to_be_remembered():
    query = wb.compile("define X detect A as a then B(v > 5) as b within 10 s group by source")
    events = [{"id": f"a{n}", "type": "A", "time": n, "source": "s"} for n in range(3000)]
    events.insert(1, {"id": "b1", "type": "B", "time": 1, "source": "s", "v": 4})
    forgetful, careful = wb.Session(query), wb.Session(query, remember="1 h")
    for session in (forgetful, careful):
        for first in range(0, len(events), 100):
            session.push(events[first : first + 100])
    told = forgetful.why(at=1_000_000)
    assert told.notes[0].startswith("the session has forgotten events before ")
    assert "b: v was 4, needed > 5" not in str(told)
    assert careful.remembers_since is None
    assert "b: v was 4, needed > 5" in str(careful.why(at=1_000_000))


def test_what_a_session_remembers_can_be_fed_again():
    query = wb.compile(
        "define X detect A as a then B as b within 1 h where distance(a, b) < 9 m and b.k = a.k"
    )
    rows = [
        {"type": "A", "time": 0, "k": "x", "unread": 1, "geometry": "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"},
        {"type": "B", "time": 1, "k": "x", "unread": 2, "geometry": "POLYGON ((4 0, 6 0, 6 2, 4 0))"},
    ]
    session = wb.Session(query, lateness=None)
    found = session.push(rows)
    session.advance(5_000_000)
    kept = session.remembered()
    assert kept.num_rows == 2
    assert "unread" not in kept.column_names
    again = wb.Session(query, lateness=None)
    tables = again.feed(kept.to_batches()[0], 5_000_000)
    assert found.num_rows == 0
    assert [table.num_rows for table in tables] == [1]
    assert session.why().matched


def test_windows_that_are_still_open():
    session = wb.Session(wb.compile("define Hourly every 1 h detect Leave assign n = count(Leave)"))
    session.push([leave(5, "t1")])
    session.advance("1970-01-01T00:06:00Z")
    found = session.why()
    assert [(reason.kind, reason.text) for reason in found.misses[0].reasons] == [
        ("waiting", "1 event came; and their windows are still open")
    ]
    assert found.findings[0].notes == ("windows that end after 1970-01-01T00:06:00Z are still open",)


def test_which_of_several_queries():
    session = wb.Session(wb.compile(LATE))
    session.add(wb.compile("define Any detect Leave"))
    with pytest.raises(wb.QueryError, match="say which query: Late, Any"):
        session.why()
    with pytest.raises(wb.QueryError, match="did you mean 'Late'"):
        session.why(name="Lat")
    session.push([leave(0, "t1")])
    session.advance("1970-01-01T00:00:01Z")
    assert session.why(name="Any").matched


def test_a_session_without_events():
    assert [reason.kind for reason in wb.Session(wb.compile(LATE)).why().misses[0].reasons] == ["nothing"]


def test_a_session_without_queries():
    with pytest.raises(wb.QueryError, match="none is running"):
        wb.Session().why()
