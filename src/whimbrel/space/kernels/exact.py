"""Exact tests whether a point lies in a shape, borders included; polygons by counting crossings."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel

CIRCLE, BOX, POLYGON = 0, 1, 2
"""Kinds of shapes. A circle's row of numbers is x, y, radius, limit; any other's is its bounding box."""

OUTSIDE, BORDER, WITHIN = -1, 0, 1
"""Where a point lies to a polygon."""

UNSURE = 2
"""A point lies on a side, or so close to its line that rounding could decide."""

_SPLITTER = 134217729.0  # 2**27 + 1 cuts a float in two halves whose products are exact
_ORIENTATION_ERROR = (
    3.3306690738754716e-16  # (3 + 16 eps) eps: above it the sign of the plain formula is right
)


@kernel
def in_rings(corners, start, x, y):
    """Tell whether a point lies in the rings that start somewhere in an array.

    There stands the number of corners, then x and y of each. Rings are closed; a NaN corner parts them.
    """
    side = side_of_rings(corners, start, x, y)
    return in_rings_exactly(corners, start, x, y) if side == UNSURE else side == 1


@kernel
def side_of_rings(corners, start, x, y):
    """Count how often a ray to the right crosses the rings: 1 inside, 0 outside, or `UNSURE`."""
    # No branches: which sides a ray crosses cannot be predicted. Whole numbers, since truths are slower.
    inside = is_close = np.int64(0)
    x2, y2 = corners[start + 1], corners[start + 2]
    for at in range(start + 3, start + 1 + 2 * np.int64(corners[start]), 2):
        x1, y1 = x2, y2
        x2, y2 = corners[at], corners[at + 1]
        left, right = (x1 - x) * (y2 - y), (y1 - y) * (x2 - x)
        turn = left - right
        crosses = ((y1 <= y) != (y2 <= y)) & (turn == turn)
        inside ^= np.int64(crosses & ((turn > 0) == (y2 > y1)))
        is_close |= np.int64(abs(turn) <= _ORIENTATION_ERROR * (abs(left) + abs(right)))
    return UNSURE if is_close else inside


@kernel
def in_rings_exactly(corners, start, x, y):
    """Do the same for a point whose side of the rings is not sure."""
    return locate(corners, start + 1, np.int64(corners[start]), x, y) != OUTSIDE


@kernel
def locate(corners, first, count, x, y):
    """Tell where a point lies to the rings that `count` corners from a place on make up.

    A ray to the right crosses the border an odd number of times if the point lies within [1]_. A side counts
    from its lower end up, without the upper: a corner on the ray counts once or twice, and so as often as the
    border really passes the ray there.

    References
    ----------
    .. [1] Shimrat: "Algorithm 112: Position of Point Relative to Polygon", Communications of the ACM 5(8),
       1962.
    """
    inside = False
    for at in range(first, first + 2 * count - 2, 2):
        x1, y1, x2, y2 = corners[at], corners[at + 1], corners[at + 2], corners[at + 3]
        if x1 != x1 or x2 != x2 or (x1 < x and x2 < x):
            continue  # between two rings, or to the left
        if (y1 > y) == (y2 > y):
            # The side does not pass the height of the point, but may lie along it or end there.
            if (y1 == y and y2 == y and min(x1, x2) <= x) or (x1 == x and y1 == y) or (x2 == x and y2 == y):
                return BORDER
            continue
        turn = orientation(x1, y1, x2, y2, x, y)
        if turn == 0:
            return BORDER
        if (turn > 0) == (y2 > y1):
            inside = not inside
    return WITHIN if inside else OUTSIDE


@kernel
def orientation(x1, y1, x2, y2, x, y):
    """Compute the sign of the turn from the line 1 to 2 towards a point: above 0 left of it, 0 on it."""
    left = (x1 - x) * (y2 - y)
    right = (y1 - y) * (x2 - x)
    turn = left - right
    if abs(turn) > _ORIENTATION_ERROR * (abs(left) + abs(right)):
        return turn
    return _exact_turn(x1, y1, x2, y2, x, y)


@kernel
def _exact_turn(x1, y1, x2, y2, x, y):
    """Compute the turn with twice the digits."""
    ah, al = _difference(x1, x)
    bh, bl = _difference(y2, y)
    ch, cl = _difference(y1, y)
    dh, dl = _difference(x2, x)
    lh, ll = _product(ah, al, bh, bl)
    rh, rl = _product(ch, cl, dh, dl)
    high, low = _difference(lh, rh)
    return high + (low + (ll - rl))


@kernel
def _difference(a, b):
    """Compute a - b and what rounding lost of it."""
    high = a - b
    back = high - a
    return high, (a - (high - back)) - (b + back)


@kernel
def _product(ah, al, bh, bl):
    """Multiply two numbers of twice the digits."""
    high = ah * bh
    cut = _SPLITTER * ah
    a1 = cut - (cut - ah)
    a2 = ah - a1
    cut = _SPLITTER * bh
    b1 = cut - (cut - bh)
    b2 = bh - b1
    lost = ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2
    low = lost + (ah * bl + al * bh)
    total = high + low
    return total, low - (total - high)
