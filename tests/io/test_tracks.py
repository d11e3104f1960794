"""GPX files and AIS logs are read, and what in them is no event is told."""

from __future__ import annotations

import gzip
import sys
from datetime import UTC, datetime
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyais import encode_dict

from whimbrel.errors import DataError, MissingDependency
from whimbrel.io import read_events
from whimbrel.io._nmea import COLUMNS
from whimbrel.model.batch import normalise


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in read_events(path, **options) for row in batch.to_pylist()]


def rejected(path: Path) -> list[tuple[int, str]]:
    pieces = read_events(path).pieces()
    found = [row for piece in pieces if piece.rejected for row in piece.rejected.to_pylist()]
    return [(row["row"], row["reason"]) for row in found]


# --- GPX -----------------------------------------------------------------------------------------------

GPX = """<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="test" xmlns="http://www.topografix.com/GPX/1/1" xmlns:x="http://example.org/x">
  <metadata><name>All</name><time>2020-01-01T00:00:00Z</time></metadata>
  <wpt lat="47.5" lon="8.25"><time>2024-05-01T07:00:00Z</time><name>Café</name><type>food</type></wpt>
  <rte><name>Plan</name><rtept lat="1" lon="2"/>
    <rtept lat="3" lon="4"><time>2024-05-01T06:00:00Z</time></rtept></rte>
  <trk><name>Morning</name>
    <trkseg>
      <trkpt lat="47" lon="8"><ele>400.5</ele><time>2024-05-01T08:00:00Z</time>
        <extensions><x:More><x:hr>120</x:hr><x:note>007</x:note></x:More></extensions></trkpt>
      <trkpt lat="47.1" lon="8.1"><ele>401</ele></trkpt>
    </trkseg>
    <trkseg><trkpt lat="47.2" lon="8.2"><time>2024-05-01T08:10:00Z</time></trkpt></trkseg>
  </trk>
  <trk><trkseg><trkpt lat="46" lon="7"><time>2024-05-01T09:00:00Z</time></trkpt></trkseg></trk>
</gpx>
"""


def test_the_points_of_a_gpx_file_are_events(tmp_path: Path) -> None:
    path = tmp_path / "ride.gpx"
    path.write_text(GPX, encoding="utf-8")
    found = rows(path)
    assert [(row["type"], row["source"], row["time"], row["lon"], row["lat"]) for row in found] == [
        ("Waypoint", None, "2024-05-01T07:00:00Z", 8.25, 47.5),
        ("RoutePoint", "Plan", "2024-05-01T06:00:00Z", 4.0, 3.0),
        ("TrackPoint", "Morning", "2024-05-01T08:00:00Z", 8.0, 47.0),
        ("TrackPoint", "Morning", "2024-05-01T08:10:00Z", 8.2, 47.2),
        ("TrackPoint", "ride 2", "2024-05-01T09:00:00Z", 7.0, 46.0),
    ]
    assert (found[0]["name"], found[0]["kind"]) == ("Café", "food")
    assert (found[2]["altitude"], found[2]["hr"], found[2]["note"], found[2]["segment"]) == (
        400.5,
        120,
        "007",
        1,
    )
    assert found[3]["segment"] == 2
    assert rejected(path) == [
        (2, "the route point has no time, so that it is no event"),
        (5, "the track point has no time, so that it is no event"),
    ]
    (batch,) = read_events(path)
    assert normalise(batch).rejected.num_rows == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_gpx_1_0_in_any_encoding_that_it_names_is_read(tmp_path: Path, encoding: str) -> None:
    text = f"""<?xml version="1.0" encoding="{encoding}"?>
    <gpx version="1.0" xmlns="http://www.topografix.com/GPX/1/0">
    <trk><name>Zürich</name><trkseg>
    <trkpt lat="47" lon="8"><time>2024-05-01T08:00:00Z</time><speed>3.5</speed>
    <course>90</course></trkpt></trkseg></trk></gpx>"""
    path = tmp_path / "a.gpx.gz"
    path.write_bytes(gzip.compress(text.encode(encoding)))
    (row,) = rows(path)
    assert (row["source"], row["speed"], row["course"]) == ("Zürich", 3.5, 90)


def test_what_stands_before_a_break_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.gpx"
    path.write_text(GPX[: GPX.index('<trkpt lat="47.2"')])
    assert len(rows(path)) == 3
    row, reason = rejected(path)[-1]
    assert row == 6
    assert reason.startswith(
        "the XML is broken here, and nothing behind it can be read: no element found, line 13"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty; it must hold GPX"),
        ("<kml><Point/></kml>", "the file is not GPX: its outermost element is <kml>"),
        ("<gpx><trk>", "the file is not GPX: no element found"),
        ("nothing like it", "the file is not GPX: syntax error, line 1"),
        ('<!DOCTYPE gpx [<!ENTITY a "aaaa">]><gpx>&a;</gpx>', "declares a document type .DOCTYPE."),
    ],
)
def test_what_is_no_gpx_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.gpx"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        rows(path)


def test_a_place_that_is_no_number_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.gpx"
    time = "<time>2024-05-01T08:00:00Z</time>"
    path.write_text(
        f'<gpx><wpt lat="x" lon="8">{time}</wpt><wpt lon="8">{time}</wpt>'
        f'<wpt lat="95" lon="8">{time}</wpt></gpx>'
    )
    assert rejected(path) == [(1, "lat is not a number: 'x'"), (2, "lat is not a number: None")]
    (batch,) = read_events(path)
    assert "lat is out of range" in normalise(batch).rejected.to_pylist()[0]["reason"]


# --- AIS -----------------------------------------------------------------------------------------------

SHIP = {
    "type": 1,
    "mmsi": 244123456,
    "lon": 4.25,
    "lat": 52.5,
    "speed": 12.3,
    "course": 90.5,
    "heading": 91,
    "status": 5,
}
STATIC = {"type": 5, "mmsi": 244123456, "shipname": "EVER GIVEN", "callsign": "H3RC", "imo": 9811000,
          "ship_type": 70, "to_bow": 300, "to_stern": 100, "to_port": 30, "to_starboard": 29,
          "destination": "ROTTERDAM", "draught": 15.5}  # fmt: skip


def sentences(message: dict[str, Any], **options: Any) -> list[str]:
    return encode_dict(message, talker_id="AI", sentence_type="VDM", **options)


def summed(sentence: str) -> str:
    return f"{sentence}*{reduce(xor, sentence[1:].encode()):02X}"


def log(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_position_report_is_an_event(tmp_path: Path) -> None:
    path = log(tmp_path / "a.nmea", "\\s:station,c:1700000000*52\\" + sentences(SHIP)[0])
    (row,) = rows(path)
    assert {name: value for name, value in row.items() if value is not None} == {
        "type": "AisPosition", "source": "244123456", "time": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        "lon": 4.25, "lat": 52.5, "mmsi": 244123456, "message": 1, "speed": 12.3, "course": 90.5,
        "heading": 91, "status": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "\\c:1700000000*00\\{}",
        "\\g:1-2-77,s:rORBCOMM,c:1700000000000*00\\{}",
        "1700000000 {}",
        "1700000000.000,{}",
        "1700000000000\t{}",
        "2023-11-14T22:13:20Z {}",
        "2023-11-14 22:13:20.000 {}",
        "[2023-11-14 23:13:20+01:00] {}",
        "2023/11/14 22:13:20;station 7;{}",
        "{},1700000000",
        "{},s27540,d-113,T51.29,r003669961,1700000000",
        "{} 2023-11-14T22:13:20Z",
        summed("$PGHP,1,2023,11,14,22,13,20,0,244,2,,1,7F") + "\n{}",
    ],
)
def test_the_time_is_found_where_logs_have_it(tmp_path: Path, line: str) -> None:
    path = log(tmp_path / "a.nmea", line.format(sentences(SHIP)[0]))
    assert [row["time"] for row in rows(path)] == [datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)], rejected(
        path
    )


def test_a_line_without_a_time_is_rejected(tmp_path: Path) -> None:
    path = log(tmp_path / "a.nmea", *sentences(SHIP), "1700000000 " + sentences(SHIP)[0])
    assert len(rows(path)) == 1
    ((row, reason),) = rejected(path)
    assert row == 1
    assert reason.startswith("the line has no time, neither in a tag block")


def test_parts_of_a_message_are_put_together(tmp_path: Path) -> None:
    first, second = sentences(STATIC, seq_id=3)
    other, rest = sentences({**STATIC, "mmsi": 1234, "shipname": ""}, seq_id=4)
    path = log(tmp_path / "a.nmea", f"1700000000 {first}", f"1700000001 {rest}", second, other)
    found = rows(path)
    assert [(row["type"], row["source"], row["name"]) for row in found] == [
        ("AisStatic", "244123456", "EVER GIVEN"),
        ("AisStatic", "000001234", None),
    ]
    assert (found[0]["length"], found[0]["width"], found[0]["draught"], found[0]["imo"]) == (
        400,
        59,
        15.5,
        9811000,
    )
    assert (found[0]["callsign"], found[0]["destination"], found[0]["ship_type"]) == ("H3RC", "ROTTERDAM", 70)
    assert found[0]["lon"] is None


def test_parts_without_the_others_are_rejected(tmp_path: Path) -> None:
    first, second = sentences(STATIC, seq_id=3)
    path = log(
        tmp_path / "a.nmea", f"1700000000 {first}", f"1700000000 {first}", f"1700000000 {second}", second
    )
    assert len(rows(path)) == 1
    reason = "the other parts of the message are missing: this is part {} of 2"
    assert rejected(path) == [(1, reason.format(1)), (4, reason.format(2))]


def test_values_that_mean_unknown_are_missing(tmp_path: Path) -> None:
    unknown = {
        "type": 1,
        "mmsi": 1,
        "lon": 181,
        "lat": 91,
        "speed": 102.3,
        "course": 360,
        "heading": 511,
        "status": 15,
    }
    class_b = {"type": 18, "mmsi": 2, "lon": 181, "lat": 91, "speed": 102.3, "course": 360, "heading": 511}
    far = {"type": 27, "mmsi": 3, "lon": 181, "lat": 91, "speed": 63, "course": 511, "status": 15}
    plane = {"type": 9, "mmsi": 4, "lon": 181, "lat": 91, "speed": 1023, "course": 360, "alt": 4095}
    path = log(
        tmp_path / "a.ais", *(f"1700000000 {sentences(each)[0]}" for each in (unknown, class_b, far, plane))
    )
    for row in rows(path):
        told = {name for name, value in row.items() if value is not None} - {"turn"}
        assert told == {"type", "source", "time", "mmsi", "message"}, row


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"type": 4, "lon": 4.25, "lat": 52.5}, {"type": "AisBase", "lon": 4.25}),
        ({"type": 8, "dac": 1, "fid": 2, "data": b"\x01"}, {"type": "AisOther", "message": 8, "lon": None}),
        ({"type": 9, "lon": 4.25, "lat": 52.5, "alt": 300}, {"type": "AisPosition", "altitude": 300}),
        ({"type": 18, "lon": 4.25, "lat": 52.5, "speed": 3.5}, {"type": "AisPosition", "speed": 3.5}),
        ({"type": 19, "lon": 4.25, "lat": 52.5, "shipname": "AB"}, {"type": "AisPosition", "name": "AB"}),
        ({"type": 21, "lon": 4.25, "lat": 52.5, "name": "BUOY"}, {"type": "AisAid", "name": "BUOY"}),
        ({"type": 24, "partno": 0, "shipname": "AB"}, {"type": "AisStatic", "name": "AB"}),
        ({"type": 24, "partno": 1, "callsign": "XY", "ship_type": 37}, {"callsign": "XY", "ship_type": 37}),
        ({"type": 27, "lon": 4.0, "lat": 52.0, "speed": 9}, {"type": "AisPosition", "speed": 9.0}),
    ],
)  # fmt: skip
def test_every_message_has_a_type(tmp_path: Path, message: dict[str, Any], expected: dict[str, Any]) -> None:
    lines = [f"1700000000 {each}" for each in sentences({"mmsi": 99, **message}, seq_id=1)]
    (row,) = rows(log(tmp_path / "a.nmea", *lines))
    assert {name: row[name] for name in expected} == expected
    assert (row["source"], row["mmsi"]) == ("000000099", 99)


def test_the_position_of_the_receiver_is_an_event(tmp_path: Path) -> None:
    path = log(
        tmp_path / "boat.nmea", summed("$GPRMC,123519.50,A,4807.038,N,01131.000,W,022.4,084.4,230324,003.1,W")
    )
    (row,) = rows(path)
    assert (row["type"], row["source"], row["speed"], row["course"]) == ("Position", "boat", 22.4, 84.4)
    assert (row["lat"], row["lon"]) == (pytest.approx(48.1173), pytest.approx(-11.516666667))
    assert row["time"] == datetime(2024, 3, 23, 12, 35, 19, 500_000, tzinfo=UTC)


def test_lines_that_are_no_messages_are_rejected_with_their_reason(tmp_path: Path) -> None:
    good = sentences(SHIP)[0]
    path = log(
        tmp_path / "a.nmea",
        "# a comment", "", "hello", f"1700000000 {good[:-2]}00",
        summed("$GPGGA,1,2"), summed("$GPRMC,1,V,,,,,,,,"),
        "1700000000 " + summed("!AIVDM,1,1,,A,,0"), f"1700000000 {good}",
    )  # fmt: skip
    assert len(rows(path)) == 1
    found = rejected(path)
    assert [row for row, _ in found] == [3, 4, 5, 6, 7]
    assert [reason.split(":")[0] for _, reason in found] == [
        "the line is no NMEA sentence with a checksum",
        "the checksum is wrong",
        "this NMEA sentence is not read (VDM, VDO and RMC are)",
        "the receiver had no fix",
        "the AIS message is too short to say who sent it",
    ]


@given(
    st.integers(0, 999_999_999), st.floats(-180, 180), st.floats(-90, 90),
    st.floats(0, 102.2), st.floats(0, 359.9), st.integers(0, 4_000_000_000),
)  # fmt: skip
def test_positions_come_out_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory,
    mmsi: int,
    lon: float,
    lat: float,
    speed: float,
    course: float,
    time: int,
) -> None:
    message = {"type": 3, "mmsi": mmsi, "lon": lon, "lat": lat, "speed": speed, "course": course}
    path = log(tmp_path_factory.mktemp("ais") / "a.nmea", f"\\c:{time}*00\\{sentences(message)[0]}")
    (row,) = rows(path)
    assert (row["mmsi"], row["source"]) == (mmsi, f"{mmsi:09d}")
    assert row["time"].timestamp() == time
    assert (row["lon"], row["lat"]) == (pytest.approx(lon, abs=2e-6), pytest.approx(lat, abs=2e-6))
    assert (row["speed"], row["course"]) == (pytest.approx(speed, abs=0.11), pytest.approx(course, abs=0.11))


def test_only_the_columns_that_are_wanted_are_built(tmp_path: Path) -> None:
    path = log(tmp_path / "a.nmea", "1700000000 " + sentences(SHIP)[0])
    (batch,) = read_events(path, columns=["speed"])
    assert batch.schema.names == ["type", "source", "time", "lon", "lat", "mmsi", "speed"]
    (batch,) = read_events(path)
    assert batch.schema.names == list(COLUMNS)


def test_without_pyais_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log(tmp_path / "a.nmea", "1700000000 " + sentences(SHIP)[0])
    monkeypatch.setitem(sys.modules, "pyais", None)
    with pytest.raises(
        MissingDependency, match=r"reading AIS messages needs the package 'pyais'.*whimbrel\[ais\]"
    ):
        read_events(path)
