"""Read, write, check and measure geometries. Shapely is loaded when the first geometry needs it."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whimbrel.errors import DataError
from whimbrel.model.antimeridian import laid_out, unwrapped
from whimbrel.model.schema import Coordinates

if TYPE_CHECKING:
    import shapely

EARTH_RADIUS_M = 6_371_008.8
"""The mean radius of the earth (IUGG), in metres."""

METRES_PER_DEGREE = EARTH_RADIUS_M * np.pi / 180
"""Along a meridian of that sphere."""

FARTHEST_M = 2.0**40
"""Coordinates of shapes in a grid lie within this; a thousand million kilometres are far enough."""

_CIRCLE = re.compile(r"CIRCLE \((\S+) (\S+) (\S+)\)")
_LARGER = 1 + 1e-9
"""Boxes around circles are a little larger, as they are rounded."""
_NUMBER = re.compile(r"-?\d[\d.]*(?:[eE][+-]?\d+)?")

Floats = npt.NDArray[np.float64]
FloatLike = npt.ArrayLike
Circle = tuple[str, float, float, float]
"""("circle", x, y, radius in metres)."""


def in_units(metres: float, coordinates: Coordinates | None) -> float:
    """Convert a length to the units of coordinates: metres, or degrees along a meridian.

    >>> in_units(500.0, Coordinates.PLANE)
    500.0
    """
    return metres / METRES_PER_DEGREE if coordinates is Coordinates.LONLAT else metres


def parse(text: str | bytes) -> shapely.Geometry:
    """Parse WKT text or WKB bytes; heights are dropped."""
    import shapely

    try:
        read = shapely.from_wkt if isinstance(text, str) else shapely.from_wkb
        return shapely.force_2d(read(text))
    except (shapely.errors.GEOSException, TypeError, ValueError, UnicodeError) as error:
        raise DataError(f"{_shown(text)} is not a geometry; write WKT such as 'POINT (1 2)'") from error


def _shown(text: str | bytes) -> str:
    return repr(text) if len(text) <= 60 else repr(text[:57]) + "..."


def circle_text(x: float, y: float, radius_m: float) -> str:
    """Write a circle as regions are written: as text, where polygons and points are WKT.

    >>> circle_text(3.0, 4.0, 500.0)
    'CIRCLE (3.0 4.0 500.0)'
    """
    return f"CIRCLE ({float(x)!r} {float(y)!r} {float(radius_m)!r})"


def as_circle(region: str | bytes | Circle) -> Circle | None:
    """Read a circle; None if a region is none."""
    if isinstance(region, tuple):
        return region
    written = _CIRCLE.fullmatch(region) if isinstance(region, str) else None
    return None if written is None else ("circle", float(written[1]), float(written[2]), float(written[3]))


def circle_box(circle: Circle, coordinates: Coordinates) -> tuple[float, float, float, float]:
    """Compute the box around a circle; longitudes may lie beyond 180 degrees.

    >>> circle_box(("circle", 179.0, 0.0, 222_390.0), Coordinates.LONLAT)[2] > 180
    True
    """
    _, x, y, radius_m = circle
    if coordinates is Coordinates.PLANE:
        return x - radius_m, y - radius_m, x + radius_m, y + radius_m
    up = radius_m / METRES_PER_DEGREE * _LARGER
    low, high = max(-90.0, y - up), min(90.0, y + up)
    if low <= -90.0 or high >= 90.0:  # it holds a pole, and with it all longitudes
        return x - 180.0, low, x + 180.0, high
    across = np.degrees(np.arcsin(min(1.0, np.sin(np.radians(up)) / np.cos(np.radians(y))))) * _LARGER
    return x - float(across), low, x + float(across), high


def to_wkt(geometry: shapely.Geometry | bytes) -> str:
    """Write a geometry as WKT, each number in the shortest form that reads back the same.

    >>> to_wkt(parse("POINT (1.0 2.50)"))
    'POINT (1 2.5)'
    """
    shape = parse(geometry) if isinstance(geometry, bytes) else geometry
    shapes = np.empty(1, dtype=object)
    shapes[0] = shape
    return str(_exact_wkt(shapes)[0])


def to_wkb(geometry: shapely.Geometry | str) -> bytes:
    """Write a geometry as little-endian WKB."""
    import shapely

    shape = parse(geometry) if isinstance(geometry, str) else geometry
    return bytes(shapely.to_wkb(shape, byte_order=1, include_srid=False))


def wkt_column(wkb: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Turn an array of WKB bytes and None into WKT texts and None."""
    import shapely

    try:
        shapes = np.asarray(shapely.force_2d(shapely.from_wkb(wkb)), dtype=object)
    except shapely.errors.GEOSException as error:
        raise DataError(f"a geometry is not WKB: {error}") from error
    return _exact_wkt(shapes)


def _exact_wkt(shapes: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    import shapely

    texts = np.asarray(shapely.to_wkt(shapes, rounding_precision=-1, trim=True), dtype=object)
    # GEOS drops the 17th digit, which one number in some hundred needs; those few are written again.
    wanted, owner = shapely.get_coordinates(shapes, return_index=True)
    given = shapely.get_coordinates(shapely.from_wkt(texts))
    for row in np.unique(owner[(wanted != given).any(axis=1)]):
        texts[row] = _with_numbers(texts[row], wanted[owner == row].ravel().tolist())
    return texts


def _with_numbers(text: str, numbers: list[float]) -> str:
    """Replace the numbers in a WKT text, one after another."""
    rest = iter(numbers)
    return _NUMBER.sub(lambda _: _shortest(next(rest)), text)


def _shortest(number: float) -> str:
    return repr(number).removesuffix(".0")


def geojson_to_wkt(value: Any) -> str:
    """Turn a GeoJSON geometry object into WKT."""
    import shapely

    try:
        return to_wkt(shapely.force_2d(shapely.from_geojson(json.dumps(value))))
    except (shapely.errors.GEOSException, TypeError, ValueError, RecursionError) as error:
        raise DataError("the geometry is not a GeoJSON geometry") from error


def invalid_reason(geometry: shapely.Geometry | str | bytes) -> str | None:
    """Say why a geometry cannot be the location of an event or a region; None if it can."""
    import shapely

    try:
        shape = parse(geometry) if isinstance(geometry, str | bytes) else geometry
    except DataError as error:
        return str(error)
    if shape.geom_type not in ("Point", "Polygon"):
        return f"it is a {shape.geom_type}, not a point or a polygon"
    if shape.is_empty:
        return "it is empty"
    if not np.isfinite(shape.bounds).all():
        return "it has a coordinate that is not a finite number"
    with np.errstate(all="ignore"):
        return None if shape.is_valid else f"it is not a simple polygon: {shapely.is_valid_reason(shape)}"


def centroid(geometry: shapely.Geometry | str | bytes) -> tuple[float, float]:
    """Return the centre of mass of a geometry."""
    shape = parse(geometry) if isinstance(geometry, str | bytes) else geometry
    if shape.is_empty:
        raise DataError("an empty geometry has no centre")
    centre = shape.centroid
    return float(centre.x), float(centre.y)


def centres(wkb: npt.NDArray[np.object_], coordinates: Coordinates | None = None) -> tuple[Floats, Floats]:
    """Return the x and the y of the centres of mass of geometries in WKB, NaN where there is None.

    In longitude and latitude, the centre of what crosses the antimeridian lies near it.
    """
    import shapely

    shapes = np.asarray(shapely.from_wkb(wkb), dtype=object)
    if coordinates is Coordinates.LONLAT:
        shapes = laid_out(shapes)
    with np.errstate(all="ignore"):
        middle = shapely.centroid(shapes)
        x, y = shapely.get_x(middle), shapely.get_y(middle)
        if coordinates is Coordinates.LONLAT:
            x = np.where(np.abs(x) > 180.0, (x + 180.0) % 360.0 - 180.0, x)
    return x, y


def distance_m(
    x1: FloatLike, y1: FloatLike, x2: FloatLike, y2: FloatLike, coordinates: Coordinates
) -> Floats:
    """Return the distances between points in metres, element by element.

    Plane coordinates are metres and give the Euclidean distance. Longitude and latitude give the length of
    the great circle on a sphere of radius `EARTH_RADIUS_M`, by the haversine formula, which keeps its digits
    for points close together.
    """
    x1, y1, x2, y2 = (np.asarray(value, np.float64) for value in (x1, y1, x2, y2))
    if coordinates is Coordinates.PLANE:
        return np.asarray(np.hypot(x2 - x1, y2 - y1))
    lat1, lat2 = np.radians(y1), np.radians(y2)
    half = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin(np.radians(x2 - x1) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))))


@lru_cache(maxsize=1024)
def prepared(region: str | bytes, coordinates: Coordinates = Coordinates.PLANE) -> shapely.Geometry:
    """Parse a region once and prepare it for many tests."""
    import shapely

    shape = parse(region)
    if coordinates is Coordinates.LONLAT:
        shape = unwrapped(shape)
    shapely.prepare(shape)
    return shape


def points_in_region(
    x: FloatLike, y: FloatLike, region: str | bytes | Circle, coordinates: Coordinates = Coordinates.PLANE
) -> npt.NDArray[np.bool_]:
    """Return which points lie in a region, borders included; a NaN coordinate lies nowhere.

    Parameters
    ----------
    region
        A geometry as WKT or WKB, or a circle: ("circle", x, y, radius in metres) or its text. The sides of a
        polygon are straight in the given coordinates.

    >>> points_in_region([0, 3, 4], [0, 4, 4], ("circle", 0, 0, 5)).tolist()
    [True, True, False]
    """
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    with np.errstate(invalid="ignore"):
        circle = as_circle(region)
        if circle is not None:
            _, centre_x, centre_y, radius_m = circle
            return np.asarray(distance_m(xs, ys, centre_x, centre_y, coordinates) <= radius_m)
        return points_in_shapes(xs, ys, prepared(region, coordinates), coordinates)


def points_in_shapes(
    x: FloatLike, y: FloatLike, shapes: Any, coordinates: Coordinates
) -> npt.NDArray[np.bool_]:
    """Return which points lie in a shape that `prepared` gave, or each in its own, borders included."""
    import shapely

    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    with np.errstate(invalid="ignore"):
        inside = np.asarray(shapely.intersects_xy(shapes, xs, ys))
        if coordinates is Coordinates.LONLAT:
            bounds = shapely.bounds(shapes)
            east, west = bounds[..., 2] >= 180.0, bounds[..., 0] <= -180.0
            if east.any():
                inside |= east & shapely.intersects_xy(shapes, xs + 360.0, ys)
            if west.any():
                inside |= west & shapely.intersects_xy(shapes, xs - 360.0, ys)
        return inside
