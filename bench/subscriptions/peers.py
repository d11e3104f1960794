"""What the index is compared with: NumPy that tries everything, and Shapely's STRtree with the exact test."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

Pairs = npt.NDArray[np.int64]
"""Rows of an event and a subscription, in order."""


def in_order(rows: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> Pairs:
    """Sort pairs, so that answers can be compared."""
    pairs = np.stack([rows, numbers], axis=1).astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def circles_by_numpy(x: Any, y: Any, radius_m: float, px: Any, py: Any) -> Pairs:
    """Try every event against every circle, a block of events at a time."""
    found = []
    for first in range(0, len(px), 64):
        dx, dy = px[first : first + 64, None] - x, py[first : first + 64, None] - y
        rows, numbers = np.nonzero(dx * dx + dy * dy <= radius_m * radius_m)
        found.append(np.stack([rows + first, numbers], axis=1))
    return np.concatenate(found)


def ranges_by_numpy(low: Any, high: Any, values: Any) -> Pairs:
    """Try every event against every range, a block of events at a time."""
    found = []
    for first in range(0, len(values), 64):
        value = values[first : first + 64, None]
        rows, numbers = np.nonzero((low <= value) & (value <= high))
        found.append(np.stack([rows + first, numbers], axis=1))
    return np.concatenate(found)


def circles_by_tree(tree: shapely.STRtree, radius_m: float, points: Any) -> Pairs:
    """Ask a tree of centres for those within the radius."""
    rows, numbers = tree.query(points, predicate="dwithin", distance=radius_m)
    return np.stack([rows, numbers], axis=1)


def polygons_by_tree(tree: shapely.STRtree, asked: Any, points: Any, given: Any) -> Pairs:
    """Ask a tree of polygons for those that a point lies in, then compare an attribute."""
    rows, numbers = tree.query(points, predicate="intersects")
    same = asked[numbers] == given[rows]
    return np.stack([rows[same], numbers[same]], axis=1)


def mixture_by_tree(tree: shapely.STRtree, mixture: Any, points: Any, px: Any, py: Any) -> Pairs:
    """Ask a tree of boxes (of circles) and polygons, then test exactly, all candidates at once."""
    rows, numbers = tree.query(points)
    half = len(mixture.x)
    is_circle = numbers < half
    r, n = rows[is_circle], numbers[is_circle]
    dx, dy = px[r] - mixture.x[n], py[r] - mixture.y[n]
    inside = dx * dx + dy * dy <= mixture.radius_m[n] ** 2
    other, m = rows[~is_circle], numbers[~is_circle]
    within = shapely.intersects_xy(mixture.polygons[m - half], px[other], py[other])
    return np.stack([np.append(r[inside], other[within]), np.append(n[inside], m[within])], axis=1)


def tree_of_mixture(mixture: Any) -> shapely.STRtree:
    """Build the tree for `mixture_by_tree`."""
    x, y, radius = mixture.x, mixture.y, mixture.radius_m
    return shapely.STRtree(
        np.append(shapely.box(x - radius, y - radius, x + radius, y + radius), mixture.polygons)
    )
