"""Random graphs, events, batches and orders of arrival, small enough for the reference.

Everything is chosen so that rules meet: few types, few keys, many ties in time, short windows. The
first choice of every draw is the plainest, so that failing examples shrink to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise, product

from hypothesis import reject, settings
from hypothesis import strategies as st

from whimbrel.graph.functions import Function
from whimbrel.graph.operators import Graph
from whimbrel.model.time import SECOND

from .data import Detection, Event, Point
from .matches import TooLarge
from .random_graphs import GraphDraft
from .random_terms import FEATURES
from .reference import detect

FEW = settings(max_examples=max(10, settings.default.max_examples // 5))
"""For properties of which an example takes long."""

__all__ = ["FEATURES", "arrivals", "cuts", "deliveries", "event_lists", "expected", "graphs"]

_TRIANGLE: tuple[Point, ...] = ((0.0, 0.0), (2.0, 0.0), (0.0, 2.0))
_ANGLE: tuple[Point, ...] = ((0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 2.0))
_QUARTERS = (0.0, 0.25, 0.5, 1.0, 1.75, -0.5)

# Few draws for each event: hypothesis takes longer to draw one than the reference to look at it.
_SENDERS = tuple(product((None, "s", "s", "t"), ("x", "x", "y", None)))
_VALUES = tuple(product((0, 1, 2, 3, None), (*_QUARTERS, None)))
_PLACES = ((0, 0), (1, 0), (0, 2), (3, 1), None)

_EVENT = st.tuples(
    st.sampled_from("AAABBBCD"),
    st.integers(0, 7),
    st.sampled_from((0, 0, 0, 0, 1, 2)),
    st.sampled_from(_SENDERS),
    st.sampled_from(_VALUES),
    st.sampled_from(tuple(product((False, True), _PLACES))),
)

_PERHAPS = st.one_of(st.none(), *(_EVENT.map(tuple) for _ in range(5)))
"""An event or none: shrinking takes away any of them without moving the others."""


@st.composite
def graphs(
    draw: st.DrawFn, features: Collection[str] = FEATURES, *, max_definitions: int = 3, max_parts: int = 4
) -> Graph:
    """Draw a valid graph of one to a few definitions, the later ones perhaps on the earlier ones.

    `features` names what may occur (see `FEATURES`), so that a backend can be tested with what it has.
    """
    draft = GraphDraft(draw, frozenset(features), max_parts)
    for _ in range(max_definitions):
        draft.apart(draft.add_perhaps)
    return draft.finish()


@st.composite
def event_lists(
    draw: st.DrawFn, *, min_size: int = 0, max_size: int = 14, polygons: bool = True
) -> list[Event]:
    """Draw events of the types A to D, in no order of time, with different ids and every attribute.

    `v` is whole, `w` in quarters (so that sums are exact), `k` a key; each may be null.
    """
    drawn = [draw(_EVENT if number < min_size else _PERHAPS) for number in range(max_size)]
    return [
        _event(number, *chosen, polygons=polygons)
        for number, chosen in enumerate(drawn)
        if chosen is not None
    ]


def _event(
    number: int,
    kind: str,
    start: int,
    lasting: int,
    sender: tuple[str | None, str | None],
    values: tuple[int | None, float | None],
    place: tuple[bool, tuple[int, int] | None],
    *,
    polygons: bool,
) -> Event:
    source, k = sender
    v, w = values
    spreads, point = place
    has_polygon = polygons and spreads and point is not None
    x, y = point or (None, None)
    return Event(
        id=f"e{number}",
        type=kind,
        start=start * SECOND,
        end=(start + lasting) * SECOND,
        source=source,
        x=None if has_polygon or x is None else float(x),
        y=None if has_polygon or y is None else float(y),
        polygon=_moved(_ANGLE if number % 2 else _TRIANGLE, x, y) if has_polygon else None,
        attributes={"v": v, "w": w, "k": k},
    )


def _moved(corners: tuple[Point, ...], x: int | None, y: int | None) -> tuple[Point, ...]:
    assert x is not None
    assert y is not None
    return tuple((x + dx, y + dy) for dx, dy in corners)


@st.composite
def cuts(draw: st.DrawFn, events: Sequence[Event]) -> list[list[Event]]:
    """Cut a list of events into batches at random places; some batches may be empty."""
    places = sorted(draw(st.lists(st.integers(0, len(events)), max_size=5)))
    bounds = [0, *places, len(events)]
    return [list(events[first:last]) for first, last in pairwise(bounds)]


@st.composite
def arrivals(draw: st.DrawFn, events: Sequence[Event], lateness_us: int) -> list[Event]:
    """Put events into an order of arrival in which none is late, however it is cut into batches.

    Each is held back by at most the lateness, so that what overtakes it ends at most that much later.
    """
    steps = st.integers(0, 4)
    delays = [draw(steps) * lateness_us // 4 for _ in events]
    numbered = sorted(range(len(events)), key=lambda number: events[number].end + delays[number])
    return [events[number] for number in numbered]


@st.composite
def deliveries(draw: st.DrawFn, events: Sequence[Event]) -> list[list[Event]]:
    """Deliver events in batches in any order, some of them again: `admit` says what becomes of them."""
    again = draw(st.lists(st.sampled_from(list(events)), max_size=4)) if events else []
    return draw(cuts(draw(st.permutations([*events, *again]))))


def expected(
    graph: Graph,
    events: Sequence[Event],
    functions: Mapping[str, Function] | None = None,
    *,
    limit: int = 5_000,
) -> list[Detection]:
    """What the reference detects; an example with too many combinations is passed over."""
    try:
        return detect(graph, events, functions, limit=limit)
    except TooLarge:
        reject()
