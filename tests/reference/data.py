"""What the reference works on: events that come in, items of streams, detections that come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from whimbrel.model.schema import Coordinates

Point = tuple[float, float]
Value = bool | int | float | str | None
Key = tuple[Any, ...]


class Timestamp(int):
    """Microseconds since 1970-01-01 UTC, as a value of an expression or an attribute."""


class Duration(int):
    """A length of time in microseconds, as a value of an expression."""


@dataclass(frozen=True, repr=False)
class Event:
    """An event as it comes in: a point event has `start == end`; a location is (x, y) or a polygon."""

    id: str
    type: str
    start: int
    end: int
    source: str | None = None
    x: float | None = None
    y: float | None = None
    polygon: tuple[Point, ...] | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The one-line notation of `whimbrel.testing`, in microseconds."""
        times = f"{self.start}us" if self.start == self.end else f"{self.start}..{self.end}us"
        source = "" if self.source is None else f"!{self.source}"
        place = self.polygon or ("" if self.x is None else f"({self.x:g},{self.y:g})")
        listed = [f"{name}={'null' if value is None else value}" for name, value in self.attributes.items()]
        values = ":" + ",".join(listed) if listed else ""
        return f"{self.type}@{times}#{self.id}{source}{place}{values}"

    @property
    def points(self) -> tuple[Point, ...]:
        if self.polygon is not None:
            return tuple((float(x), float(y)) for x, y in self.polygon)
        if self.x is None or self.y is None:
            return ()
        return ((float(self.x), float(self.y)),)


@dataclass(frozen=True)
class Detection:
    """A detection as every backend must report it. Attributes that are null are left out.

    `hull` holds the vertices of the location: one for a point, two for a line, else a polygon
    counter-clockwise from the lexicographically smallest one, not closed.
    """

    type: str
    start: int
    end: int
    events: tuple[str, ...]
    attributes: Mapping[str, Value] = field(default_factory=dict)
    hull: tuple[Point, ...] | None = None
    source: str | None = None

    @property
    def sort_key(self) -> Key:
        values = tuple((name, _comparable(value)) for name, value in sorted(self.attributes.items()))
        return self.end, self.start, self.type, self.events, values, self.hull or (), self.source or ""

    def __lt__(self, other: Detection) -> bool:
        return self.sort_key < other.sort_key


def _comparable(value: Value) -> tuple[int, float, str]:
    # 1 and 1.0 are equal and must sort alike; text and numbers never meet.
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value or 0), "")


@dataclass(frozen=True, eq=False)
class Item:
    """One event of a stream: an event that came in, a derived one, or a composite.

    `atoms` are the events below it in total order; `constituents` the items it was made of, part by
    part (none if it came in). `parts` is what the names of a composite are bound to, None for a
    plain event: one item, several (a repeated part), or null.
    """

    id: str
    type: str | None
    source: str | None
    start: int
    end: int
    atoms: tuple[Event, ...]
    attributes: Mapping[str, Value] = field(default_factory=dict)
    parts: Mapping[str, Item | tuple[Item, ...] | None] | None = None
    constituents: tuple[Item, ...] = ()
    group: Mapping[str, Value] = field(default_factory=dict)
    origin: Item | None = None
    maker: str = ""
    window: int = 0
    case: int = 0

    @property
    def identity(self) -> Item:
        """The event itself: a disjunction binds names to an event, it does not make a new one."""
        return self if self.origin is None else self.origin

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(point for atom in self.atoms for point in atom.points)

    @property
    def trail(self) -> tuple[Key, ...]:
        """The places in the total order of the atomic events it was made of, part by part."""
        if not self.constituents:
            return (order(self.atoms[0]),)
        return tuple(place for item in self.constituents for place in item.trail)


def order(event: Event | Item) -> Key:
    """The total order: end, start, source (none first), id.

    Derived events that agree so far go by the events they were made of, then by the operator that
    made them, window and case.
    """
    first = (event.end, event.start, event.source is not None, event.source or "")
    if isinstance(event, Event):
        return (*first, event.id)
    return (*first, event.trail, event.maker, event.window, event.case)


def atoms_below(items: Iterable[Item]) -> tuple[Event, ...]:
    """All events below `items`, each once, in total order."""
    found: list[Event] = []
    for item in items:
        for atom in item.atoms:
            if not any(atom is other for other in found):
                found.append(atom)
    return tuple(sorted(found, key=order))


def common_source(items: Iterable[Item]) -> str | None:
    sources = {item.source for item in items}
    return sources.pop() if len(sources) == 1 else None


def hull(points: Iterable[Point], coordinates: Coordinates = Coordinates.PLANE) -> tuple[Point, ...] | None:
    """The convex hull as `Detection.hull` gives it, by Andrew's monotone chain."""
    found = list(points)
    if coordinates is Coordinates.PLANE or not found or _extent(found) <= 180.0:
        return _plain_hull(found)
    # Cut the globe open in every gap between longitudes; the narrowest way to lay it out counts.
    longitudes = sorted({x for x, _ in found})
    ways = [[(x + 360.0 if x < cut else x, y) for x, y in found] for cut in longitudes]
    laid = _plain_hull(min(ways, key=_extent)) or ()
    closed = []
    for (x1, y1), (x2, y2) in zip(laid, [*laid[1:], laid[0]], strict=True):
        closed.append((x1, y1))
        if abs(x2 - x1) > 180.0 and len(laid) > 2:
            closed.append(((x1 + x2) / 2, (y1 + y2) / 2))
    return tuple((x - 360.0 if x > 180.0 else x, y) for x, y in closed)


def _extent(points: Iterable[Point]) -> float:
    longitudes = [x for x, _ in points]
    return max(longitudes) - min(longitudes)


def _plain_hull(points: Iterable[Point]) -> tuple[Point, ...] | None:
    ordered = sorted(set(points))
    if not ordered:
        return None
    if len(ordered) == 1:
        return tuple(ordered)
    lower, upper = _chain(ordered), _chain(ordered[::-1])
    return tuple(lower[:-1] + upper[:-1])


def _chain(points: list[Point]) -> list[Point]:
    """The border from the first to the last point that turns left only."""
    chain: list[Point] = []
    for point in points:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
