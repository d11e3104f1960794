"""How far back results depend on events."""

from __future__ import annotations

from tests.reference import detect
from tests.reference.building import query, together
from tests.reference.notation import given

from whimbrel.graph.reach import anchors, reach


def test_a_bounded_run_may_begin_as_long_ago_as_its_results_reach():
    graph = query(together("A a, B b first", 5), types="AB")
    assert anchors(graph) == {}
    events = given("B@1s A@5s B@9s")
    begun_late = [event for event in events if event.end >= events[-1].end - reach(graph, "X")]

    def found_at_the_end(among):
        return [each.events for each in detect(graph, among) if each.end == events[-1].end]

    assert found_at_the_end(begun_late) == found_at_the_end(events)
