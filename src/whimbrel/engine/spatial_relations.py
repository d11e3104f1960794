"""How locations lie to each other, over whole columns at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from whimbrel.engine.kernels import shapes as k
from whimbrel.engine.shapes import NO_SHAPE, PREFIX, ShapeLayout
from whimbrel.engine.values import BoolArray, Column, FloatArray, Int64Array, nothing
from whimbrel.errors import QueryTypeError
from whimbrel.graph.expressions import Attribute, Call, Expr, Literal, PartRef
from whimbrel.model.schema import Coordinates, Type

if TYPE_CHECKING:
    from whimbrel.engine.evaluate import Frame

ASKED = {"distance": k.APART, "intersects": k.MEET, "lies_in": k.INSIDE, "within_region": k.INSIDE}


@dataclass(frozen=True, slots=True)
class RowLocation:
    """Centres and shapes, one a row."""

    x: Column
    y: Column
    shape: Column
    region: str | None = None
    """The text of a region that is the same in every row."""
    radius_m: float | FloatArray | None = None
    """Of circles, whose shapes are their centres."""
    listed: RegionList | None = None
    """Where every row has one of the regions of a table: which."""

    @property
    def is_known(self) -> bool:
        return self.x.type is not None and self.y.type is not None

    @property
    def null(self) -> BoolArray:
        return self.x.nulls | self.y.nulls


@runtime_checkable
class HasLocations(Protocol):
    """A frame in which a name may stand for a location."""

    def location(self, name: str) -> RowLocation:
        """Give the location that a name stands for."""
        ...


class RegionTable:
    """Regions of one kind by number, read and laid out once for many questions."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._known: tuple[FloatArray, FloatArray, pa.Array, FloatArray | None] | None = None
        self._prepared: dict[str, Any] = {}
        self._shapes: Any = None
        self._layout: ShapeLayout | None = None
        self._places: Int64Array | None = None

    def put(self, number: int, text: str) -> None:
        """Give a number to a region."""
        if number == len(self._texts):
            self._texts.append(text)
        else:
            self._texts[number] = text
        self._known = self._shapes = self._places = None

    def location(self, numbers: Int64Array, coordinates: Coordinates | None) -> RowLocation:
        """Give the regions of some numbers."""
        if self._known is None:
            found = [_known_region(text, coordinates) for text in self._texts]
            x, y, shapes, radii = zip(*found, strict=True)
            round_ones = None if radii[0] is None else np.array(radii)
            self._known = np.array(x), np.array(y), pa.array(shapes, pa.string()), round_ones
        xs, ys, texts, radii_m = self._known
        shape = nothing(len(numbers))
        if texts.null_count < len(texts):
            codes = pa.array(numbers.astype(np.int32))
            shape = Column(Type.STRING, pa.DictionaryArray.from_arrays(codes, texts))
        return RowLocation(
            Column(Type.FLOAT, xs[numbers]),
            Column(Type.FLOAT, ys[numbers]),
            shape,
            radius_m=None if radii_m is None else radii_m[numbers],
            listed=RegionList(self, numbers),
        )

    def shapes(self, coordinates: Coordinates) -> Any:
        """Give all regions, prepared for questions about points."""
        if self._shapes is None:
            from whimbrel.space.geometry import prepared

            self._prepared = {
                text: self._prepared.get(text) or prepared(text, coordinates) for text in self._texts
            }
            self._shapes = np.array([self._prepared[text] for text in self._texts], dtype=object)
        return self._shapes

    def laid_out(self, coordinates: Coordinates) -> tuple[ShapeLayout, Int64Array]:
        """Give all regions as the kernels read them, and where each lies."""
        if self._layout is None or self._places is None:
            self._layout = self._layout or ShapeLayout(coordinates)
            self._places = self._layout.places([_known_region(text, coordinates)[2] for text in self._texts])
        return self._layout, self._places


@dataclass(frozen=True, slots=True)
class RegionList:
    """Some regions of a table, one a row."""

    table: RegionTable
    numbers: Int64Array

    def holding(self, x: FloatArray, y: FloatArray, coordinates: Coordinates) -> BoolArray:
        """Tell which points lie in the region of their row."""
        from whimbrel.space.geometry import points_in_shapes

        return points_in_shapes(x, y, self.table.shapes(coordinates)[self.numbers], coordinates)

    def laid_out(self, coordinates: Coordinates) -> tuple[ShapeLayout, Int64Array]:
        """Give the regions as the kernels read them, and where each row's lies."""
        layout, places = self.table.laid_out(coordinates)
        return layout, places[self.numbers]


def kind_of_region(text: str) -> str:
    """Tell what the text of a region is that of: a point, a circle or another region."""
    _, _, shape, radius_m = _known_region(text, None)
    return "circle" if radius_m is not None else "point" if shape is None else "region"


def relate(call: Call, frame: Frame) -> Column:
    """Compute a function of two locations for every row."""
    one, two = (_location(argument, call, frame) for argument in call.arguments[:2])
    if not (one.is_known and two.is_known):
        return nothing(len(frame))
    null = one.null | two.null
    missing = null if null.any() else None
    coordinates = frame.context.coordinates or Coordinates.PLANE
    if call.function == "same_place":
        return Column(Type.BOOL, _same_place(one, two, tolerance(call), coordinates), missing)
    if one.radius_m is not None:  # which of two comes first matters only if one has to lie in the other
        one, two = two, one
    if two.radius_m is not None:
        return _to_circle(call.function, one, two, two.radius_m, coordinates, missing)
    if call.function != "distance" and one.shape.type is None and two.region is not None:
        return Column(Type.BOOL, _points_in(one, two.region, coordinates), missing)
    if call.function != "distance" and one.shape.type is None and two.listed is not None:
        return Column(Type.BOOL, two.listed.holding(one.x.values, one.y.values, coordinates), missing)
    answers = _answers(ASKED[call.function], one, two, coordinates)
    if call.function == "distance":
        return Column(Type.FLOAT, answers, missing)
    return Column(Type.BOOL, answers == 1.0, missing)


def _to_circle(
    function: str,
    one: RowLocation,
    circle: RowLocation,
    radius_m: float | FloatArray,
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


def _location(argument: Expr, call: Call, frame: Frame) -> RowLocation:
    match argument:
        case PartRef(name):
            x, y, shape = (frame.column(name, each) for each in ("@x", "@y", "@shape"))
            return RowLocation(x, y, shape)
        case Literal(str() as region, _):
            return _region(region, len(frame), frame.context.coordinates)
        case Attribute(None, name) if isinstance(frame, HasLocations):
            return frame.location(name)
    raise QueryTypeError(f"{call.function!r} takes parts of the pattern and regions", call.at)


def _region(text: str, size: int, coordinates: Coordinates | None) -> RowLocation:
    from whimbrel.engine.evaluate import constant

    x, y, shape, radius_m = _known_region(text, coordinates)
    place = constant(x, Type.FLOAT, size), constant(y, Type.FLOAT, size)
    return RowLocation(*place, constant(shape, Type.STRING, size), text, radius_m)


@lru_cache(maxsize=65_536)
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


def _same_place(one: RowLocation, two: RowLocation, within_m: float, coordinates: Coordinates) -> BoolArray:
    from whimbrel.space.geometry import distance_m

    apart = distance_m(one.x.values, one.y.values, two.x.values, two.y.values, coordinates)
    return np.asarray(apart <= within_m)


def _points_in(points: RowLocation, region: str, coordinates: Coordinates) -> BoolArray:
    from whimbrel.space.geometry import points_in_region

    return points_in_region(points.x.values, points.y.values, region, coordinates)


def _answers(asked: int, one: RowLocation, two: RowLocation, coordinates: Coordinates) -> np.ndarray:
    if two.listed is not None and one.shape.type is None:
        layout, listed = two.listed.laid_out(coordinates)
        places = [np.full(len(listed), NO_SHAPE, np.int64), listed]
    else:
        layout = ShapeLayout(coordinates)
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
