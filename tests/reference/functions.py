"""The built-in functions over values, the aggregates, and where things are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import shapely

from whimbrel.model.schema import Coordinates

from .arithmetic import binary, clean, compare, conjunction, wrap
from .data import Duration, Item, Point, Value, hull

EARTH_RADIUS_M = 6_371_008.8


# Functions of values. "Strict" ones are null as soon as one argument is.


def _absolute(value: Value) -> Value:
    if isinstance(value, float):
        return abs(value)
    whole = wrap(abs(value))  # type: ignore[arg-type]
    return Duration(whole) if isinstance(value, Duration) else whole


def _rounded(how: Callable[[float], int]) -> Callable[[Value], Value]:
    """Whole numbers stay as they are; floats stay floats, infinities included."""

    def apply(value: Value) -> Value:
        if not isinstance(value, float) or math.isinf(value):
            return value
        return float(how(value))

    return apply


def _sign(value: Value) -> Value:
    sign = (value > 0) - (value < 0)  # type: ignore[operator]
    return float(sign) if isinstance(value, float) else sign


def _power(base: Value, exponent: Value) -> Value:
    try:
        found = math.pow(base, exponent)  # type: ignore[arg-type]
    except OverflowError:
        odd = float(exponent) % 2 == 1  # type: ignore[arg-type]
        return -math.inf if base < 0 and odd else math.inf  # type: ignore[operator]
    except ValueError:  # a root of a negative number, or zero to a negative power
        return None
    return found


def _exponential(value: Value) -> Value:
    try:
        return math.exp(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def _is_between(value: Value, low: Value, high: Value) -> Value:
    return conjunction(binary(">=", value, low), binary("<=", value, high))


def _is_in(value: Value, *choices: Value) -> Value:
    answers = [binary("=", value, choice) for choice in choices]
    if True in answers:
        return True
    return None if None in answers else False


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _least(*values: Value) -> Value:
    return least_of([value for value in values if value is not None])


def _greatest(*values: Value) -> Value:
    return greatest_of([value for value in values if value is not None])


STRICT: dict[str, Callable[..., Value]] = {
    "abs": _absolute,
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else None,
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "round": _rounded(round),
    "sign": _sign,
    "pow": _power,
    "exp": _exponential,
    "ln": lambda value: math.log(value) if value > 0 else None,
    "lower": lambda text: text.lower(),
    "upper": lambda text: text.upper(),
    "length": len,
    "contains": lambda text, inner: inner in text,
    "startswith": lambda text, start: text.startswith(start),
    "endswith": lambda text, end: text.endswith(end),
}
"""Functions that are null if an argument is."""

LENIENT: dict[str, Callable[..., Value]] = {
    "between": _is_between,
    "in": _is_in,
    "coalesce": _coalesce,
    "least": _least,
    "greatest": _greatest,
}
"""Functions that say themselves what null does."""


# Aggregates, over values in total order that are not null.


def least_of(values: Sequence[Value]) -> Value:
    best: Value = None
    for value in values:
        if best is None or compare("<", value, best):
            best = value
    return best


def greatest_of(values: Sequence[Value]) -> Value:
    best: Value = None
    for value in values:
        if best is None or compare(">", value, best):
            best = value
    return best


def total_of(values: Sequence[Value]) -> Value:
    total: Value = None
    for value in values:
        total = value if total is None else binary("+", total, value)
    return total


def mean_of(values: Sequence[Value]) -> Value:
    """A float; of durations, a duration."""
    if not values:
        return None
    if isinstance(values[0], Duration):
        return binary("/", total_of(values), len(values))
    return clean(sum(float(value) for value in values) / len(values))  # type: ignore[arg-type]


def distinct_of(values: Sequence[Value]) -> Value:
    seen: list[Value] = []
    for value in values:
        if value not in seen:
            seen.append(value)
    return len(seen)


AGGREGATE: dict[str, Callable[[Sequence[Value]], Value]] = {
    "count": len,
    "sum": total_of,
    "avg": mean_of,
    "min": least_of,
    "max": greatest_of,
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
    "distinct": distinct_of,
}


# Space.


@dataclass(frozen=True)
class Round:
    """A circle: all that lies at most so many metres from a point."""

    centre: shapely.Point
    radius: float


Place = shapely.Geometry | Round | None


def region(text: str) -> Place:
    """A region as the graph writes it."""
    if not text.startswith("CIRCLE"):
        return shapely.from_wkt(text)
    x, y, radius = (float(number) for number in text.removeprefix("CIRCLE (").removesuffix(")").split())
    return Round(shapely.Point(x, y), radius)


def geometry(item: Item, coordinates: Coordinates) -> shapely.Geometry | None:
    """The location of an event that came in, or the convex hull of what a detection is made of."""
    if not item.constituents and item.atoms[0].polygon is not None:
        return shapely.Polygon(item.atoms[0].points)
    vertices = hull(item.points, coordinates)
    return None if vertices is None else shape(vertices)


def shape(vertices: Sequence[Point]) -> shapely.Geometry:
    if len(vertices) == 1:
        return shapely.Point(vertices[0])
    return shapely.LineString(vertices) if len(vertices) == 2 else shapely.Polygon(vertices)


def centre(item: Item, coordinates: Coordinates = Coordinates.PLANE) -> Point | None:
    """The centre of mass of the location."""
    where = geometry(item, coordinates)
    if where is None or coordinates is Coordinates.PLANE:
        return None if where is None else _middle(where)
    x, y = _middle(_in_one_piece(where))
    return (x - 360.0 if x > 180.0 else x + 360.0 if x < -180.0 else x), y


def _middle(where: shapely.Geometry) -> Point:
    return where.centroid.x, where.centroid.y


def apart(one: Item, two: Item, coordinates: Coordinates) -> float:
    """Metres between the centres of two locations that are known."""
    here, there = (shapely.Point(centre(item, coordinates)) for item in (one, two))
    return _metres(here, there, coordinates)


def relate_places(
    name: str, one: Place, two: Place, more: Sequence[Value], coordinates: Coordinates
) -> Value:
    """A function of two locations; null if one is missing."""
    if one is None or two is None:
        return None
    if isinstance(two, Round):
        return _relate_to_circle(name, one, two, more, coordinates)
    if coordinates is Coordinates.LONLAT:
        one, two = _side_by_side(one, two)
    match name:
        case "distance":
            return _metres(one, two, coordinates)
        case "intersects":
            return bool(one.intersects(two))
        case "lies_in" | "within_region":
            return bool(two.covers(one))
        case "same_place":
            return _metres(one.centroid, two.centroid, coordinates) <= more[0]  # type: ignore[operator]
    raise ValueError(f"{name!r} is no function of places")


def _relate_to_circle(
    name: str, one: shapely.Geometry, circle: Round, more: Sequence[Value], coordinates: Coordinates
) -> Value:
    if name == "same_place":
        return relate_places(name, one, circle.centre, more, coordinates)
    nearest = relate_places("distance", one, circle.centre, (), coordinates)
    match name:
        case "distance":
            return max(0.0, nearest - circle.radius)  # type: ignore[operator]
        case "intersects":
            return nearest <= circle.radius  # type: ignore[operator]
        case "within_region":
            away, whole = _in_the_plane, one
            if coordinates is Coordinates.LONLAT:
                away, whole = great_circle, _in_one_piece(one)
            points = [(circle.centre.x, circle.centre.y, *point) for point in _many_points(whole)]
            return max(away(*pair) for pair in points) <= circle.radius
    raise ValueError(f"{name!r} is no function of a place and a circle")


def _in_the_plane(x1: float, y1: float, x2: float, y2: float) -> float:
    return math.hypot(x2 - x1, y2 - y1)


def _metres(one: shapely.Geometry, two: shapely.Geometry, coordinates: Coordinates) -> float:
    if coordinates is Coordinates.PLANE:
        return float(one.distance(two))
    if one.intersects(two):
        return 0.0
    here, there = (np.radians(_many_points(where)) for where in (one, two))
    p, q = here[:, None, 1], there[None, :, 1]
    half = (
        np.sin((q - p) / 2) ** 2
        + np.cos(p) * np.cos(q) * np.sin((there[None, :, 0] - here[:, None, 0]) / 2) ** 2
    )
    return float(2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(half.min())))


def _many_points(where: shapely.Geometry) -> list[Point]:
    """Points along the border, close together."""
    if where.geom_type == "Point":
        return [(where.x, where.y)]
    lines = [where.boundary] if where.geom_type == "Polygon" else [where]
    return [tuple(p) for line in lines for p in shapely.get_coordinates(shapely.segmentize(line, 0.01))]


def _side_by_side(one: shapely.Geometry, two: shapely.Geometry) -> tuple[shapely.Geometry, shapely.Geometry]:
    """Lay out two locations in degrees so that neither is torn apart, nor both by a turn of the globe."""
    one, two = _in_one_piece(one), _in_one_piece(two)
    turns = [
        shapely.transform(one, lambda points, t=t: points + np.array([t, 0.0])) for t in (0.0, 360.0, -360.0)
    ]
    return min(turns, key=lambda turned: turned.distance(two)), two


def _in_one_piece(where: shapely.Geometry) -> shapely.Geometry:
    x0, _, x1, _ = where.bounds
    if x1 - x0 <= 180.0:
        return where
    corners = shapely.get_coordinates(where).tolist()
    walked = [corners[0]]
    for x, y in corners[1:]:
        # Of the corners that lie a turn apart, the next one is the nearest.
        last = walked[-1][0]
        walked.append([min((x, x + 360.0, x - 360.0), key=lambda lon, last=last: abs(lon - last)), y])
    return shapely.set_coordinates(shapely.force_2d(where), walked)


def great_circle(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """Metres on the sphere, by the haversine formula."""
    p, q = math.radians(lat1), math.radians(lat2)
    turn = math.radians(lon2 - lon1)
    half = math.sin((q - p) / 2) ** 2 + math.cos(p) * math.cos(q) * math.sin(turn / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(half)))
