"""Which part of a mobile query is found once for all interests, and which for each of them.

What nothing can prevent is found among more events too: so the detections of an interest are those of one run
over all events that lie in it. That run is done once. Motions are those of movers wherever they go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from whimbrel.graph.operators import Derive, Graph
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.passes.drop_unused import drop_unused

if TYPE_CHECKING:
    from whimbrel.graph.mobile.query import MobileQuery


@dataclass(frozen=True, slots=True)
class MobileParts:
    """The two parts of the graph of a mobile query."""

    once: Graph
    """What runs once: its outputs are what is reported of it, and then what the other part reads of it."""
    reported_once: tuple[str, ...]
    given: tuple[str, ...]
    """The streams of the first part that the other one reads."""
    each: Graph
    """What runs for each interest, with what is below the streams that it is given."""


def parts(query: MobileQuery, graph: Graph | None = None) -> MobileParts:
    """Part the graph of a mobile query, or what rewrites made of it."""
    whole = query.detect.graph if graph is None else graph
    once = tuple(name for name in whole.outputs if query.of_situations or is_found_once(query, whole, name))
    rest = drop_unused(replace(whole, outputs=tuple(name for name in whole.outputs if name not in once)))
    given = tuple(_given(query, rest, rest.outputs))
    first = drop_unused(replace(whole, outputs=tuple(dict.fromkeys((*once, *given)))))
    return MobileParts(first, once, given, rest)


def is_found_once(query: MobileQuery, graph: Graph, name: str) -> bool:
    """Tell whether the rows of a stream that belong to an interest can be told from their events."""
    operator = graph[name]
    if isinstance(operator, Motion | Encounter):
        return not query.motion_within
    return operator.is_monotone and all(is_found_once(query, graph, input) for input in operator.inputs)


def _given(query: MobileQuery, graph: Graph, names: Iterable[str]) -> list[str]:
    """Name the definitions and motions found once that what is found for each interest reads."""
    found: dict[str, None] = {}
    for name in names:
        operator = graph[name]
        is_worth_it = isinstance(operator, Motion | Encounter) or (
            isinstance(operator, Derive) and correlates(graph, name)
        )
        if is_worth_it and is_found_once(query, graph, name):
            found[name] = None
            continue
        found |= dict.fromkeys(_given(query, graph, operator.inputs))
    return list(found)


def correlates(graph: Graph, name: str) -> bool:
    """Tell whether a stream needs more than a look at single events."""
    operator = graph[name]
    return not operator.looks_at_each or any(correlates(graph, input) for input in operator.inputs)
