"""Which operators may stand for which: coordinated neighbours (RECEP, algorithm 5.3), and priorities.

All here is about the operators of one manager, so that matrices of all pairs are small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whimbrel.engine.values import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True, slots=True)
class Reach:
    """How far reuse goes, for each operator.

    Parameters
    ----------
    nearest_m
        Focal objects of those who stand for it are at most so far from its own (dist_n).
    apart_m
        And at most so far from that of the reference graph, which keeps them near each other (dist_o).
    most
        And so many at the most (k).
    """

    nearest_m: FloatArray
    apart_m: FloatArray
    most: Int64Array

    @staticmethod
    def same(operators: int, nearest_m: float, apart_m: float, most: int) -> Reach:
        """All go equally far."""
        return Reach(np.full(operators, nearest_m), np.full(operators, apart_m), np.full(operators, most))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Who may stand for whom.

    Parameters
    ----------
    serves
        Row a, column b: whether selections of a may stand for those of b.
    reference
        For each operator, the one whose graph is its reference.
    """

    serves: BoolArray
    reference: Int64Array


def distances(x: FloatArray, y: FloatArray) -> FloatArray:
    """Measure how far all places are from each other, on a plane."""
    return np.hypot(x[:, None] - x[None, :], y[:, None] - y[None, :])


def box_overlaps(boxes: FloatArray) -> FloatArray:
    """Measure what each two of some boxes have in common; rows of least x, least y, largest x, largest y."""
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    return np.prod(np.maximum(high - low, 0.0), axis=2)


def circle_overlaps(apart: FloatArray, radius: FloatArray) -> FloatArray:
    """Measure what each two of some circles have in common: lenses; `apart` is how far their centres are."""
    a, b = radius[:, None], radius[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.arccos(np.clip((apart**2 + a**2 - b**2) / (2 * apart * a), -1.0, 1.0))
        second = np.arccos(np.clip((apart**2 + b**2 - a**2) / (2 * apart * b), -1.0, 1.0))
        kite = (-apart + a + b) * (apart + a - b) * (apart - a + b) * (apart + a + b)
        lens = a**2 * first + b**2 * second - 0.5 * np.sqrt(np.maximum(kite, 0.0))
    lens = np.where(apart <= np.abs(a - b), np.pi * np.minimum(a, b) ** 2, lens)
    return np.where(apart >= a + b, 0.0, lens)


def references(apart: FloatArray, overlaps: FloatArray, nearest_m: FloatArray) -> Int64Array:
    """Choose the reference graph of each operator (lines 4 to 6).

    Of those within `nearest_m`, it is the one that overlaps most with all of these; of several, the first.

    Parameters
    ----------
    apart
        How far the focal objects are from each other.
    overlaps
        What their processing interests have in common; what an interest has in common with itself counts.
    nearest_m
        How far to look, for each.
    """
    near = apart <= nearest_m[:, None]
    overlap = near.astype(np.float64) @ overlaps.T
    return np.argmax(np.where(near, overlap, -1.0), axis=1)


def coordinated_neighbours(x: FloatArray, y: FloatArray, overlaps: FloatArray, reach: Reach) -> Neighbours:
    """Choose for each operator who may stand for it (algorithm 5.3).

    These are up to k others, nearest to the focal object of its reference graph: within dist_o of that, and
    within dist_n of its own. Left out are those with a larger dist_o than its own, and those whose reference
    is dist_o or more away from its own. So all that it reuses comes from interests near each other.

    Parameters
    ----------
    x, y
        Where the focal objects are.
    overlaps
        What the processing interests have in common.
    reach
        The bounds of each operator.
    """
    apart = distances(x, y)
    reference = references(apart, overlaps, reach.nearest_m)
    from_reference = apart[reference]
    near = (from_reference <= reach.apart_m[:, None]) & (apart <= reach.nearest_m[:, None])
    np.fill_diagonal(near, val=False)
    nearest = np.lexsort(
        (np.broadcast_to(np.arange(len(x)), near.shape), apart, from_reference, ~near), axis=1
    )
    rank = np.empty_like(nearest)
    np.put_along_axis(rank, nearest, np.broadcast_to(np.arange(len(x)), near.shape), axis=1)
    chosen = near & (rank < reach.most[:, None])
    chosen &= reach.apart_m[:, None] >= reach.apart_m[None, :]
    chosen &= apart[np.ix_(reference, reference)] < reach.apart_m[:, None]
    return Neighbours(np.ascontiguousarray(chosen.T), reference)


def priorities(overlaps: FloatArray, serves: BoolArray) -> FloatArray:
    """Give the priority of operators (MNH): how much interests overlap with those that they may serve."""
    return (overlaps * serves).sum(axis=1)
