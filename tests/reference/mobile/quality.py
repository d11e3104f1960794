"""Quality of results: how well the events of one area stand for those of another."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from tests.reference.data import Event
from tests.reference.functions import Place

from whimbrel.graph.operators import ANY, Graph, Source, TimePoints
from whimbrel.model.schema import Coordinates

from .areas import lies_in
from .query import Quality


def ratio(part: int, whole: int) -> float:
    """Nothing of nothing is all of it."""
    return 1.0 if whole == 0 else part / whole


def quality_of(true: Collection[str], used: Collection[str]) -> Quality:
    """Compare the events that were used with those of the true interest, by id (equations 2.4 and 2.5)."""
    common = len(set(true) & set(used))
    return Quality(precision=ratio(common, len(set(used))), recall=ratio(common, len(set(true))))


def quality(
    events: Iterable[Event], true: Place, used: Place, since: int, until: int, coordinates: Coordinates
) -> Quality:
    """Compare two areas by the events that end from `since` to `until`, both included."""
    recent = [event for event in events if since <= event.end <= until]
    return quality_of(
        [event.id for event in recent if lies_in(event, true, coordinates)],
        [event.id for event in recent if lies_in(event, used, coordinates)],
    )


def falls_to(found: Quality, threshold: Quality) -> bool:
    """Algorithm 3.5, line 7: as printed, a quality that is just the threshold is too low."""
    return found.recall <= threshold.recall or found.precision <= threshold.precision


def read_by(graph: Graph, events: Sequence[Event]) -> list[Event]:
    """The events of types that a graph reads: those that are selected by an interest, and count."""
    sources = [operator for operator in graph.operators if isinstance(operator, Source)]
    types = {operator.event_type for operator in sources if not isinstance(operator, TimePoints)}
    return [event for event in events if event.type in types or ANY in types]


# From quality to distance, for events that lie evenly.


def lens(radius: float, distance: float) -> float:
    """The share of a circle that lies in the same circle elsewhere (equations 3.4 and 3.5, as printed)."""
    if distance >= 2 * radius:
        return 0.0
    area = 2 * radius**2 * math.acos(distance / (2 * radius))
    area -= distance / 2 * math.sqrt(4 * radius**2 - distance**2)
    return area / (math.pi * radius**2)


def printed_distance(radius: float, quality: float) -> float:
    """The lens taken for a circle of the same area (equations 3.6 and 3.7): less than is allowed."""
    return 2 * (radius - math.sqrt(quality * radius**2))
