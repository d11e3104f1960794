"""How two locations lie to each other: how far apart, whether they meet, whether one lies in the other.

A location is a point (x, y), or a *shape*: a polygon with its holes, or a line, laid out in an array as

    number of corners, x0, y0, x1, y1 (the bounding box), x, y (a point inside), x, y of every corner

Rings are closed and NaN stands between them; a line is a ring that goes there and back. `engine.shapes` lays
shapes out. Sides are straight in the coordinates given, in degrees too; borders belong to the shape. On which
side of a line a point lies is decided exactly, so that shapes that share corners or sides are told apart from
those that nearly do.

All is done by comparing every side with every other, O(n m) for n and m corners: shapes of events are small,
and bounding boxes have ruled out most pairs before.

References
----------
.. [1] Shewchuk: "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates", Discrete
   & Computational Geometry 18, 1997: the sign of the orientation of three points.
.. [2] Kiefer: "Sequential Minimax Search for a Maximum", Proceedings of the AMS 4(3), 1953: golden section.
"""

from __future__ import annotations

import math

import numpy as np

from whimbrel.space.geometry import EARTH_RADIUS_M
from whimbrel.space.kernels.exact import OUTSIDE, WITHIN, locate, orientation
from whimbrel.space.kernels.jit import kernel
from whimbrel.space.kernels.sphere import sphere

APART, MEET, INSIDE, FARTHEST = 0, 1, 2, 3
"""What may be asked: the distance in metres, whether they share a point, whether one lies in the other, and
how far from the second location, a point, the farthest point of the first one is."""

CORNERS = 7
"""Where the corners of a shape begin."""

_STEPS = 60
_PIECES = 4
"""Into how many pieces a side is parted to be searched: along a very long one, distances rise and fall."""
_GOLDEN = 0.6180339887498949


@kernel
def related(asked, on_sphere, data, one, x1, y1, two, x2, y2):
    """Answer `asked` for two locations: shapes at `one` and `two` in `data`, or points where they are < 0."""
    if asked == FARTHEST:
        return _farthest(on_sphere, data, one, x1, y1, x2, y2)
    if not on_sphere:
        return _related(asked, False, data, one, x1, y1, two, x2, y2, 0.0)
    # What crosses the antimeridian is laid out beyond 180 degrees: one location is tried a turn away too.
    best = _related(asked, True, data, one, x1, y1, two, x2, y2, 0.0)
    for turn in (-360.0, 360.0):
        if asked == APART:
            if best > 0.0:
                best = min(best, _related(asked, True, data, one, x1, y1, two, x2, y2, turn))
        elif best == 0.0:
            best = _related(asked, True, data, one, x1, y1, two, x2, y2, turn)
    return best


@kernel
def related_rows(asked, on_sphere, data, one, x1, y1, two, x2, y2, answers):
    """Answer `asked` row by row."""
    for row in range(len(answers)):
        answers[row] = related(
            asked, on_sphere, data, one[row], x1[row], y1[row], two[row], x2[row], y2[row]
        )  # fmt: skip


@kernel
def _related(asked, on_sphere, data, one, x1, y1, two, x2, y2, turn):
    if one < 0 and two < 0:
        if asked == APART:
            return sphere(x1, y1, x2, y2) if on_sphere else math.hypot(x2 - x1, y2 - y1)
        return 1.0 if x1 + turn == x2 and y1 == y2 else 0.0
    if one < 0:
        if asked == APART:
            return _to_shape(on_sphere, data, two, x1 + turn, y1)
        return 1.0 if where(data, two, x1 + turn, y1) != OUTSIDE else 0.0
    if two < 0:
        if asked == APART:
            return _to_shape(on_sphere, data, one, x2 - turn, y2)
        if asked == MEET:
            return 1.0 if where(data, one, x2 - turn, y2) != OUTSIDE else 0.0
        return 0.0
    if asked == INSIDE:
        return 1.0 if _lies_in(data, one, two, turn) else 0.0
    meet = _meet(data, one, two, turn)
    if asked == MEET:
        return 1.0 if meet else 0.0
    return 0.0 if meet else _between(on_sphere, data, one, two, turn)


# -- on which side -----------------------------------------------------------------------------------------


@kernel
def side(ax, ay, bx, by, px, py):
    """Tell on which side of the line from a to b the point p lies: 1 left, -1 right, 0 on it."""
    turn = orientation(ax, ay, bx, by, px, py)
    return 1 if turn > 0 else (-1 if turn < 0 else 0)


@kernel
def _on_side(ax, ay, bx, by, px, py):
    """Tell whether p lies on the straight piece from a to b, ends included."""
    return (
        min(ax, bx) <= px <= max(ax, bx)
        and min(ay, by) <= py <= max(ay, by)
        and side(ax, ay, bx, by, px, py) == 0
    )


@kernel
def where(data, shape, x, y):
    """Tell where a point lies to a shape: `WITHIN`, `BORDER` or `OUTSIDE`."""
    if not (data[shape + 1] <= x <= data[shape + 3] and data[shape + 2] <= y <= data[shape + 4]):
        return OUTSIDE
    return locate(data, shape + CORNERS, int(data[shape]), x, y)


# -- whether they meet -------------------------------------------------------------------------------------


@kernel
def _boxes_apart(data, one, two, turn):
    return (
        data[one + 3] + turn < data[two + 1]
        or data[two + 3] < data[one + 1] + turn
        or data[one + 4] < data[two + 2]
        or data[two + 4] < data[one + 2]
    )


@kernel
def _sides_meet(ax, ay, bx, by, cx, cy, dx, dy):
    """Tell whether two straight pieces share a point."""
    if (
        max(ax, bx) < min(cx, dx) or max(cx, dx) < min(ax, bx)
        or max(ay, by) < min(cy, dy) or max(cy, dy) < min(ay, by)
    ):  # fmt: skip
        return False
    if side(ax, ay, bx, by, cx, cy) * side(ax, ay, bx, by, dx, dy) > 0:
        return False
    return side(cx, cy, dx, dy, ax, ay) * side(cx, cy, dx, dy, bx, by) <= 0


@kernel
def _sides_cross(ax, ay, bx, by, cx, cy, dx, dy):
    """Tell whether two straight pieces cross in a point that is an end of neither."""
    if (
        max(ax, bx) < min(cx, dx) or max(cx, dx) < min(ax, bx)
        or max(ay, by) < min(cy, dy) or max(cy, dy) < min(ay, by)
    ):  # fmt: skip
        return False
    if side(ax, ay, bx, by, cx, cy) * side(ax, ay, bx, by, dx, dy) >= 0:
        return False
    return side(cx, cy, dx, dy, ax, ay) * side(cx, cy, dx, dy, bx, by) < 0


@kernel
def _meet(data, one, two, turn):
    if _boxes_apart(data, one, two, turn):
        return False
    for n in range(int(data[one]) - 1):
        a = one + CORNERS + 2 * n
        ax, ay, bx, by = data[a] + turn, data[a + 1], data[a + 2] + turn, data[a + 3]
        if math.isnan(ax) or math.isnan(bx):
            continue
        for m in range(int(data[two]) - 1):
            c = two + CORNERS + 2 * m
            if math.isnan(data[c]) or math.isnan(data[c + 2]):
                continue
            if _sides_meet(ax, ay, bx, by, data[c], data[c + 1], data[c + 2], data[c + 3]):
                return True
    # No side touches another: rings lie wholly in the other shape, or wholly outside of it.
    return _ring_in(data, one, two, turn) or _ring_in(data, two, one, -turn)


@kernel
def _ring_in(data, one, two, turn):
    """Tell whether the first corner of any ring of `one` lies in `two`."""
    is_first = True
    for n in range(int(data[one])):
        at = one + CORNERS + 2 * n
        if math.isnan(data[at]):
            is_first = True
        elif is_first:
            is_first = False
            if where(data, two, data[at] + turn, data[at + 1]) != OUTSIDE:
                return True
    return False


@kernel
def _lies_in(data, one, two, turn):
    """Tell whether every point of shape `one` belongs to shape `two`."""
    if (
        data[one + 1] + turn < data[two + 1] or data[one + 3] + turn > data[two + 3]
        or data[one + 2] < data[two + 2] or data[one + 4] > data[two + 4]
    ):  # fmt: skip
        return False
    corners, others = int(data[one]), int(data[two])
    for n in range(corners):
        a = one + CORNERS + 2 * n
        if not math.isnan(data[a]) and where(data, two, data[a] + turn, data[a + 1]) == OUTSIDE:
            return False
    for n in range(corners - 1):
        a = one + CORNERS + 2 * n
        ax, ay, bx, by = data[a] + turn, data[a + 1], data[a + 2] + turn, data[a + 3]
        if math.isnan(ax) or math.isnan(bx):
            continue
        for m in range(others - 1):
            c = two + CORNERS + 2 * m
            if math.isnan(data[c]) or math.isnan(data[c + 2]):
                continue
            if _sides_cross(ax, ay, bx, by, data[c], data[c + 1], data[c + 2], data[c + 3]):
                return False
    # No side crosses another: between corners that touch, a side runs along one side of the other shape.
    if _runs(data, one, two, turn, OUTSIDE) or _runs(data, two, one, -turn, WITHIN):
        return False
    return where(data, two, data[one + 5] + turn, data[one + 6]) != OUTSIDE


@kernel
def _runs(data, one, two, turn, asked):
    """Tell whether a piece of a side of `one`, between places where corners touch, lies `asked` to `two`."""
    others = int(data[two])
    touching = np.empty(others + 2, np.float64)
    for n in range(int(data[one]) - 1):
        a = one + CORNERS + 2 * n
        ax, ay, bx, by = data[a] + turn, data[a + 1], data[a + 2] + turn, data[a + 3]
        if math.isnan(ax) or math.isnan(bx) or (ax == bx and ay == by):
            continue
        along_x = abs(bx - ax) >= abs(by - ay)
        touching[0], touching[1] = (ax, bx) if along_x else (ay, by)
        count = 2
        for m in range(others):
            c = two + CORNERS + 2 * m
            if not math.isnan(data[c]) and _on_side(ax, ay, bx, by, data[c], data[c + 1]):
                touching[count] = data[c] if along_x else data[c + 1]
                count += 1
        touching[:count].sort()
        for k in range(count - 1):
            if touching[k] == touching[k + 1]:
                continue
            share = ((touching[k] + touching[k + 1]) / 2 - (ax if along_x else ay)) / (
                bx - ax if along_x else by - ay
            )
            x, y = ax + share * (bx - ax), ay + share * (by - ay)
            if not _runs_along(data, two, ax, ay, bx, by, x, y) and where(data, two, x, y) == asked:
                return True
    return False


@kernel
def _runs_along(data, shape, ax, ay, bx, by, x, y):
    """Tell whether a side of a shape lies on the line from a to b and reaches over the point (x, y) of it.

    The point is rounded, so that it need not lie on a side that runs along it; the corners do.
    """
    for m in range(int(data[shape]) - 1):
        c = shape + CORNERS + 2 * m
        cx, cy, dx, dy = data[c], data[c + 1], data[c + 2], data[c + 3]
        if math.isnan(cx) or math.isnan(dx):
            continue
        if not (min(cx, dx) <= x <= max(cx, dx) and min(cy, dy) <= y <= max(cy, dy)):
            continue
        if side(ax, ay, bx, by, cx, cy) == 0 and side(ax, ay, bx, by, dx, dy) == 0:
            return True
    return False


# -- how far apart -----------------------------------------------------------------------------------------


@kernel
def _to_shape(on_sphere, data, shape, x, y):
    """Give the distance of a point to a shape: nought if it lies in it."""
    if where(data, shape, x, y) != OUTSIDE:
        return 0.0
    return _to_border(on_sphere, data, shape, x, y, math.inf)


@kernel
def _to_border(on_sphere, data, shape, x, y, best):
    for corner in range(int(data[shape]) - 1):
        at = shape + CORNERS + 2 * corner
        ax, ay, bx, by = data[at], data[at + 1], data[at + 2], data[at + 3]
        if math.isnan(ax) or math.isnan(bx):
            continue
        best = min(
            best, _to_side_on_sphere(x, y, ax, ay, bx, by) if on_sphere else _to_side(x, y, ax, ay, bx, by)
        )
    return best


@kernel
def _to_side(x, y, ax, ay, bx, by):
    dx, dy = bx - ax, by - ay
    along = (x - ax) * dx + (y - ay) * dy
    if along <= 0.0:
        return math.hypot(x - ax, y - ay)
    if along >= dx * dx + dy * dy:
        return math.hypot(x - bx, y - by)
    return abs((x - ax) * dy - (y - ay) * dx) / math.hypot(dx, dy)


@kernel
def _to_side_on_sphere(x, y, ax, ay, bx, by):
    """Search along the side, which is straight in degrees, for the point nearest to (x, y)."""
    best = min(sphere(x, y, ax, ay), sphere(x, y, bx, by))
    if ax == bx and ay == by:
        return best
    # No closed form: a side is straight in degrees, which is no great circle. Along one, distances fall, then
    # rise.
    low, high = 0.0, 1.0
    one, two = high - _GOLDEN, low + _GOLDEN
    at_one = sphere(x, y, ax + one * (bx - ax), ay + one * (by - ay))
    at_two = sphere(x, y, ax + two * (bx - ax), ay + two * (by - ay))
    for _ in range(_STEPS):
        if at_one < at_two:
            high, two, at_two = two, one, at_one
            one = high - _GOLDEN * (high - low)
            at_one = sphere(x, y, ax + one * (bx - ax), ay + one * (by - ay))
        else:
            low, one, at_one = one, two, at_two
            two = low + _GOLDEN * (high - low)
            at_two = sphere(x, y, ax + two * (bx - ax), ay + two * (by - ay))
    return min(best, at_one, at_two)


@kernel
def signed_distance(data, shape, x, y, metres_per_degree):
    """Give how far a point is from the border of a shape, below 0 inside.

    With `metres_per_degree` above 0, coordinates are degrees, measured in a plane that touches the earth at
    the point, as the distances of regions are.
    """
    best = _signed(data, shape, x, y, metres_per_degree)
    if metres_per_degree > 0.0:
        for turn in (-360.0, 360.0):
            best = min(best, _signed(data, shape, x + turn, y, metres_per_degree))
    return best


@kernel
def _signed(data, shape, x, y, metres_per_degree):
    across, up = 1.0, 1.0
    if metres_per_degree > 0.0:
        across, up = metres_per_degree * math.cos(math.radians(y)), metres_per_degree
    best = math.inf
    for corner in range(int(data[shape]) - 1):
        at = shape + CORNERS + 2 * corner
        ax, ay, bx, by = data[at], data[at + 1], data[at + 2], data[at + 3]
        if math.isnan(ax) or math.isnan(bx):
            continue
        best = min(
            best,
            _to_side(0.0, 0.0, (ax - x) * across, (ay - y) * up, (bx - x) * across, (by - y) * up),
        )
    return best if where(data, shape, x, y) == OUTSIDE else -best


@kernel
def _between(on_sphere, data, one, two, turn):
    """Give the distance of two shapes that do not meet: that of a corner of one to a side of the other.

    Two straight sides that do not meet are nearest to each other at an end of one of them.
    """
    best = math.inf
    for n in range(int(data[one])):
        a = one + CORNERS + 2 * n
        if not math.isnan(data[a]):
            best = _to_border(on_sphere, data, two, data[a] + turn, data[a + 1], best)
    for n in range(int(data[two])):
        a = two + CORNERS + 2 * n
        if not math.isnan(data[a]):
            best = _to_border(on_sphere, data, one, data[a] - turn, data[a + 1], best)
    return best


@kernel
def _farthest(on_sphere, data, shape, x1, y1, x, y):
    """Give how far the farthest point of a location lies from the point (x, y)."""
    if shape < 0:
        return sphere(x1, y1, x, y) if on_sphere else math.hypot(x - x1, y - y1)
    if on_sphere:
        opposite = x + 180.0 if x < 0.0 else x - 180.0
        for turn in (0.0, -360.0, 360.0):
            if where(data, shape, opposite + turn, -y) != OUTSIDE:
                return math.pi * EARTH_RADIUS_M
    best = 0.0
    for corner in range(int(data[shape]) - 1):
        at = shape + CORNERS + 2 * corner
        ax, ay, bx, by = data[at], data[at + 1], data[at + 2], data[at + 3]
        if math.isnan(ax) or math.isnan(bx):
            continue
        if on_sphere:
            best = max(best, _farthest_of_side(x, y, ax, ay, bx, by))
        else:
            best = max(best, math.hypot(x - ax, y - ay), math.hypot(x - bx, y - by))
    return best


@kernel
def _farthest_of_side(x, y, ax, ay, bx, by):
    """Search along a side, piece by piece, for the point farthest from (x, y)."""
    best = max(sphere(x, y, ax, ay), sphere(x, y, bx, by))
    for piece in range(_PIECES):
        low, high = piece / _PIECES, (piece + 1) / _PIECES
        for _ in range(_STEPS):
            one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            at_one = sphere(x, y, ax + one * (bx - ax), ay + one * (by - ay))
            at_two = sphere(x, y, ax + two * (bx - ax), ay + two * (by - ay))
            best = max(best, at_one, at_two)
            if at_one > at_two:
                high = two
            else:
                low = one
    return best
