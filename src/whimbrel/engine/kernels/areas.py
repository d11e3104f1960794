"""Areas of interests: their corners around places, and which points lie in them.

An area has a kind, four numbers (`whimbrel.space.kernels.exact` says which), and for a polygon the place of
its rings in an array. What is built here rounds as the same steps in plain Python do: an event may lie on a
border.
"""

from __future__ import annotations

import math

import numpy as np

from whimbrel.space.geometry import METRES_PER_DEGREE
from whimbrel.space.kernels.exact import BOX, CIRCLE, in_rings
from whimbrel.space.kernels.jit import inlined, kernel
from whimbrel.space.kernels.sphere import half_chord, sphere

NOWHERE = -1
"""The kind of an area that holds nothing."""

_SURE = 1e-9
_ROUNDING = 4e-15
"""By so much the halves of chords, on a globe of radius 1, differ with the way to compute them, and more."""


@inlined
def doubt(limit, lonlat):
    """Tell how far from the limit of a circle the quick way to compare may be wrong."""
    return limit * _SURE + (_ROUNDING * math.sqrt(limit) if lonlat else 0.0)


@inlined
def in_circle(numbers, area, lonlat, around, x, y):
    """Tell whether a point lies in a circle: quickly, or where that is in `doubt`, by the distance."""
    if lonlat:
        square = half_chord(numbers[area, 0], numbers[area, 1], x, y)
    else:
        dx, dy = x - numbers[area, 0], y - numbers[area, 1]
        square = dx * dx + dy * dy
    if abs(square - numbers[area, 3]) > around:
        return square < numbers[area, 3]
    if lonlat:
        return sphere(numbers[area, 0], numbers[area, 1], x, y) <= numbers[area, 2]
    return math.hypot(x - numbers[area, 0], y - numbers[area, 1]) <= numbers[area, 2]


@kernel
def in_polygon(kind, numbers, rings, corners, area, x, y):
    """Tell whether a point lies in a box or polygon, as it is laid out."""
    if not (numbers[area, 0] <= x <= numbers[area, 2] and numbers[area, 1] <= y <= numbers[area, 3]):
        return False
    return kind == BOX or in_rings(corners, rings[area], x, y)


@kernel
def in_area(kind, numbers, rings, corners, lonlat, area, x, y):
    """Tell whether a point lies in an area, borders included; in degrees, a turn of the globe away too."""
    if kind == NOWHERE or x != x or y != y:
        return False
    if kind == CIRCLE:
        return in_circle(numbers, area, lonlat, doubt(numbers[area, 3], lonlat), x, y)
    if in_polygon(kind, numbers, rings, corners, area, x, y):
        return True
    if not lonlat:
        return False
    return in_polygon(kind, numbers, rings, corners, area, x + 360.0, y) or in_polygon(
        kind, numbers, rings, corners, area, x - 360.0, y
    )


@kernel
def points_in_areas(kinds, numbers, rings, corners, lonlat, which, x, y, inside):
    """Tell for pairs of an area and a point whether it lies in it."""
    for pair in range(len(which)):
        area = which[pair]
        inside[pair] = in_area(kinds[area], numbers, rings, corners, lonlat, area, x[pair], y[pair])


@kernel
def lay_around(x, y, lonlat, offsets, east, north, rings, numbers, corners):
    """Lay polygons out around places: their corners lie so many metres east and north of these.

    Those of row r are from `offsets[r]` on, without the first one again; room for it is from `rings[r]` on.
    """
    for row in range(len(x)):
        first, count = offsets[row], offsets[row + 1] - offsets[row]
        at = rings[row] + 1
        wide = METRES_PER_DEGREE * math.cos(math.radians(y[row])) if lonlat else 1.0
        for n in range(count):
            if lonlat:
                lon = x[row] + east[first + n] / wide
                corners[at + 2 * n] = (lon + 180.0) % 360.0 - 180.0
                corners[at + 2 * n + 1] = y[row] + north[first + n] / METRES_PER_DEGREE
            else:
                corners[at + 2 * n] = x[row] + east[first + n]
                corners[at + 2 * n + 1] = y[row] + north[first + n]
        corners[at + 2 * count], corners[at + 2 * count + 1] = corners[at], corners[at + 1]
        corners[rings[row]] = count + 1
        if lonlat:
            _in_one_piece(corners, at, count + 1)
        _bounds(corners, at, count + 1, numbers[row])


@kernel
def _in_one_piece(corners, at, count):
    """Lay a ring that crosses the antimeridian out beyond 180 degrees: each side goes the short way."""
    low = high = corners[at]
    for n in range(1, count):
        low, high = min(low, corners[at + 2 * n]), max(high, corners[at + 2 * n])
    if high - low <= 180.0 or _turns(corners, at, count) != 0:
        return
    turned, before = 0.0, corners[at]
    for n in range(1, count):
        lon = corners[at + 2 * n]
        turned += _turn(lon - before)
        before = lon
        corners[at + 2 * n] = lon + turned


@kernel
def _turns(corners, at, count):
    """Give by how much a ring does not close if all its sides go the short way: it goes round a pole."""
    turned = 0.0
    for n in range(1, count):
        turned += _turn(corners[at + 2 * n] - corners[at + 2 * n - 2])
    return turned


@inlined
def _turn(step):
    return -360.0 if step > 180.0 else (360.0 if step < -180.0 else 0.0)


@kernel
def _bounds(corners, at, count, box):
    box[0] = box[2] = corners[at]
    box[1] = box[3] = corners[at + 1]
    for n in range(1, count):
        x, y = corners[at + 2 * n], corners[at + 2 * n + 1]
        box[0], box[2] = min(box[0], x), max(box[2], x)
        box[1], box[3] = min(box[1], y), max(box[3], y)


@kernel
def metres_from(x, y, lonlat, owner, to_x, to_y, east, north):
    """Tell how many metres east and north of the place of their owner points lie."""
    for n in range(len(to_x)):
        row = owner[n]
        dx, dy = to_x[n] - x[row], to_y[n] - y[row]
        if lonlat:
            dx = (dx + 180.0) % 360.0 - 180.0
            east[n] = dx * (METRES_PER_DEGREE * math.cos(math.radians(y[row])))
            north[n] = dy * METRES_PER_DEGREE
        else:
            east[n], north[n] = dx, dy


@kernel
def sectors(heading_east, heading_north, reach, angle, steps, east, north):
    """Give the corners of sectors: the place itself, and points on the arc around a direction."""
    for row in range(len(reach)):
        heading = math.atan2(heading_north[row], heading_east[row])
        first = row * (steps + 2)
        east[first] = north[first] = 0.0
        for n in range(steps + 1):
            turn = heading + angle * (n / steps - 0.5)
            east[first + 1 + n] = reach[row] * math.cos(turn)
            north[first + 1 + n] = reach[row] * math.sin(turn)


@kernel
def snap(x, y, metres, lonlat, new_x, new_y):
    """Give the nearest points of a grid; of two equally near ones, that to the north or east."""
    for n in range(len(x)):
        if lonlat:
            step = metres / METRES_PER_DEGREE
            new_y[n] = _nearest(y[n], step)
            new_x[n] = _nearest(x[n], step / max(math.cos(math.radians(new_y[n])), 1e-9))
        else:
            new_x[n], new_y[n] = _nearest(x[n], metres), _nearest(y[n], metres)


@inlined
def _nearest(number, step):
    return np.floor(number / step + 0.5) * step
