"""Places and conditions together, crowded so that cells are split, in the plane and on the globe."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb

EARTH_RADIUS_M = 6_371_008.8
METRES = {"plane": 1.0, "lonlat": 111_195.0}
NAMES = {"plane": ("x", "y"), "lonlat": ("lon", "lat")}


def distances(coordinates, px, py, x, y):
    """Metres from points to centres; on the globe from vectors, another formula than the index has."""
    if coordinates == "plane":
        return np.hypot(px[:, None] - x, py[:, None] - y)
    points, centres = (
        np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
        for lon, lat in ((np.radians(px), np.radians(py)), (np.radians(x), np.radians(y)))
    )
    across = np.linalg.norm(np.cross(points[:, None, :], centres), axis=2)
    return EARTH_RADIUS_M * np.arctan2(across, points @ centres.T)


@pytest.mark.parametrize("coordinates", ["plane", "lonlat"])
@given(seed=st.integers(0, 2**32), size=st.sampled_from([0.5, 4.0, 12.0]))
def test_crowded_places_with_conditions_are_found_as_if_each_were_tried(coordinates, seed, size):
    random, count = np.random.default_rng(seed), 80
    x, y = random.uniform(-10, 10, (2, count))
    states = random.choice(["a", "b"], (3, count))
    radius = random.uniform(0, size, count) * METRES[coordinates]
    polygons = shapely.buffer(shapely.points(x, y), random.uniform(0.1, size, count), quad_segs=2)
    boxes = shapely.bounds(polygons)
    subs = wb.Subscriptions(coordinates=coordinates)
    for state in "ab":
        some = [np.flatnonzero(each == state) for each in states]
        where = f"state = '{state}' and v < 3"
        subs.add_circles(some[0], x[some[0]], y[some[0]], radius[some[0]], where=where)
        subs.add_boxes(some[1] + count, boxes[some[1]], where=where)
        subs.add_polygons(some[2] + 2 * count, polygons[some[2]], where=where)
    gone = random.choice(3 * count, count, replace=False)
    subs.remove(gone)
    px, py = random.uniform(-12, 12, (2, 30))
    given_states, v = random.choice(["a", "b", "c"], 30), random.integers(0, 5, 30)
    columns = {"state": given_states.tolist(), "v": v, NAMES[coordinates][0]: px, NAMES[coordinates][1]: py}
    found = subs.match(pa.table(columns))
    pairs = np.zeros((30, 3 * count), bool)
    pairs[found["event_row"].to_numpy(), found["subscription"].to_numpy()] = True
    assert pairs.sum() == found.num_rows
    beyond = distances(coordinates, px, py, x, y) - radius
    across = (boxes[:, 0] <= px[:, None]) & (px[:, None] <= boxes[:, 2])
    lies_in = np.concatenate(
        [
            beyond <= 0,
            across & (boxes[:, 1] <= py[:, None]) & (py[:, None] <= boxes[:, 3]),
            shapely.intersects_xy(polygons, px[:, None], py[:, None]),
        ],
        axis=1,
    )
    expected = lies_in & (given_states[:, None] == states.reshape(-1)) & (v[:, None] < 3)
    expected[:, gone] = False
    sure = np.ones_like(expected)
    sure[:, :count] = np.abs(beyond) > 1e-3
    assert np.array_equal(pairs[sure], expected[sure])
