"""Convex hulls of many small sets of points, straight to well-known binary."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel


@kernel
def hulls(offsets, x, y, lonlat):
    """Give the corners of the convex hull of every segment of points, NaN points left out.

    In longitude and latitude, points that span more than 180 degrees are laid out to both sides of the widest
    gap between their longitudes; corners come back between -180 and 180, and sides of more than half the
    globe get a corner in their middle, so that they do not seem to go the other way round.

    Corners run counter-clockwise from the least (x, y); points on an edge are dropped. One corner
    stands for a point, two for a line.

    The monotone chain of Andrew ("Another Efficient Algorithm for Convex Hulls in Two Dimensions",
    Information Processing Letters 9(5), 1979): the lower half from left to right, then the upper half back.
    Linear once the points are sorted, which is quadratic here at the worst.
    """
    size = offsets.size - 1
    out_offsets = np.zeros(size + 1, np.int64)
    room = 2 * x.size if lonlat else x.size
    out_x = np.empty(room, np.float64)
    out_y = np.empty(room, np.float64)
    used = 0
    for s in range(size):
        n = 0
        for p in range(offsets[s], offsets[s + 1]):
            if x[p] == x[p] and y[p] == y[p]:
                n += 1
        px = np.empty(n, np.float64)
        py = np.empty(n, np.float64)
        n = 0
        for p in range(offsets[s], offsets[s + 1]):
            if x[p] == x[p] and y[p] == y[p]:
                # Insertion keeps the points sorted; detections have few.
                i = n
                while i > 0 and (px[i - 1] > x[p] or (px[i - 1] == x[p] and py[i - 1] > y[p])):
                    px[i] = px[i - 1]
                    py[i] = py[i - 1]
                    i -= 1
                px[i] = x[p]
                py[i] = y[p]
                n += 1
        is_wide = lonlat and n > 0 and px[n - 1] - px[0] > 180.0
        if is_wide:
            px, py = _laid_out(px, py)
        m = 0
        for i in range(n):
            if m == 0 or px[i] != px[m - 1] or py[i] != py[m - 1]:
                px[m] = px[i]
                py[m] = py[i]
                m += 1
        if m > 0:
            hx = np.empty(2 * m, np.float64)
            hy = np.empty(2 * m, np.float64)
            k = 0
            for i in range(m):
                while k >= 2 and turn(hx, hy, k, px[i], py[i]) <= 0:
                    k -= 1
                hx[k] = px[i]
                hy[k] = py[i]
                k += 1
            lower = k + 1
            for i in range(m - 2, -1, -1):
                while k >= lower and turn(hx, hy, k, px[i], py[i]) <= 0:
                    k -= 1
                hx[k] = px[i]
                hy[k] = py[i]
                k += 1
            corners = k - 1 if m > 1 else 1
            for i in range(corners):
                out_x[used] = _in_turn(hx[i]) if is_wide else hx[i]
                out_y[used] = hy[i]
                used += 1
                after = (i + 1) % corners
                if is_wide and corners > 2 and abs(hx[after] - hx[i]) > 180.0:
                    out_x[used] = _in_turn((hx[i] + hx[after]) / 2)
                    out_y[used] = (hy[i] + hy[after]) / 2
                    used += 1
        out_offsets[s + 1] = used
    return out_offsets, out_x[:used], out_y[:used]


@kernel
def _laid_out(px, py):
    """Begin points, sorted by longitude, behind the widest gap; those before it come a turn later."""
    n = px.size
    widest, first = px[0] + 360.0 - px[n - 1], 0
    for i in range(1, n):
        if px[i] - px[i - 1] > widest:
            widest, first = px[i] - px[i - 1], i
    x, y = np.empty(n, np.float64), np.empty(n, np.float64)
    for i in range(n):
        x[i] = px[(first + i) % n] + (360.0 if first + i >= n else 0.0)
        y[i] = py[(first + i) % n]
    return x, y


@kernel
def _in_turn(lon):
    return lon - 360.0 if lon > 180.0 else lon


@kernel
def turn(hx, hy, k, x, y):
    """Tell which way the path over the last two corners to (x, y) turns: positive is left."""
    return (hx[k - 1] - hx[k - 2]) * (y - hy[k - 2]) - (hy[k - 1] - hy[k - 2]) * (x - hx[k - 2])


@kernel
def write_wkb(offsets, numbers, out_offsets, out):
    """Write every hull as little-endian well-known binary; `numbers` are the bytes of x, y pairs."""
    for s in range(offsets.size - 1):
        n = offsets[s + 1] - offsets[s]
        if n == 0:
            continue
        p = out_offsets[s]
        out[p] = 1
        out[p + 1] = 1 if n == 1 else (2 if n == 2 else 3)
        out[p + 2] = 0
        out[p + 3] = 0
        out[p + 4] = 0
        p += 5
        if n > 2:
            out[p] = 1
            out[p + 1] = 0
            out[p + 2] = 0
            out[p + 3] = 0
            p += 4
        if n > 1:
            corners = n + 1 if n > 2 else n
            for b in range(4):
                out[p + b] = (corners >> (8 * b)) & 255
            p += 4
        for i in range(16 * n):
            out[p + i] = numbers[16 * offsets[s] + i]
        p += 16 * n
        if n > 2:
            for i in range(16):
                out[p + i] = numbers[16 * offsets[s] + i]
