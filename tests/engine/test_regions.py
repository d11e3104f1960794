"""Regions of many queries are looked up in one grid: every query finds what it finds alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.engine.index import MANY_REGIONS, fits_grid


def region_query(number, region, extra=""):
    return wb.compile(f"define In{number} detect Position(this in {region}{extra}) as p assign v = p.v")


def found_together(queries, events):
    """The values of `v` that each query detects, all of them running in one session."""
    session = wb.Session()
    for query in queries:
        session.add(query)
    tables = [session.push(events), session.close()]
    found = {query.types[0]: [] for query in queries}
    for table in tables:
        if table.num_rows:
            for kind, value in zip(table["type"].to_pylist(), table["v"].to_pylist(), strict=True):
                found[kind].append(value)
    return {kind: sorted(values) for kind, values in found.items()}


@given(seed=st.integers(0, 2**32), count=st.integers(MANY_REGIONS, 30))
def test_every_query_finds_the_events_in_its_region(seed, count):
    random = np.random.default_rng(seed)
    corners = random.integers(-20, 21, (count, 2)) / 4
    sizes = random.integers(1, 30, (count, 2)) / 4
    boxes = np.concatenate([corners, corners + sizes], axis=1).tolist()
    x, y = random.integers(-40, 61, (2, 30)) / 4
    nowhere = random.integers(5, size=30) == 0
    events = pa.table(
        {
            "type": ["Position"] * 30,
            "time": np.arange(30),
            "v": np.arange(30),
            "x": pa.array(x, mask=nowhere),
            "y": pa.array(y, mask=nowhere),
        }
    )
    queries = [
        region_query(n, f"box({', '.join(map(str, box))})", ", v > 10" if n % 2 else "")
        for n, box in enumerate(boxes)
    ]
    expected = {
        f"In{n}": [
            v
            for v in range(30)
            if not nowhere[v] and x0 <= x[v] <= x1 and y0 <= y[v] <= y1 and (n % 2 == 0 or v > 10)
        ]
        for n, (x0, y0, x1, y1) in enumerate(boxes)
    }
    assert found_together(queries, events) == expected


def test_queries_that_come_and_go_change_the_grid():
    events = pa.table({"type": ["Position"], "time": [0], "v": [1], "x": [0.5], "y": [0.5]})
    session = wb.Session()
    for n in range(2 * MANY_REGIONS):
        session.add(region_query(n, f"box({n // 2}, 0, {n // 2 + 1}, 1)"))
    session.push(events)
    session.remove("In0")
    session.push(pa.table({"type": ["Position"], "time": [9], "v": [2], "x": [0.5], "y": [0.5]}))
    found = session.close()
    assert set(found["type"].to_pylist()) == {"In1"}


@pytest.mark.parametrize(
    ("region", "fits"),
    [
        ("POLYGON ((0 0, 1 0, 1 1, 0 0))", True),
        ("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))", True),
        ("POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))", False),
        ("POLYGON ((0 0, 1e300 0, 1 1, 0 0))", False),
        ("POLYGON EMPTY", False),
        ("POINT (1 1)", False),
    ],
)
def test_only_simple_polygons_go_into_the_grid(region, fits):
    assert fits_grid(region) is fits
    assert shapely.from_wkt(region) is not None
