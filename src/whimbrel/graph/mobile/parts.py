"""Which part of a mobile query is found once for all interests, and which for each of them.

What nothing can prevent is found among more events too: so the detections of an interest are those of one run
over all events that lie in it. That run is done once. Motions are those of movers wherever they go.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from whimbrel.graph.operators import Derive, Graph
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.wiring import below

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


def parts(query: MobileQuery, graph: Graph | None = None, *, plain_once: bool = True) -> MobileParts:
    """Part the graph of a mobile query, or what rewrites made of it.

    Without `plain_once`, only what has to be found once is: motions, and all that is `of situations`.
    """
    whole = query.detect.graph if graph is None else graph
    may_be_once = {each.name for each in whole.operators if plain_once or _moves(query, whole, each.name)}
    once = tuple(
        name
        for name in whole.outputs
        if query.of_situations or (name in may_be_once and is_found_once(query, whole, name))
    )
    rest = drop_unused(replace(whole, outputs=tuple(name for name in whole.outputs if name not in once)))
    given = tuple(_given(query, rest, rest.outputs, may_be_once))
    first = drop_unused(replace(whole, outputs=tuple(dict.fromkeys((*once, *given)))))
    return MobileParts(first, once, given, rest)


def is_found_once(query: MobileQuery, graph: Graph, name: str) -> bool:
    """Tell whether the rows of a stream that belong to an interest can be told from their events."""
    operator = graph[name]
    if isinstance(operator, Motion | Encounter):
        return not query.motion_within
    return operator.is_monotone and all(is_found_once(query, graph, input) for input in operator.inputs)


def _moves(query: MobileQuery, graph: Graph, name: str) -> bool:
    """Tell whether a stream needs motions that are found from all events."""
    return not query.motion_within and any(
        isinstance(graph[each], Motion | Encounter) for each in below(graph, (name,))
    )


def _given(query: MobileQuery, graph: Graph, names: Iterable[str], may_be_once: Container[str]) -> list[str]:
    """Name the definitions and motions found once that what is found for each interest reads."""
    found: dict[str, None] = {}
    for name in names:
        operator = graph[name]
        is_worth_it = isinstance(operator, Motion | Encounter) or (
            isinstance(operator, Derive) and correlates(graph, name)
        )
        if is_worth_it and name in may_be_once and is_found_once(query, graph, name):
            found[name] = None
            continue
        found |= dict.fromkeys(_given(query, graph, operator.inputs, may_be_once))
    return list(found)


def correlates(graph: Graph, name: str) -> bool:
    """Tell whether a stream needs more than a look at single events."""
    operator = graph[name]
    return not operator.looks_at_each or any(correlates(graph, input) for input in operator.inputs)
