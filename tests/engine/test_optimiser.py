"""What the engine does to have less work: the order of binding, and what queries share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.comparing import as_detections, plain
from tests.reference.strategies import event_lists, expected, graphs
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel import detect
from whimbrel.engine.matcher import Matcher
from whimbrel.graph.binding import Tie, binding_order, usual_order
from whimbrel.graph.query import Query

THREE = "define X detect A as a then B as b then C as c within 1 h group by source"


# -- the order of binding ----------------------------------------------------------------------------------


def test_parts_are_bound_from_the_end_of_a_sequence_where_all_are_equally_frequent():
    assert binding_order(2, [-1, 0, 1], [5.0, 5.0, 5.0], []) == [2, 1, 0]


def test_a_rare_part_is_bound_early():
    assert binding_order(3, [-1, -1, -1, -1], [10.0, 0.01, 100.0, 1.0], []) == [3, 1, 0, 2]


def test_a_part_that_a_selective_condition_ties_is_bound_early():
    ties = [Tie(frozenset((0, 2)), 0.001)]
    assert binding_order(2, [-1, -1, -1], [50.0, 50.0, 1.0], ties) == [2, 0, 1]


def test_long_patterns_are_bound_as_usual():
    before = [-1, *range(11)]
    assert binding_order(11, before, [0.0, *[9.0] * 11], []) == usual_order(11, before)


@given(data=st.data(), graph=graphs(), events=event_lists())
def test_the_order_of_binding_changes_nothing(data, graph, events):
    usual = detect(Query(graph), event_table(events))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whimbrel.engine.matcher.binding_order", lambda trigger, before, *_: [
            trigger, *data.draw(st.permutations([n for n in range(len(before)) if n != trigger]))
        ])  # fmt: skip
        found = detect(Query(graph), event_table(events))
    assert found.to_pylist() == usual.to_pylist()
    assert plain(as_detections(found)) == plain(expected(graph, events))


def test_a_session_binds_the_rare_part_first_once_it_has_seen_events():
    session = wb.Session(wb.compile(THREE))
    (matcher,) = [r for r in session._pipelines["X"].runtimes.values() if isinstance(r, Matcher)]
    assert matcher.plan[2].tolist() == [2, 1, 0]
    session.push(rows("B" * 300 + "C"))
    assert matcher.plan[2].tolist() == [2, 0, 1]


def rows(types: str, **attributes: Any) -> list[dict[str, Any]]:
    """One event a second, of one source."""
    return [
        {"id": f"{kind}{second}", "type": kind, "time": second, "source": "s", **attributes}
        for second, kind in enumerate(types)
    ]
