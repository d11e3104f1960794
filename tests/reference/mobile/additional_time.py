"""Lemma 1: how long before the first thing that is told a run has to begin, for each type of event."""

from __future__ import annotations

from collections.abc import Mapping

from whimbrel.graph.operators import Aggregate, Graph, JoinPattern, Operator, Source
from whimbrel.graph.policies import Select

from .knowing import completes_in_order, on_the_grid

Times = Mapping[str, int]


def additional_time(graph: Graph) -> dict[str, int]:
    """For each type, the sum of restriction windows on the longest path from its source to an output.

    What is told late, as it waits for windows of the time grid, needs that much more.
    """
    found: dict[str, int] = {}
    for name in graph.outputs:
        waits = _wait(graph, name)
        for event_type, back in _back(graph, name).items():
            found[event_type] = max(found.get(event_type, 0), back + waits)
    return found


def restriction(operator: Operator) -> int:
    """How far the events that decide on a result may lie before its end."""
    if isinstance(operator, Aggregate):
        window = operator.window
        return window.length if window.kind == "temporal" else operator.retention
    if isinstance(operator, JoinPattern) and any(part.select is not Select.EACH for part in operator.parts):
        # The combination that is preferred to another one may end when that one starts.
        return 2 * operator.within
    return operator.retention


def _back(graph: Graph, name: str) -> dict[str, int]:
    """How far before the end of an event of a stream those that decide on it may lie."""
    operator = graph[name]
    if isinstance(operator, Source):
        return {operator.event_type: 0}
    found: dict[str, int] = {}
    for below in operator.inputs:
        for event_type, back in _back(graph, below).items():
            found[event_type] = max(found.get(event_type, 0), back + restriction(operator))
    return found


def _wait(graph: Graph, name: str) -> int:
    """How long after the end of what decides on it an event of a stream may be known.

    A window of the time grid at the top needs none: its length is counted from when it has passed.
    """
    operator = graph[name]
    below = max((_lag(graph, each) for each in operator.inputs), default=0)
    if completes_in_order(operator):
        return below
    return max((_wait(graph, each) for each in operator.inputs), default=0)


def _lag(graph: Graph, name: str) -> int:
    """How far a stream is complete behind the watermark, at most."""
    operator = graph[name]
    below = max((_lag(graph, each) for each in operator.inputs), default=0)
    if isinstance(operator, Aggregate) and on_the_grid(operator):
        return below + operator.window.length
    return below
