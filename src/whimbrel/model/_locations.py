"""Read where events happened: x and y, longitude and latitude, or geometries, into x, y and polygons."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.model.antimeridian import laid_out, rounding_a_pole
from whimbrel.model.columns import as_numbers, decoded, fail_type, from_values, nulls_of, values_of
from whimbrel.model.faults import Faults, Mask
from whimbrel.model.schema import Coordinates

_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
"""A two-dimensional point as little-endian WKB: 21 bytes."""

_TYPE_POINT, _TYPE_POLYGON = 0, 3


@dataclass(frozen=True, slots=True)
class LocationColumns:
    """The location columns of a batch; a column that nobody filled is None."""

    x: pa.Array | None = None
    y: pa.Array | None = None
    polygons: pa.Array | None = None


def read_point_columns(
    batch: pa.RecordBatch, names: tuple[str, str], lonlat: bool, faults: Faults
) -> LocationColumns:
    """Read two coordinate columns; both null means no location."""
    x, y = (as_numbers(name, batch.column(name), faults) for name in names)
    if lonlat:
        _check_swapped(names, x, y, faults)
    for name, column, limit in zip(names, (x, y), (180.0, 90.0), strict=True):
        _check_range(name, column, limit if lonlat else None, faults)
    if x.null_count or y.null_count:
        only_x, only_y = nulls_of(y) & ~nulls_of(x), nulls_of(x) & ~nulls_of(y)
        faults.add(only_x, f"{names[0]} is given without {names[1]}")
        faults.add(only_y, f"{names[1]} is given without {names[0]}")
    return LocationColumns(x, y)


def _check_swapped(names: tuple[str, str], x: pa.Array, y: pa.Array, faults: Faults) -> None:
    """Note latitudes that can only be longitudes, beside longitudes that can be latitudes."""
    lat = values_of(y, "f8")
    with np.errstate(all="ignore"):
        if not len(lat) or max(-lat.min(), lat.max()) <= 90.0:
            return
        beyond = (np.abs(lat) > 90.0) & (np.abs(lat) <= 180.0) & ~nulls_of(y)
        beyond &= (np.abs(values_of(x, "f8")) <= 90.0) & ~nulls_of(x)
    lon = names[0]
    faults.add(beyond, lambda row: f"{names[1]} {SWAPPED} {lon}: {lat[row]} is not in {_span(90.0)}")


SWAPPED = "is out of range, and would fit as"
"""Part of the reason of rows whose two coordinates may be the wrong way round."""


def _check_range(name: str, column: pa.Array, limit: float | None, faults: Faults) -> None:
    values = values_of(column, "f8")
    with np.errstate(all="ignore"):
        # The least and the largest value are NaN if any value is, so two quick passes clear a whole column.
        least, most = (values.min(), values.max()) if len(values) else (0.0, 0.0)
        bound = np.finfo(np.float64).max if limit is None else limit
        if -bound <= least and most <= bound:
            return
        given = ~nulls_of(column)
        faults.add(given & ~np.isfinite(values), lambda row: f"{name} is not finite: {values[row]}")
        if limit is not None:
            outside = given & (np.abs(values) > limit)
            faults.add(outside, lambda row: f"{name} is out of range: {values[row]} is not in {_span(limit)}")


def _span(limit: float) -> str:
    return f"[-{limit:.0f}, {limit:.0f}]"


def read_geometry_column(batch: pa.RecordBatch, lonlat: bool, faults: Faults) -> LocationColumns:
    """Read a column of WKT text or WKB bytes: points become x and y, polygons stay WKB."""
    column = decoded(batch.column("geometry"))
    if pa.types.is_null(column.type):
        return LocationColumns()
    if not (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
        raise fail_type("geometry", column.type, "WKT text or WKB bytes")
    return _points_only(column, lonlat, faults) or _any_geometries(column, lonlat, faults)


def _points_only(column: pa.Array, lonlat: bool, faults: Faults) -> LocationColumns | None:
    """Read a column that holds nothing but plain WKB points straight from its buffer, or return None."""
    rows = len(column)
    if not pa.types.is_binary(column.type) or column.null_count or rows == 0:
        return None
    offsets = np.frombuffer(column.buffers()[1], "i4", rows + 1, column.offset * 4)
    if offsets[-1] - offsets[0] != _POINT.itemsize * rows or (np.diff(offsets) != _POINT.itemsize).any():
        return None
    points = np.frombuffer(column.buffers()[2], _POINT, rows, int(offsets[0]))
    if (points["order"] != 1).any() or (points["kind"] != 1).any():
        return None
    xs, ys = np.ascontiguousarray(points["x"]), np.ascontiguousarray(points["y"])
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        return None
    x, y = from_values(xs), from_values(ys)
    if lonlat:
        _check_range("geometry: lon", x, 180.0, faults)
        _check_range("geometry: lat", y, 90.0, faults)
    return LocationColumns(x, y)


def _any_geometries(column: pa.Array, lonlat: bool, faults: Faults) -> LocationColumns:
    import shapely

    shapes = parse_geometries(column)
    given = ~nulls_of(column)
    kinds = shapely.get_type_id(shapes)
    is_point, is_polygon = given & (kinds == _TYPE_POINT), given & (kinds == _TYPE_POLYGON)
    empty = given & shapely.is_empty(shapes)
    faults.add(given & (kinds == -1), "geometry is not readable as WKT text or WKB bytes")
    faults.add(empty, "geometry is empty")
    faults.add(
        given & ~is_point & ~is_polygon,
        lambda row: f"geometry is not a point or a polygon: {shapes[row].geom_type}",
    )
    if lonlat:
        faults.add(
            rounding_a_pole(shapes, is_polygon & ~empty), "geometry goes round a pole; give a smaller polygon"
        )
    _check_polygons(laid_out(shapes) if lonlat else shapes, is_polygon & ~empty, faults)
    is_point &= ~empty
    x, y = np.where(is_point, shapely.get_x(shapes), 0.0), np.where(is_point, shapely.get_y(shapes), 0.0)
    _check_bounds(shapes, is_point | (is_polygon & ~empty), lonlat, faults)
    return LocationColumns(
        from_values(x, ~is_point) if is_point.any() else None,
        from_values(y, ~is_point) if is_point.any() else None,
        _polygon_bytes(shapes, is_polygon & ~empty) if is_polygon.any() else None,
    )


def parse_geometries(column: pa.Array) -> npt.NDArray[Any]:
    """Parse WKT or WKB; what is null or cannot be read is None. Heights are dropped."""
    import shapely

    read = shapely.from_wkt if pa.types.is_string(column.type) else shapely.from_wkb
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    with np.errstate(all="ignore"):
        return np.asarray(shapely.force_2d(read(values, on_invalid="ignore")), dtype=object)


def _check_polygons(shapes: npt.NDArray[Any], is_polygon: Mask, faults: Faults) -> None:
    import shapely

    with np.errstate(all="ignore"):
        faults.add(
            is_polygon & ~shapely.is_valid(shapes),
            lambda row: f"geometry is not a simple polygon: {shapely.is_valid_reason(shapes[row])}",
        )


def _check_bounds(shapes: npt.NDArray[Any], located: Mask, lonlat: bool, faults: Faults) -> None:
    import shapely

    bounds = shapely.bounds(shapes)
    with np.errstate(all="ignore"):
        faults.add(
            located & ~np.isfinite(bounds).all(axis=1),
            "geometry is not finite",
        )
        if lonlat:
            beyond = (np.abs(bounds) > np.array([180.0, 90.0, 180.0, 90.0])).any(axis=1)
            faults.add(
                located & beyond,
                f"geometry is out of range: longitudes lie in {_span(180.0)}, latitudes in {_span(90.0)}",
            )


def _polygon_bytes(shapes: npt.NDArray[Any], is_polygon: Mask) -> pa.Array:
    import shapely

    polygons = shapes.copy()
    polygons[~is_polygon] = None
    encoded = shapely.to_wkb(polygons, byte_order=1, include_srid=False)
    return pa.array(encoded.tolist(), pa.binary())


def merge(points: LocationColumns, shapes: LocationColumns, faults: Faults) -> LocationColumns:
    """Join coordinate columns and a geometry column of one batch; a row may use one of them."""
    if points.x is None or points.y is None:
        return shapes
    has_point = ~nulls_of(points.x)
    if shapes.polygons is not None:
        faults.add(has_point & ~nulls_of(shapes.polygons), "both coordinates and a geometry are given")
    if shapes.x is None or shapes.y is None:
        return LocationColumns(points.x, points.y, shapes.polygons)
    faults.add(has_point & ~nulls_of(shapes.x), "both coordinates and a geometry are given")
    return LocationColumns(_first_of(points.x, shapes.x), _first_of(points.y, shapes.y), shapes.polygons)


def _first_of(one: pa.Array, other: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.coalesce(one, other)


def coordinates_of(names: Set[str]) -> Coordinates | None:
    """Tell which coordinates the column names stand for; a geometry column alone does not say."""
    if names & {"lon", "lat"}:
        return Coordinates.LONLAT
    return Coordinates.PLANE if names & {"x", "y"} else None
