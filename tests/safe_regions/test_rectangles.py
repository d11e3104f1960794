"""Rectangles among boxes: the best one against trying all, the greedy one by hand."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.safe_regions.kernels.rectangles import greedy_rectangle, widest_rectangle

WINDOW = np.array([-10.0, -10.0, 10.0, 10.0])
SIDES = st.integers(-12, 12).map(lambda n: n + 0.5)
"""No box touches an axis: what does is taken for lying on both sides of it."""


@st.composite
def box_lists(draw) -> np.ndarray:
    """Boxes that do not hold the origin within."""
    corners = draw(st.lists(st.tuples(SIDES, SIDES, st.integers(0, 6), st.integers(0, 6)), max_size=5))
    boxes = [(x, y, x + wide, y + high) for x, y, wide, high in corners]
    boxes = [box for box in boxes if not (box[0] < 0 < box[2] and box[1] < 0 < box[3])]
    return np.array(boxes, np.float64).reshape(-1, 4)


def is_free(rectangle, boxes) -> bool:
    """Whether the inside of the rectangle meets no box, thin ones included."""
    left, low, right, high = rectangle
    return not any(x1 < right and x2 > left and y1 < high and y2 > low for x1, y1, x2, y2 in boxes)


def way_out(rectangle) -> float:
    """The mean way from the origin out of the rectangle, over all directions, quarter by quarter."""
    left, low, right, high = rectangle
    total = 0.0
    for wide, tall in product((-left, right), (-low, high)):
        if wide > 0 and tall > 0:
            slope = math.hypot(wide, tall)
            total += wide * math.log((tall + slope) / wide) + tall * math.log((wide + slope) / tall)
    return total / (2 * math.pi)


def test_the_mean_way_out_is_what_walking_in_all_directions_gives():
    left, low, right, high = rectangle = (-3.0, -1.0, 2.0, 7.0)
    ways = []
    for n in range(100_000):
        angle = 2 * math.pi * (n + 0.5) / 100_000
        dx, dy = math.cos(angle), math.sin(angle)
        ways.append(min((right if dx > 0 else left) / dx, (high if dy > 0 else low) / dy))
    assert way_out(rectangle) == pytest.approx(sum(ways) / len(ways), rel=1e-6)


def way_ahead(rectangle, ahead) -> float:
    """How far one gets from the origin: the last of many small and smaller steps that is within."""
    left, low, right, high = rectangle
    if ahead == (0.0, 0.0):
        return 0.0
    way, step = 0.0, 64.0
    while step > 1e-9:
        x, y = (way + step) * ahead[0], (way + step) * ahead[1]
        if left <= x <= right and low <= y <= high:
            way += step
        else:
            step /= 2
    return way


def worth(rectangle, ahead, most) -> float:
    rectangle = tuple(max(-most, min(most, side)) for side in rectangle)
    return way_out(rectangle) + min(way_ahead(rectangle, ahead), 4 * way_out(rectangle))


def best_of_all(boxes, ahead, most) -> float:
    """Try every rectangle whose sides are sides of boxes or of the window."""
    across = {-10.0, 10.0, 0.0, *boxes[:, 0], *boxes[:, 2]}
    along = {-10.0, 10.0, 0.0, *boxes[:, 1], *boxes[:, 3]}
    sides = [
        [side for side in across if -10 <= side <= 0],
        [side for side in along if -10 <= side <= 0],
        [side for side in across if 0 <= side <= 10],
        [side for side in along if 0 <= side <= 10],
    ]
    return max(worth(rectangle, ahead, most) for rectangle in product(*sides) if is_free(rectangle, boxes))


@given(
    box_lists(),
    st.sampled_from([(0.0, 0.0), (1.0, 0.0), (0.0, -1.0), (-0.6, 0.8), (0.8, 0.6)]),
    st.sampled_from([5.0, math.inf]),
)
def test_no_free_rectangle_has_a_longer_way_out(boxes, ahead, most):
    found = widest_rectangle(boxes, 0.0, 0.0, WINDOW, 1.0, most, *ahead)
    assert is_free(found, boxes)
    assert worth(found, ahead, most) == pytest.approx(best_of_all(boxes, ahead, most))


@given(box_lists(), st.sampled_from([0.25, 4.0]))
def test_a_scale_stretches_the_plane(boxes, scale):
    stretch = np.array([scale, 1.0, scale, 1.0])
    found = np.array(widest_rectangle(boxes, 0.0, 0.0, WINDOW, scale, 7.0, 0.6, 0.8))
    stretched = widest_rectangle(boxes * stretch, 0.0, 0.0, WINDOW * stretch, 1.0, 7.0, 0.6, 0.8)
    assert found * stretch == pytest.approx(stretched)


@given(box_lists())
def test_the_greedy_rectangle_is_free_and_holds_the_position(boxes):
    found = greedy_rectangle(boxes, 0.0, 0.0, WINDOW)
    assert is_free(found, boxes)
    assert found[0] <= 0 <= found[2]
    assert found[1] <= 0 <= found[3]


def test_an_empty_cell_is_the_region():
    assert greedy_rectangle(np.empty((0, 4)), 1.0, 2.0, WINDOW) == tuple(WINDOW)


def test_the_greedy_choice_by_hand():
    # Lower left and lower right are free: 10 x 10 each. Upper left has a stair at (7, 6): corners 10 x 6 and
    # 7 x 10, of which the second is larger. Upper right has one at (4, 3): corners 10 x 3 and 4 x 10.
    boxes = np.array([[4.0, 3.0, 6.0, 5.0], [-8.0, 6.0, -7.0, 8.0]])
    assert greedy_rectangle(boxes, 0.0, 0.0, WINDOW) == (-7.0, -10.0, 4.0, 10.0)


def test_a_box_above_bounds_both_sides():
    boxes = np.array([[-1.0, 2.0, 1.0, 3.0]])
    assert greedy_rectangle(boxes, 0.0, 0.0, WINDOW) == (-10.0, -10.0, 10.0, 2.0)
