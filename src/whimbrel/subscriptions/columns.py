"""What subscriptions read of a batch of events: columns, and a point each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from whimbrel.engine.condition_columns import ConditionColumns, WantedColumns, read_columns
from whimbrel.engine.values import Column, from_arrow, nothing
from whimbrel.errors import DataError
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.columns import as_numbers, decoded, natural
from whimbrel.model.faults import Faults
from whimbrel.model.schema import Coordinates, Type
from whimbrel.space.geometry import Floats


def read_batch(batch: pa.RecordBatch, wanted: WantedColumns, x: Floats, y: Floats) -> ConditionColumns:
    """Read the columns of a batch; one that it does not have is null everywhere."""
    return read_columns(wanted, batch.num_rows, lambda name: _column(batch, name, x, y))


def _column(batch: pa.RecordBatch, name: str, x: Floats, y: Floats) -> Column:
    values = {"x": x, "y": y}.get(name)
    if values is not None and len(values):
        return Column(Type.FLOAT, values, np.isnan(values))
    if values is not None or name not in batch.schema.names:
        return nothing(batch.num_rows)
    return from_arrow(natural(name, batch.column(name), Faults(batch.num_rows)))


def read_points(batch: pa.RecordBatch, coordinates: Coordinates) -> tuple[Floats, Floats]:
    """Read where events lie; NaN for those that lie nowhere, empty arrays if none lies anywhere.

    A polygon counts by the centre of its bounding box. What is out of range lies nowhere.
    """
    names = set(batch.schema.names)
    _check_coordinates(batch, names, coordinates)
    pair = ("lon", "lat") if "lon" in names else ("x", "y")
    if names >= set(pair):
        x, y = (numbers_of(batch, name) for name in pair)
    elif "geometry" in names:
        x, y = _centres(batch.column("geometry"))
    else:
        return np.zeros(0), np.zeros(0)
    if coordinates is Coordinates.LONLAT:
        with np.errstate(invalid="ignore"):
            outside = (np.abs(x) > 180) | (np.abs(y) > 90)
        if outside.any():
            x = np.where(outside, np.nan, x)
    return x, y


def _check_coordinates(batch: pa.RecordBatch, names: set[str], coordinates: Coordinates) -> None:
    said = (batch.schema.metadata or {}).get(COORDINATES_KEY, b"none").decode(errors="replace")
    in_degrees = bool(names & {"lon", "lat"}) or said == Coordinates.LONLAT
    in_metres = not in_degrees and (bool(names & {"x", "y"}) or said == Coordinates.PLANE)
    if (in_degrees and coordinates is Coordinates.PLANE) or (in_metres and coordinates is Coordinates.LONLAT):
        given = Coordinates.LONLAT if in_degrees else Coordinates.PLANE
        raise DataError(
            f"coordinates are mixed: the events have {given} coordinates, the subscriptions {coordinates}; "
            f"make them with wb.Subscriptions(coordinates={given.value!r})"
        )


def numbers_of(batch: pa.RecordBatch, name: str) -> Floats:
    """Read a column of numbers; NaN for null."""
    column = as_numbers(name, batch.column(name), Faults(batch.num_rows))
    if column.null_count:
        column = column.fill_null(np.nan)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _centres(column: pa.Array) -> tuple[Floats, Floats]:
    import shapely

    column = decoded(column)
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    read = shapely.from_wkt if pa.types.is_string(column.type) else shapely.from_wkb
    bounds = shapely.bounds(read(values, on_invalid="ignore"))
    return (bounds[:, 0] + bounds[:, 2]) / 2, (bounds[:, 1] + bounds[:, 3]) / 2
