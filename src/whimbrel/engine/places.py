"""How locations lie to each other, over whole columns at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from whimbrel.engine.kernels import shapes as k
from whimbrel.engine.shapes import NO_SHAPE, PREFIX, Layout
from whimbrel.engine.values import BoolArray, Column, FloatArray, Int64Array, nothing
from whimbrel.errors import QueryTypeError
from whimbrel.graph.expressions import Attribute, Call, Expr, Literal, Part
from whimbrel.model.schema import Coordinates, Type

if TYPE_CHECKING:
    from whimbrel.engine.evaluate import Frame

ASKED = {"distance": k.APART, "intersects": k.MEET, "lies_in": k.INSIDE, "within_region": k.INSIDE}


@dataclass(frozen=True, slots=True)
class Location:
    """Centres and shapes, one a row."""

    x: Column
    y: Column
    shape: Column
    region: str | None = None
    """The text of a region that is the same in every row."""
    listed: Listed | None = None
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

    def location(self, name: str) -> Location:
        """Give the location that a name stands for."""
        ...


class RegionTable:
    """Regions by number, read and laid out once for many questions."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._known: tuple[FloatArray, FloatArray, pa.Array] | None = None
        self._prepared: dict[str, Any] = {}
        self._shapes: Any = None
        self._layout: Layout | None = None
        self._places: Int64Array | None = None

    def put(self, number: int, text: str) -> None:
        """Give a number to a region."""
        if number == len(self._texts):
            self._texts.append(text)
        else:
            self._texts[number] = text
        self._known = self._shapes = self._places = None

    def location(self, numbers: Int64Array) -> Location:
        """Give the regions of some numbers."""
        if self._known is None:
            x, y, shapes = zip(*map(_known_region, self._texts), strict=True)
            self._known = np.array(x), np.array(y), pa.array(shapes, pa.string())
        xs, ys, texts = self._known
        shape = nothing(len(numbers))
        if texts.null_count < len(texts):
            codes = pa.array(numbers.astype(np.int32))
            shape = Column(Type.STRING, pa.DictionaryArray.from_arrays(codes, texts))
        return Location(
            Column(Type.FLOAT, xs[numbers]),
            Column(Type.FLOAT, ys[numbers]),
            shape,
            listed=Listed(self, numbers),
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

    def laid_out(self, coordinates: Coordinates) -> tuple[Layout, Int64Array]:
        """Give all regions as the kernels read them, and where each lies."""
        if self._layout is None or self._places is None:
            self._layout = self._layout or Layout(coordinates)
            self._places = self._layout.places([_known_region(text)[2] for text in self._texts])
        return self._layout, self._places


@dataclass(frozen=True, slots=True)
class Listed:
    """Some regions of a table, one a row."""

    table: RegionTable
    numbers: Int64Array

    def holding(self, x: FloatArray, y: FloatArray, coordinates: Coordinates) -> BoolArray:
        """Tell which points lie in the region of their row."""
        from whimbrel.space.geometry import points_in_shapes

        return points_in_shapes(x, y, self.table.shapes(coordinates)[self.numbers], coordinates)

    def laid_out(self, coordinates: Coordinates) -> tuple[Layout, Int64Array]:
        """Give the regions as the kernels read them, and where each row's lies."""
        layout, places = self.table.laid_out(coordinates)
        return layout, places[self.numbers]


def is_point(text: str) -> bool:
    """Tell whether the text of a region is that of a point."""
    return _known_region(text)[2] is None


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
    if call.function != "distance" and one.shape.type is None and two.region is not None:
        return Column(Type.BOOL, _points_in(one, two.region, coordinates), missing)
    if call.function != "distance" and one.shape.type is None and two.listed is not None:
        return Column(Type.BOOL, two.listed.holding(one.x.values, one.y.values, coordinates), missing)
    answers = _answers(ASKED[call.function], one, two, coordinates)
    if call.function == "distance":
        return Column(Type.FLOAT, answers, missing)
    return Column(Type.BOOL, answers == 1.0, missing)


def tolerance(call: Call) -> float:
    """Give how far centres may lie apart in the same place, in metres."""
    given = call.arguments[2]
    assert isinstance(given, Literal)
    assert isinstance(given.value, int | float)
    return float(given.value)


def _location(argument: Expr, call: Call, frame: Frame) -> Location:
    match argument:
        case Part(name):
            x, y, shape = (frame.column(name, each) for each in ("@x", "@y", "@shape"))
            return Location(x, y, shape)
        case Literal(str() as region, _):
            return _region(region, len(frame))
        case Attribute(None, name) if isinstance(frame, HasLocations):
            return frame.location(name)
    raise QueryTypeError(f"{call.function!r} takes parts of the pattern and regions", call.at)


def _region(text: str, size: int) -> Location:
    from whimbrel.engine.evaluate import constant

    x, y, shape = _known_region(text)
    return Location(
        constant(x, Type.FLOAT, size), constant(y, Type.FLOAT, size), constant(shape, Type.STRING, size), text
    )


@lru_cache(maxsize=65_536)
def _known_region(text: str) -> tuple[float, float, str | None]:
    """Give the centre of a region and the text of its shape."""
    from whimbrel.space.geometry import centroid, parse, to_wkb

    shape = parse(text)
    x, y = centroid(shape)
    return x, y, None if shape.geom_type == "Point" else PREFIX + to_wkb(shape).hex().upper()


def _same_place(one: Location, two: Location, within_m: float, coordinates: Coordinates) -> BoolArray:
    from whimbrel.space.geometry import distance_m

    apart = distance_m(one.x.values, one.y.values, two.x.values, two.y.values, coordinates)
    return np.asarray(apart <= within_m)


def _points_in(points: Location, region: str, coordinates: Coordinates) -> BoolArray:
    from whimbrel.space.geometry import points_in_region

    return points_in_region(points.x.values, points.y.values, region, coordinates)


def _answers(asked: int, one: Location, two: Location, coordinates: Coordinates) -> np.ndarray:
    if two.listed is not None and one.shape.type is None:
        layout, listed = two.listed.laid_out(coordinates)
        places = [np.full(len(listed), NO_SHAPE, np.int64), listed]
    else:
        layout = Layout(coordinates)
        places = [layout.of_column(each.shape) for each in (one, two)]
    answers = np.zeros(len(one.x), np.float64)
    if asked == k.APART and all((place == NO_SHAPE).all() for place in places):
        from whimbrel.space.geometry import distance_m

        return distance_m(one.x.values, one.y.values, two.x.values, two.y.values, coordinates)
    k.related_rows(
        asked, layout.on_sphere, layout.data,
        places[0], _floats(one.x), _floats(one.y), places[1], _floats(two.x), _floats(two.y), answers,
    )  # fmt: skip
    return answers


def _floats(column: Column) -> np.ndarray:
    return np.ascontiguousarray(column.values, np.float64)
