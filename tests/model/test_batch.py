"""How any table of events becomes one form, and which rows cannot be events."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from whimbrel.errors import DataError
from whimbrel.model.batch import Normalised, Normaliser, normalise
from whimbrel.model.reading import Reading
from whimbrel.model.schema import Coordinates, EventSchema, Type

SQUARE = "POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))"
NOON = 1_714_564_800_000_000


def table(**columns: Any) -> pa.RecordBatch:
    """Make a batch; a type and a time are added where they do not matter."""
    rows = len(next(iter(columns.values())))
    given = {"type": ["a"] * rows, **columns}
    if not {"time", "start", "end"} & set(columns):
        given["time"] = [0] * rows
    return pa.record_batch(
        {name: value if isinstance(value, pa.Array) else pa.array(value) for name, value in given.items()}
    )


def declared(**attributes: Type) -> dict[str, EventSchema]:
    return {"a": EventSchema("a", attributes)}


def only_reason(found: Normalised) -> str:
    (row,) = found.rejected.to_pylist()
    return str(row["reason"])


# --- the form ------------------------------------------------------------------------------------------


def test_columns_stand_in_one_order_whatever_the_input_says() -> None:
    batch = pa.record_batch(
        {
            "speed": [1.0],
            "y": [2.0],
            "x": [1.0],
            "source": ["s"],
            "time": [0],
            "id": ["1"],
            "type": ["a"],
            "on": [True],
        }
    )
    events = normalise(batch).events
    assert events.schema.names == ["id", "type", "source", "start", "end", "x", "y", "speed", "on"]
    assert events.schema.metadata[b"whimbrel.coordinates"] == b"plane"


def test_columns_that_the_input_lacks_are_absent() -> None:
    found = normalise(table(time=[0]))
    assert found.events.schema.names == ["type", "start", "end"]
    assert found.coordinates is None
    assert found.events.schema.metadata[b"whimbrel.coordinates"] == b"none"


def test_a_point_event_has_one_array_for_start_and_end() -> None:
    found = normalise(table(time=[1, 2, None]))
    start, end = found.events["start"], found.events["end"]
    assert start.buffers()[1].address == end.buffers()[1].address


def test_clean_columns_are_not_copied() -> None:
    rows = 1000
    batch = pa.record_batch(
        {
            "type": pa.DictionaryArray.from_arrays(np.zeros(rows, "i4"), pa.array(["a"])),
            "time": pa.array(np.arange(rows)).view(pa.timestamp("us", "UTC")),
            "source": pa.DictionaryArray.from_arrays(np.zeros(rows, "i4"), pa.array(["s"])),
            "x": np.zeros(rows),
            "y": np.zeros(rows),
            "speed": np.ones(rows),
        }
    ).slice(10, 500)
    events = normalise(batch).events
    for name, origin in {
        "type": "type",
        "start": "time",
        "source": "source",
        "x": "x",
        "speed": "speed",
    }.items():
        assert events[name].buffers()[1].address == batch[origin].buffers()[1].address


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1], pa.int8()), pa.int64()),
        (pa.array([1], pa.uint64()), pa.int64()),
        (pa.array([1.5], pa.float32()), pa.float64()),
        (pa.array([Decimal("1.50")]), pa.float64()),
        (pa.array(["x"], pa.large_string()), pa.string()),
        (pa.array(["x"], pa.string_view()), pa.string()),
        (pa.array(["x"]).dictionary_encode(), pa.dictionary(pa.int32(), pa.string())),
        (pa.array([1]).dictionary_encode(), pa.int64()),
        (pa.array([True]), pa.bool_()),
        (pa.array([date(2024, 5, 1)]), pa.timestamp("us", "UTC")),
        (pa.array([datetime(2024, 5, 1)]), pa.timestamp("us", "UTC")),  # noqa: DTZ001
        (pa.array([None]), pa.string()),
    ],
)
def test_attributes_come_in_six_types(values: pa.Array, kind: pa.DataType) -> None:
    found = normalise(table(v=values))
    assert found.events["v"].type == kind
    assert found.rejected.num_rows == 0


def test_nan_is_a_missing_value() -> None:
    assert normalise(table(v=[1.0, math.nan, math.inf])).events["v"].to_pylist() == [1.0, None, math.inf]


def test_only_the_attributes_asked_for_are_kept() -> None:
    batch = table(a=[1], b=[2], c=[timedelta(1)])
    assert Normaliser(columns={"b"}).normalise(batch).events.schema.names == ["type", "start", "end", "b"]


def test_a_type_can_be_given_for_all() -> None:
    assert (
        normalise(pa.record_batch({"time": [0, 1]}), reading=Reading.of(default_type="bus"))
        .events["type"]
        .to_pylist()
        == ["bus"] * 2
    )


# --- times ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "times",
    [
        pa.array([NOON // 1_000_000]),
        pa.array([NOON / 1_000_000]),
        pa.array([NOON // 1_000_000]).view(pa.timestamp("s")),
        pa.array([NOON * 1000]).view(pa.timestamp("ns", "Europe/Berlin")),
        pa.array(["2024-05-01T12:00:00Z"]),
        pa.array(["2024-05-01 12:00"]),
        pa.array(["2024-05-01T14:00:00.000000+02:00"]),
        pa.array(["20240501T120000Z"]),
        pa.array(["  2024-05-01t12:00:00.000000000z "]),
        pa.array(["1714564800"]),
        pa.array(["1714564800.0", "2024-05-01T12:00:00Z"]).slice(0, 1),
    ],
)
def test_noon_can_be_written_in_many_ways(times: pa.Array) -> None:
    assert normalise(table(time=times)).events["start"].to_pylist() == [NOON]


@pytest.mark.parametrize(("unit", "value"), [("s", 1.5), ("ms", 1500), ("us", 1_500_000)])
def test_numbers_are_in_the_time_unit(unit: str, value: float) -> None:
    assert normalise(table(time=[value]), reading=Reading.of(time_unit=unit)).events["start"].to_pylist() == [
        1_500_000
    ]


def test_fractions_of_a_second_are_rounded_to_microseconds() -> None:
    assert normalise(table(time=[1714564800.1234566])).events["start"].to_pylist() == [NOON + 123_457]


def test_texts_of_all_kinds_may_stand_in_one_column() -> None:
    texts = ["2024-05-01T12:00:00Z", "2024-05-01T12:00:00", "1714564800", "2024-05-01"] * 100
    found = normalise(table(time=texts))
    assert found.events["start"].to_pylist() == [NOON, NOON, NOON, NOON - 43_200_000_000] * 100


def test_times_before_1970_are_cut_downwards() -> None:
    times = pa.array([-1]).view(pa.timestamp("ns"))
    assert normalise(table(time=times)).events["start"].to_pylist() == [-1]


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        (pa.array([None], pa.int64()), "time is missing"),
        (pa.array([None]), "time is missing"),
        (pa.array([""]), "time is missing"),
        (pa.array(["soon"]), "time is not a readable time: 'soon'"),
        (pa.array(["2024-13-01"]), "time is not a readable time: '2024-13-01'"),
        (pa.array([math.nan]), "time is not finite: nan"),
        (pa.array([math.inf]), "time is not finite: inf"),
        (pa.array([1e300]), "time is out of range: 1e+300 lies outside the years 1 to 9999"),
        (
            pa.array([2**62]).view(pa.timestamp("us")),
            f"time is out of range: {2**62} lies outside the years 1 to 9999",
        ),
        (pa.array([2**64 - 1], pa.uint64()), f"time does not fit in 64 bits: {2**64 - 1}"),
        (
            pa.array([-(2**63)]).view(pa.timestamp("us")),
            f"time is out of range: {-(2**63)} lies outside the years 1 to 9999",
        ),
    ],
)
def test_a_row_without_a_usable_time_is_rejected(times: pa.Array, reason: str) -> None:
    found = normalise(table(time=times))
    assert only_reason(found) == reason
    assert found.events.num_rows == 0


def test_an_event_cannot_end_before_it_starts() -> None:
    found = normalise(table(start=[1, 5, 3], end=[1, 4, None]))
    assert found.rejected["reason"].to_pylist() == ["the event ends before it starts", "end is missing"]
    assert found.events["start"].to_pylist() == [1_000_000]


def test_the_ends_of_time_are_in_range() -> None:
    times = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0000-12-31T23:59:59Z"]
    found = normalise(table(time=times))
    assert found.events.num_rows == 2
    assert only_reason(found).startswith("time is out of range")


# --- locations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"x": [1.0], "y": pa.array([None], pa.float64())}, "x is given without y"),
        ({"x": [math.nan], "y": [1.0]}, "x is not finite: nan"),
        ({"x": ["1"], "y": ["north"]}, "y is not a number: 'north'"),
        ({"x": ["nan"], "y": ["1"]}, "x is not finite: nan"),
        ({"lon": [180.1], "lat": [0.0]}, "lon is out of range: 180.1 is not in [-180, 180]"),
        ({"lon": [120], "lat": [-91]}, "lat is out of range: -91.0 is not in [-90, 90]"),
        ({"lon": [31], "lat": [121]}, "lat is out of range, and would fit as lon: 121.0 is not in [-90, 90]"),
        ({"lon": [0.0], "lat": [-math.inf]}, "lat is not finite: -inf"),
        ({"geometry": ["POINT (1"]}, "geometry is not readable as WKT text or WKB bytes"),
        ({"geometry": [b"\x01\x02"]}, "geometry is not readable as WKT text or WKB bytes"),
        ({"geometry": ["POLYGON EMPTY"]}, "geometry is empty"),
        ({"geometry": ["LINESTRING (0 0, 1 1)"]}, "geometry is not a point or a polygon: LineString"),
        (
            {"geometry": ["POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"]},
            "geometry is not a simple polygon: Self-intersection[0.5 0.5]",
        ),
        ({"x": [1.0], "y": [1.0], "geometry": [SQUARE]}, "both coordinates and a geometry are given"),
    ],
)
def test_a_location_that_is_none_is_rejected(columns: dict[str, Any], reason: str) -> None:
    assert only_reason(normalise(table(**columns))) == reason


def test_an_event_may_have_no_location() -> None:
    found = normalise(table(x=[1.0, None], y=[2.0, None]))
    assert found.events["x"].to_pylist() == [1.0, None]
    assert found.rejected.num_rows == 0


def test_points_become_coordinates_and_polygons_stay() -> None:
    found = normalise(table(geometry=["POINT Z (1 2 3)", SQUARE, None])).events
    assert found["x"].to_pylist() == [1.0, None, None]
    assert found["y"].to_pylist() == [2.0, None, None]
    assert [wkb and shapely.from_wkb(wkb).wkt for wkb in found["geometry"].to_pylist()] == [
        None,
        SQUARE,
        None,
    ]


@pytest.mark.parametrize("order", [0, 1])
def test_points_in_wkb_are_read_in_either_byte_order(order: int) -> None:
    points = shapely.to_wkb(shapely.points([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), byte_order=order)
    events = normalise(table(geometry=pa.array(points.tolist())).slice(1)).events
    assert events["x"].to_pylist() == [3.0, 5.0]
    assert "geometry" not in events.schema.names


def test_coordinates_and_polygons_may_stand_side_by_side() -> None:
    found = normalise(table(lon=[1.0, None], lat=[2.0, None], geometry=[None, SQUARE]))
    assert found.coordinates is Coordinates.LONLAT
    assert found.events["x"].to_pylist() == [1.0, None]


def test_a_polygon_in_degrees_must_lie_on_the_earth() -> None:
    far = "POLYGON ((0 0, 200 0, 200 1, 0 0))"
    found = normalise(table(geometry=[far]), coordinates=Coordinates.LONLAT)
    assert only_reason(found).startswith("geometry is out of range")
    assert normalise(table(geometry=[far])).rejected.num_rows == 0


# --- attributes, ids and types ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", " 2.5", "nan", ""], Type.FLOAT, [1.0, 2.5, None, None]),
        ([1, 2], Type.FLOAT, [1.0, 2.0]),
        ([1.0, None], Type.INT, [1, None]),
        (["1", "+2", "3.0"], Type.INT, [1, 2, 3]),
        (["TRUE", "false", "1"], Type.BOOL, [True, False, True]),
        ([0, 1], Type.BOOL, [False, True]),
        ([7, None], Type.STRING, ["7", None]),
        ([True], Type.STRING, ["true"]),
    ],
)
def test_values_are_converted_to_the_declared_type(
    values: list[Any], kind: Type, expected: list[Any]
) -> None:
    found = normalise(table(v=values), schemas=declared(v=kind))
    assert found.events["v"].to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "kind", "reason"),
    [
        (["1", "fast"], Type.FLOAT, "attribute 'v' is not a number: 'fast'"),
        ([1.0, 1.5], Type.INT, "attribute 'v' is not a whole number: 1.5"),
        (["1", "1.5"], Type.INT, "attribute 'v' is not a whole number: '1.5'"),
        (["1", "9" * 30], Type.INT, f"attribute 'v' is not a whole number: '{'9' * 30}'"),
        ([1, 2], Type.BOOL, "attribute 'v' is not true or false: 2"),
        (["2024-05-01", "later"], Type.TIMESTAMP, "attribute 'v' is not a readable time: 'later'"),
    ],
)
def test_a_value_that_cannot_be_of_the_declared_type_is_a_bad_row(
    values: list[Any], kind: Type, reason: str
) -> None:
    found = normalise(table(v=values), schemas=declared(v=kind))
    assert only_reason(found) == reason
    assert found.events.num_rows == 1


def test_a_type_that_does_not_declare_an_attribute_is_not_rejected_for_it() -> None:
    batch = table(type=["a", "b"], v=["fast", "fast"])
    found = normalise(batch, schemas=declared(v=Type.FLOAT))
    assert found.rejected["row"].to_pylist() == [0]
    assert found.events["v"].to_pylist() == [None]


def test_schemas_that_cannot_share_a_column_are_an_error() -> None:
    schemas = {"a": EventSchema("a", {"v": Type.INT}), "b": EventSchema("b", {"v": Type.STRING})}
    with pytest.raises(DataError, match="int in 'a', string in 'b'"):
        normalise(table(v=[1]), schemas=schemas)


def test_int_and_float_make_float() -> None:
    schemas = {"a": EventSchema("a", {"v": Type.INT}), "b": EventSchema("b", {"v": Type.FLOAT})}
    assert normalise(table(v=[1]), schemas=schemas).events["v"].type == pa.float64()


@pytest.mark.parametrize("values", [["1", ""], ["1", None]])
def test_an_id_column_gives_every_event_an_id(values: list[str | None]) -> None:
    assert only_reason(normalise(table(id=values))) == "id is missing"


def test_whole_numbers_serve_as_ids_and_sources() -> None:
    events = normalise(table(id=[1, 2], source=[7, None])).events
    assert events["id"].to_pylist() == ["1", "2"]
    assert events["source"].to_pylist() == ["7", None]


@pytest.mark.parametrize("types", [["a", None], ["a", ""], pa.array(["a", None]).dictionary_encode()])
def test_every_event_has_a_type(types: Any) -> None:
    assert only_reason(normalise(table(type=types, time=[0, 0]))) == "type is missing"


def test_a_dictionary_may_hold_a_null() -> None:
    types = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a", None]))
    assert only_reason(normalise(table(type=types, time=[0, 0]))) == "type is missing"


# --- what was rejected ----------------------------------------------------------------------------------


def test_the_first_reason_wins() -> None:
    batch = table(type=[None], time=["x"], x=[math.nan], y=[0.0], id=[""])
    assert only_reason(normalise(batch)) == "type is missing"


def test_a_rejected_row_keeps_its_number_and_all_its_values() -> None:
    batch = table(time=pa.array([0, 2**62]).view(pa.timestamp("us")), v=[1.5, math.nan], g=pa.array([1, 2]))
    (row,) = Normaliser().normalise(batch, 10).rejected.to_pylist()
    assert row["row"] == 11
    event = json.loads(row["event"])
    assert (event["v"], event["g"], event["type"]) == ("nan", 2, "a")


# --- what no row can mend -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"type": ["a"]}, "no column says when.*columns found: type"),
        ({"type": ["a"], "tme": [1]}, "say which column it is: --column time=tme"),
        ({"type": ["a"], "start": [1]}, "there is 'start' but no 'end'"),
        ({"type": ["a"], "time": [1], "start": [1], "end": [1]}, "either 'time' or 'start' and 'end'"),
        ({"typ": ["a"], "time": [1]}, "no column 'type'.*--column type=typ"),
        ({"type": [1], "time": [1]}, "'type' has the type int64.*must hold text"),
        ({"type": ["a"], "time": [1], "x": [1.0]}, "there is 'x' but no 'y'"),
        (
            {"type": ["a"], "time": [1], "x": [1.0], "y": [1.0], "lon": [1.0], "lat": [1.0]},
            "either 'x' and 'y' or",
        ),
        ({"type": ["a"], "time": [1], "v": [timedelta(1)]}, r"'v' has the type duration\[us\]"),
        ({"type": ["a"], "time": [1], "v": [[1]]}, "'v' has the type list"),
        ({"type": ["a"], "time": [True]}, "'time' has the type bool"),
        ({"type": ["a"], "time": [1], "geometry": [1]}, "'geometry' has the type int64"),
        ({"type": ["a"], "time": [1], "id": [1.5]}, "'id' has the type double"),
    ],
)
def test_columns_that_cannot_make_events_are_an_error(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        normalise(pa.record_batch(columns))


def test_a_column_may_occur_once() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["a"])] * 2, names=["type", "type"])
    with pytest.raises(DataError, match="occurs more than once"):
        normalise(batch)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [({"lon": [1.0], "lat": [1.0]}, Coordinates.PLANE), ({"x": [1.0], "y": [1.0]}, Coordinates.LONLAT)],
)
def test_coordinates_are_not_mixed(columns: dict[str, Any], wanted: Coordinates) -> None:
    with pytest.raises(DataError, match=f"coordinates are mixed.*the query wants {wanted}"):
        normalise(table(**columns), coordinates=wanted)


def test_a_geometry_has_the_coordinates_of_the_query() -> None:
    assert (
        normalise(table(geometry=["POINT (1 2)"]), coordinates=Coordinates.LONLAT).coordinates
        is Coordinates.LONLAT
    )


def test_an_unknown_time_unit_is_an_error() -> None:
    with pytest.raises(DataError, match="'h' is not known; use one of: s, ms, us"):
        normalise(table(time=[1]), reading=Reading.of(time_unit="h"))


# --- laws -----------------------------------------------------------------------------------------------

values = st.one_of(
    st.none(), st.floats(), st.sampled_from(["1", "fast", "nan", "", "2024-05-01", "0x10", "007"])
)
times = st.sampled_from(
    ["2024-05-01T12:00:00Z", "2024-05-01", "5", "1e9", "x", "", "2024-05-01T12:00:00.1234567Z"]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(times, values.map(str)), min_size=1, max_size=80),
    st.integers(1, 79),
    st.sampled_from(list(Type)[:5]),
)
def test_where_batches_end_changes_nothing(rows: list[tuple[str, str]], cut: int, kind: Type) -> None:
    batch = table(time=[row[0] for row in rows], v=[row[1] for row in rows])
    whole = normalise(batch, schemas=declared(v=kind))
    parts = [
        Normaliser(declared(v=kind)).normalise(batch.slice(start, cut), start)
        for start in range(0, len(rows), cut)
    ]
    assert [row for part in parts for row in part.events.to_pylist()] == whole.events.to_pylist()
    assert [row for part in parts for row in part.rejected.to_pylist()] == whole.rejected.to_pylist()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(times, values.map(str)), min_size=1, max_size=20))
def test_conforming_twice_is_conforming_once(rows: list[tuple[str, str]]) -> None:
    batch = table(
        time=[row[0] for row in rows], v=[row[1] for row in rows], lon=[0] * len(rows), lat=[0] * len(rows)
    )
    once = normalise(batch).events
    twice = normalise(once)
    assert twice.events.equals(once, check_metadata=True)
    assert twice.rejected.num_rows == 0


def test_a_time_out_of_range_in_the_unit_that_was_said_is_rejected() -> None:
    found = normalise(table(time=[10**12]), reading=Reading.of(time_unit="s"))
    assert only_reason(found) == f"time is out of range: {10**12} lies outside the years 1 to 9999"
