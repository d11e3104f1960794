"""Borders of shapes: how near the nearest is, and boxes that cover them, fine near a position.

A border is a row of numbers. A straight one: `STRAIGHT`, x1, y1, x2, y2, margin. A round one: `ROUND`, x and
y of the centre, radius (metres, or radians on the sphere), the bearing at which it reaches farthest east,
margin. The margin is what rounding may move a border by, in the unit of the coordinates.
"""

from __future__ import annotations

import math

import numpy as np

from whimbrel.space.geometry import EARTH_RADIUS_M
from whimbrel.space.kernels.jit import kernel
from whimbrel.space.kernels.sphere import sphere

STRAIGHT, ROUND = 0.0, 1.0
WIDTH, MARGIN = 6, 5
"""How many numbers a border has, and which of them is the margin."""
FINENESS = 0.2
"""A box over a slanting piece of border is thinner than this part of its distance."""
CLOSENESS = 0.002
"""By which part the distance to a slanting border on the sphere may be underestimated."""
DEPTH = 48
"""So often a border is halved at most."""


@kernel
def boxes_over(borders, x, y, window, scale, on_sphere):
    """Cover all borders within a window by boxes; `scale` is the length of a unit of x in units of y.

    Boxes are the finer the nearer they are, since only near ones bound a region: a slanting border gets
    O(log(length / distance)) of them.
    """
    boxes = np.empty((4 * len(borders) + 64, 4), np.float64)
    used = 0
    stack = np.empty((DEPTH + 8, 3), np.float64)
    for border in borders:
        height = first_pieces(border, stack)
        while height > 0:
            height -= 1
            begin, end, depth = stack[height, 0], stack[height, 1], stack[height, 2]
            x1, y1, x2, y2 = box_of(border, begin, end, on_sphere)
            margin = border[MARGIN]
            if (
                x1 - margin > window[2]
                or x2 + margin < window[0]
                or y1 - margin > window[3]
                or y2 + margin < window[1]
            ):
                continue
            thin = min((x2 - x1) * scale, y2 - y1)
            far = max(max(x1 - x, x - x2) * scale, y1 - y, y - y2, 0.0)
            if thin > FINENESS * far and thin > margin and depth < DEPTH:
                height = halve(stack, height, begin, end, depth)
                continue
            if used == len(boxes):
                larger = np.empty((2 * used, 4), np.float64)
                larger[:used] = boxes
                boxes = larger
            boxes[used, 0] = x1 - margin
            boxes[used, 1] = y1 - margin
            boxes[used, 2] = x2 + margin
            boxes[used, 3] = y2 + margin
            used += 1
    return boxes[:used]


@kernel
def metres_to_nearest(borders, x, y, most, on_sphere):
    """Measure the way to the nearest border, or `most` if none is nearer; never more than it truly is.

    O(borders); on the sphere one that slants is halved up to `DEPTH` times, where it may be the nearest.
    """
    best = most
    stack = np.empty((DEPTH + 8, 3), np.float64)
    for border in borders:
        if border[0] == ROUND:
            radius = border[3] * EARTH_RADIUS_M if on_sphere else border[3]
            best = min(best, abs(metres(x, y, border[1], border[2], on_sphere) - radius))
        elif not on_sphere:
            best = min(best, metres_to_line(x, y, border))
        else:
            best = metres_on_sphere(border, x, y, best, stack)
    return best


@kernel
def metres_on_sphere(border, x, y, best, stack):
    """Halve a border that is straight in degrees until its boxes tell the distance well enough."""
    height = first_pieces(border, stack)
    while height > 0:
        height -= 1
        begin, end, depth = stack[height, 0], stack[height, 1], stack[height, 2]
        x1, y1, x2, y2 = box_of(border, begin, end, True)
        least = metres_to_box(x, y, x1, y1, x2, y2)
        if least >= best:
            continue
        wide = (x2 - x1) * math.cos(math.radians(min(abs(y1), abs(y2))))
        thin = math.radians(min(wide, y2 - y1)) * EARTH_RADIUS_M
        if thin > CLOSENESS * least and depth < DEPTH:
            height = halve(stack, height, begin, end, depth)
        else:
            best = least
    return best


@kernel
def first_pieces(border, stack):
    """Put the pieces of a border on the stack along which neither x nor y turns back; tell how many."""
    if border[0] == STRAIGHT:
        stack[0, 0], stack[0, 1], stack[0, 2] = 0.0, 1.0, 0.0
        return 1
    east = border[4]
    turns = (0.0, east, math.pi, 2 * math.pi - east, 2 * math.pi)
    for piece in range(4):
        stack[piece, 0], stack[piece, 1], stack[piece, 2] = turns[piece], turns[piece + 1], 0.0
    return 4


@kernel
def halve(stack, height, begin, end, depth):
    """Put both halves of a piece on the stack; return its new height."""
    middle = (begin + end) / 2
    stack[height, 0], stack[height, 1], stack[height, 2] = begin, middle, depth + 1
    stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = middle, end, depth + 1
    return height + 2


@kernel
def box_of(border, begin, end, on_sphere):
    """Bound a piece by a box."""
    xa, ya = point_of(border, begin, on_sphere)
    xb, yb = point_of(border, end, on_sphere)
    return min(xa, xb), min(ya, yb), max(xa, xb), max(ya, yb)


@kernel
def point_of(border, where, on_sphere):
    """Compute the point of a border at a part of its length, or at a bearing from its centre."""
    if border[0] == STRAIGHT:
        rest = 1.0 - where
        return border[1] * rest + border[3] * where, border[2] * rest + border[4] * where
    if not on_sphere:
        return border[1] + border[3] * math.sin(where), border[2] + border[3] * math.cos(where)
    lat = math.radians(border[2])
    across, along = math.sin(border[3]), math.cos(border[3])
    north = math.cos(lat) * along - math.sin(lat) * across * math.cos(where)
    east = across * math.sin(where)
    up = math.sin(lat) * along + math.cos(lat) * across * math.cos(where)
    # The arc sine would lose half of the digits near the poles.
    return border[1] + math.degrees(math.atan2(east, north)), math.degrees(
        math.atan2(up, math.hypot(north, east))
    )


@kernel
def metres_to_line(x, y, border):
    """Measure the distance in the plane from a point to a straight border."""
    dx, dy = border[3] - border[1], border[4] - border[2]
    length = dx * dx + dy * dy
    part = 0.0
    if length > 0.0:
        part = min(1.0, max(0.0, ((x - border[1]) * dx + (y - border[2]) * dy) / length))
    rest = 1.0 - part
    return math.hypot(border[1] * rest + border[3] * part - x, border[2] * rest + border[4] * part - y)


@kernel
def metres(x1, y1, x2, y2, on_sphere):
    """Measure the distance between two points."""
    return sphere(x1, y1, x2, y2) if on_sphere else math.hypot(x2 - x1, y2 - y1)


@kernel
def metres_to_box(lon, lat, x1, y1, x2, y2):
    """Measure the way on the sphere to a box in longitude and latitude, not across the date line."""
    aside = max(x1 - lon, lon - x2, 0.0)
    side = lon + aside
    best = min(sphere(lon, lat, side, y1), sphere(lon, lat, side, y2))
    # On the meridian of the nearer side, the nearest point is where a great circle meets it at a right angle.
    foot = lat
    if aside > 0.0:
        angle, turn = math.radians(lat), math.radians(aside)
        foot = math.degrees(math.atan2(math.sin(angle), math.cos(angle) * math.cos(turn)))
    if y1 <= foot <= y2:
        best = min(best, sphere(lon, lat, side, foot))
    return best
