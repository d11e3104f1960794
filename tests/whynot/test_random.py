"""On random graphs and events: what is detected is explained as matched, and every reason is true."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.reference.data import order
from tests.reference.random_graphs import BY_K
from tests.reference.strategies import FEW, cuts, event_lists, expected, graphs
from tests.reference.tables import event_table
from tests.whynot.checking import Checker

import whimbrel as wb
from whimbrel.graph.query import Query
from whimbrel.model.time import SECOND


@pytest.mark.slow
@given(graphs(), event_lists())
def test_every_reason_is_true(graph, events):
    detections = expected(graph, events)
    explanation = wb.why(Query(graph), event_table(events), limit=50)
    assert explanation.matched == bool(detections)
    Checker(graph, events).check(explanation)


@given(graphs(), event_lists(min_size=4))
def test_what_is_not_detected_has_a_reason(graph, events):
    explanation = wb.why(Query(graph), event_table(events), limit=50)
    for finding in explanation.findings:
        if finding.is_output and not finding.detections:
            assert finding.misses, finding


@given(graphs(), event_lists(min_size=2), st.sampled_from(["x", "y", None]))
def test_a_key_leaves_out_what_is_not_of_it(graph, events, wanted):
    if not any(op.partitioning == BY_K for op in graph.operators):
        return
    query, table = Query(graph), event_table(events)
    explanation = wb.why(query, table, key={"k": wanted}, limit=50)
    checker = Checker(graph, events)
    for finding in explanation.findings:
        operator = graph[finding.operator]
        if operator.partitioning == BY_K:
            mine = [item for item in checker.streams[operator.name] if item.group == {"k": wanted}]
            assert finding.detections == len(mine), finding
            assert all(miss.key in ({"k": wanted}, {}) for miss in finding.misses), finding


@given(graphs(), event_lists(), st.integers(0, 9))
def test_a_time_leaves_out_what_lies_elsewhere(graph, events, second):
    at, around = second * SECOND, SECOND
    explanation = wb.why(Query(graph), event_table(events), at=at, around=around, limit=50)
    Checker(graph, events, since=at - around, until=at + around).check(explanation)
    for miss in explanation.misses:
        seen = [event for _, event in miss.parts if event is not None]
        assert not seen or any(s.start <= at + around and s.end >= at - around for s in seen), miss


@FEW
@given(st.data(), graphs(), event_lists())
def test_a_session_that_remembers_everything_tells_what_a_file_does(data, graph, events):
    query, events = Query(graph), sorted(events, key=order)
    session = wb.Session(query, remember="1 h")
    for batch in data.draw(cuts(events)):
        if batch:
            session.push(event_table(batch))
    session.advance(100 * SECOND)
    assume(not session.counts.late)
    told, expected_of_file = session.why(limit=50), wb.why(query, event_table(events), limit=50)
    assert [str(finding) for finding in told.findings] == [str(f) for f in expected_of_file.findings]
