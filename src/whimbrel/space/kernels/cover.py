"""How shapes and grid cells lie to each other: which cells a shape touches, and which lie inside it."""

from __future__ import annotations

import math

import numpy as np

from whimbrel.space.geometry import EARTH_RADIUS_M
from whimbrel.space.kernels.exact import BOX, CIRCLE, in_rings
from whimbrel.space.kernels.jit import inlined, kernel
from whimbrel.space.kernels.sphere import half_chord

APART, TOUCHING, INSIDE = 0, 1, 2
"""What a cell is to a shape: no point in common, perhaps some, or all of its points."""

STEPS = 128
"""Boxes within a cell are noted in so many steps along each axis: seven bits, and one to compare with."""
_LAST = STEPS - 1
_COMPARE = 0x80808080
EVERYWHERE = 0
"""The box that is a whole cell."""

_SURE = 1e-9
"""Rounding must not turn `perhaps` into a certainty: tests of whole cells keep so much away from borders."""
_AROUND = 1e-6
"""The same for the lines of polygons, as a part of the cell."""


@kernel
def bounds(kind, number, shapes, lonlat):
    """Compute the bounding box of a shape; of a circle in degrees it may reach beyond -180 or 180."""
    x0, y0, x1, y1 = shapes[number, 0], shapes[number, 1], shapes[number, 2], shapes[number, 3]
    if kind != CIRCLE:
        return x0, y0, x1, y1
    radius = x1 * (1 + _SURE)
    if not lonlat:
        return x0 - radius, y0 - radius, x0 + radius, y0 + radius
    angle = radius / EARTH_RADIUS_M + 1e-15
    reach = math.degrees(angle)
    if y0 + reach >= 90 or y0 - reach <= -90:  # around a pole: all longitudes
        return -180.0, max(y0 - reach, -90.0), 180.0, min(y0 + reach, 90.0)
    wide = math.degrees(math.asin(min(1.0, math.sin(angle) / math.cos(math.radians(y0))))) * (1 + _SURE)
    return x0 - wide, y0 - reach, x0 + wide, y0 + reach


@kernel
def relation(kind, number, shapes, rings, corners, lonlat, x0, y0, size):
    """Tell what the square cell with a corner and a size is to a shape."""
    return relation_to_box(kind, number, shapes, rings, corners, lonlat, x0, y0, x0 + size, y0 + size)


@kernel
def relation_to_box(kind, number, shapes, rings, corners, lonlat, x0, y0, x1, y1):
    """Tell what a box is to a shape; of what is in doubt, that it touches."""
    if kind == CIRCLE:
        if lonlat:
            return _circle_on_sphere(shapes[number, 0], shapes[number, 1], shapes[number, 3], x0, y0, x1, y1)
        return _circle(shapes[number, 0], shapes[number, 1], shapes[number, 3], x0, y0, x1, y1)
    left, low, right, high = shapes[number, 0], shapes[number, 1], shapes[number, 2], shapes[number, 3]
    if x0 > right or x1 < left or y0 > high or y1 < low:
        return APART
    if kind == BOX:
        return INSIDE if left <= x0 and x1 <= right and low <= y0 and y1 <= high else TOUCHING
    return _rings(corners, rings[number], x0, y0, x1, y1)


@kernel
def _circle(x, y, square, x0, y0, x1, y1):
    dx = max(x0 - x, 0.0, x - x1)
    dy = max(y0 - y, 0.0, y - y1)
    if dx * dx + dy * dy > square * (1 + _SURE):
        return APART
    dx = max(x1 - x, x - x0)
    dy = max(y1 - y, y - y0)
    return INSIDE if dx * dx + dy * dy < square * (1 - _SURE) else TOUCHING


@kernel
def _circle_on_sphere(lon, lat, limit, x0, y0, x1, y1):
    # Up to a quarter of the globe away, the farthest point of a cell is one of its corners.
    if max(abs(x0 - lon), abs(x1 - lon)) > 90 or y0 < -90 or y1 > 90:
        return TOUCHING
    sure = limit * (1 - _SURE)
    for x in (x0, x1):
        for y in (y0, y1):
            if half_chord(lon, lat, x, y) >= sure:
                return TOUCHING
    return INSIDE


@kernel
def _rings(corners, start, x0, y0, x1, y1):
    around = (x1 - x0) * _AROUND
    first = start + 1
    for n in range(np.int64(corners[start]) - 1):
        ax, ay = corners[first + 2 * n], corners[first + 2 * n + 1]
        bx, by = corners[first + 2 * n + 2], corners[first + 2 * n + 3]
        if (
            ax == ax
            and bx == bx
            and _meets(ax, ay, bx, by, x0 - around, y0 - around, x1 + around, y1 + around)
        ):
            return TOUCHING
    inside = in_rings(corners, start, (x0 + x1) / 2, (y0 + y1) / 2)
    return INSIDE if inside else APART


@kernel
def _meets(ax, ay, bx, by, x0, y0, x1, y1):
    """Tell whether a line between two points touches a box: no axis keeps them apart."""
    if max(ax, bx) < x0 or min(ax, bx) > x1 or max(ay, by) < y0 or min(ay, by) > y1:
        return False
    dx, dy = bx - ax, by - ay
    middle_x, middle_y = (x0 + x1) / 2, (y0 + y1) / 2
    distance = abs(dx * (middle_y - ay) - dy * (middle_x - ax))
    reach = (abs(dx) * (y1 - y0) + abs(dy) * (x1 - x0)) / 2
    return distance <= reach * (1 + _SURE)


@inlined
def step(value, cell):
    """Tell in which step of a cell a coordinate lies, `value` being the coordinate in cells."""
    return np.int64(min(max((value - cell) * STEPS, 0.0), STEPS - 1.0))


@inlined
def _box(left, right, low, high):
    """Note a box in four bytes so that a point can be compared with all of them at once."""
    return (left << 24) | ((_LAST - right) << 16) | (low << 8) | (_LAST - high)


@inlined
def as_point(right, up):
    """Note the steps of a point, for `is_in_box`."""
    return _box(right, right, up, up) | _COMPARE


@inlined
def is_in_box(point, box):
    """Tell whether a point lies in the box in the lower half of a number: no byte of it is larger."""
    return (point - (box & 0xFFFFFFFF)) & _COMPARE == _COMPARE


@kernel
def clipped(kind, number, shapes, lonlat, scale, column, row):
    """Note the part of a shape's bounding box that lies in a cell, in 32 bits."""
    x0, y0, x1, y1 = bounds(kind, number, shapes, lonlat)
    low, high = step(y0 * scale, row), step(y1 * scale, row)
    if lonlat and kind == CIRCLE and (x0 < -180 or x1 > 180):
        return _box(np.int64(0), np.int64(_LAST), low, high)
    return _box(step(x0 * scale, column), step(x1 * scale, column), low, high)
