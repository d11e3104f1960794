"""About how many events each operator has to remember, for given rates of events.

The graph does not tell how selective a condition is, so the estimates are for conditions that keep
everything, one detection for each event of a pattern's rarest part, and one group. `rates` can name any
stream, so that what is known about a definition's own rate is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from whimbrel.errors import QueryError, UnknownNameError
from whimbrel.graph.costs import Observed
from whimbrel.graph.operators import Graph, JoinPattern, Source

NOTHING_SEEN = Observed()
MAKING = 4.0
"""What it costs to make a composite, compared with keeping an event."""


def stream_rates(graph: Graph, rates: Mapping[str, float]) -> dict[str, float]:
    """Give the events a second of every stream, from those of event types (1 where none is given).

    Raises
    ------
    QueryError
        If `rates` names something that the graph does not have, or gives no rate.
    """
    types = {operator.event_type for operator in graph.operators if isinstance(operator, Source)}
    for name, rate in rates.items():
        if name not in types and all(name != operator.name for operator in graph.operators):
            raise UnknownNameError("event type or definition", name, types)
        if not 0 <= rate < float("inf"):
            raise QueryError(f"{rate!r} is no rate of {name!r}; give events a second, 0 or more")
    found: dict[str, float] = {}
    for operator in graph.operators:
        named = rates.get(operator.name)
        found[operator.name] = operator.rate(found, rates) if named is None else named
    return found


def worth_sharing(
    graph: Graph, beginning: JoinPattern, patterns: int, observed: Observed = NOTHING_SEEN
) -> bool:
    """Tell whether finding a beginning once costs less than finding it in each of so many patterns.

    Without sharing, every pattern keeps every event of the beginning's parts. With it, they are kept once,
    and every pattern keeps the composites instead. So it pays if there are fewer composites than events.
    """
    likely = likely_rates(graph, observed)
    events = sum(likely[part.input] for part in beginning.parts)
    made = beginning.likely_rate(likely, observed)
    return events + made * (MAKING + patterns) < patterns * events


def likely_rates(graph: Graph, observed: Observed) -> dict[str, float]:
    """Estimate the events a second of every stream, with how selective its conditions are likely to be."""
    found: dict[str, float] = {}
    for operator in graph.operators:
        found[operator.name] = operator.likely_rate(found, observed)
    return found
