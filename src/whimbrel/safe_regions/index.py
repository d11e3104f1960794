"""Find the shapes near a position, while shapes come and go."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whimbrel.safe_regions.shapes import Bounds, ShapePart, WatchedShape, meets
from whimbrel.space.geometry import Floats

MOST_LOOSE = 512
"""So many shapes may have come or gone before the tree is built anew."""


class ShapeIndex:
    """A tree over the parts that were there when it was built, and a short list of those that came later."""

    def __init__(self, shapes: Iterable[WatchedShape]) -> None:
        self._parts: dict[str, list[ShapePart]] = {shape.name: shape.parts() for shape in shapes}
        self._bounds: Bounds | None
        self._build()

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all shapes, in the order in which they came."""
        return tuple(self._parts)

    @property
    def bounds(self) -> Bounds | None:
        """A box round all shapes, and perhaps some that have gone; None if there is none."""
        return self._bounds

    def add(self, shape: WatchedShape) -> list[ShapePart]:
        """Add a shape; give its parts."""
        parts = self._parts[shape.name] = shape.parts()
        self._loose += parts
        self._loose_boxes = _boxes(self._loose)
        bounds = [part.bounds for part in parts]
        self._bounds = _round_all(np.array([*bounds, self._bounds or bounds[0]]))
        self._build_if_ragged()
        return parts

    def remove(self, name: str) -> None:
        """Remove a shape."""
        del self._parts[name]
        self._gone += 1
        self._build_if_ragged()

    def near(self, window: Bounds) -> list[ShapePart]:
        """List the parts whose boxes meet a window, borders included."""
        import shapely

        parts = [self._built[row] for row in self._tree.query(shapely.box(*window))]
        parts += [self._loose[row] for row in np.flatnonzero(meets(self._loose_boxes, window))]
        if not self._gone:
            return parts
        # A shape may be gone, and another of its name have come.
        return [part for part in parts if part in self._parts.get(part.shape.name, ())]

    def _build_if_ragged(self) -> None:
        if len(self._loose) + self._gone > MOST_LOOSE:
            self._build()

    def _build(self) -> None:
        import shapely

        self._built = [part for parts in self._parts.values() for part in parts]
        boxes = _boxes(self._built)
        self._bounds = _round_all(boxes)
        self._tree = shapely.STRtree(shapely.box(*boxes.T))
        self._loose: list[ShapePart] = []
        self._loose_boxes = _boxes(self._loose)
        self._gone = 0


def _round_all(boxes: Floats) -> Bounds | None:
    if not len(boxes):
        return None
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def _boxes(parts: list[ShapePart]) -> Floats:
    return np.array([part.bounds for part in parts], np.float64).reshape(-1, 4)
