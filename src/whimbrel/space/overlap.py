"""How much of a region lies in the same region elsewhere, and how far it may move for a given share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import shapely

Share = Callable[[float], float]
"""From a distance to the share of a region that is still covered; it falls with the distance."""

_HALVINGS = 60
_DIRECTIONS = 360
"""So many directions are tried where no formula says which one is the worst."""


def circle_share(distance: float, radius: float) -> float:
    """Return the share of a circle that lies in the same circle some distance away: a lens.

    >>> circle_share(0.0, 5.0), circle_share(10.0, 5.0)
    (1.0, 0.0)
    """
    if distance >= 2 * radius:
        return 0.0
    half = distance / (2 * radius)
    return (2 / math.pi) * (math.acos(half) - half * math.sqrt(1 - half * half))


def box_share(east: float, north: float, width: float, height: float) -> float:
    """Return the share of a box that lies in the same box, moved by so much east and north.

    >>> box_share(10.0, 0.0, 100.0, 40.0)
    0.9
    """
    return max(0.0, 1 - abs(east) / width) * max(0.0, 1 - abs(north) / height)


def farthest(share: Share, wanted: float, limit: float) -> float:
    """Return the distance at which a falling share is down to the wanted one, by bisection up to a limit."""
    if wanted >= 1.0:
        return 0.0
    low, high = 0.0, limit
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if share(middle) > wanted:
            low = middle
        else:
            high = middle
    return high


def circle_distance(radius: float, share: float) -> float:
    """Return how far a circle may move until just a share of it is covered, from the area of the lens.

    >>> round(circle_distance(1.0, 0.9), 3)
    0.157
    """
    return farthest(lambda distance: circle_share(distance, radius), share, 2 * radius)


def box_distance(width: float, height: float, share: float, degrees: float | None = None) -> float:
    """Return how far a box may move until just a share of it is covered.

    Parameters
    ----------
    degrees
        The direction, from east; left out, the one in which the least distance is allowed.

    Examples
    --------
    >>> round(box_distance(100.0, 100.0, 0.9, degrees=0), 9)
    10.0
    >>> round(box_distance(100.0, 100.0, 0.9), 2)
    7.26
    """
    if degrees is not None:
        return _box_distance_towards(math.radians(degrees), width, height, share)
    if share >= 1.0:
        return 0.0

    # Moved by shares a and b of its sides, (1 - a)(1 - b) of it is covered. The curve bends away from the
    # middle, so the nearest point of it may lie anywhere between its ends: nothing but trying finds it.
    def reach(a: float) -> float:
        return math.hypot(a * width, (1 - share / (1 - a)) * height if a < 1.0 else 0.0)

    most = 1.0 - share
    best = min(range(_DIRECTIONS + 1), key=lambda n: reach(most * n / _DIRECTIONS))
    low, high = (most * min(max(n, 0), _DIRECTIONS) / _DIRECTIONS for n in (best - 1, best + 1))
    for _ in range(_HALVINGS):
        third = (high - low) / 3
        low, high = (low, high - third) if reach(low + third) < reach(high - third) else (low + third, high)
    return min(reach((low + high) / 2), reach(0.0), reach(most))


def _box_distance_towards(angle: float, width: float, height: float, share: float) -> float:
    """Solve (1 - d |cos| / width)(1 - d |sin| / height) = share for the smaller d."""
    a, b = abs(math.cos(angle)) / width, abs(math.sin(angle)) / height
    return 2 * (1 - share) / (a + b + math.sqrt((a - b) ** 2 + 4 * a * b * share))


def polygon_distance(polygon: shapely.Geometry, share: float, degrees: float | None = None) -> float:
    """Return how far a polygon may move until just a share of it is covered, by bisection.

    Parameters
    ----------
    degrees
        The direction, from east; left out, the least of many directions.
    """
    x0, y0, x1, y1 = polygon.bounds
    limit = math.hypot(x1 - x0, y1 - y0)
    # Moved the other way, the same share is covered: half of the directions are all.
    directions = [degrees] if degrees is not None else [180.0 * n / 90 for n in range(90)]
    return min(farthest(_share_towards(polygon, each), share, limit) for each in directions)


def _share_towards(polygon: shapely.Geometry, degrees: float) -> Share:
    import shapely

    east, north = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))

    def share(distance: float) -> float:
        way = np.array([distance * east, distance * north])
        moved = shapely.transform(polygon, lambda xy: xy + way)
        return float(shapely.intersection(polygon, moved).area / polygon.area)

    return share
