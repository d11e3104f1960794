"""Locations that are more than a point, laid out as `engine.kernels.shapes` reads them.

A location travels through the engine as the text `PREFIX` + hex WKB, coded like other texts, so that whatever
carries texts carries shapes: stores, pools, registers, snapshots. Kernels find a shape by its code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.kernels.shapes import CORNERS
from whimbrel.engine.row_store import offsets_of, ranges
from whimbrel.engine.values import Column, FloatArray, Int64Array, decoded
from whimbrel.graph.expressions import SHAPE
from whimbrel.model.schema import Coordinates, Type

PREFIX = "@shape:"
"""Tells the texts of shapes from the others."""

NO_SHAPE = -1
_LINE = 1

__all__ = ["NO_SHAPE", "PREFIX", "SHAPE", "ShapeLayout", "lay_out", "lay_out_shapes", "shape_texts", "wkb_of"]


class ShapeLayout:
    """Shapes laid out one behind the other, each once."""

    def __init__(self, coordinates: Coordinates | None) -> None:
        self.on_sphere = coordinates is Coordinates.LONLAT
        self._places: dict[str, int] = {}
        self._pieces: list[FloatArray] = []
        self._size = 0

    @property
    def data(self) -> FloatArray:
        """All shapes laid out so far."""
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)]
        return self._pieces[0] if self._pieces else np.zeros(0)

    def places(self, texts: Sequence[Any]) -> Int64Array:
        """Give where the shapes lie that texts stand for; `NO_SHAPE` for other texts and null."""
        new = [text for text in dict.fromkeys(texts) if is_shape(text) and text not in self._places]
        for text, piece in zip(new, lay_out([wkb_of(text) for text in new], self.on_sphere), strict=True):
            self._places[text] = self._size
            self._pieces.append(piece)
            self._size += len(piece)
        return np.array([self._places.get(text, NO_SHAPE) for text in texts], np.int64)

    def of_column(self, column: Column) -> Int64Array:
        """Give where the shape of every row lies."""
        if column.type is not Type.STRING:
            return np.full(len(column), NO_SHAPE, np.int64)
        encoded = column.values
        if not pa.types.is_dictionary(encoded.type):
            encoded = decoded(encoded).dictionary_encode()
        table = self.places(encoded.dictionary.to_pylist())
        if not len(table):
            return np.full(len(column), NO_SHAPE, np.int64)
        found = table[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
        return found if column.null is None else np.where(column.null, NO_SHAPE, found)


def is_shape(text: Any) -> bool:
    """Tell whether a text stands for a shape."""
    return isinstance(text, str) and text.startswith(PREFIX)


def shape_texts(wkb: Any) -> pa.Array:
    """Give the texts that stand for shapes, from well-known binary; null for points and for none."""
    import shapely

    shapes = shapely.from_wkb(wkb)
    is_more = ~shapely.is_missing(shapes) & (shapely.get_type_id(shapes) > 0)
    texts = pa.array(shapely.to_wkb(shapes, hex=True, byte_order=1), pa.string())
    return pc.if_else(pa.array(is_more), pc.binary_join_element_wise(PREFIX, texts, ""), None)


def wkb_of(text: str) -> bytes:
    """Give the well-known binary of a shape."""
    return bytes.fromhex(text[len(PREFIX) :])


def lay_out(wkb: Iterable[bytes], on_sphere: bool) -> list[FloatArray]:
    """Lay shapes out as the kernels read them, each by itself."""
    import shapely

    data, places = lay_out_shapes(shapely.from_wkb(np.array(list(wkb), dtype=object)), on_sphere)
    return np.split(data, places[1:]) if len(places) else []


def lay_out_shapes(shapes: npt.NDArray[np.object_], on_sphere: bool) -> tuple[FloatArray, Int64Array]:
    """Lay shapes out as the kernels read them, one behind the other; give where each begins, too."""
    import shapely

    from whimbrel.model.antimeridian import laid_out

    if not len(shapes):
        return np.zeros(0), np.zeros(0, np.int64)
    if on_sphere:
        shapes = laid_out(shapes)
    rings, owner = _rings(shapes)
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    per_ring = np.bincount(ring, minlength=len(rings))
    counts = np.bincount(owner, weights=per_ring + 1, minlength=len(shapes)).astype(np.int64) - 1
    begins = offsets_of(CORNERS + 2 * counts)
    data, places = np.full(int(begins[-1]), np.nan), begins[:-1]
    data[places] = counts
    data[places[:, None] + np.arange(1, 5)] = shapely.bounds(shapes)
    # Corners follow each other, ring by ring, with one gap behind each ring but the last of a shape.
    slots = ranges(places + CORNERS, 2 * counts).reshape(-1, 2)
    is_last = np.append(owner[1:] != owner[:-1], True)
    first_slots = offsets_of(per_ring + ~is_last)[:-1]
    data[slots[ranges(first_slots, per_ring)]] = corners
    data[places[:, None] + np.arange(5, 7)] = _points_inside(shapes, data[places[:, None] + np.arange(7, 9)])
    return data, places


def _rings(shapes: npt.NDArray[np.object_]) -> tuple[npt.NDArray[np.object_], Int64Array]:
    """Give the rings of polygons, and of lines the rings that go there and back; and whose each is."""
    import shapely

    lines = np.flatnonzero(shapely.get_type_id(shapes) == _LINE)
    whole = shapes.copy()
    if len(lines):
        points, line = shapely.get_coordinates(shapes[lines], return_index=True)
        lengths = np.bincount(line)
        back = ranges(offsets_of(lengths)[:-1], lengths - 1)[::-1]
        there_and_back = np.concatenate([points, points[back]])
        of = np.concatenate([line, line[back]])
        order = np.argsort(of, kind="stable")
        whole[lines] = shapely.linestrings(there_and_back[order], indices=of[order])
    parts, of_part = shapely.get_parts(whole, return_index=True)
    is_line = shapely.get_type_id(parts) == _LINE
    rings, of_ring = shapely.get_rings(parts, return_index=True)
    found = np.concatenate([rings, parts[is_line]])
    owner = np.concatenate([of_part[of_ring], of_part[is_line]])
    order = np.argsort(owner, kind="stable")
    return found[order], owner[order].astype(np.int64)


def _points_inside(shapes: npt.NDArray[np.object_], corners: FloatArray) -> FloatArray:
    """Give a point of each shape: of polygons one inside, of lines and slivers a corner."""
    import shapely

    polygons = np.flatnonzero(shapely.get_dimensions(shapes) > 1)
    found = corners.copy()
    with np.errstate(all="ignore"):  # of slivers, no such point can be told
        middles = shapely.point_on_surface(shapes[polygons])
        inside = np.stack([shapely.get_x(middles), shapely.get_y(middles)], axis=1)
    known = np.isfinite(inside).all(axis=1)
    found[polygons[known]] = inside[known]
    return found
