"""Rectangles round a position among boxes: the one that is left last, and the greedy one of Grus [1]_.

Seen from the position there are four quadrants. In each, a box allows a rectangle either no more width than
the way to the box or no more height. What all boxes allow together is a flight of stairs: the wider, the
lower.

.. [1] Grus, section 4.6.1: the greedy largest rectangle.
"""

from __future__ import annotations

import math

import numpy as np

from whimbrel.space.kernels.jit import kernel

QUADRANTS = ((1.0, 1.0), (-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0))
"""Which way x and y grow in each quadrant."""

AHEAD = 4.0
"""The way ahead counts for at most so many times the mean way out."""


@kernel
def widest_rectangle(boxes, x, y, window, scale, most, ahead_x, ahead_y):
    """Find the rectangle in the window round the position that reaches into no box and is left last.

    That is the one with the longest way out: the mean way over all directions and, if the device is known to
    move in one, the way ahead. (The largest area would rather take an endless strip with the position at its
    edge.) Every pair of a side on the left and one on the right is tried, each at the edge of a stair; above
    and below, the stairs of both sides say how far it may reach. O(n k + k²) for n boxes and k stairs,
    of which there are few.

    `scale` is the length of a unit of x in units of y. How much farther off than `most` a side is does not
    count. (`ahead_x`, `ahead_y`) has the length 1, or 0 if nothing is known.
    """
    right, left, up, down = window[2] - x, x - window[0], window[3] - y, y - window[1]
    east, east_up, east_down = reaches(boxes, x, y, 1.0, right, up, down)
    west, west_up, west_down = reaches(boxes, x, y, -1.0, left, up, down)
    best, best_right, best_left, best_up, best_down = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(east)):
        for j in range(len(west)):
            high, low = min(east_up[i], west_up[j]), min(east_down[i], west_down[j])
            to_right, to_left = min(east[i] * scale, most), min(west[j] * scale, most)
            to_top, to_bottom = min(high, most), min(low, most)
            way = way_out(to_right, to_top) + way_out(to_right, to_bottom)
            way += way_out(to_left, to_top) + way_out(to_left, to_bottom)
            way /= 2 * math.pi
            # Without a bound, a strip as thin as a hair would win if it only were long enough.
            way += min(way_ahead(to_right, to_left, to_top, to_bottom, ahead_x, ahead_y), AHEAD * way)
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
def way_ahead(right, left, up, down, ahead_x, ahead_y):
    """Measure the way out of a rectangle in one direction."""
    if ahead_x == 0.0 and ahead_y == 0.0:
        return 0.0
    way = math.inf
    if ahead_x != 0.0:
        way = right / ahead_x if ahead_x > 0.0 else -left / ahead_x
    if ahead_y != 0.0:
        way = min(way, up / ahead_y if ahead_y > 0.0 else -down / ahead_y)
    return way


@kernel
def reaches(boxes, x, y, side, most, up, down):
    """List the widths worth trying on one side, and how high and low a rectangle of each width may reach."""
    above_x, above_y = stairs(boxes, x, y, side, 1.0)
    below_x, below_y = stairs(boxes, x, y, side, -1.0)
    number = len(above_x) + len(below_x) + 1
    widths = np.full(number, most)
    for step in range(number - 1):
        edge = above_x[step] if step < len(above_x) else below_x[step - len(above_x)]
        widths[step] = min(edge, most)
    high = np.empty(number, np.float64)
    low = np.empty(number, np.float64)
    for step in range(number):
        high[step] = height_at(above_x, above_y, widths[step], up)
        low[step] = height_at(below_x, below_y, widths[step], down)
    return widths, high, low


@kernel
def greedy_rectangle(boxes, x, y, cell):
    """Find the rectangle that takes, quadrant by quadrant, the largest corner that is still offered.

    The greedy largest rectangle of section 4.6.1 in [1]_. O(n k + k²) for n boxes and k stairs.
    """
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
            for step in range(len(steps_x) + 1):
                width = min(steps_x[step], most) if step < len(steps_x) else most
                height = height_at(steps_x, steps_y, width, top)
                if width * height > best_area:
                    chosen, best_area, best_width, best_height = q, width * height, width, height
        side, rise = QUADRANTS[chosen]
        done[chosen] = True
        wide[int(side > 0)] = best_width
        high[int(rise > 0)] = best_height
    return x - wide[0], y - high[0], x + wide[1], y + high[1]


@kernel
def stairs(boxes, x, y, side, rise):
    """List the nearest corners of the boxes in a quadrant that no other corner makes superfluous, by x."""
    steps_x = np.empty(len(boxes) + 1, np.float64)
    steps_y = np.empty(len(boxes) + 1, np.float64)
    used = 0
    for box in boxes:
        far_x = box[2] - x if side > 0 else x - box[0]
        far_y = box[3] - y if rise > 0 else y - box[1]
        if far_x < 0.0 or far_y < 0.0:
            continue
        near_x = max(0.0, box[0] - x if side > 0 else x - box[2])
        near_y = max(0.0, box[1] - y if rise > 0 else y - box[3])
        step = 0
        while step < used and steps_x[step] <= near_x:
            step += 1
        if step > 0 and steps_y[step - 1] <= near_y:
            continue
        rest = step  # the stairs from here on that are not lower are superfluous now
        while rest < used and steps_y[rest] >= near_y:
            rest += 1
        if rest == step:
            for above in range(used, step, -1):
                steps_x[above], steps_y[above] = steps_x[above - 1], steps_y[above - 1]
            used += 1
        else:
            for above in range(rest, used):
                steps_x[step + 1 + above - rest] = steps_x[above]
                steps_y[step + 1 + above - rest] = steps_y[above]
            used -= rest - step - 1
        steps_x[step], steps_y[step] = near_x, near_y
    return steps_x[:used], steps_y[:used]


@kernel
def height_at(steps_x, steps_y, width, most):
    """Bound the height of a rectangle of a width: as the last stair that begins within it says."""
    height = most
    for step in range(len(steps_x)):
        if steps_x[step] >= width:
            break
        height = min(height, steps_y[step])
    return height
