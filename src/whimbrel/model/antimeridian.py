"""Shapes in longitude and latitude that cross the antimeridian, laid out in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import shapely

Floats = npt.NDArray[np.float64]


def laid_out(shapes: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Lay those of many shapes that cross the antimeridian out beyond 180 degrees."""
    import shapely

    with np.errstate(all="ignore"):
        bounds = shapely.bounds(shapes)
        wide = np.flatnonzero(bounds[:, 2] - bounds[:, 0] > 180.0)
    if not len(wide):
        return shapes
    found = shapes.copy()
    found[wide] = [unwrapped(shape) for shape in shapes[wide]]
    return found


def unwrapped(shape: shapely.Geometry) -> shapely.Geometry:
    """Lay a shape in longitude and latitude that crosses the antimeridian out beyond 180 degrees.

    A side that spans more than half the globe is taken to go the other way round.
    """
    import shapely

    x0, _, x1, _ = shape.bounds
    return shape if x1 - x0 <= 180.0 else shapely.transform(shape, _the_short_way)


def _the_short_way(points: Floats) -> Floats:
    steps = np.diff(points[:, 0], prepend=points[:1, 0])
    turns = np.cumsum(np.where(steps > 180.0, -360.0, np.where(steps < -180.0, 360.0, 0.0)))
    return np.column_stack([points[:, 0] + turns, points[:, 1]])
