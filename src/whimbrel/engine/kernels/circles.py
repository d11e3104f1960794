"""Points and lines against circles: how far a circle is, and where a line meets it.

On the sphere, a circle is all that lies at most its radius from its centre; a line is straight in degrees, as
the sides of polygons are. That has no closed form, so that the nearest point is searched for by golden
section (Kiefer, 1953) and the border by halving, 60 steps each: some 1e-13 of a line.
"""

from __future__ import annotations

import math

from whimbrel.space.kernels.jit import kernel
from whimbrel.space.kernels.sphere import sphere

_STEPS = 60
_HALVINGS = 60
_GOLDEN = 0.6180339887498949


@kernel
def circle_distances(on_sphere, circles, region, x, y, found):
    """Give the distance of every point from its region, below zero inside, where that is a circle.

    The rows of `circles` are x, y and radius in metres of every region, NaN for one that is no circle.
    """
    for i in range(len(region)):
        cx, cy, radius = circles[region[i], 0], circles[region[i], 1], circles[region[i], 2]
        if radius == radius:
            found[i] = _metres(on_sphere, cx, cy, x[i], y[i]) - radius


@kernel
def circles_met(on_sphere, circles, region, x0, y0, x1, y1, found):
    """Tell of every line whether it meets its region, where that is a circle."""
    for i in range(len(region)):
        cx, cy, radius = circles[region[i], 0], circles[region[i], 1], circles[region[i], 2]
        if radius == radius:
            at = _nearest(on_sphere, cx, cy, x0[i], y0[i], x1[i], y1[i])
            found[i] = _away(on_sphere, cx, cy, x0[i], y0[i], x1[i], y1[i], at) <= radius


@kernel
def circle_shares(on_sphere, circles, region, x0, y0, x1, y1, first, share):
    """Give the first (or last) share of every line at which it meets its region, where that is a circle.

    `share` is NaN where it does not, and where a line has no length.
    """
    for i in range(len(region)):
        cx, cy, radius = circles[region[i], 0], circles[region[i], 1], circles[region[i], 2]
        if radius != radius or (x0[i] == x1[i] and y0[i] == y1[i]):
            continue
        near = _nearest(on_sphere, cx, cy, x0[i], y0[i], x1[i], y1[i])
        if _away(on_sphere, cx, cy, x0[i], y0[i], x1[i], y1[i], near) > radius:
            continue
        end = 0.0 if first else 1.0
        if _away(on_sphere, cx, cy, x0[i], y0[i], x1[i], y1[i], end) <= radius:
            share[i] = end
            continue
        if not on_sphere:
            share[i] = _crossing(cx, cy, radius, x0[i], y0[i], x1[i], y1[i], first)
            continue
        # The border lies between the end, which is outside, and the nearest point, which is not.
        outside, inside = end, near
        for _ in range(_HALVINGS):
            middle = (outside + inside) / 2
            if _away(on_sphere, cx, cy, x0[i], y0[i], x1[i], y1[i], middle) <= radius:
                inside = middle
            else:
                outside = middle
        share[i] = inside


@kernel
def _crossing(cx, cy, radius, x0, y0, x1, y1, first):
    """Give the share of a line in the plane at which it crosses a circle that it meets."""
    px, py, dx, dy = x0 - cx, y0 - cy, x1 - x0, y1 - y0
    square, half = dx * dx + dy * dy, px * dx + py * dy
    root = math.sqrt(max(0.0, half * half - square * (px * px + py * py - radius * radius)))
    return min(1.0, max(0.0, (-half - root if first else -half + root) / square))


@kernel
def _metres(on_sphere, ax, ay, bx, by):
    return sphere(ax, ay, bx, by) if on_sphere else math.hypot(bx - ax, by - ay)


@kernel
def _away(on_sphere, cx, cy, x0, y0, x1, y1, share):
    """Give how far a point of a line is; its ends are not rounded."""
    if share == 1.0:
        return _metres(on_sphere, cx, cy, x1, y1)
    return _metres(on_sphere, cx, cy, x0 + share * (x1 - x0), y0 + share * (y1 - y0))


@kernel
def _nearest(on_sphere, cx, cy, x0, y0, x1, y1):
    """Give the share of a line at which it is nearest to a point."""
    dx, dy = x1 - x0, y1 - y0
    if not on_sphere:
        length = dx * dx + dy * dy
        if length == 0.0:
            return 0.0
        return min(1.0, max(0.0, ((cx - x0) * dx + (cy - y0) * dy) / length))
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if _away(True, cx, cy, x0, y0, x1, y1, one) < _away(True, cx, cy, x0, y0, x1, y1, two):
            high = two
        else:
            low = one
    best = (low + high) / 2
    for end in (0.0, 1.0):
        if _away(True, cx, cy, x0, y0, x1, y1, end) <= _away(True, cx, cy, x0, y0, x1, y1, best):
            best = end
    return best
