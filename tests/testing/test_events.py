"""The one-line notation for events."""

from __future__ import annotations

import pyarrow as pa
import pytest

from whimbrel.errors import DataError
from whimbrel.testing import detections, events, table


def one(text):
    (row,) = events(text)
    return row


def test_a_point_event_starts_and_ends_at_its_time():
    assert one("leave@75m") == {"type": "leave", "start": 4_500_000_000, "end": 4_500_000_000}


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("A@7us", 7),
        ("A@7ms", 7_000),
        ("A@7s", 7_000_000),
        ("A@7", 7_000_000),
        ("A@2m", 120_000_000),
        ("A@2min", 120_000_000),
        ("A@2h", 7_200_000_000),
        ("A@1d", 86_400_000_000),
        ("A@0.5s", 500_000),
        ("A@-2s", -2_000_000),
    ],
)
def test_times_have_units_and_seconds_are_the_default(text, microseconds):
    assert one(text)["start"] == one(text)["end"] == microseconds


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("A@1..3s", 1_000_000, 3_000_000),
        ("A@1..3", 1_000_000, 3_000_000),
        ("A@500ms..3s", 500_000, 3_000_000),
        ("A@1..3m", 60_000_000, 180_000_000),
        ("A@-3..-1s", -3_000_000, -1_000_000),
        ("A@0.5..1.5s", 500_000, 1_500_000),
    ],
)
def test_an_event_that_lasts_has_two_times(text, start, end):
    assert (one(text)["start"], one(text)["end"]) == (start, end)


def test_what_stands_behind_the_time_may_come_in_any_order():
    expected = {"type": "A", "start": 0, "end": 0, "id": "e", "source": "bus-4", "x": 1.0, "y": -2.5, "v": 3}
    assert one("A@0#e!bus-4(1,-2.5):v=3") == expected
    assert one("A@0:v=3(1, -2.5)!bus-4#e") == expected


def test_attributes_are_typed_by_how_they_look():
    row = one("A@0:i=-3,f=2.5,g=1e3,t=true,u=false,n=null,k=north,q='7',w='two words, one comma'")
    values = {name: row[name] for name in "ifgtunkqw"}
    expected = {"i": -3, "f": 2.5, "g": 1000.0, "t": True, "u": False, "n": None, "k": "north", "q": "7"}
    assert values == expected | {"w": "two words, one comma"}
    assert [type(values[name]) for name in "ifg"] == [int, float, float]


def test_a_value_may_hold_the_colon_of_a_clock():
    assert one("A@0:at=12:30")["at"] == "12:30"


def test_events_stand_on_one_line_or_on_several():
    assert [row["type"] for row in events(" A@1 B@2\n  C@3\n")] == ["A", "B", "C"]
    assert events("") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A", "'A' is not an event; write for example 'A@5s'"),
        ("@5s", "'@5s' is not an event"),
        ("A@soon", "'A@soon' is not an event"),
        ("A@5y", "'y' in 'A@5y' is no unit of time; units: us, ms, s, m, min, h, d"),
        ("A@3..1s", "'A@3..1s' ends before it starts"),
        ("A@1s#a#b", "'A@1s#a#b' gives its id twice"),
        ("A@1s(1)", r"\(1\) in 'A@1s\(1\)' is not a point"),
        ("A@1s(1,north)", "is not a point"),
        ("A@1s:v", "'v' in 'A@1s:v' is not 'name=value'"),
        ("A@1s:v=1,v=2", "the attribute 'v' in .* is given twice"),
        ("A@1s:end=1", "the attribute 'end' in .* is a column of every event"),
        ("A@1s?", r"'\?' in 'A@1s\?' is none of '#id'"),
        ("A@1s:k='x", '"\'" in .* is opened and never closed'),
        ("A@1s(1,2", r"'\(' in .* is opened and never closed"),
    ],
)
def test_bad_notation_says_what_is_wrong(text, message):
    with pytest.raises(DataError, match=message):
        events(text)


def test_a_table_has_times_with_a_zone_and_nulls_where_nothing_was_given():
    made = table("A@1s#a:v=1,k=x B@2..3s(1,2):v=2.5")
    assert made.schema.field("start").type == made.schema.field("end").type == pa.timestamp("us", tz="UTC")
    assert made.schema.field("v").type == pa.float64()
    assert made.column("id").to_pylist() == ["a", None]
    assert made.column("k").to_pylist() == ["x", None]
    assert made.column("x").to_pylist() == [None, 1.0]
    assert made.column("end").cast(pa.int64()).to_pylist() == [1_000_000, 3_000_000]


def test_a_table_of_nothing_still_has_its_columns():
    assert table("").column_names == ["type", "start", "end"]
    assert table("").num_rows == 0


def test_an_attribute_that_is_always_null_is_a_column_of_text():
    assert table("A@1s:k=null").schema.field("k").type == pa.string()


def test_an_attribute_has_one_type():
    with pytest.raises(DataError, match="the attribute 'v' has int and str values; a column has one type"):
        table("A@1s:v=1 A@2s:v=x")


def test_detections_name_their_span_and_their_events():
    assert detections("missing@0m..60m: e1\n0m..60m: leave;") == [
        {"type": "missing", "start": 0, "end": 3_600_000_000, "events": ("e1",)},
        {"start": 0, "end": 3_600_000_000, "events": ("leave",)},
    ]


def test_detections_may_have_attributes():
    assert detections("busy@5s:n=2,k=x: a b") == [
        {"type": "busy", "start": 5_000_000, "end": 5_000_000, "n": 2, "k": "x", "events": ("a", "b")}
    ]


@pytest.mark.parametrize("text", ["missing@0m..60m", "missing@0m:n=1", "later: e1"])
def test_what_is_not_a_detection_is_refused(text):
    with pytest.raises(DataError, match="is not"):
        detections(text)
