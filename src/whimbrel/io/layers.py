"""Layers: files of many regions, each with a name. GeoJSON and GeoParquet are read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from whimbrel.errors import DataError, did_you_mean
from whimbrel.model.antimeridian import goes_round_a_pole, unwrapped
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import geojson_to_wkt, parse, to_wkt

Feature = tuple[Any, str | None]
"""What a region is called, and its geometry as WKT."""


def read_layer(path: Path, name: str | None, coordinates: Coordinates | None) -> list[tuple[str, str]]:
    """Read the regions of a file: names and WKT, in the order of the file.

    Parameters
    ----------
    name
        The property that names a region; without it, they are called after their place in the file: 1, 2, 3.
    coordinates
        How the query gives locations; regions that cannot be meant so are refused.

    Raises
    ------
    DataError
        If the file cannot be read, or a region is none; it says which one.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    kinds = {".geojson": _geojson, ".json": _geojson, ".parquet": _geoparquet, ".geoparquet": _geoparquet}
    if path.suffix not in kinds:
        raise DataError(f"{path.name}: a layer is GeoJSON or GeoParquet: its name ends in {', '.join(kinds)}")
    # NumPy warns of coordinates that are no numbers; here they are refused by name.
    with np.errstate(all="ignore"):
        features = kinds[path.suffix](path, name)
        if not features:
            raise DataError(f"{path.name} has no region")
        return _named(features, path, coordinates)


def _named(features: list[Feature], path: Path, coordinates: Coordinates | None) -> list[tuple[str, str]]:
    regions: dict[str, str] = {}
    for number, (called, wkt) in enumerate(features, start=1):
        where = f"{path.name}: region {number}"
        if called is None or called == "":
            raise DataError(f"{where} has no name")
        text = str(called)
        where = f"{where} ({text!r})"
        if text in regions:
            raise DataError(f"{where} has the name of another one; name each differently")
        reason = "it has no geometry" if wkt is None else _unfit_reason(wkt, coordinates)
        if reason is not None or wkt is None:
            raise DataError(f"{where}: {reason}")
        regions[text] = wkt
    return list(regions.items())


def _unfit_reason(wkt: str, coordinates: Coordinates | None) -> str | None:
    """Say why a geometry cannot be a region that movers are judged by; None if it can."""
    import shapely

    try:
        shape = parse(wkt)
    except DataError as error:
        return str(error)
    if shape.is_empty:
        return "it is empty"
    if shape.geom_type not in ("Polygon", "MultiPolygon"):
        return f"it is a {shape.geom_type}, and a region is an area: a polygon or several"
    if coordinates is Coordinates.LONLAT:
        left, low, right, high = shape.bounds
        if left < -360 or right > 360 or low < -90 or high > 90:
            return (
                f"it reaches from ({left:g}, {low:g}) to ({right:g}, {high:g}), "
                f"which is no longitude and latitude; is it in metres?"
            )
        if goes_round_a_pole(shape):
            return "it goes round a pole, which a polygon in longitude and latitude cannot"
        shape = unwrapped(shape)
    return None if shape.is_valid else f"it is no simple polygon: {shapely.is_valid_reason(shape)}"


def _geojson(path: Path, name: str | None) -> list[Feature]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise DataError(f"{path.name} is no GeoJSON: {error}") from error
    if not isinstance(document, dict) or "type" not in document:
        raise DataError(f"{path.name} is no GeoJSON: it is no object with a type")
    members = document.get("features") if document["type"] == "FeatureCollection" else [document]
    if not isinstance(members, list):
        raise DataError(f"{path.name} is no GeoJSON: its features are no list")
    return [_feature(member, number, path, name) for number, member in enumerate(members, start=1)]


def _feature(member: Any, number: int, path: Path, name: str | None) -> Feature:
    where = f"{path.name}: region {number}"
    if not isinstance(member, dict):
        raise DataError(f"{where} is no GeoJSON feature")
    is_feature = member.get("type") == "Feature"
    properties = (member.get("properties") or {}) if is_feature else {}
    geometry = member.get("geometry") if is_feature else member
    try:
        wkt = None if geometry is None else geojson_to_wkt(geometry)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    return _called(properties, name, number, where), wkt


def _called(properties: dict[str, Any], name: str | None, number: int, where: str) -> Any:
    if name is None:
        return number
    if name not in properties:
        raise DataError(f"{where} has no property {name!r}; {_choice(name, properties)}")
    return properties[name]


def _choice(name: str, known: Iterable[str]) -> str:
    listed = list(known)
    return did_you_mean(name, listed) or f"it has {', '.join(listed) or 'none'}"


def _geoparquet(path: Path, name: str | None) -> list[Feature]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path.name} is no Parquet file: {error}") from error
    column = _geometry_column(table.schema.metadata or {}, table.column_names, path)
    shapes = table.column(column).to_pylist()
    if not all(shape is None or isinstance(shape, bytes) for shape in shapes):
        raise DataError(f"{path.name}: the column {column!r} holds no WKB")
    if name is not None and name not in table.column_names:
        raise DataError(f"{path.name} has no column {name!r}; {_choice(name, table.column_names)}")
    names = range(1, len(shapes) + 1) if name is None else table.column(name).to_pylist()
    wkts = [_wkt(shape, f"{path.name}: region {number}") for number, shape in enumerate(shapes, start=1)]
    return list(zip(names, wkts, strict=True))


def _wkt(wkb: bytes | None, where: str) -> str | None:
    import shapely

    if wkb is None:
        return None
    try:
        shape = parse(wkb)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    if not np.isfinite(shapely.get_coordinates(shape)).all():
        raise DataError(f"{where}: it has a coordinate that is not a finite number")
    return to_wkt(shape)


def _geometry_column(metadata: dict[bytes, bytes], columns: list[str], path: Path) -> str:
    """Name the column with the geometry: what the file says of itself, or one called `geometry`."""
    try:
        about = json.loads(metadata.get(b"geo", b"{}"))
    except ValueError as error:
        raise DataError(f"{path.name}: what it says about its geometry is no JSON") from error
    column = about.get("primary_column", "geometry") if isinstance(about, dict) else "geometry"
    if column not in columns:
        raise DataError(f"{path.name} has no column {column!r} with a geometry")
    return str(column)
