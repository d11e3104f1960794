"""Which operators are decided about together: those of one type in one region, not too many."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.values import FloatArray, Int64Array

_LEVELS = 16


def managers(kind: Int64Array, x: FloatArray, y: FloatArray, region_m: float, most: int) -> Int64Array:
    """Assign each operator to a manager: operators of one type in one square region have the same.

    Where a region has more than `most` of a type, it gets several managers with even shares, each of
    operators that are near to each other (in the order of a Z-curve). Gives numbers from 0 on.

    Parameters
    ----------
    kind
        The type of each operator: equal numbers do the same with the same.
    x, y
        Where the focal object of its query is.
    region_m
        The side of a region.
    most
        How many operators a manager may have.
    """
    column, row = np.floor(x / region_m).astype(np.int64), np.floor(y / region_m).astype(np.int64)
    within = _z_order(x / region_m - column, y / region_m - row)
    order = np.lexsort((within, column, row, kind))
    new = np.zeros(len(x), np.bool_)
    for key in (kind, column, row):
        new[1:] |= key[order][1:] != key[order][:-1]
    first = np.flatnonzero(np.append(True, new[1:])[: len(x)])
    sizes = np.diff(np.append(first, len(x)))
    parts = -(-sizes // most)
    place = np.arange(len(x)) - np.repeat(first, sizes)
    share = place * np.repeat(parts, sizes) // np.maximum(np.repeat(sizes, sizes), 1)
    begin = np.append(0, np.cumsum(parts))[:-1]
    found = np.empty(len(x), np.int64)
    found[order] = np.repeat(begin, sizes) + share
    return found


def _z_order(x: FloatArray, y: FloatArray) -> Int64Array:
    """Give places of the unit square numbers, near ones mostly near numbers (Morton, 1966)."""
    a, b = ((each * (1 << _LEVELS)).astype(np.int64) for each in (x, y))
    code = np.zeros(len(x), np.int64)
    for bit in range(_LEVELS):
        code |= ((a >> bit) & 1) << (2 * bit)
        code |= ((b >> bit) & 1) << (2 * bit + 1)
    return code
