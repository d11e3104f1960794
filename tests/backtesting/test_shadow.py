"""A candidate runs beside the live query: the live one does not notice, and differences are told for good."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.backtesting.truck_trips import MAY_1, late, trips
from tests.reference.strategies import arrivals, cuts, event_lists, graphs
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.backtesting import Changes
from whimbrel.errors import DataError, QueryError, StateError, WhimbrelError
from whimbrel.graph.operators import Graph, JoinPattern, Operator
from whimbrel.graph.query import Query
from whimbrel.model.time import END_OF_TIME

HOUR = 3_600


def fixed(differences: pa.Table) -> list[tuple]:
    """Differences in a form that does not depend on which columns the other rows have."""
    rows = []
    for row in differences.to_pylist():
        values = sorted((name, repr(value)) for name, value in row.items() if value is not None)
        rows.append(tuple(values))
    return sorted(rows)


def expected(live: Query, candidate: Query, events) -> list[tuple]:
    """What a backtest over the same events finds."""
    result = wb.backtest(live, events, against=candidate)
    rows = [fixed(table) for table in (result.added, result.dropped, result.changed)]
    return sorted(row for each in rows for row in each)


def leave(n: int, at: float) -> dict:
    return {"id": f"L{n}", "type": "Leave", "time": MAY_1 + at, "truck": "T1"}


# The live query ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_the_live_detections_are_those_of_a_session_without_a_shadow_call_by_call(size):
    alone, shadow = wb.Session(late(), lateness="10 min"), wb.Shadow(late(), late(65), lateness="10 min")
    events = trips()
    for at in range(0, len(events), size):
        piece = events[at : at + size]
        assert shadow.push(piece).equals(alone.push(piece), check_metadata=True)
    last = "2024-05-06T20:00:00Z"
    assert shadow.advance(last).equals(alone.advance(last), check_metadata=True)
    assert shadow.close().equals(alone.close(), check_metadata=True)
    assert shadow.live.counts == alone.counts


def stretched(graph: Graph, factor: float) -> Graph:
    """The same graph with other times in its patterns."""

    def longer(time: int) -> int:
        return min(int(time * factor), END_OF_TIME)

    def changed(operator: Operator) -> Operator:
        if not isinstance(operator, JoinPattern):
            return operator
        absent = (replace(a, duration=a.duration and longer(a.duration)) for a in operator.absent)
        return replace(operator, within=longer(operator.within), absent=tuple(absent))

    return replace(graph, operators=tuple(map(changed, graph.operators)))


@st.composite
def changed_graphs(draw) -> tuple[Graph, Graph]:
    """A graph, and another one or the same with longer or shorter times."""
    graph = draw(graphs(max_definitions=2))
    factor = draw(st.sampled_from([0.5, 2, 3, None]))
    return graph, draw(graphs(max_definitions=2)) if factor is None else stretched(graph, factor)


@pytest.mark.slow
@given(st.data(), changed_graphs(), event_lists(), st.booleans())
def test_a_shadow_tells_what_a_backtest_finds_however_events_come(data, both, events, is_restored):
    live, candidate = map(Query, both)
    batches = data.draw(cuts(data.draw(arrivals(events, 2_000_000))))
    alone = wb.Session(live, lateness="2s")
    shadow = wb.Shadow(live, candidate, lateness="2s")
    told = []
    for batch in batches:
        table = event_table(batch)
        assert shadow.push(table).equals(alone.push(table), check_metadata=True)
        if is_restored:
            saved, shadow = shadow.snapshot(), wb.Shadow(live, candidate, lateness="2s")
            shadow.restore(saved)
        told += fixed(shadow.take_differences())
    assert shadow.close().equals(alone.close(), check_metadata=True)
    told += fixed(shadow.take_differences())
    assert sorted(told) == expected(live, candidate, event_table(events))
    changes = shadow.changes
    assert changes.waiting == 0
    counted = wb.backtest(live, event_table(events), against=candidate).changes
    assert {kind: getattr(changes, kind) for kind in counted} == counted


def test_a_candidate_that_declares_events_otherwise_changes_nothing_for_the_live_query():
    strict = wb.compile(
        "event Leave(truck: int) define Late detect Leave then not Arrive for 1 h group by truck"
    )
    shadow = wb.Shadow(late(), strict)
    shadow.push(trips())
    assert (shadow.live.counts.rejected, shadow.candidate.counts.rejected) == (0, 48)


def test_a_candidate_in_other_coordinates_is_refused_at_once():
    lonlat = wb.compile("coordinates lonlat define Late detect Leave")
    with pytest.raises(QueryError, match="the query is in lonlat coordinates"):
        wb.Shadow(wb.compile("coordinates plane define Late detect Leave"), lonlat)


# What is settled --------------------------------------------------------------------------------------------


def test_what_both_find_is_settled_at_once():
    shadow = wb.Shadow(late(), late())
    shadow.push([leave(1, 0)])
    shadow.advance((MAY_1 + HOUR) * 1_000_000)
    assert shadow.changes == Changes(same=1)
    assert shadow.take_differences().num_rows == 0


def test_what_one_finds_waits_until_the_other_can_no_longer_find_it():
    candidate = wb.compile("define Late detect Leave then not Arrive for 3 h group by truck")
    shadow = wb.Shadow(late(), candidate)
    shadow.push([leave(1, 0), {**leave(2, 2 * HOUR), "type": "Arrive"}])
    shadow.advance((MAY_1 + 2 * HOUR) * 1_000_000)
    assert shadow.changes == Changes(waiting=1)
    # The live detection ends after one hour; the candidate reaches back three.
    shadow.advance((MAY_1 + 4 * HOUR) * 1_000_000)
    assert shadow.changes == Changes(waiting=1)
    shadow.advance((MAY_1 + 4 * HOUR) * 1_000_000 + 1)
    assert shadow.changes == Changes(dropped=1)


def test_a_later_deadline_is_a_change_and_no_addition():
    candidate = wb.compile("define Late detect Leave then not Arrive for 3 h group by truck")
    shadow = wb.Shadow(late(), candidate)
    shadow.push([leave(1, 0)])
    shadow.advance((MAY_1 + 2 * HOUR) * 1_000_000)
    assert shadow.changes == Changes(waiting=1)
    shadow.advance((MAY_1 + 3 * HOUR) * 1_000_000)
    assert shadow.changes == Changes(changed=1)
    (row,) = shadow.take_differences().to_pylist()
    assert row["before"] == '{"end": "2024-05-01T01:00:00.000000Z"}'


def test_differences_are_given_once_and_counted_for_ever():
    shadow = wb.Shadow(late(), late(65))
    shadow.push(trips())
    shadow.close()
    first = shadow.take_differences()
    assert first.num_rows > 5
    assert shadow.take_differences().num_rows == 0
    changes = shadow.changes
    assert changes.added + changes.dropped + changes.changed == first.num_rows
    days = shadow.by_day()
    assert days.column_names == ["day", "type", "same", "added", "dropped", "changed"]
    assert sum(days.column("dropped").to_pylist()) == changes.dropped
    assert days.num_rows == 6


# Snapshots --------------------------------------------------------------------------------------------------


def test_differences_that_were_not_taken_are_in_the_snapshot():
    events, cut = trips(), 50
    shadow = wb.Shadow(late(), late(65))
    shadow.push(events[:cut])
    other = wb.Shadow(late(), late(65))
    other.restore(shadow.snapshot())
    assert other.changes == shadow.changes
    for each in (shadow, other):
        each.push(events[cut:])
        each.close()
    assert other.take_differences().equals(shadow.take_differences())
    assert other.by_day().equals(shadow.by_day())


def test_a_snapshot_of_another_candidate_is_refused():
    saved = wb.Shadow(late(), late(65)).snapshot()
    with pytest.raises(StateError, match="another version of the query"):
        wb.Shadow(late(), late(70)).restore(saved)


def test_a_snapshot_of_a_session_is_none_of_a_shadow():
    with pytest.raises(StateError, match="'shadow'"):
        wb.Shadow(late(), late(65)).restore(wb.Session(late()).snapshot())


# When things go wrong ---------------------------------------------------------------------------------------


def failing(times: int = 0) -> Query:
    calls = []

    def lost(truck: str) -> bool:
        calls.append(truck)
        if len(calls) > times:
            raise ValueError("no map")
        return True

    return wb.compile(
        "define Late detect Leave(lost(truck)) then not Arrive for 1 h group by truck",
        functions=[wb.function(lost, returns="bool")],
    )


def test_a_candidate_that_fails_is_stopped_and_the_live_query_goes_on():
    events = trips()
    alone, shadow = wb.Session(late()), wb.Shadow(late(), failing(9))
    for at in range(0, len(events), 7):
        assert shadow.push(events[at : at + 7]).equals(alone.push(events[at : at + 7]))
    assert shadow.close().equals(alone.close())
    assert "the function 'lost' failed" in str(shadow.failure)
    other = wb.Shadow(late(), failing())
    other.restore(shadow.snapshot())
    assert other.failure == shadow.failure


def test_a_batch_that_the_live_query_refuses_as_a_whole_is_for_neither():
    shadow = wb.Shadow(late(), late(65))
    shadow.push([leave(1, 0)])
    with pytest.raises(DataError):
        shadow.push([{"type": "Leave", "truck": "T1"}])
    assert shadow.candidate.counts.received == shadow.live.counts.received == 1
    assert shadow.failure is None


def test_the_candidate_keeps_in_step_when_the_live_query_fails():
    shadow = wb.Shadow(failing(1), late())
    with pytest.raises(QueryError, match="no map"):
        shadow.push([leave(1, 0), leave(2, 10), leave(3, 20), leave(4, 30)])
    assert shadow.candidate.counts.received == shadow.live.counts.received == 4


def test_what_can_be_read_once_serves_both():
    shadow = wb.Shadow(late(), late(65))
    shadow.push(pa.Table.from_pylist(trips()).to_reader())
    assert shadow.candidate.counts.received == shadow.live.counts.received == len(trips())


# Beside a session that runs ---------------------------------------------------------------------------------


def test_beside_a_running_session_only_what_the_candidate_can_know_is_compared():
    events, cut = trips(), 40
    session = wb.Session(late(), lateness="10 min")
    session.push(events[:cut])
    shadow = wb.Shadow(session, late(65))
    shadow.push(events[cut:])
    shadow.close()
    told = shadow.take_differences()
    newest = events[cut - 1]["time"]
    since = newest + 65 * 60
    whole = wb.backtest(late(), events, against=late(65)).comparison
    expected = whole.filter([row["start"].timestamp() > since for row in whole.to_pylist()])
    assert told.num_rows > 5
    assert fixed(told) == fixed(expected)
    assert shadow.changes.skipped > 0


def test_a_session_that_has_seen_nothing_is_compared_from_the_beginning():
    shadow = wb.Shadow(wb.Session(late(), lateness=None), late(65))
    shadow.push(trips())
    shadow.close()
    assert shadow.changes.skipped == 0
    assert fixed(shadow.take_differences()) == expected(late(), late(65), trips())


def test_of_several_queries_the_types_of_the_candidate_are_compared():
    session = wb.Session(late())
    session.add(wb.compile("define Left detect Leave"))
    shadow = wb.Shadow(session, late())
    found = shadow.push(trips())
    assert set(found.column("type").to_pylist()) == {"Late", "Left"}
    shadow.close()
    assert shadow.changes == Changes(same=19)


def test_a_bounded_session_that_has_begun_gets_no_shadow():
    session = wb.Session(late(), lateness=None)
    session.push(trips())
    with pytest.raises(WhimbrelError, match="begin the shadow before the first event"):
        wb.Shadow(session, late(65))
