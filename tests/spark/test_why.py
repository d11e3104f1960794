"""Asking about a Spark frame: the rows that matter are collected, and explained here."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.spark.collecting import rows_of, types_of

QUERY = """
define Brake
  detect Position(speed > 30) as a then Position as b within 5 s
  where b.speed < a.speed / 2
  assign drop = a.speed - b.speed
  group by vehicle
"""
ROWS = [
    ("p0", "Position", 0, "A", 40.0),
    ("p1", "Position", 3, "A", 25.0),
    ("p2", "Position", 9, "B", 40.0),
    ("p3", "Position", 10, "B", 10.0),
    ("p4", "Position", 1000, "A", 40.0),
    ("q5", "Fuel", 4, "A", 0.0),
]


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(ROWS, "id string, type string, t long, vehicle string, speed double")


def test_a_frame_is_explained_as_a_table_is(frame):
    query = wb.compile(QUERY)
    found = wb.why(query, frame, key="A", at=3_000_000, columns={"time": "t"})
    assert not found.matched
    assert [str(reason) for reason in found.misses[0].reasons] == [
        "b: b.speed was 25, needed < 20 (a.speed / 2)"
    ]
    assert found.types == {"Position": 2}  # neither other vehicles nor other times were collected
    assert wb.why(query, frame, key="B", columns={"time": "t"}).matched


def test_only_rows_that_matter_are_collected(frame):
    query = wb.compile(QUERY)
    some = rows_of(query, frame, {"vehicle": "A"}, (0, 20_000_000), columns={"time": "t"})
    assert sorted(some.column("id").to_pylist()) == ["p0", "p1"]
    assert types_of(query, frame) == {"Position": 5, "Fuel": 1}


def test_a_type_that_never_came_is_told_with_those_that_did(frame):
    query = wb.compile("define X detect Positions as a then Position as b within 5 s group by vehicle")
    texts = [
        str(reason) for miss in wb.why(query, frame, columns={"time": "t"}).misses for reason in miss.reasons
    ]
    assert any("no event of type Positions came at all; did you mean 'Position'?" in text for text in texts)


def test_a_stream_has_no_rows_to_look_at(spark):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(wb.WhimbrelError, match="read its source as a static frame"):
        wb.why(wb.compile("define X detect A"), stream)
