"""Rectangles round a position among boxes: the one that is left last, and the paper's greedy one.

Seen from the position there are four quadrants. In each, a box allows a rectangle either no more width than
the way to the box or no more height. What all boxes allow together is a flight of stairs: the wider, the
lower.
"""

from __future__ import annotations

import math

import numpy as np

from whimbrel.engine.kernels.jit import kernel

QUADRANTS = ((1.0, 1.0), (-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0))
"""Which way x and y grow in each quadrant."""


@kernel
def widest_rectangle(boxes, x, y, window, scale):
    """Give the rectangle in the window round the position that reaches into no box and is left last.

    That is the one with the longest way out, on the average over all directions. (The largest area would
    rather take an endless strip with the position at its edge.) Every pair of a side on the left and one on
    the right is tried, each at the edge of a stair; above and below, the stairs of both sides say how far it
    may reach. O(n log n) for n boxes, and the square of the few stairs.

    `scale` is the length of a unit of x in units of y.
    """
    right, left, up, down = window[2] - x, x - window[0], window[3] - y, y - window[1]
    east, east_up, east_down = reaches(boxes, x, y, 1.0, right, up, down)
    west, west_up, west_down = reaches(boxes, x, y, -1.0, left, up, down)
    best, best_right, best_left, best_up, best_down = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(east)):
        for j in range(len(west)):
            high, low = min(east_up[i], west_up[j]), min(east_down[i], west_down[j])
            way = way_out(east[i] * scale, high) + way_out(east[i] * scale, low)
            way += way_out(west[j] * scale, high) + way_out(west[j] * scale, low)
            if way > best:
                best, best_right, best_left, best_up, best_down = way, east[i], west[j], high, low
    return x - best_left, y - best_down, x + best_right, y + best_up


@kernel
def way_out(wide, high):
    """Add up the ways from a corner of a rectangle to its far sides, over all directions."""
    if wide <= 0.0 or high <= 0.0:
        return 0.0
    return wide * math.asinh(high / wide) + high * math.asinh(wide / high)


@kernel
def reaches(boxes, x, y, side, most, up, down):
    """Give the widths worth trying on one side, and how high and low a rectangle of each width may reach."""
    above_x, above_y = stairs(boxes, x, y, side, 1.0)
    below_x, below_y = stairs(boxes, x, y, side, -1.0)
    widths = np.concatenate((above_x, below_x, np.array([most])))
    widths = np.unique(np.minimum(widths, most))
    high = np.empty(len(widths), np.float64)
    low = np.empty(len(widths), np.float64)
    for place in range(len(widths)):
        high[place] = height_at(above_x, above_y, widths[place], up)
        low[place] = height_at(below_x, below_y, widths[place], down)
    return widths, high, low


@kernel
def greedy_rectangle(boxes, x, y, cell):
    """Give the rectangle that takes, quadrant by quadrant, the largest corner that is still offered."""
    wide = np.array([x - cell[0], cell[2] - x])
    high = np.array([y - cell[1], cell[3] - y])
    done = np.zeros(4, np.bool_)
    for _ in range(4):
        chosen, best_area, best_width, best_height = -1, -1.0, 0.0, 0.0
        for q in range(4):
            if done[q]:
                continue
            side, rise = QUADRANTS[q]
            most, top = wide[int(side > 0)], high[int(rise > 0)]
            steps_x, steps_y = stairs(boxes, x, y, side, rise)
            for width in np.append(steps_x, most):
                usable = min(width, most)
                height = height_at(steps_x, steps_y, usable, top)
                if usable * height > best_area:
                    chosen, best_area, best_width, best_height = q, usable * height, usable, height
        side, rise = QUADRANTS[chosen]
        done[chosen] = True
        wide[int(side > 0)] = best_width
        high[int(rise > 0)] = best_height
    return x - wide[0], y - high[0], x + wide[1], y + high[1]


@kernel
def stairs(boxes, x, y, side, rise):
    """Give the nearest corners of the boxes in a quadrant that no other corner makes superfluous, by x."""
    ways_x = np.empty(len(boxes), np.float64)
    ways_y = np.empty(len(boxes), np.float64)
    used = 0
    for box in boxes:
        far_x = box[2] - x if side > 0 else x - box[0]
        far_y = box[3] - y if rise > 0 else y - box[1]
        if far_x >= 0.0 and far_y >= 0.0:
            ways_x[used] = max(0.0, box[0] - x if side > 0 else x - box[2])
            ways_y[used] = max(0.0, box[1] - y if rise > 0 else y - box[3])
            used += 1
    order = np.argsort(ways_x[:used], kind="mergesort")
    steps_x = np.empty(used, np.float64)
    steps_y = np.empty(used, np.float64)
    kept = 0
    for place in order:
        if kept > 0 and steps_y[kept - 1] <= ways_y[place]:
            continue
        steps_x[kept] = ways_x[place]
        steps_y[kept] = ways_y[place]
        kept += 1
    return steps_x[:kept], steps_y[:kept]


@kernel
def height_at(steps_x, steps_y, width, most):
    """Give how high a rectangle of a width may be: as the last stair that begins within it says."""
    height = most
    for place in range(len(steps_x)):
        if steps_x[place] >= width:
            break
        height = min(height, steps_y[place])
    return height
