"""Read events from Parquet and GeoParquet files; geometries are WKB or in the native encodings of GeoArrow.

A native point is a struct of x and y, or a list of fixed size; all else are lists of those, one level for
each of the steps from a geometry to its coordinates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whimbrel.errors import DataError
from whimbrel.io._pieces import ReadBatch, ReadPlan
from whimbrel.io._streams import Progress, reading
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.columns import is_text
from whimbrel.model.schema import RESERVED_COLUMNS, Type

WKB = "WKB"
_LEVELS = {
    "point": 0,
    "linestring": 1,
    "multipoint": 1,
    "polygon": 2,
    "multilinestring": 2,
    "multipolygon": 3,
}
"""How many lists lie around the coordinates."""
ENCODINGS = (WKB, *_LEVELS)
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
Floats = npt.NDArray[np.float64]


class ParquetFile:
    """A Parquet file; in a GeoParquet file the primary geometry column is the location of the events."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            self._schema: pa.Schema = pq.read_schema(path)
            self.rows: int | None = pq.read_metadata(path).num_rows
            self._geo = _geo(self._schema)
            self._size = path.stat().st_size

    def unknown(self, plan: ReadPlan) -> list[str]:  # noqa: ARG002 - the same for every format
        return []

    def kinds(self, plan: ReadPlan, on_read: Progress) -> dict[str, Type | None]:  # noqa: ARG002 - no pass
        """Return what the attributes hold: a Parquet file says so itself."""
        wanted = [field for field in self._schema if field.name in self._wanted(plan)]
        return {
            field.name: kind
            for field in wanted
            if (kind := _kind(field.type)) and field.name not in RESERVED_COLUMNS
        }

    def pieces(self, plan: ReadPlan, on_read: Progress) -> Iterator[ReadBatch]:
        wanted, row = self._wanted(plan), 1
        with reading(self.path):
            texts = [
                name
                for name in wanted
                if plan.role(name) in ("type", "source") and is_text(self._schema.field(name).type)
            ]
            file = pq.ParquetFile(self.path, read_dictionary=texts, pre_buffer=False)
            for batch in file.iter_batches(plan.batch_rows, columns=wanted, use_threads=True):
                _check_texts(batch)
                yield ReadBatch(self.path, self._named(batch), row)
                row += batch.num_rows
                on_read(self._size * batch.num_rows // max(1, self.rows or 1))

    def _wanted(self, plan: ReadPlan) -> list[str]:
        dropped = self._geo.others
        return [
            name
            for name in self._schema.names
            if name == self._geo.primary or (plan.wants(name) and name not in dropped)
        ]

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = ["geometry" if name == self._geo.primary else name for name in batch.schema.names]
        metadata = dict(self._schema.metadata or {})
        if self._geo.coordinates:
            metadata[COORDINATES_KEY] = self._geo.coordinates.encode()
        if self._geo.primary and self._geo.encoding != WKB:
            number = batch.schema.get_field_index(self._geo.primary)
            shapes = to_wkb(batch.column(number), self._geo.encoding)
            batch = batch.set_column(number, self._geo.primary, shapes)
        kept = {key: value for key, value in metadata.items() if key.startswith(b"whimbrel.")}
        return batch.rename_columns(names).replace_schema_metadata(kept)


def _check_texts(batch: pa.RecordBatch) -> None:
    # Arrow takes it on trust that texts in Parquet are UTF-8.
    for column in batch.columns:
        if is_text(column.type):
            column.validate(full=True)


class _Geo:
    """What the `geo` metadata of a GeoParquet file says, as far as events need it."""

    def __init__(
        self,
        primary: str | None,
        coordinates: str | None,
        others: frozenset[str],
        encoding: str = WKB,
    ) -> None:
        self.primary, self.coordinates, self.others = primary, coordinates, others
        self.encoding = encoding


def _geo(schema: pa.Schema) -> _Geo:
    text = (schema.metadata or {}).get(b"geo")
    if text is None:
        return _Geo(None, None, frozenset())
    try:
        said = json.loads(text)
        primary: str = said["primary_column"]
        column: dict[str, Any] = said["columns"][primary]
        encoding = column["encoding"]
        boxes = [entry.get("covering", {}).get("bbox", {}) for entry in said["columns"].values()]
        covering = {side[0] for box in boxes for side in box.values()}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise DataError(
            f"the GeoParquet metadata cannot be understood ({type(error).__name__}: {error})"
        ) from error
    if primary not in schema.names:
        raise DataError(f"the GeoParquet metadata names the column {primary!r}, which the file does not have")
    if encoding not in ENCODINGS:
        known = ", ".join(ENCODINGS)
        raise DataError(f"geometries are encoded as {encoding!r}; these are read: {known}")
    others = frozenset(said["columns"]) - {primary} | covering
    return _Geo(primary, coordinates_of_crs(column), others, encoding)


def coordinates_of_crs(column: dict[str, Any]) -> str | None:
    """Tell the coordinates from a GeoParquet column's CRS: none given means WGS 84, null means unknown."""
    crs = column.get("crs", "absent")
    if crs == "absent":
        return "lonlat"
    if not isinstance(crs, dict):
        return None
    # A CRS with heights is a compound of a horizontal and a vertical one.
    parts = crs.get("components")
    horizontal = parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], dict) else crs
    return {"GeographicCRS": "lonlat", "ProjectedCRS": "plane"}.get(str(horizontal.get("type")))


def _kind(kind: pa.DataType) -> Type | None:
    if is_text(kind):
        return Type.STRING
    if pa.types.is_boolean(kind):
        return Type.BOOL
    if pa.types.is_integer(kind):
        return Type.INT
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Type.FLOAT
    return Type.TIMESTAMP if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else None


def to_wkb(column: Any, encoding: str) -> pa.Array:
    """Turn a column of geometries into WKB; heights are dropped.

    Raises
    ------
    DataError
        If the column is not what the encoding says.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    if encoding == "point":
        return _points(*_coordinates(column, encoding), nulls)
    return _shapes(column, encoding, nulls)


def _coordinates(column: Any, encoding: str) -> tuple[Floats, Floats]:
    kind = column.type
    if pa.types.is_struct(kind) and {"x", "y"} <= {field.name for field in kind}:
        parts = [column.field(name) for name in ("x", "y")]
    elif pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        values = column.values.slice(column.offset * size, len(column) * size)
        flat = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return flat[0::size], flat[1::size]
    else:
        raise DataError(f"geometries are encoded as {encoding!r}, but the column holds {kind}")
    x, y = (part.cast(pa.float64()).to_numpy(zero_copy_only=False) for part in parts)
    return x, y


def _points(x: Floats, y: Floats, nulls: npt.NDArray[np.bool_]) -> pa.Array:
    points = np.zeros(len(x), _POINT)
    points["order"], points["kind"], points["x"], points["y"] = 1, 1, x, y
    # An empty point has no coordinates; here it is no location.
    missing = nulls | (np.isnan(x) & np.isnan(y))
    offsets = np.arange(len(x) + 1, dtype="i4") * _POINT.itemsize
    validity = pa.array(~missing).buffers()[1] if missing.any() else None
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(points)]
    return pa.Array.from_buffers(pa.binary(), len(x), buffers, int(missing.sum()))


def _shapes(column: Any, encoding: str, nulls: npt.NDArray[np.bool_]) -> pa.Array:
    import shapely

    offsets = []
    inner = column.drop_null()
    for _ in range(_LEVELS[encoding]):
        if not (pa.types.is_list(inner.type) or pa.types.is_large_list(inner.type)):
            raise DataError(f"geometries are encoded as {encoding!r}, but the column holds {column.type}")
        found = inner.offsets.to_numpy().astype("i8")
        inner = inner.values.slice(found[0], found[-1] - found[0])
        offsets.append(found - found[0])
    flat = np.column_stack(_coordinates(inner, encoding))
    texts = np.full(len(column), None, dtype=object)
    if not len(flat):
        return pa.array(texts.tolist(), pa.binary())
    kind = shapely.GeometryType[encoding.upper()]
    try:
        shapes = shapely.from_ragged_array(kind, flat, tuple(reversed(offsets)))
    except (shapely.errors.GEOSException, ValueError) as error:
        raise DataError(f"a {encoding} is broken: {error}") from error
    texts[~nulls] = shapely.to_wkb(shapes, byte_order=1)
    return pa.array(texts.tolist(), pa.binary())
