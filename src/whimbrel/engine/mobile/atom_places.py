"""Where the atomic events of detections are, and whether all of them lie in an interest.

Few events have a location that is more than a point. Such a *shape* has the first of its corners for a place:
if all of it lies in an area, so does that one, wherever its centre is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from whimbrel.engine.kernels.shapes import CORNERS
from whimbrel.engine.mobile.areas import AreaSet, covers, holds, meets
from whimbrel.engine.row_store import offsets_of, ranges
from whimbrel.engine.shapes import NO_SHAPE, SHAPE, ShapeLayout
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array, floats
from whimbrel.graph.expressions import Attribute


@dataclass(frozen=True, slots=True)
class AtomPlaces:
    """The atomic events of some detections, one after the other: where each is, and whose."""

    offsets: Int64Array
    x: FloatArray
    y: FloatArray
    """NaN where an event has no place."""
    is_everywhere: BoolArray
    """Time points lie in every interest."""
    obj: Int64Array
    """The object whose event it is; -1 where that does not matter."""
    shape: Int64Array
    """Where the shape of its location is in `shapes`; `NO_SHAPE` for points."""
    shapes: FloatArray
    """All shapes, as `whimbrel.engine.shapes` lays them out."""

    def take(self, rows: Int64Array) -> AtomPlaces:
        """Give those of some detections."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        at = ranges(self.offsets[rows], lengths)
        shape, shapes = _taken(self.shape[at], self.shapes)
        return AtomPlaces(
            offsets_of(lengths), self.x[at], self.y[at], self.is_everywhere[at], self.obj[at], shape, shapes
        )

    @staticmethod
    def concat(parts: list[AtomPlaces]) -> AtomPlaces:
        """Put those of several lots of detections one after the other."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        x, y, is_everywhere, obj, shapes = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("x", "y", "is_everywhere", "obj", "shapes")
        )
        begins = offsets_of(np.array([len(part.shapes) for part in parts]))[:-1].tolist()
        shape = [
            np.where(part.shape == NO_SHAPE, NO_SHAPE, part.shape + begin)
            for part, begin in zip(parts, begins, strict=True)
        ]
        return AtomPlaces(offsets_of(lengths), x, y, is_everywhere, obj, np.concatenate(shape), shapes)

    def arrays(self) -> dict[str, np.ndarray]:
        """Give all arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def first_place(self) -> tuple[FloatArray, FloatArray]:
        """Give a place of each detection; NaN for one that has none."""
        x, y = np.full(len(self.offsets) - 1, np.nan), np.full(len(self.offsets) - 1, np.nan)
        owner = np.repeat(np.arange(len(x)), np.diff(self.offsets))
        placed = np.flatnonzero(~self.is_everywhere)[::-1]
        x[owner[placed]], y[owner[placed]] = self.x[placed], self.y[placed]
        return x, y

    def all_in(self, areas: AreaSet, which: Int64Array, own: Int64Array | None) -> BoolArray:
        """Tell, detection by detection, whether all events lie in an area, and none is the object's own."""
        lengths = np.diff(self.offsets)
        area = np.repeat(which, lengths)
        inside = self.is_everywhere | holds(areas, area, self.x, self.y)
        more = np.flatnonzero(inside & (self.shape != NO_SHAPE))
        if len(more):
            inside[more] = covers(areas, area[more], self.shapes, self.shape[more])
        if own is not None:
            inside &= self.obj != np.repeat(own, lengths)
        return np.logical_and.reduceat(inside, self.offsets[:-1]) if len(lengths) else np.zeros(0, np.bool_)

    def meet(self, areas: AreaSet, which: Int64Array) -> BoolArray:
        """Tell, where each detection has one place, whether it has a point in common with an area."""
        found = holds(areas, which, self.x, self.y)
        more = np.flatnonzero(~found & (self.shape != NO_SHAPE))
        found[more] = meets(areas, which[more], self.shapes, self.shape[more])
        return found


def _taken(shape: Int64Array, shapes: FloatArray) -> tuple[Int64Array, FloatArray]:
    """Give the shapes that are referred to, and where they are then."""
    if not len(shapes):
        return shape, shapes
    used, place = np.unique(shape[shape != NO_SHAPE], return_inverse=True)
    sizes = CORNERS + 2 * shapes[used].astype(np.int64)
    moved = shape.copy()
    moved[shape != NO_SHAPE] = offsets_of(sizes)[place]
    return moved, shapes[ranges(used, sizes)]


def places_of_events(
    events: SourceEvents, rows: Int64Array
) -> tuple[FloatArray, FloatArray, Int64Array, FloatArray]:
    """Look up where atomic events are: x, y, where their shapes are laid out, and all these shapes."""
    store = events.stream.store
    x, y = (floats(store.column(Attribute(None, axis), rows)) for axis in ("x", "y"))
    layout = ShapeLayout(events.context.coordinates)
    shape = layout.of_column(store.column(SHAPE, rows))
    more = np.flatnonzero(shape != NO_SHAPE)
    if len(more):
        x, y = x.copy(), y.copy()
        x[more], y[more] = layout.data[shape[more] + CORNERS], layout.data[shape[more] + CORNERS + 1]
    return x, y, shape, layout.data
