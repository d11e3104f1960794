"""Many queries that ask for a place: each finds what it would find alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.engine.type_index import FEW

PLACES = st.one_of(
    st.builds(lambda x, y, w, h: f"this in box({x}, {y}, {x + w}, {y + h})",
              st.integers(-5, 5), st.integers(-5, 5), st.integers(1, 6), st.integers(1, 6)),
    st.builds(lambda x, y, r: f"distance(this, point({x}, {y})) <= {r}",
              st.integers(-5, 5), st.integers(-5, 5), st.integers(1, 5)),
    st.builds(lambda x, y: f"intersects(this, 'POLYGON (({x} {y}, {x + 4} {y}, {x} {y + 4}, {x} {y}))')",
              st.integers(-5, 5), st.integers(-5, 5)),
    st.builds(lambda x, y: f"this in circle({x}, {y}, 3 m)", st.integers(-5, 5), st.integers(-5, 5)),
)  # fmt: skip
POINTS = st.one_of(st.none(), st.tuples(st.integers(-6, 6), st.integers(-6, 6)))


def events(points, coordinates):
    names = ("lon", "lat") if coordinates == "lonlat" else ("x", "y")
    return [
        {"id": f"e{n}", "type": "A", "time": n}
        | ({} if p is None else dict(zip(names, map(float, p), strict=True)))
        for n, p in enumerate(points)
    ]


def pairs(tables):
    """Give which query found which events."""
    return sorted(
        (row["type"], tuple(row["events"]))
        for table in tables
        for row in table.select(["type", "events"]).to_pylist()
    )


@pytest.mark.slow
@pytest.mark.property
@settings(max_examples=25)
@given(
    st.lists(PLACES, min_size=9, max_size=14),
    st.lists(POINTS, min_size=1, max_size=12).filter(any),
    st.sampled_from(["plane", "lonlat"]),
)
def test_many_queries_find_what_each_finds_alone(places, points, coordinates):
    texts = [f"coordinates {coordinates} define Q{n} detect A({place})" for n, place in enumerate(places)]
    if coordinates == "lonlat":
        texts = [text.replace("3 m)", "300 km)").replace("<= ", "<= 100000 * ") for text in texts]
    rows = events(points, coordinates)
    session = wb.Session()
    for text in texts:
        session.add(wb.compile(text))
    together = [session.push(rows), session.close()]
    alone = [wb.detect(wb.compile(text), rows) for text in texts]
    assert pairs(together) == pairs(alone)


def test_regions_across_the_antimeridian_and_far_away_are_found_too():
    texts = [f"this in box({10 * n}, 0, {10 * n + 5}, 5)" for n in range(9)] + [
        "this in box(175, -5, -175, 5)"
    ]
    session = wb.Session()
    for n, text in enumerate(texts):
        session.add(wb.compile(f"coordinates lonlat define Q{n} detect A({text})"))
    found = session.push(events([(-179, 0), (179, 0), (12, 3), (99, 9)], "lonlat"))
    rest = session.close()
    kinds = [kind for table in (found, rest) for kind in table.column("type").to_pylist()]
    assert sorted(kinds) == ["Q1", "Q9", "Q9"]


def test_events_with_shapes_are_tested_one_by_one():
    session = wb.Session()
    for n in range(10):
        session.add(wb.compile(f"define Q{n} detect A(this in box({n}, 0, {n + 3}, 3))"))
    rows = [{"type": "A", "time": 1, "geometry": "POLYGON ((1 1, 3 1, 3 2, 1 2, 1 1))"}]
    kinds = [
        kind for table in (session.push(rows), session.close()) for kind in table.column("type").to_pylist()
    ]
    assert sorted(kinds) == ["Q0", "Q1"]


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


@pytest.mark.property
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), count=st.integers(FEW, 30))
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
    for n in range(2 * FEW):
        session.add(region_query(n, f"box({n // 2}, 0, {n // 2 + 1}, 1)"))
    session.push(events)
    session.remove("In0")
    session.push(pa.table({"type": ["Position"], "time": [9], "v": [2], "x": [0.5], "y": [0.5]}))
    found = session.close()
    assert set(found["type"].to_pylist()) == {"In1"}
