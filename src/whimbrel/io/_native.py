"""Geometries in the native encodings of GeoParquet 1.1 (those of GeoArrow), turned into WKB.

A point is a struct of x and y, or a list of fixed size; all else are lists of those, one level for each of
the steps from a geometry to its coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.errors import DataError

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
    made = np.zeros(len(x), _POINT)
    made["order"], made["kind"], made["x"], made["y"] = 1, 1, x, y
    # An empty point has no coordinates; here it is no location.
    missing = nulls | (np.isnan(x) & np.isnan(y))
    offsets = np.arange(len(x) + 1, dtype="i4") * _POINT.itemsize
    validity = pa.array(~missing).buffers()[1] if missing.any() else None
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(made)]
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
