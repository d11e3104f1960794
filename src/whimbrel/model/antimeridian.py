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
    unwrapped_shapes = shapes.copy()
    unwrapped_shapes[wide] = [unwrapped(shape) for shape in shapes[wide]]
    return unwrapped_shapes


def unwrapped(shape: shapely.Geometry) -> shapely.Geometry:
    """Lay a shape in longitude and latitude that crosses the antimeridian out beyond 180 degrees.

    A side that spans more than half the globe is taken to go the other way round.
    """
    import shapely

    x0, _, x1, _ = shape.bounds
    if x1 - x0 <= 180.0 or goes_round_a_pole(shape):
        return shape
    return shapely.transform(shape, _the_short_way)


def goes_round_a_pole(shape: shapely.Geometry) -> bool:
    """Tell whether a border of a polygon goes once round the globe, so that it has no inside in degrees.

    >>> import shapely
    >>> goes_round_a_pole(shapely.from_wkt("POLYGON ((0 80, 120 80, -120 80, 0 80))"))
    True
    """
    import shapely

    for ring in shapely.get_rings(shapely.get_parts(shape)):
        points = shapely.get_coordinates(ring)
        if abs(_the_short_way(points)[-1, 0] - points[0, 0]) > 180.0:
            return True
    return False


def _the_short_way(points: Floats) -> Floats:
    steps = np.diff(points[:, 0], prepend=points[:1, 0])
    turns = np.cumsum(np.where(steps > 180.0, -360.0, np.where(steps < -180.0, 360.0, 0.0)))
    return np.column_stack([points[:, 0] + turns, points[:, 1]])


def rounding_a_pole(shapes: npt.NDArray[np.object_], asked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Tell which of some polygons go round a pole."""
    import shapely

    with np.errstate(all="ignore"):
        bounds = shapely.bounds(shapes)
        is_wide: npt.NDArray[np.bool_] = asked & (bounds[:, 2] - bounds[:, 0] > 180.0)
    for row in np.flatnonzero(is_wide):
        is_wide[row] = goes_round_a_pole(shapes[row])
    return is_wide
