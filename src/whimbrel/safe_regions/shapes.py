"""The shapes that subscriptions watch: what lies in them, and the borders that bound them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from whimbrel.errors import DataError
from whimbrel.model.schema import Coordinates
from whimbrel.safe_regions.kernels.borders import MARGIN, ROUND, STRAIGHT, WIDTH
from whimbrel.space.geometry import (
    EARTH_RADIUS_M,
    METRES_PER_DEGREE,
    Floats,
    distance_m,
    invalid_reason,
    parse,
)

if TYPE_CHECKING:
    import shapely

ShapeLike: TypeAlias = "str | bytes | shapely.Geometry | tuple[str | float, ...]"
"""WKT, WKB or a shapely polygon; ("circle", x, y, radius in metres); ("box", x1, y1, x2, y2)."""
Bounds = tuple[float, float, float, float]
"""Left, low, right, high."""

HOW_TO_WRITE = "write WKT, ('circle', x, y, radius_m) or ('box', x1, y1, x2, y2)"
HIGHEST_LAT = 89.9
"""A circle that reaches beyond has no useful shape in longitude and latitude."""
MARGIN_DEGREES = 1e-9
"""A tenth of a millimetre: far more than rounding moves a border in longitude and latitude."""
MARGIN_PLANE = 1e-12
"""The same, as a part of the largest coordinate."""
_MANY_CORNERS = 32
_OFF_THE_GLOBE = "leaves longitudes -180 to 180 or latitudes -90 to 90"


@dataclass(frozen=True, slots=True, eq=False)
class ShapePart:
    """Borders of a shape, with a box round them; a circle across the date line has two parts."""

    shape: WatchedShape
    bounds: Bounds
    borders: Floats


@dataclass(frozen=True, slots=True, eq=False)
class WatchedShape:
    """What one subscription watches."""

    name: str
    geometry: shapely.Geometry | tuple[float, float, float]
    """A polygon, or x, y and the radius of a circle."""
    coordinates: Coordinates

    def contains(self, x: float, y: float) -> bool:
        """Tell whether a point lies in the shape, borders included."""
        if isinstance(self.geometry, tuple):
            centre_x, centre_y, radius_m = self.geometry
            return bool(distance_m(x, y, centre_x, centre_y, self.coordinates) <= radius_m)
        import shapely

        return bool(shapely.intersects_xy(self.geometry, x, y))

    def parts(self) -> list[ShapePart]:
        """Take the shape apart into borders."""
        if not isinstance(self.geometry, tuple):
            return [self._of_polygon(self.geometry)]
        x, y, radius_m = self.geometry
        if self.coordinates is Coordinates.PLANE:
            bounds = (x - radius_m, y - radius_m, x + radius_m, y + radius_m)
            return [self._round(x, y, radius_m, math.pi / 2, bounds)]
        radius, lat = radius_m / EARTH_RADIUS_M, math.radians(y)
        east = math.acos(math.tan(radius) * math.tan(lat))
        wide, high = math.degrees(math.asin(math.sin(radius) / math.cos(lat))), math.degrees(radius)
        turns = [turn for turn in (-360.0, 0.0, 360.0) if abs(x + turn) - wide <= 180.0]
        return [
            self._round(x + turn, y, radius, east, (x + turn - wide, y - high, x + turn + wide, y + high))
            for turn in turns
        ]

    def _round(self, x: float, y: float, radius: float, east: float, bounds: Bounds) -> ShapePart:
        margin = _margin(bounds, self.coordinates)
        return ShapePart(self, _wider(bounds, margin), np.array([[ROUND, x, y, radius, east, margin]]))

    def _of_polygon(self, polygon: shapely.Geometry) -> ShapePart:
        import shapely

        bounds: Bounds = polygon.bounds
        margin = _margin(bounds, self.coordinates)
        corners = shapely.get_coordinates(polygon)
        borders = np.full((len(corners) - 1, WIDTH), STRAIGHT)
        borders[:, 1:3], borders[:, 3:5], borders[:, MARGIN] = corners[:-1], corners[1:], margin
        if shapely.get_num_interior_rings(polygon):
            # No side leads from the end of one ring to the beginning of the next.
            sizes = shapely.get_num_coordinates(shapely.get_rings(polygon))
            borders = np.delete(borders, np.cumsum(sizes)[:-1] - 1, axis=0)
        return ShapePart(self, _wider(bounds, margin), borders)


def read_shape(name: str, given: ShapeLike, coordinates: Coordinates) -> WatchedShape:
    """Read a shape as it was given, and check it."""
    if not isinstance(name, str):
        raise DataError(f"the name of a subscription is a text, not {name!r}")
    if isinstance(given, tuple):
        return _from_tuple(name, given, coordinates)
    import shapely

    if not isinstance(given, str | bytes | shapely.Geometry):
        raise DataError(f"subscription {name!r}: {given!r} is no shape; {HOW_TO_WRITE}")
    try:
        polygon = given if isinstance(given, shapely.Geometry) else parse(given)
    except DataError as error:
        raise DataError(f"subscription {name!r}: {error}") from None
    return _from_polygon(name, shapely.force_2d(polygon), coordinates)


def _from_tuple(name: str, given: Sequence[Any], coordinates: Coordinates) -> WatchedShape:
    import shapely

    kind, numbers = (given[0], given[1:]) if given else (None, ())
    if (kind, len(numbers)) not in (("circle", 3), ("box", 4)) or not all(map(_is_number, numbers)):
        raise DataError(f"subscription {name!r}: {given!r} is no shape of finite numbers; {HOW_TO_WRITE}")
    if kind == "circle":
        x, y, radius_m = map(float, numbers)
        _check_circle(name, x, y, radius_m, coordinates)
        return WatchedShape(name, (x, y, radius_m), coordinates)
    x1, y1, x2, y2 = map(float, numbers)
    bounds = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    if x1 == x2 or y1 == y2:
        raise DataError(f"subscription {name!r}: a box needs a width and a height above zero, not {given!r}")
    if coordinates is Coordinates.LONLAT and not _is_on_globe(bounds):
        raise DataError(f"subscription {name!r}: {given!r} {_OFF_THE_GLOBE}")
    return WatchedShape(name, shapely.box(*bounds), coordinates)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return math.isfinite(float(value))


def _check_circle(name: str, x: float, y: float, radius_m: float, coordinates: Coordinates) -> None:
    if not radius_m > 0:
        raise DataError(f"subscription {name!r}: a circle needs a radius above zero, not {radius_m!r}")
    if coordinates is Coordinates.PLANE:
        return
    if not (-180 <= x <= 180 and -90 <= y <= 90):
        raise DataError(f"subscription {name!r}: ({x}, {y}) is no longitude and latitude")
    if abs(y) + radius_m / METRES_PER_DEGREE > HIGHEST_LAT:
        raise DataError(
            f"subscription {name!r}: a circle must not reach beyond latitude {HIGHEST_LAT}; "
            "choose a smaller radius"
        )


def _from_polygon(name: str, polygon: shapely.Geometry, coordinates: Coordinates) -> WatchedShape:
    import shapely

    reason = invalid_reason(polygon)
    if reason is None and polygon.geom_type != "Polygon":
        reason = f"it is a {polygon.geom_type}, not a polygon"
    if reason is None and coordinates is Coordinates.LONLAT and not _is_on_globe(polygon.bounds):
        reason = f"it {_OFF_THE_GLOBE}"
    if reason is not None:
        raise DataError(f"subscription {name!r} watches no simple polygon: {reason}; {HOW_TO_WRITE}")
    if shapely.get_num_coordinates(polygon) > _MANY_CORNERS:
        shapely.prepare(polygon)
    return WatchedShape(name, polygon, coordinates)


def _is_on_globe(bounds: Bounds) -> bool:
    left, low, right, high = bounds
    return left >= -180 and low >= -90 and right <= 180 and high <= 90


def _margin(bounds: Bounds, coordinates: Coordinates) -> float:
    if coordinates is Coordinates.LONLAT:
        return MARGIN_DEGREES
    return MARGIN_PLANE * max(map(abs, bounds))


def meets(boxes: Floats, window: Bounds) -> npt.NDArray[np.bool_]:
    """Tell which boxes (left, low, right, high along the last axis) meet a window, borders included."""
    left, low, right, high = window
    meets_x = (boxes[..., 0] <= right) & (boxes[..., 2] >= left)
    return meets_x & (boxes[..., 1] <= high) & (boxes[..., 3] >= low)


def _wider(bounds: Bounds, margin: float) -> Bounds:
    left, low, right, high = bounds
    return left - margin, low - margin, right + margin, high + margin
