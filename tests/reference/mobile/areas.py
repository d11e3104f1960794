"""What an interest is at a place, and which events lie in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import shapely
from tests.reference.data import Detection, Event, Item, Point
from tests.reference.functions import Place, Round, centre, great_circle, relate_places, shape

from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import METRES_PER_DEGREE

from .query import Ahead, Along, Box, Circle, Made, MobileQuery, Outline

DEGREES_OF_ARC = 5.0
"""How far apart the corners of a sector's arc are, at most: an interest is a circle or a polygon."""


def place_of(event: Event, coordinates: Coordinates) -> Point | None:
    """The centre of an event's location."""
    return centre(_item(event), coordinates)


def _item(event: Event) -> Item:
    return Item(event.id, event.type, event.source, event.start, event.end, (event,), event.attributes)


def distance(one: Point, two: Point, coordinates: Coordinates) -> float:
    if coordinates is Coordinates.LONLAT:
        return great_circle(*one, *two)
    return math.dist(one, two)


def area(query: MobileQuery, samples: Sequence[Event], coordinates: Coordinates) -> Place:
    """The interest after the last of some samples."""
    places = [place for place in (place_of(sample, coordinates) for sample in samples) if place is not None]
    here = places[-1]
    if query.snap_m is not None:
        here = snapped(here, query.snap_m, coordinates)
    match query.interest:
        case Circle(radius):
            return Round(shapely.Point(here), radius)
        case Box(width, height):
            x, y = width / 2, height / 2
            return _around(here, [(-x, -y), (x, -y), (x, y), (-x, y)], coordinates)
        case Outline(corners):
            return _around(here, corners, coordinates)
        case Ahead(reach, degrees):
            heading = _heading(places, coordinates)
            if heading is None or degrees >= 360.0:
                return Round(shapely.Point(here), reach)
            return _around(here, [(0.0, 0.0), *_arc(reach, degrees, heading)], coordinates)
        case Along(attribute, metres):
            return _corridor(here, samples, attribute, metres, coordinates)
        case Made(function):
            return function(samples)


def snapped(place: Point, metres: float, coordinates: Coordinates) -> Point:
    """The nearest point of a grid; of two equally near ones, that to the north or east."""
    x, y = place
    if coordinates is Coordinates.PLANE:
        return _nearest(x, metres), _nearest(y, metres)
    step = metres / METRES_PER_DEGREE
    lat = _nearest(y, step)
    return _nearest(x, step / max(math.cos(math.radians(lat)), 1e-9)), lat


def _nearest(number: float, step: float) -> float:
    return math.floor(number / step + 0.5) * step


def _heading(places: Sequence[Point], coordinates: Coordinates) -> float | None:
    """The direction of the last move, in radians from east; None as long as there was none."""
    here = places[-1]
    for before in reversed(places):
        if before != here:
            east, north = _metres(before, coordinates)([here])[0]
            return math.atan2(north, east)
    return None


def _arc(reach: float, degrees: float, heading: float) -> list[Point]:
    steps = math.ceil(degrees / DEGREES_OF_ARC)
    turns = [heading + math.radians(degrees) * (number / steps - 0.5) for number in range(steps + 1)]
    return [(reach * math.cos(turn), reach * math.sin(turn)) for turn in turns]


def _corridor(
    here: Point, samples: Sequence[Event], attribute: str, metres: float, coordinates: Coordinates
) -> Place:
    routes = [sample.attributes.get(attribute) for sample in samples]
    known = [route for route in routes if isinstance(route, str)]
    if not known:
        return None
    line = shapely.get_coordinates(shapely.from_wkt(known[-1])).tolist()
    flat = shapely.LineString(_metres(here, coordinates)(line)).buffer(metres, quad_segs=8)
    return _around(here, shapely.get_coordinates(flat.exterior)[:-1].tolist(), coordinates)


def _around(here: Point, corners: Sequence[Sequence[float]], coordinates: Coordinates) -> shapely.Polygon:
    """A polygon with corners so many metres east and north of a place."""
    if coordinates is Coordinates.PLANE:
        return shapely.Polygon([(here[0] + x, here[1] + y) for x, y in corners])
    wide = METRES_PER_DEGREE * math.cos(math.radians(here[1]))
    found = [(here[0] + x / wide, here[1] + y / METRES_PER_DEGREE) for x, y in corners]
    return shapely.Polygon([((x + 180.0) % 360.0 - 180.0, y) for x, y in found])


def _metres(origin: Point, coordinates: Coordinates) -> Callable[[Sequence[Sequence[float]]], list[Point]]:
    """Say where places lie on that plane."""
    east, north = 1.0, 1.0
    if coordinates is Coordinates.LONLAT:
        north = METRES_PER_DEGREE
        east = north * math.cos(math.radians(origin[1]))

    def convert(places: Sequence[Sequence[float]]) -> list[Point]:
        moved = np.asarray(places, dtype=float) - np.asarray(origin)
        if coordinates is Coordinates.LONLAT:
            moved[:, 0] = (moved[:, 0] + 180.0) % 360.0 - 180.0
        return [(x * east, y * north) for x, y in moved.tolist()]

    return convert


def lies_in(event: Event, where: Place, coordinates: Coordinates) -> bool:
    """Whether all of an event's location belongs to an area, borders included; without a location: no."""
    if where is None or not event.points:
        return False
    location = shapely.Polygon(event.points) if event.polygon is not None else shapely.Point(event.points[0])
    return relate_places("within_region", location, where, (), coordinates) is True


def meets(detection: Detection, where: Place, coordinates: Coordinates) -> bool:
    """Whether the location of a detection has a point in common with an area."""
    if where is None or detection.hull is None:
        return False
    return relate_places("intersects", shape(detection.hull), where, (), coordinates) is True


def same(one: Place, two: Place) -> bool:
    """Whether two areas are one and the same."""
    if isinstance(one, Round) and isinstance(two, Round):
        return one.centre == two.centre and one.radius == two.radius
    return one == two
