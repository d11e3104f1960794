"""Places to watch: circles, boxes and polygons, checked before anything is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from whimbrel.errors import DataError
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import FARTHEST_M, Floats, as_circle, parse
from whimbrel.space.grid import ShapeGrid
from whimbrel.space.lists import Ints

if TYPE_CHECKING:
    import shapely

Mask = npt.NDArray[np.bool_]
Named = Callable[[int], str]
"""Says whose place it is, for errors: the row in what was given."""

Place: TypeAlias = "Circle | Box | shapely.Geometry | str | bytes"
"""A place as people give it: a circle, a box, or a polygon as Shapely, WKT or WKB."""

_POLYGON, _MULTIPOLYGON = 3, 6


@dataclass(frozen=True, slots=True)
class Circle:
    """All points at most `radius_m` metres from a centre."""

    x: float
    y: float
    radius_m: float


@dataclass(frozen=True, slots=True)
class Box:
    """All points between two corners."""

    x0: float
    y0: float
    x1: float
    y1: float


def circle(x: float, y: float, radius_m: float) -> Circle:
    """Make a circle around a point: x and y in metres, or longitude and latitude; the radius in metres.

    On the globe it is a circle on the sphere, across the date line and around a pole too.

    >>> circle(3, 4, 2000)
    Circle(x=3.0, y=4.0, radius_m=2000.0)
    """
    return Circle(float(x), float(y), float(radius_m))


def box(x1: float, y1: float, x2: float, y2: float) -> Box:
    """Make a box from two opposite corners, in any order.

    >>> box(10, 0, 0, 5)
    Box(x0=0.0, y0=0.0, x1=10.0, y1=5.0)
    """
    return Box(float(min(x1, x2)), float(min(y1, y2)), float(max(x1, x2)), float(max(y1, y2)))


class PlaceSet(Protocol):
    """Many places of one kind."""

    def check(self, coordinates: Coordinates, named: Named) -> None:
        """Refuse places that are none.

        Raises
        ------
        DataError
            With the first one that is wrong, by name.
        """
        ...

    def keep(self, grid: ShapeGrid, numbers: Ints) -> None:
        """Let a grid remember them under these numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Circles:
    """Many circles: centres, and radii in metres."""

    x: Floats
    y: Floats
    radius_m: Floats

    def check(self, coordinates: Coordinates, named: Named) -> None:
        _check_points(self.x, self.y, coordinates, named)
        bad = ~(np.isfinite(self.radius_m) & (self.radius_m >= 0) & (self.radius_m <= FARTHEST_M))
        _refuse(
            bad,
            named,
            lambda row: f"the radius of its circle is {self.radius_m[row]}; give metres, 0 or more",
        )

    def keep(self, grid: ShapeGrid, numbers: Ints) -> None:
        grid.keep_circles(numbers, self.x, self.y, self.radius_m)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Many boxes: rows of least x, least y, largest x, largest y."""

    rows: Floats

    def check(self, coordinates: Coordinates, named: Named) -> None:
        rows = self.rows
        _check_points(rows[:, 0], rows[:, 1], coordinates, named)
        _check_points(rows[:, 2], rows[:, 3], coordinates, named)
        bad = (rows[:, 0] > rows[:, 2]) | (rows[:, 1] > rows[:, 3])
        _refuse(bad, named, lambda row: "its box ends before it begins; give the least x and y first")

    def keep(self, grid: ShapeGrid, numbers: Ints) -> None:
        grid.keep_boxes(numbers, self.rows)


@dataclass(frozen=True, slots=True)
class Polygons:
    """Many Shapely polygons, with holes or of several parts; rings may run in either direction."""

    shapes: npt.NDArray[Any]

    def check(self, coordinates: Coordinates, named: Named) -> None:
        import shapely

        shapes = self.shapes
        no_area = ~np.isin(shapely.get_type_id(shapes), (_POLYGON, _MULTIPOLYGON))
        _refuse(
            no_area, named, lambda row: f"its place is {_kind(shapes[row])}; give a polygon, circle or box"
        )
        _refuse(shapely.is_empty(shapes), named, lambda row: "its polygon is empty; give its corners")
        bounds = shapely.bounds(shapes)
        _check_points(bounds[:, 0], bounds[:, 1], coordinates, named)
        _check_points(bounds[:, 2], bounds[:, 3], coordinates, named)
        with np.errstate(all="ignore"):
            _refuse(
                ~shapely.is_valid(shapes),
                named,
                lambda row: (
                    f"its polygon is not simple ({shapely.is_valid_reason(shapes[row])}); "
                    "give the corners in the order of its border"
                ),
            )

    def keep(self, grid: ShapeGrid, numbers: Ints) -> None:
        grid.keep_polygons(numbers, self.shapes)


def one_place(place: Place) -> PlaceSet:
    """Read a single place: a circle, a box, a polygon as Shapely, WKT or WKB."""
    if isinstance(place, Circle):
        return Circles(np.array([place.x]), np.array([place.y]), np.array([place.radius_m]))
    round_place = as_circle(place) if isinstance(place, str) else None
    if round_place is not None:
        return one_place(Circle(*round_place[1:]))
    if isinstance(place, Box):
        return Boxes(np.array([[place.x0, place.y0, place.x1, place.y1]]))
    return Polygons(polygons_of([place]))


def polygons_of(shapes: Sequence[Place] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Read polygons from Shapely, WKT texts or WKB bytes."""
    import shapely

    polygons = np.empty(len(shapes), dtype=object)
    are_shapes = all(isinstance(shape, shapely.Geometry) for shape in shapes)
    polygons[:] = shapes if are_shapes else [as_polygon(shape) for shape in shapes]
    return np.asarray(shapely.force_2d(polygons), dtype=object)


def as_polygon(place: Any) -> shapely.Geometry:
    """Read a polygon from WKT text, WKB bytes or Shapely."""
    import shapely

    if isinstance(place, str | bytes):
        return parse(place)
    if isinstance(place, shapely.Geometry):
        return shapely.force_2d(place)
    raise DataError(
        f"a {type(place).__name__} is no place; give wb.circle(x, y, radius_m), wb.box(x1, y1, x2, y2), "
        "a Shapely polygon, WKT or WKB"
    )


def _kind(shape: Any) -> str:
    return "nothing" if shape is None else f"a {shape.geom_type}"


def _check_points(x: Floats, y: Floats, coordinates: Coordinates, named: Named) -> None:
    _refuse(
        ~(np.isfinite(x) & np.isfinite(y)),
        named,
        lambda row: f"its place has the coordinates {x[row]}, {y[row]}; give finite numbers",
    )
    if coordinates is Coordinates.LONLAT:
        _refuse(
            (np.abs(x) > 180) | (np.abs(y) > 90),
            named,
            lambda row: f"{x[row]}, {y[row]} is no longitude and latitude; metres need coordinates='plane'",
        )
    _refuse(
        (np.abs(x) > FARTHEST_M) | (np.abs(y) > FARTHEST_M),
        named,
        lambda row: f"its place has the coordinates {x[row]}, {y[row]}; stay within {FARTHEST_M:.1e} m",
    )


def _refuse(bad: Mask, named: Named, reason: Callable[[int], str]) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{named(row)}: {reason(row)}")
