"""Everything within reach of an event must be in the shard of its primary copy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import distance_m
from whimbrel.space.partitioning import place_copies

PLANE = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
GLOBE = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
POLES = st.tuples(st.floats(-180, 180), st.sampled_from([-90.0, -89.99, 89.9, 90.0]) | st.floats(-90, -89))
DATE_LINE = st.tuples(st.sampled_from([-180.0, 180.0, 179.999, -179.999]), st.floats(-80, 80))


def check(points: list[tuple[float, float]], reach: float, shards: int, coordinates: Coordinates) -> None:
    x, y = (np.array(axis, np.float64) for axis in zip(*points, strict=True))
    placed = place_copies(x, y, reach, shards, coordinates)
    held = {shard: set() for shard in range(shards)}
    primary = {}
    for row, shard, is_primary in zip(
        placed.row.tolist(), placed.shard.tolist(), placed.is_primary.tolist(), strict=True
    ):
        assert row not in held[shard], "a copy came twice"
        held[shard].add(row)
        if is_primary:
            assert row not in primary, "an event has one primary copy"
            primary[row] = shard
    assert len(primary) == len(points)
    for row in range(len(points)):
        far = distance_m(x[row], y[row], x, y, coordinates)
        near = set(np.nonzero(far <= reach)[0].tolist())
        assert near <= held[primary[row]]


def around(points: st.SearchStrategy, spread: float) -> st.SearchStrategy:
    """Points, each with some that lie close to it."""
    steps = st.lists(st.tuples(st.floats(-spread, spread), st.floats(-spread, spread)), max_size=4)
    near = st.tuples(points, steps).map(
        lambda pair: [pair[0], *((pair[0][0] + dx, pair[0][1] + dy) for dx, dy in pair[1])]
    )
    return st.lists(near, min_size=1, max_size=5).map(lambda groups: [p for group in groups for p in group])


@pytest.mark.property
@given(around(PLANE, 200.0), st.sampled_from([1, 4, 64]))
def test_neighbours_in_the_plane_meet(points, shards):
    check(points, 100.0, shards, Coordinates.PLANE)


@pytest.mark.property
@given(
    around(GLOBE | POLES | DATE_LINE, 0.002), st.sampled_from([1, 4, 64]), st.sampled_from([100.0, 90_000.0])
)
def test_neighbours_on_the_globe_meet(points, shards, reach):
    valid = [((x + 180) % 360 - 180, min(max(y, -90), 90)) for x, y in points]
    check(valid, reach, shards, Coordinates.LONLAT)


def test_what_has_no_place_has_one_primary():
    placed = place_copies(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), 10.0, 8, None)
    assert placed.is_primary[placed.row == 0].tolist() == [True]


def test_events_are_spread_with_few_copies():
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0, 20_000, (2, 10_000))
    placed = place_copies(x, y, 50.0, 64, Coordinates.PLANE)
    assert len(placed.row) < 1.7 * len(x)
    assert np.bincount(placed.shard[placed.is_primary], minlength=64).min() > 0
