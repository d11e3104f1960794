"""On random graphs and events: what is detected is explained as matched, and every reason is true."""

from __future__ import annotations

from hypothesis import given
from tests.reference.strategies import event_lists, expected, graphs
from tests.reference.tables import event_table
from tests.whynot.checking import Checker

import whimbrel as wb
from whimbrel.graph.query import Query


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
