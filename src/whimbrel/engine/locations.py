"""Locations of detections: the convex hull of those of their constituents, its shape and its centre."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from whimbrel.engine.kernels.hull import hulls, write_wkb
from whimbrel.engine.row_store import Lineage, RowStore, offsets_of
from whimbrel.engine.shapes import SHAPE, shape_texts, wkb_of
from whimbrel.engine.values import Column, FloatArray, Int64Array, floats, from_arrow, nothing, to_arrow
from whimbrel.graph.expressions import Attribute
from whimbrel.model.schema import Coordinates, Type

_PLACE = {Attribute(None, "x"), SHAPE}


def hull_wkb(atoms: RowStore, lineage: Lineage, coordinates: Coordinates | None) -> pa.Array:
    """Give the hull of every row's atomic events as well-known binary; null where none has a location."""
    if not atoms.has_any(_PLACE):
        return pa.nulls(len(lineage), pa.binary())
    offsets, x, y = _points(atoms, lineage)
    points = np.diff(offsets).astype(np.float64)
    find_hulls = hulls.at(8.0 * len(points) + float(points @ points))
    return wkb_of_corners(*find_hulls(offsets, x, y, coordinates is Coordinates.LONLAT))


def wkb_of_corners(offsets: Int64Array, x: FloatArray, y: FloatArray) -> pa.Array:
    """Write points, lines of two points, and polygons of more, as well-known binary; null for no corners.

    The corners of each are from one offset up to the next one, of polygons without the first one again.
    """
    count = np.diff(offsets)
    # 5 bytes of header; lines have a count of points, polygons also one of rings and the first corner again.
    sizes = np.where(count == 0, 0, 5 + 16 * count + 4 * (count > 1) + (4 + 16) * (count > 2))
    places = offsets_of(sizes)
    content = np.zeros(int(places[-1]), np.uint8)
    numbers = np.stack([x, y], axis=1).view(np.uint8).reshape(-1)
    write_wkb.at(len(content))(offsets, numbers, places, content)
    validity = pa.array(count > 0).buffers()[1] if len(count) else None
    buffers = [validity, pa.py_buffer(places.astype(np.int32)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(count), buffers)


def shapes_of(atoms: RowStore, lineage: Lineage, coordinates: Coordinates | None) -> Column:
    """Give the shape of every row's location, as text; null where it is a point or there is none."""
    if not len(lineage) or (_single(lineage) and not _has_shapes(atoms)):
        return nothing(len(lineage))
    texts = shape_texts(hull_wkb(atoms, lineage, coordinates).to_numpy(zero_copy_only=False))
    return from_arrow(texts) if texts.null_count < len(texts) else nothing(len(texts))


def middles_of(atoms: RowStore, lineage: Lineage, axis: str, coordinates: Coordinates | None) -> Column:
    """Give the centre of every row's location along one axis, null where there is none."""
    if not len(lineage):
        return nothing(0)
    if _single(lineage) and not _has_shapes(atoms):
        return atoms.column(Attribute(None, axis), lineage.refs)
    from whimbrel.space.geometry import centres

    hull = hull_wkb(atoms, lineage, coordinates).to_numpy(zero_copy_only=False)
    middle = centres(hull, coordinates)["xy".index(axis)]
    null = np.isnan(middle)
    if null.all():
        return nothing(len(lineage))
    return Column(Type.FLOAT, middle, null if null.any() else None)


def _single(lineage: Lineage) -> bool:
    """Tell whether every row is made of one event."""
    return len(lineage.refs) == len(lineage) and bool((np.diff(lineage.offsets) == 1).all())


def _has_shapes(atoms: RowStore) -> bool:
    return atoms.has_any({SHAPE})


def _points(atoms: RowStore, lineage: Lineage) -> tuple[Int64Array, FloatArray, FloatArray]:
    """Give the corner points of all atomic events below each row."""
    x, y = (_floats(atoms, axis, lineage.refs) for axis in ("x", "y"))
    polygons = atoms.column(SHAPE, lineage.refs)
    if polygons.type is not Type.STRING:
        return lineage.offsets, x, y
    import shapely

    texts = to_arrow(polygons).to_pylist()
    shapes = shapely.from_wkb([None if text is None else wkb_of(text) for text in texts])
    coordinates, owner = shapely.get_coordinates(shapes, return_index=True)
    counts = np.bincount(owner, minlength=len(x))
    lengths = np.where(counts > 0, counts, 1)
    places = offsets_of(lengths)
    all_x, all_y = np.repeat(x, lengths), np.repeat(y, lengths)
    inside = np.repeat(counts > 0, lengths)
    all_x[inside], all_y[inside] = coordinates[:, 0], coordinates[:, 1]
    return places[lineage.offsets], all_x, all_y


def _floats(atoms: RowStore, axis: str, refs: Int64Array) -> FloatArray:
    return floats(atoms.column(Attribute(None, axis), refs))
