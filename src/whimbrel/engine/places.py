"""How locations lie to each other, over whole columns at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from whimbrel.engine.kernels import shapes as k
from whimbrel.engine.shapes import NO_SHAPE, PREFIX, Layout
from whimbrel.engine.values import BoolArray, Column, nothing
from whimbrel.errors import QueryTypeError
from whimbrel.graph.expressions import Call, Expr, Literal, Part
from whimbrel.model.schema import Coordinates, Type

if TYPE_CHECKING:
    from whimbrel.engine.evaluate import Frame

ASKED = {"distance": k.APART, "intersects": k.MEET, "lies_in": k.INSIDE, "within_region": k.INSIDE}


@dataclass(frozen=True, slots=True)
class _Location:
    """Centres and shapes, one a row."""

    x: Column
    y: Column
    shape: Column
    region: str | None = None
    """The text of a region that is the same in every row."""
    radius_m: float | None = None
    """Of a circle, whose shape is its centre."""

    @property
    def is_known(self) -> bool:
        return self.x.type is not None and self.y.type is not None

    @property
    def null(self) -> BoolArray:
        return self.x.nulls | self.y.nulls


def relate(call: Call, frame: Frame) -> Column:
    """Compute a function of two locations for every row."""
    one, two = (_location(argument, call, frame) for argument in call.arguments[:2])
    if not (one.is_known and two.is_known):
        return nothing(len(frame))
    null = one.null | two.null
    missing = null if null.any() else None
    coordinates = frame.coordinates or Coordinates.PLANE
    if call.function == "same_place":
        return Column(Type.BOOL, _same_place(one, two, tolerance(call), coordinates), missing)
    if one.radius_m is not None:  # which of two comes first matters only if one has to lie in the other
        one, two = two, one
    if two.radius_m is not None:
        return _to_circle(call.function, one, two, two.radius_m, coordinates, missing)
    if call.function != "distance" and one.shape.type is None and two.region is not None:
        return Column(Type.BOOL, _points_in(one, two.region, coordinates), missing)
    answers = _answers(ASKED[call.function], one, two, coordinates)
    if call.function == "distance":
        return Column(Type.FLOAT, answers, missing)
    return Column(Type.BOOL, answers == 1.0, missing)


def _to_circle(
    function: str,
    one: _Location,
    circle: _Location,
    radius_m: float,
    coordinates: Coordinates,
    missing: BoolArray | None,
) -> Column:
    """Relate locations to a circle by how far their nearest or farthest points lie from its centre."""
    asked = k.FARTHEST if function == "within_region" else k.APART
    metres = _answers(asked, one, circle, coordinates)
    if function == "distance":
        return Column(Type.FLOAT, np.maximum(metres - radius_m, 0.0), missing)
    return Column(Type.BOOL, metres <= radius_m, missing)


def tolerance(call: Call) -> float:
    """Give how far centres may lie apart in the same place, in metres."""
    given = call.arguments[2]
    assert isinstance(given, Literal)
    assert isinstance(given.value, int | float)
    return float(given.value)


def _location(argument: Expr, call: Call, frame: Frame) -> _Location:
    match argument:
        case Part(name):
            x, y, shape = (frame.column(name, each) for each in ("@x", "@y", "@shape"))
            return _Location(x, y, shape)
        case Literal(str() as region, _):
            return _region(region, len(frame), frame.coordinates)
    raise QueryTypeError(f"{call.function!r} takes parts of the pattern and regions", call.at)


def _region(text: str, size: int, coordinates: Coordinates | None) -> _Location:
    from whimbrel.engine.evaluate import constant

    x, y, shape, radius_m = _known_region(text, coordinates)
    place = constant(x, Type.FLOAT, size), constant(y, Type.FLOAT, size)
    return _Location(*place, constant(shape, Type.STRING, size), text, radius_m)


@lru_cache(maxsize=1024)
def _known_region(
    text: str, coordinates: Coordinates | None
) -> tuple[float, float, str | None, float | None]:
    """Give the centre of a region, the text of its shape, and the radius of a circle."""
    from whimbrel.space.geometry import as_circle, centres, parse, to_wkb

    circle = as_circle(text)
    if circle is not None:
        return circle[1], circle[2], None, circle[3]
    shape = parse(text)
    wkb = to_wkb(shape)
    (x,), (y,) = centres(np.array([wkb], dtype=object), coordinates)
    return float(x), float(y), None if shape.geom_type == "Point" else PREFIX + wkb.hex().upper(), None


def _same_place(one: _Location, two: _Location, within_m: float, coordinates: Coordinates) -> BoolArray:
    from whimbrel.space.geometry import distance_m

    apart = distance_m(one.x.values, one.y.values, two.x.values, two.y.values, coordinates)
    return np.asarray(apart <= within_m)


def _points_in(points: _Location, region: str, coordinates: Coordinates) -> BoolArray:
    from whimbrel.space.geometry import points_in_region

    return points_in_region(points.x.values, points.y.values, region, coordinates)


def _answers(asked: int, one: _Location, two: _Location, coordinates: Coordinates) -> np.ndarray:
    layout = Layout(coordinates)
    places = [layout.of_column(each.shape) for each in (one, two)]
    answers = np.zeros(len(one.x), np.float64)
    if asked in (k.APART, k.FARTHEST) and all((place == NO_SHAPE).all() for place in places):
        from whimbrel.space.geometry import distance_m

        return distance_m(one.x.values, one.y.values, two.x.values, two.y.values, coordinates)
    k.related_rows(
        asked, layout.on_sphere, layout.data,
        places[0], _floats(one.x), _floats(one.y), places[1], _floats(two.x), _floats(two.y), answers,
    )  # fmt: skip
    return answers


def _floats(column: Column) -> np.ndarray:
    return np.ascontiguousarray(column.values, np.float64)
