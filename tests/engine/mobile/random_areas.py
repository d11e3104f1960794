"""Random interests at random places, as the engine and as the naive reference have them."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from tests.reference.data import Event
from tests.reference.mobile import query as naive
from tests.reference.mobile.areas import area

from whimbrel.engine.mobile.areas import AreaSet, ObjectPlaces, areas_at
from whimbrel.graph.mobile import (
    BoxInterest,
    CircleInterest,
    CorridorInterest,
    Interest,
    OutlineInterest,
    SectorInterest,
)
from whimbrel.model.schema import Coordinates

PLANE, LONLAT = Coordinates.PLANE, Coordinates.LONLAT
DEGREE_M = 111_195.0
STAR = ((-1.0, -1.0), (0.0, 0.0), (1.0, -1.0), (0.0, 2.0))

lattice = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda at: (at[0] / 4, at[1] / 4))
PLACES = {
    PLANE: lattice,
    LONLAT: st.builds(
        lambda middle, at: (wrapped(middle[0] + at[0] - 1.5), middle[1] + at[1] - 1.5),
        st.sampled_from([(0.0, 0.0), (180.0, 10.0), (-180.0, -60.0), (11.0, 48.0)]),
        lattice,
    ),
}
FAR = st.tuples(st.floats(-180.0, 180.0), st.floats(-90.0, 90.0))
NEAR_POLES = st.tuples(st.floats(-180.0, 180.0), st.sampled_from((89.0, 89.99, 90.0, -89.5, -90.0)))


def wrapped(lon: float) -> float:
    return (lon + 180.0) % 360.0 - 180.0


def event(place: tuple[float, float] | None, time: int = 0, **attributes: str) -> Event:
    x, y = place or (None, None)
    return Event(f"e{time}", "F", time, time, "f", x, y, attributes=attributes)


@st.composite
def interests(draw: st.DrawFn, unit: float) -> naive.Shape:
    """Draw an interest, its lengths a few times a unit of metres."""
    size = st.sampled_from((0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 9.0)).map(lambda times: times * unit)
    kind = draw(st.sampled_from(("circle", "box", "outline", "ahead", "along")))
    match kind:
        case "circle":
            return naive.Circle(draw(size))
        case "box":
            return naive.Box(draw(size), draw(size))
        case "outline":
            times = draw(size)
            return naive.Outline(tuple((x * times, y * times) for x, y in STAR))
        case "ahead":
            return naive.Ahead(draw(size), draw(st.sampled_from((1.0, 45.0, 90.0, 200.0, 360.0))))
    return naive.Along("route", draw(size))


@st.composite
def samples(draw: st.DrawFn, coordinates: Coordinates) -> list[Event]:
    """Draw the location updates of one object, perhaps with routes, from places near each other."""
    middle = draw(PLACES[coordinates])
    moves = draw(st.lists(lattice, min_size=1, max_size=4))
    found = []
    for time, (x, y) in enumerate(moves):
        place = middle[0] + x - 1.5, middle[1] + y - 1.5
        if coordinates is LONLAT:
            place = wrapped(place[0]), place[1]
        route = draw(st.none() | st.lists(lattice, min_size=2, max_size=4, unique=True))
        given = {} if route is None else {"route": _line(place, route, coordinates)}
        found.append(event(place, time, **given))
    return found


def _line(place: tuple[float, float], route: list[tuple[float, float]], coordinates: Coordinates) -> str:
    points = [(place[0] + x - 1.5, place[1] + y - 1.5) for x, y in route]
    if coordinates is LONLAT:
        points = [(wrapped(x), y) for x, y in points]
    return f"LINESTRING ({', '.join(f'{x!r} {y!r}' for x, y in points)})"


def in_engine(interest: naive.Shape) -> Interest:
    match interest:
        case naive.Circle(radius):
            return CircleInterest(radius)
        case naive.Box(width, height):
            return BoxInterest(width, height)
        case naive.Outline(corners):
            return OutlineInterest(corners)
        case naive.Ahead(distance, degrees):
            return SectorInterest(distance, degrees)
        case naive.Along(attribute, distance):
            return CorridorInterest(attribute, distance)
    raise ValueError(interest)


def built(interest: naive.Shape, tracks: list[list[Event]], coordinates: Coordinates) -> AreaSet:
    """The areas of an interest after the last update of some objects, by the engine."""
    here = np.array([(track[-1].x, track[-1].y) for track in tracks])
    others = [
        [(one.x, one.y) for one in track if (one.x, one.y) != (track[-1].x, track[-1].y)] for track in tracks
    ]
    came_from = np.array([places[-1] if places else (math.nan, math.nan) for places in others])
    routes = [
        next((one.attributes["route"] for one in reversed(track) if "route" in one.attributes), None)
        for track in tracks
    ]
    places = ObjectPlaces(
        here[:, 0], here[:, 1], came_from[:, 0], came_from[:, 1], np.full(len(tracks), np.nan)
    )
    return areas_at(in_engine(interest), places, coordinates, routes=routes)


def expected(interest: naive.Shape, track: list[Event], coordinates: Coordinates):
    """The area of an interest after the last update, by the reference."""
    query = naive.MobileQuery(None, naive.Focal("F"), interest)
    return area(query, track, coordinates)
