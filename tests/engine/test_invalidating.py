"""Events that are taken back: a session goes on as if they had never come."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, plain, session
from tests.reference.strategies import arrivals, cuts, event_lists, expected, graphs
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.errors import QueryError
from whimbrel.testing import events as given_events
from whimbrel.testing import table

SECOND = 1_000_000
PAIRS = "define Pair detect A as a then B as b within 5 s"


def ids(table: pa.Table) -> list[str]:
    return [" ".join(each) for each in table.column("events").to_pylist()]


def rows(text: str) -> pa.Table:
    return table(given_events(text))


def test_what_was_found_is_withdrawn_and_what_comes_later_does_not_see_the_event():
    running = wb.Session(wb.compile(PAIRS), lateness="0 s")
    running.push(rows("A@1s#a1 A@2s#a2 B@3s#b1"))
    running.advance(3 * SECOND)
    changed = running.invalidate("a1")
    assert (changed.events, ids(changed.withdrawn), ids(changed.detections)) == (1, ["a1 b1"], [])
    running.push(rows("B@4s#b2"))
    assert ids(running.close()) == ["a2 b2"]


def test_an_absence_holds_once_the_event_that_broke_it_is_gone():
    running = wb.Session(wb.compile("define Lost detect A then not B for 2 s"), remember="1 min")
    assert ids(running.push(rows("A@1s#a1 B@2s#b1 C@9s#c1"))) == []
    changed = running.invalidate(["b1"])
    assert ids(changed.detections) == ["a1"]
    assert changed.withdrawn.num_rows == 0


def test_an_event_that_waits_for_its_time_is_dropped():
    running = wb.Session(wb.compile(PAIRS), lateness="10 s")
    running.push(rows("A@1s#a1 B@3s#b1"))
    assert running.invalidate(["a1", "unknown"]).events == 1
    assert ids(running.close()) == []
    counts = running.counts
    assert counts.received == counts.processed + counts.late + counts.duplicate + counts.rejected == 2


def test_an_event_that_is_not_known_changes_nothing():
    running = wb.Session(wb.compile(PAIRS))
    running.push(rows("A@1s#a1 B@3s#b1"))
    changed = running.invalidate("nobody")
    assert (changed.events, changed.detections.num_rows, changed.withdrawn.num_rows) == (0, 0, 0)
    assert ids(running.close()) == ["a1 b1"]


def test_all_queries_of_a_session_forget_it():
    running = wb.Session(wb.compile(PAIRS), name="pairs")
    running.add(wb.compile("define Many over 10 s detect A assign n = count(A)"), name="many")
    running.push(rows("A@1s#a1 A@2s#a2 B@3s#b1 C@4s#c1"))
    changed = running.invalidate("a1")
    assert sorted(ids(changed.withdrawn)) == ["a1", "a1 a2", "a1 b1"]
    assert ids(changed.detections) == ["a2"]
    assert changed.detections.column("n").to_pylist() == [1]


def test_what_was_used_up_long_ago_must_be_remembered():
    query = wb.compile(f"{PAIRS} context chronicle")
    forgetful, mindful = wb.Session(query, remember="2 min"), wb.Session(query, remember="1 d")
    for running in (forgetful, mindful):
        for second in range(0, 4000, 100):
            running.push(rows(f"A@{second}s#a{second} B@{second + 1}s#b{second}"))
        running.advance(4000 * SECOND)
    with pytest.raises(QueryError, match=r"uses events up, and what happened before .* is forgotten"):
        forgetful.invalidate("b3900")
    assert ids(mindful.invalidate("a3900").withdrawn) == ["a3900 b3900"]


@pytest.mark.property
@given(st.data(), graphs(), event_lists(), st.sampled_from([0, 2 * SECOND]))
def test_a_session_goes_on_as_if_the_events_had_never_come(data, graph, events, lateness):
    """Against the reference: what was found, less what was withdrawn, and what was found since."""
    running = session(graph, lateness=lateness, remember="1 d")
    known = {}
    gone: set[str] = set()
    for batch in data.draw(cuts(data.draw(arrivals(events, lateness)))):
        if batch:
            known |= _by_id(running.push(event_table(batch)))
        chosen = (
            data.draw(st.sets(st.sampled_from([event.id for event in batch]), max_size=2)) if batch else set()
        )
        gone |= chosen
        changed = running.invalidate(chosen)
        for each in changed.withdrawn.column("id").to_pylist():
            del known[each]
        known |= _by_id(changed.detections)
    known |= _by_id(running.close())
    found = sorted(detection for row in known.values() for detection in as_detections(row))
    assert plain(found) == plain(expected(graph, [event for event in events if event.id not in gone]))


def _by_id(table: pa.Table) -> dict[str, pa.Table]:
    return {table.column("id")[n].as_py(): table.slice(n, 1) for n in range(table.num_rows)}


def test_an_event_that_is_taken_back_no_longer_tells_where_a_mover_is():
    query = wb.compile("region R = box(0, 0, 4, 4) define D detect T enters R gap 10 s")
    running = wb.Session(query)
    places = enumerate((-5.0, 2.0, -5.0, 2.0))
    running.push(
        [{"type": "T", "time": t, "id": f"t{t}", "source": "v", "x": x, "y": 1.0} for t, x in places]
    )
    running.advance(5 * SECOND)
    changed = running.invalidate("t2")
    assert ids(changed.withdrawn) == ["t2 t3"]
    assert ids(changed.detections) == []


def test_where_a_mover_was_long_ago_must_be_remembered():
    running = wb.Session(wb.compile("region R = box(0, 0, 4, 4) define D detect T enters R gap 10 s"))
    for second in range(0, 4000, 8):
        running.push([{"type": "T", "time": second, "id": f"t{second}", "source": "v", "x": 1.0, "y": 1.0}])
    running.advance(4000 * SECOND)
    with pytest.raises(
        QueryError, match=r"knows where movers were, and what happened before .* is forgotten"
    ):
        running.invalidate("t3992")
