"""The grid finds exactly the shapes that a point lies in: compared with loops over all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.model.schema import Coordinates
from whimbrel.space.grid import ShapeGrid
from whimbrel.space.kernels import grid as kernels

EARTH_RADIUS_M = 6_371_008.8


class Naive:
    """Shapes in a dictionary, tried one by one. All coordinates are quarters, so that arithmetic is exact."""

    def __init__(self):
        self.shapes = {}

    def match(self, x, y):
        found = set()
        for number, shape in self.shapes.items():
            for row, (px, py) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
                if self.lies_in(px, py, shape):
                    found.add((row, number))
        return found

    @staticmethod
    def lies_in(px, py, shape):
        kind, *numbers = shape
        if kind == "circle":
            x, y, radius = numbers
            return (px - x) ** 2 + (py - y) ** 2 <= radius**2
        if kind == "box":
            x0, y0, x1, y1 = numbers
            return x0 <= px <= x1 and y0 <= py <= y1
        return bool(shapely.intersects_xy(numbers[0], px, py))


def pairs(grid, x, y):
    """What the grid finds, as a set; every pair must come once, in order of the rows."""
    rows, numbers = grid.match(x, y)
    assert (np.diff(rows) >= 0).all()
    found = list(zip(rows.tolist(), numbers.tolist(), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


def quarters(random, low, high, count):
    return random.integers(4 * low, 4 * high + 1, count) / 4


def random_polygon(random, x, y, size):
    """A star around a point, perhaps with a hole, its ring in either direction."""
    count = int(random.integers(3, 9))
    angles = np.sort(random.uniform(0, 2 * np.pi, count))
    lengths = size * random.uniform(0.2, 1, count)
    corners = np.stack([x + lengths * np.cos(angles), y + lengths * np.sin(angles)], axis=1)
    corners = np.round(4 * corners) / 4
    polygon = shapely.Polygon(corners[::-1] if random.integers(2) else corners)
    if not polygon.is_valid:
        return shapely.box(x, y, x + size, y + size)
    cut = polygon.difference(shapely.box(x, y, x + size / 8, y + size / 4))
    usable = cut.is_valid and not cut.is_empty and cut.geom_type in ("Polygon", "MultiPolygon")
    return cut if usable and random.integers(2) else polygon


def add_some(grid, naive, random, numbers, spread, size):
    """Add shapes of all kinds, most of them near each other."""
    for number in numbers:
        x, y = quarters(random, -spread, spread, 2).tolist()
        extent = float(quarters(random, 0, size, 1)[0]) if random.integers(8) else size * 64.0
        one, kind = np.array([number]), random.integers(3)
        if kind == 0:
            grid.keep_circles(one, np.array([x]), np.array([y]), np.array([extent]))
            naive.shapes[number] = ("circle", x, y, extent)
        elif kind == 1:
            grid.keep_boxes(one, np.array([[x, y, x + extent, y + extent / 2]]))
            naive.shapes[number] = ("box", x, y, x + extent, y + extent / 2)
        else:
            polygon = random_polygon(random, x, y, max(extent, 1.0))
            grid.keep_polygons(one, np.array([polygon]))
            naive.shapes[number] = ("polygon", polygon)
        grid.put_in(one)


@given(
    seed=st.integers(0, 2**32),
    spread=st.sampled_from([1, 4, 100, 10_000]),
    size=st.sampled_from([1, 3, 16, 300]),
    rounds=st.integers(1, 4),
)
def test_whatever_is_added_and_removed_the_same_is_found(seed, spread, size, rounds):
    random = np.random.default_rng(seed)
    grid, naive = ShapeGrid(), Naive()
    free = list(range(300))
    for _ in range(rounds):
        taken = [free.pop() for _ in range(min(len(free), int(random.integers(1, 120))))]
        add_some(grid, naive, random, taken, spread, size)
        gone = [number for number in naive.shapes if random.integers(3) == 0]
        grid.take_out(np.array(gone, np.int64))
        grid.forget(np.array(gone, np.int64))
        for number in gone:
            del naive.shapes[number]
        free += gone
        x = quarters(random, -spread - size, spread + size, 12)
        y = quarters(random, -spread - size, spread + size, 12)
        assert pairs(grid, x, y) == naive.match(x, y)
        assert len(grid) == len(naive.shapes)


def test_crowded_cells_are_split_and_nothing_changes():
    random = np.random.default_rng(7)
    count = 2_000
    x, y, radius = (
        quarters(random, 0, 40, count),
        quarters(random, 0, 40, count),
        quarters(random, 3, 8, count),
    )
    grid, numbers = ShapeGrid(), np.arange(count)
    grid.keep_circles(numbers, x, y, radius)
    grid.put_in(numbers)
    assert grid._natives[kernels.LEVELS :].sum() > 0, "no cell was split"
    px, py = quarters(random, -10, 50, 500), quarters(random, -10, 50, 500)
    inside = (px[:, None] - x) ** 2 + (py[:, None] - y) ** 2 <= radius**2
    assert pairs(grid, px, py) == set(zip(*(each.tolist() for each in np.nonzero(inside)), strict=True))
    grid.take_out(numbers)
    assert pairs(grid, px, py) == set()


def test_tables_grow_step_by_step_and_lose_nothing():
    random = np.random.default_rng(3)
    count = 20_000
    x, y = random.uniform(0, 1e5, count), random.uniform(0, 1e5, count)
    grid = ShapeGrid()
    unfinished = 0
    for first in range(0, count, 100):
        numbers = np.arange(first, first + 100)
        grid.keep_circles(numbers, x[numbers], y[numbers], np.full(100, 50.0))
        grid.put_in(numbers)
        unfinished += len(grid._lists.old) > 0
        if first % 2_500 == 0:
            so_far = np.arange(first + 100)
            rows, found = grid.match(x[so_far], y[so_far])
            assert set(so_far.tolist()) == set(found[rows == found].tolist()), "a centre was not found"
    assert unfinished > 5, "tables were never found half moved"
    grid.take_out(np.arange(0, count, 2))
    _, found = grid.match(x, y)
    assert set(found.tolist()) == set(range(1, count, 2))


def test_borders_count():
    grid = ShapeGrid()
    grid.keep_circles(np.array([0]), np.array([0.0]), np.array([0.0]), np.array([5.0]))
    grid.keep_boxes(np.array([1]), np.array([[0.0, 0.0, 8.0, 4.0]]))
    holed = shapely.Polygon([(0, 0), (8, 0), (8, 8), (0, 8)], [[(2, 2), (2, 4), (4, 4), (4, 2)]])
    grid.keep_polygons(np.array([2]), np.array([holed]))
    grid.put_in(np.arange(3))
    points = {
        (3, 4): {0, 1, 2},
        (8, 4): {1, 2},
        (2, 3): {0, 1, 2},
        (3, 3): {0, 1},
        (8, 8): {2},
        (8.25, 8): set(),
    }
    x, y = (np.array(each, float) for each in zip(*points, strict=True))
    expected = {(row, number) for row, numbers in enumerate(points.values()) for number in numbers}
    assert pairs(grid, x, y) == expected


@pytest.mark.parametrize("part", [0.1, 1 / 3, 0.7])
def test_a_point_on_a_slanted_side_is_judged_as_shapely_judges_it(part):
    polygon = shapely.Polygon([(0.1, 0.2), (7.3, 1.9), (3.3, 9.7)])
    grid = ShapeGrid()
    grid.keep_polygons(np.array([0]), np.array([polygon]))
    grid.put_in(np.array([0]))
    x, y = 0.1 + part * (7.3 - 0.1), 0.2 + part * (1.9 - 0.2)
    xs = np.array([x, np.nextafter(x, 9), np.nextafter(x, -9), x, x])
    ys = np.array([y, y, y, np.nextafter(y, 9), np.nextafter(y, -9)])
    rows, _ = grid.match(xs, ys)
    assert rows.tolist() == np.flatnonzero(shapely.intersects_xy(polygon, xs, ys)).tolist()


def test_points_without_coordinates_and_points_far_away_lie_nowhere():
    grid = ShapeGrid()
    grid.keep_boxes(np.array([0]), np.array([[-1.0, -1.0, 1.0, 1.0]]))
    grid.put_in(np.array([0]))
    x, y = np.array([np.nan, 0.0, np.inf, -1e300, 0.0]), np.array([0.0, np.nan, 0.0, 0.0, 0.0])
    assert pairs(grid, x, y) == {(4, 0)}


def test_more_pairs_than_there_was_room_for():
    grid, count = ShapeGrid(), 3_000
    numbers = np.arange(count)
    grid.keep_circles(numbers, np.zeros(count), np.zeros(count), np.full(count, 9.0))
    grid.put_in(numbers)
    rows, found = grid.match(np.zeros(5), np.zeros(5))
    assert rows.tolist() == np.repeat(np.arange(5), count).tolist()
    assert sorted(found[:count].tolist()) == list(range(count))


def great_circle_m(lon1, lat1, lon2, lat2):
    """The distance on the sphere, from the angle between two vectors: another formula than the index has."""
    a, b = (
        np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])
        for lon, lat in ((math.radians(lon1), math.radians(lat1)), (math.radians(lon2), math.radians(lat2)))
    )
    return EARTH_RADIUS_M * math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))


longitudes = st.one_of(st.sampled_from([-180.0, 180.0, 179.999, -179.999, 0.0]), st.floats(-180, 180))
latitudes = st.one_of(st.sampled_from([-90.0, 90.0, 89.999, -89.999, 0.0]), st.floats(-90, 90))
radii = st.one_of(st.sampled_from([0.0, 1.0, 5e6, 1.2e7, 2.1e7]), st.floats(0, 3e6), st.floats(0, 5e3))


@given(
    circles=st.lists(st.tuples(longitudes, latitudes, radii), min_size=1, max_size=8),
    points=st.lists(st.tuples(longitudes, latitudes), min_size=1, max_size=12),
    seed=st.integers(0, 2**32),
)
def test_circles_on_the_globe_also_across_the_date_line_and_around_the_poles(circles, points, seed):
    random = np.random.default_rng(seed)
    for lon, lat, radius in circles:  # points near the circles' borders as well
        near = radius * random.uniform(0.9, 1.1) / EARTH_RADIUS_M * 57.3
        points.append(((lon + near + 180) % 360 - 180, lat))
        points.append((lon, max(-90.0, min(90.0, lat + near))))
    grid = ShapeGrid(Coordinates.LONLAT)
    numbers = np.arange(len(circles))
    grid.keep_circles(numbers, *(np.array(each, float) for each in zip(*circles, strict=True)))
    grid.put_in(numbers)
    x, y = (np.array(each, float) for each in zip(*points, strict=True))
    found = pairs(grid, x, y)
    for row, (px, py) in enumerate(points):
        for number, (lon, lat, radius) in enumerate(circles):
            beyond = great_circle_m(px, py, lon, lat) - radius
            if abs(beyond) > 0.05:  # near the far end of the globe, digits are lost
                assert ((row, number) in found) == (beyond < 0), (px, py, lon, lat, radius)
    grid.take_out(numbers)
    assert pairs(grid, x, y) == set()


def test_a_shape_that_is_only_kept_is_found_by_nobody_but_can_be_asked():
    grid = ShapeGrid()
    grid.keep_circles(np.array([3]), np.array([0.0]), np.array([0.0]), np.array([5.0]))
    assert pairs(grid, np.zeros(1), np.zeros(1)) == set()
    assert grid.hold(np.array([3.0, 4.0]), np.array([4.0, 4.0]), np.array([3, 3], np.int32)).tolist() == [
        True,
        False,
    ]
