"""Rectangles among boxes: the best one against trying all, the greedy one by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.devices.kernels.rectangles import greedy_rectangle, largest_rectangle

WINDOW = np.array([-10.0, -10.0, 10.0, 10.0])
SIDES = st.integers(-12, 12).map(lambda n: n + 0.5)
"""No box touches an axis: what does is taken for lying on both sides of it."""


@st.composite
def box_lists(draw) -> np.ndarray:
    """Boxes that do not hold the origin within."""
    corners = draw(st.lists(st.tuples(SIDES, SIDES, st.integers(0, 6), st.integers(0, 6)), max_size=6))
    boxes = [(x, y, x + wide, y + high) for x, y, wide, high in corners]
    boxes = [box for box in boxes if not (box[0] < 0 < box[2] and box[1] < 0 < box[3])]
    return np.array(boxes, np.float64).reshape(-1, 4)


def is_free(rectangle, boxes) -> bool:
    """Whether the inside of the rectangle meets no box, thin ones included."""
    left, low, right, high = rectangle
    return not any(x1 < right and x2 > left and y1 < high and y2 > low for x1, y1, x2, y2 in boxes)


def worth(rectangle) -> float:
    left, low, right, high = rectangle
    return (right - left) * (high - low)


def best_of_all(boxes) -> float:
    """Try every rectangle whose sides are sides of boxes or of the window."""
    across = {-10.0, 10.0, 0.0, *boxes[:, 0], *boxes[:, 2]}
    along = {-10.0, 10.0, 0.0, *boxes[:, 1], *boxes[:, 3]}
    sides = [
        [side for side in across if -10 <= side <= 0],
        [side for side in along if -10 <= side <= 0],
        [side for side in across if 0 <= side <= 10],
        [side for side in along if 0 <= side <= 10],
    ]
    return max(worth(rectangle) for rectangle in product(*sides) if is_free(rectangle, boxes))


@given(box_lists())
def test_no_free_rectangle_is_better(boxes):
    found = largest_rectangle(boxes, 0.0, 0.0, WINDOW)
    assert is_free(found, boxes)
    assert worth(found) == pytest.approx(best_of_all(boxes))


@given(box_lists())
def test_the_greedy_rectangle_is_free_and_not_larger_than_the_largest(boxes):
    found = greedy_rectangle(boxes, 0.0, 0.0, WINDOW)
    assert is_free(found, boxes)
    assert found[0] <= 0 <= found[2]
    assert found[1] <= 0 <= found[3]
    assert worth(found) <= worth(largest_rectangle(boxes, 0.0, 0.0, WINDOW)) + 1e-9


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
