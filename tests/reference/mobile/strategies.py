"""Random mobile queries and movements, on the small lattice of the random events: places 0 to 3."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product

from hypothesis import strategies as st
from tests.reference.data import Event
from tests.reference.strategies import FEATURES, event_lists, graphs

from whimbrel.model.time import SECOND

from .query import (
    Ahead,
    Always,
    Box,
    Circle,
    Every,
    Focal,
    MobileQuery,
    Moved,
    Outline,
    Quality,
    Refresh,
    Shape,
    WhenQualityFalls,
)

FOCAL = "F"
PLAIN = FEATURES & {"filter", "conjunction", "conditions", "merge", "partition", "space", "layers", "assign"}
"""What nothing can prevent, so that more events only mean more detections."""
ANCHORED = frozenset({"contexts", "consuming"})
"""Features of graphs that may depend on where a run began; so may windows that count in steps."""

shapes: st.SearchStrategy[Shape] = st.sampled_from(
    (
        Circle(1.5),
        Circle(0.5),
        Circle(2.2),
        Circle(9.0),
        Box(2.0, 2.0),
        Box(1.0, 5.0),
        Outline(((-0.5, -0.5), (2.5, -0.5), (-0.5, 2.5))),
        Ahead(2.5, 90.0),
        Ahead(2.5, 200.0),
    )
)
conditions: st.SearchStrategy[Refresh] = st.sampled_from(
    (
        Always(),
        Every(2 * SECOND),
        Moved(1.2),
        WhenQualityFalls(Quality(0.9, 0.9), 5 * SECOND),
        WhenQualityFalls(Quality(0.5, 0.5), 2 * SECOND),
        WhenQualityFalls(Quality(1.0, 1.0), SECOND),
    )
)
_PLACES = tuple(product((0.0, 1.0, 2.0, 3.0), (0.0, 1.0, 2.0)))
_UPDATES = tuple(product(range(9), ("f", "f", "g")))


@st.composite
def movements(draw: st.DrawFn, *, min_size: int = 1, max_size: int = 6) -> list[Event]:
    """Draw location updates of one or two objects, ties in time among them, in no order of time."""
    updates = draw(st.lists(st.sampled_from(_UPDATES), min_size=min_size, max_size=max_size))
    found = []
    for number, (second, key) in enumerate(updates):
        x, y = draw(st.sampled_from(_PLACES))
        time = second * SECOND
        found.append(Event(f"{key}{number}", FOCAL, time, time, key, x, y, attributes={"k": "x"}))
    return found


@st.composite
def mobile_queries(draw: st.DrawFn, features: Collection[str] = FEATURES, **fixed: object) -> MobileQuery:
    """Draw a mobile query over a random graph; `fixed` fields are not drawn."""
    chosen: dict[str, object] = {
        "graph": draw(graphs(features, max_definitions=2, max_parts=3)) if "graph" not in fixed else None,
        "focal": draw(st.sampled_from((Focal(FOCAL), Focal(FOCAL), Focal("A")))),
        "interest": draw(shapes),
        "lifetime": draw(st.sampled_from((0, 2, 4, 100))) * SECOND,
        "refresh": draw(conditions),
        "excluding_itself": draw(st.sampled_from((False, False, True))),
        "silent": draw(st.sampled_from((None, None, 3 * SECOND))),
    }
    return MobileQuery(**(chosen | fixed))  # type: ignore[arg-type]


@st.composite
def worlds_of_events(draw: st.DrawFn, *, max_size: int = 10) -> list[Event]:
    """Draw events of the graph's types, and location updates among them."""
    return [*draw(event_lists(max_size=max_size)), *draw(movements())]


def moved_to(places: Sequence[tuple[float, float, float]], key: str = "f") -> list[Event]:
    """Location updates at (second, x, y)."""
    return [
        Event(f"{key}@{second:g}", FOCAL, int(second * SECOND), int(second * SECOND), key, x, y)
        for second, x, y in places
    ]
