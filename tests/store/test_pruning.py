"""Pruning never changes an answer: what a query finds in a store is what it finds in all events."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.model.time import DAY, HOUR, format_instant, instant
from whimbrel.space.geometry import METRES_PER_DEGREE
from whimbrel.store import Store
from whimbrel.store.bounds import Bounds, bounds_of

NOON = instant("2024-05-01T12:00:00Z")
FIXED = ("id", "type", "source", "start", "end")

# Places and moments that lie on borders of cells, regions and days, and beside them.
_ACROSS = (-10.0, -0.001, 0.0, 4.999, 5.0, 5.001, 10.0, 14.0)
_HOURS = (-36, -12, -11, 0, 11, 12, 13, 36)

_PLACES = st.one_of(
    st.none(),
    st.tuples(st.sampled_from(_ACROSS), st.sampled_from(_ACROSS)),
    st.tuples(st.sampled_from(_ACROSS), st.sampled_from(_ACROSS), st.sampled_from((1.0, 7.0, 30.0))),
)
_EVENT = st.tuples(
    st.sampled_from("AABC"),
    st.sampled_from(_HOURS),
    st.sampled_from((0, 0, 0, 1, 30)),
    st.sampled_from((None, "s", "t")),
    st.sampled_from((None, 0, 1, 2)),
    _PLACES,
)
_REGIONS = (
    "box(0, 0, 5, 5)",
    "box(5, -10, 10, 10)",
    "'POLYGON ((0 0, 10 0, 0 10, 0 0))'",
    "box(-80, -80, 80, 80)",
    "circle(5, 5, 2 m)",
)
_TIMES = tuple(f"timestamp '{format_instant(NOON + hours * HOUR)}'" for hours in (-36, -12, 0, 12))
_SHIFTS = ("", " + 1 h", " - 13 h")
_IN_TIME = tuple(
    f"{name} {operator} {moment}{shift}"
    for name, operator, moment, shift in product(
        ("timestamp", "start", "end"), (">", ">=", "<", "<=", "="), _TIMES, _SHIFTS
    )
)
_IN_SPACE = (
    *("x > 5", "y <= 5.0", "5 < x", "lon between 0 and 10", "x in (0, 14)", "lat = 5", "x != 5", "-x < 5"),
    *("this in R", "this not in R", "not this in R", "this in R or x < 0", "x >= 5.001 and y < 0"),
)
_TESTS = st.one_of(st.sampled_from(("true", "v > 0")), st.sampled_from(_IN_SPACE), st.sampled_from(_IN_TIME))


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(inner, st.sampled_from(("and", "or")), inner).map(lambda words: f"({' '.join(words)})")


_CONDITIONS = st.recursive(_TESTS, _joined, max_leaves=4)
_PATTERNS = (
    "define D detect A({0})",
    "define D(n) detect A({0}) as a then B({1}) as b within 2 d assign n = b.v",
    "define D detect A({0}) as a then not B({1}) as b for 1 d",
    "define D(n) every 1 d detect A({0}) assign n = count(A.v)",
    "define E detect A({0}) or B({1}) define D detect E as e then C as c within 3 d",
    "define D(n) detect A{{2}} as a within 2 d where first(a.v) = 1 assign n = sum(a.v) group by source",
    "define D detect A as a then B as b within 2 d where a.x < b.x and b.end > timestamp '2024-05-01T12:00Z'",
)


@st.composite
def event_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    drawn = draw(st.lists(_EVENT, min_size=1, max_size=20))
    return [_row(number, *event) for number, event in enumerate(drawn)]


def _row(number, kind, hour, length, source, value, place) -> dict[str, Any]:
    end = NOON + hour * HOUR
    row = {"id": f"e{number:02}", "type": kind, "source": source, "v": value, "w": number / 4}
    times = {"start": format_instant(end - length * HOUR), "end": format_instant(end)}
    return row | times | _place(place)


def _place(place: tuple[float, ...] | None) -> dict[str, Any]:
    if place is None:
        return {"geometry": None}
    x, y, *half = place
    if not half:
        return {"geometry": f"POINT ({x} {y})"}
    x0, y0, x1, y1 = x - half[0], y - half[0], x + half[0], y + half[0]
    return {"geometry": f"POLYGON (({x0} {y0}, {x1} {y0}, {x1} {y1}, {x0} {y1}, {x0} {y0}))"}


@st.composite
def queries(draw: st.DrawFn, coordinates: str) -> wb.Query:
    text = draw(st.sampled_from(_PATTERNS)).format(draw(_CONDITIONS), draw(_CONDITIONS))
    return wb.compile(f"coordinates {coordinates} region R = {draw(st.sampled_from(_REGIONS))} {text}")


def table(rows: list[dict[str, Any]]) -> pa.Table:
    texts = dict.fromkeys((*FIXED, "geometry"), pa.string())
    kinds = [*texts.items(), ("v", pa.int64()), ("w", pa.float64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def ended_in(row: dict[str, Any], since: int | None, until: int | None) -> bool:
    end = instant(row["end"])
    return (since is None or since <= end) and (until is None or end < until)


_LIMITS = st.sampled_from((None, None, *(NOON + hours * HOUR for hours in (-12, 0, 12))))


@pytest.mark.parametrize("coordinates", ["plane", "lonlat"])
@given(data=st.data())
def test_detection_in_a_store_is_detection_in_all_events(coordinates, data):
    rows = data.draw(event_lists())
    query = data.draw(queries(coordinates))
    rows += data.draw(st.lists(st.sampled_from(rows), max_size=3))  # delivered again
    cut = data.draw(st.integers(0, len(rows)))
    cell_m = data.draw(st.sampled_from((5.0, 20.0, 5 * METRES_PER_DEGREE)))
    since, until = data.draw(_LIMITS), data.draw(_LIMITS)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "s", cell_m=cell_m, coordinates=coordinates)
        store.append(table(rows[:cut]))
        store.append(table(rows[cut:]))
        if data.draw(st.booleans()):
            store.compact(drop_duplicates=data.draw(st.booleans()))
        found = store.detect(query, since=since, until=until)
    kept = [row for row in rows if ended_in(row, since, until)]
    expected = wb.detect(query, table(kept), coordinates=coordinates)
    assert found.to_pylist() == expected.to_pylist()
    # An attribute has its place among the columns from the first append in which it has a value.
    assert {column.name: column.type for column in found.schema} == {
        column.name: column.type for column in expected.schema
    }


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["plane", "lonlat"])
def test_every_condition_keeps_the_events_on_its_border(new_store, coordinates):
    places = [None, *product(_ACROSS, (0.0, 5.0)), (5.0, 5.0, 7.0), (14.0, 0.0, 30.0)]
    drawn = product("A", _HOURS, (0, 1), ("s",), (1,), places)
    rows = [_row(number, *event) for number, event in enumerate(drawn)]
    store = new_store(
        cell_m=5.0 if coordinates == "plane" else 5 * METRES_PER_DEGREE, coordinates=coordinates
    )
    store.append(table(rows))
    read, found = 0, 0
    for condition in (*_IN_SPACE, *_IN_TIME[::11]):
        query = wb.compile(
            f"coordinates {coordinates} region R = box(0, 0, 5, 5) define D detect A({condition})"
        )
        expected = wb.detect(query, table(rows))
        assert store.detect(query).to_pylist() == expected.to_pylist(), condition
        read, found = read + store.explain(query).events_read, found + expected.num_rows
    assert 0 < found <= read < 0.75 * len(rows) * len((*_IN_SPACE, *_IN_TIME[::11]))


@pytest.mark.slow
@given(st.data())
def test_a_scan_gives_the_events_asked_for(data):
    rows = data.draw(event_lists())
    since, until = data.draw(_LIMITS), data.draw(_LIMITS)
    types = data.draw(st.none() | st.sets(st.sampled_from("ABC")))
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "s", cell_m=5)
        store.append(table(rows))
        region = data.draw(st.sampled_from((None, "POLYGON ((0 0, 10 0, 0 10, 0 0))")))
        found = store.scan(since=since, until=until, types=types, region=region).read_all().to_pylist()
    kept = [row for row in rows if ended_in(row, since, until) and (types is None or row["type"] in types)]
    if region is not None:
        kept = [row for row in kept if row["geometry"] is not None and _in_triangle(row["geometry"])]
    assert sorted(row["id"] for row in found) == [row["id"] for row in kept]
    assert [row["end"] for row in found] == sorted(row["end"] for row in found)


def _in_triangle(text: str) -> bool:
    import shapely

    x0, y0, x1, y1 = shapely.from_wkt(text).bounds
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    return x >= 0 and y >= 0 and x + y <= 10


def test_bounds_are_those_of_the_conditions_on_single_events():
    query = wb.compile("""
        coordinates plane
        region R = box(0, 0, 10, 20)
        define D
          detect A(this in R and timestamp > timestamp '2024-05-01T12:00:00Z') as a then B as b within 1 h
          where b.x < 5 and (b.y > 1 or b.y > 3) and b.start >= timestamp '2024-05-01T12:00:00Z' + 1 h
    """)
    anywhere, always = float("inf"), 2**62
    assert bounds_of(query) == (
        Bounds(frozenset("A"), end=(NOON + 1, always), box=(0.0, 0.0, 10.0, 20.0)),
        Bounds(
            frozenset("B"),
            start=(NOON + HOUR, always),
            end=(NOON + HOUR, always),
            box=(-anywhere, 1.0, 5.0, anywhere),
        ),
    )


def test_a_stream_that_is_read_with_and_without_a_test_is_not_bounded():
    query = wb.compile("define D detect A(x > 5) as a then A as b within 1 h")
    assert bounds_of(query) == (Bounds(frozenset("A")),)


def test_an_attribute_named_timestamp_hides_the_time():
    query = wb.compile("define D detect A(timestamp > timestamp '2024-05-01T12:00:00Z')")
    assert bounds_of(query)[0].end == (NOON + 1, 2**62)
    assert bounds_of(query, ["timestamp"]) == (Bounds(frozenset("A")),)


def test_many_alternatives_are_read_as_one_around_them():
    text = " ".join(f"define D{n} detect A(x > {n} and x < {n + 1} and y > {-n})" for n in range(20))
    (bounds,) = bounds_of(wb.compile(text, emit="all"))
    assert bounds.box[::2] == (0.0, 20.0)


def test_a_condition_that_never_holds_reads_nothing(new_store):
    store = new_store()
    store.append([{"type": "A", "time": 0}])
    query = wb.compile("define D detect A(false)")
    assert store.explain(query).files_read == 0
    assert store.detect(query).num_rows == 0


def test_explain_tells_what_is_read(new_store):
    store = new_store(cell_m=10, coordinates="plane")
    store.append([{"type": "A", "time": n * DAY / 1e6, "x": 10.0 * n, "y": 0.0} for n in range(10)])
    query = wb.compile("region R = box(15, 0, 35, 5) define D detect A(this in R)")
    share = store.explain(query, until="1970-01-04T00:00:00Z")
    assert (share.files, share.files_read, share.events_read) == (10, 1, 1)
    assert str(share).splitlines()[1] == "  A, end to 1970-01-03T23:59:59.999999Z, x 15 to 35, y 0 to 5"
