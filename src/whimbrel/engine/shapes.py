"""Locations that are more than a point, laid out as `engine.kernels.shapes` reads them.

A location travels through the engine as the text `PREFIX` + hex WKB, coded like other texts, so that whatever
carries texts carries shapes: stores, pools, registers, snapshots. Kernels find a shape by its code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.values import Column, FloatArray, Int64Array, decoded
from whimbrel.graph.expressions import SHAPE
from whimbrel.model.schema import Coordinates, Type

if TYPE_CHECKING:
    import shapely

PREFIX = "@shape:"
"""Tells the texts of shapes from the others."""

NO_SHAPE = -1
_GAP = np.full(2, np.nan)

__all__ = ["NO_SHAPE", "PREFIX", "SHAPE", "ShapeLayout", "lay_out", "shape_texts", "wkb_of"]


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
    """Lay shapes out as the kernels read them."""
    import shapely

    shapes = shapely.from_wkb(np.array(list(wkb), dtype=object))
    return [_laid_out(shape, on_sphere) for shape in shapes]


def _laid_out(shape: shapely.Geometry, on_sphere: bool) -> FloatArray:
    import shapely

    from whimbrel.model.antimeridian import unwrapped

    if on_sphere:
        shape = unwrapped(shape)
    rings = [shapely.get_coordinates(ring) for ring in shapely.get_rings(shapely.get_parts(shape))]
    if rings:
        with np.errstate(all="ignore"):  # of slivers, no such point can be told
            inside = shapely.get_coordinates(shapely.point_on_surface(shape))[0]
        if not np.isfinite(inside).all():
            inside = rings[0][0]
    else:
        line = shapely.get_coordinates(shape)
        rings, inside = [np.concatenate([line, line[-2::-1]])], line[0]
    corners = rings[0]
    for ring in rings[1:]:
        corners = np.concatenate([corners, [_GAP], ring])
    return np.concatenate([[len(corners)], shape.bounds, inside, corners.ravel()]).astype(np.float64)
