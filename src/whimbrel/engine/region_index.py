"""Many tests of where an event lies, found through one grid.

The grid only chooses which tests are tried on an event; what they ask is tested as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from whimbrel.engine.values import Int64Array
from whimbrel.graph.clauses import InRegion, NearPoint, read_clause
from whimbrel.graph.expressions import SHAPE, Expr
from whimbrel.model.schema import Coordinates, Type
from whimbrel.space.geometry import FARTHEST_M, Circle, as_circle, parse
from whimbrel.space.grid import ShapeGrid

if TYPE_CHECKING:
    from whimbrel.engine.streams import RowsFrame

FEW = 8
"""So many regions are tried one by one; more are looked up in a grid."""
_MORE = 1 + 1e-6
"""Circles are made a little larger, as distances are rounded."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegionTest:
    """Where an event has to be: in a region, or so near to a point."""

    wkt: str
    radius_m: float | None = None


def place(clause: Expr) -> RegionTest | None:
    """Read `this in Region`, `intersects(this, Region)`, or `distance(this, point) < metres`.

    A point meets a region if it lies in it.
    """
    match read_clause(clause):
        case InRegion(region):
            return RegionTest(region) if not region.startswith("POINT") else None
        case NearPoint(point, metres) if point.startswith("POINT") and metres > 0:
            return RegionTest(point, metres)
    return None


@dataclass
class RegionTests(Generic[T]):
    """Tests, each with the place that it asks for."""

    tests: list[tuple[RegionTest, T]] = field(default_factory=list)
    _grid: ShapeGrid | None = None
    _beyond: list[int] = field(default_factory=list)

    def add(self, wanted: RegionTest, test: T) -> None:
        """Take in a test."""
        self.tests.append((wanted, test))

    def suits(self, frame: RowsFrame) -> bool:
        """Tell whether looking up is worth it, and whether all events are points."""
        x = frame.column(None, "@x")
        return len(self.tests) > FEW and x.type is Type.FLOAT and frame.column(None, SHAPE.name).type is None

    def look_up(self, frame: RowsFrame) -> Iterator[tuple[T, Int64Array]]:
        """Give the tests in whose place any event lies, and the rows of these."""
        if self._grid is None:
            self._build(frame.coordinates or Coordinates.PLANE)
        assert self._grid is not None
        x, y = (_floats(frame.column(None, axis)) for axis in ("@x", "@y"))
        points, numbers = self._grid.match(x, y)
        order = np.argsort(numbers, kind="stable")
        found, begins, counts = np.unique(numbers[order], return_index=True, return_counts=True)
        for number, begin, count in zip(found.tolist(), begins, counts, strict=True):
            yield self.tests[number][1], frame.rows[np.sort(points[order[begin : begin + count]])]
        for number in self._beyond:
            yield self.tests[number][1], frame.rows

    def _build(self, coordinates: Coordinates) -> None:
        self._grid = grid = ShapeGrid(coordinates)
        shapes: list[tuple[int, Any]] = []
        circles: list[tuple[int, float, float, float]] = []
        for number, (wanted, _) in enumerate(self.tests):
            circle = as_circle(wanted.wkt)
            if circle is not None:
                if _takes(circle, coordinates):
                    circles.append((number, *circle[1:]))
                else:
                    self._beyond.append(number)
                continue
            shape = parse(wanted.wkt)
            if not _fits(shape, coordinates):
                self._beyond.append(number)
            elif wanted.radius_m is None:
                shapes.append((number, shape))
            else:
                circles.append((number, shape.x, shape.y, wanted.radius_m))
        if shapes:
            numbers = np.array([number for number, _ in shapes], np.int64)
            grid.keep_polygons(numbers, np.array([shape for _, shape in shapes], dtype=object))
            grid.put_in(numbers)
        if circles:
            numbers, x, y, radius_m = (np.array(column) for column in zip(*circles, strict=True))
            grid.keep_circles(numbers.astype(np.int64), x, y, radius_m * _MORE)
            grid.put_in(numbers.astype(np.int64))


def _fits(shape: Any, coordinates: Coordinates) -> bool:
    """Tell whether the grid takes a region: simple, not across the antimeridian, not out of proportion."""
    if shape.is_empty or not shape.is_valid:
        return False
    x0, y0, x1, y1 = shape.bounds
    if coordinates is Coordinates.LONLAT:
        return x0 >= -180 and x1 <= 180 and x1 - x0 <= 180
    return max(-x0, -y0, x1, y1) < FARTHEST_M


def _takes(circle: Circle, coordinates: Coordinates) -> bool:
    """Tell whether the grid takes a circle: on the globe, or not out of proportion."""
    _, x, y, radius_m = circle
    if coordinates is Coordinates.LONLAT:
        return abs(x) <= 180 and abs(y) <= 90
    return max(abs(x), abs(y)) + radius_m < FARTHEST_M


def _floats(column: Any) -> np.ndarray:
    values = np.ascontiguousarray(column.values, np.float64)
    return np.where(column.nulls | (np.abs(values) > FARTHEST_M), np.nan, values)
