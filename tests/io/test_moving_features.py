"""GeoJSON with times and Moving Features JSON are read, and detections written as such can be read again."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import DataError
from whimbrel.io import read_events, write_detections
from whimbrel.io._moving import MOVING as KINDS
from whimbrel.model.batch import COORDINATES_KEY, normalise

TIMES = ["2024-05-01T08:00:00Z", "2024-05-01T08:00:10Z", "2024-05-01T08:00:20Z"]
WAY = [[8.5, 47.0], [8.6, 47.1], [8.7, 47.2]]
MOVING = {"type": "MovingPoint", "datetimes": TIMES, "coordinates": WAY, "interpolation": "Linear"}


def feature(**members: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": {"type": "Bus"}, **members}


def collection(*features: Any, **members: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", **members, "features": list(features)}


def written(path: Path, *contents: Any) -> Path:
    path.write_text("\n".join(json.dumps(content) for content in contents), encoding="utf-8")
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for batch in read_events(path) for row in batch.to_pylist()]


def rejected(path: Path) -> list[tuple[int, str]]:
    pieces = read_events(path).pieces()
    found = [row for piece in pieces if piece.rejected for row in piece.rejected.to_pylist()]
    return [(row["row"], row["reason"]) for row in found]


@pytest.mark.parametrize("name", ["a.geojson", "a.mfjson", "a.mf.json", "a.json"])
def test_each_position_of_a_moving_point_is_an_event(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, collection(feature(id="A7", temporalGeometry=MOVING)))
    assert rows(path) == [
        {"type": "Bus", "source": "A7", "time": time, "lon": lon, "lat": lat}
        for time, (lon, lat) in zip(TIMES, WAY, strict=True)
    ]


def test_temporal_properties_are_attributes_at_their_times(tmp_path: Path) -> None:
    first, _, last = TIMES
    properties = [
        {
            "datetimes": [first, last],
            "speed": {"type": "Measure", "form": "KMH", "values": [10, 30], "interpolation": "Linear"},
            "gear": {"type": "Measure", "values": [1, 2], "interpolation": "Step"},
            "door": {"type": "Text", "values": ["open", "shut"], "interpolation": "Discrete"},
        },
        {"datetimes": ["2024-05-01T08:00:05Z"], "camera": {"type": "Text", "values": ["x.png"]}},
    ]
    path = written(
        tmp_path / "a.mfjson", feature(id=7, temporalGeometry=MOVING, temporalProperties=properties)
    )
    found = {row["time"]: row for row in rows(path)}
    assert [found[time]["speed"] for time in TIMES] == [10, 20, 30]
    assert [found[time]["gear"] for time in TIMES] == [1, 1, 2]
    assert [found[time]["door"] for time in TIMES] == ["open", None, "shut"]
    alone = found["2024-05-01T08:00:05Z"]
    assert (alone["camera"], alone["speed"], alone["lon"], alone["source"]) == ("x.png", 15.0, None, "7")


def test_a_line_with_datetimes_is_a_trajectory(tmp_path: Path) -> None:
    line = {"type": "LineString", "coordinates": [[*place, 400.0] for place in WAY]}
    said = {
        "type": "Bus",
        "datetimes": TIMES,
        "state": ["a", "b", "c"],
        "id": "x",
        "start": "early",
        "tags": [1],
    }
    path = written(tmp_path / "a.geojson", {"type": "Feature", "geometry": line, "properties": said})
    assert rows(path)[1] == {
        "type": "Bus", "start_": "early", "tags": "[1]", "source": "x", "time": TIMES[1], "state": "b",
        "lon": 8.6, "lat": 47.1, "altitude": 400.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"coordTimes": TIMES}, "LineString"),
        ({"coordinateProperties": {"times": TIMES, "heart": [1, 2, 3]}}, "LineString"),
        ({"coordTimes": [TIMES[:1], TIMES[1:]]}, "MultiLineString"),
    ],
)
def test_times_along_a_line_are_found_where_converters_put_them(
    tmp_path: Path, properties: dict[str, Any], kind: str
) -> None:
    places = WAY if kind == "LineString" else [WAY[:1], WAY[1:]]
    line = {"type": kind, "coordinates": places}
    path = written(tmp_path / "a.geojson", {"type": "Feature", "geometry": line, "properties": properties})
    assert [(row["time"], row["lon"], row["source"]) for row in rows(path)] == [
        (time, lon, "feature 1") for time, (lon, _) in zip(TIMES, WAY, strict=True)
    ]


def test_numbers_are_milliseconds_or_seconds(tmp_path: Path) -> None:
    moving = {"type": "MovingPoint", "datetimes": [1714550400123, 1714550401], "coordinates": WAY[:2]}
    path = written(tmp_path / "a.mfjson", feature(temporalGeometry=moving))
    assert [row["time"] for row in rows(path)] == [
        "2024-05-01T08:00:00.123000Z",
        "2024-05-01T08:00:01.000000Z",
    ]


def test_several_movers_in_a_feature_and_moving_polygons_are_read(tmp_path: Path) -> None:
    square = [[[0, 0], [1, 0], [1, 1], [0, 0]]]
    both = {
        "type": "MovingGeometryCollection",
        "prisms": [
            {"type": "MovingPoint", "datetimes": TIMES[:1], "coordinates": WAY[:1]},
            {"type": "MovingPolygon", "datetimes": TIMES[1:2], "coordinates": [square]},
        ],
    }
    path = written(tmp_path / "a.mfjson", collection(feature(id="A", temporalGeometry=both)))
    first, second = rows(path)
    assert (first["lon"], first["geometry"]) == (8.5, None)
    assert (second["lon"], second["geometry"]) == (None, "POLYGON ((0 0, 1 0, 1 1, 0 0))")
    (batch,) = read_events(path)
    assert normalise(batch).rejected.num_rows == 0


def test_a_moving_point_alone_as_mobilitydb_writes_it_is_read(tmp_path: Path) -> None:
    parts = [
        {"datetimes": TIMES[:2], "coordinates": WAY[:2]},
        {"datetimes": TIMES[2:], "coordinates": WAY[2:]},
    ]
    path = written(
        tmp_path / "a.mfjson", {"type": "MovingPoint", "sequences": parts, "interpolation": "Linear"}
    )
    assert [row["time"] for row in rows(path)] == TIMES


@pytest.mark.parametrize(
    ("crs", "expected"),
    [
        (None, b"lonlat"),
        ({"type": "Name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}, b"lonlat"),
        ({"type": "Name", "properties": {"name": "urn:ogc:def:crs:EPSG::4326"}}, b"lonlat"),
        ({"type": "Name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}, b"plane"),
    ],
)
def test_the_reference_system_decides_the_coordinates(tmp_path: Path, crs: Any, expected: bytes) -> None:
    members = {} if crs is None else {"crs": crs}
    moving = feature(temporalGeometry=MOVING)
    for content in (collection(moving, **members), collection({**moving, **members})):
        (batch,) = read_events(written(tmp_path / "a.mfjson", content))
        assert batch.schema.metadata[COORDINATES_KEY] == expected
        assert ("lon" in batch.schema.names) == (expected == b"lonlat")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"time": TIMES[:2]}, (TIMES[0], TIMES[1])),
        ({"time": {"interval": ["2024-05-01", "2024-05-02"]}}, ("2024-05-01", "2024-05-02")),
        ({"time": {"timestamp": "2024-05-01T08:00:00Z"}}, "2024-05-01T08:00:00Z"),
        ({"when": {"start": "2024-05-01", "stop": "2024-05-02"}}, ("2024-05-01", "2024-05-02")),
        ({"when": {"datetime": "2024-05-01T08:00:00Z"}}, "2024-05-01T08:00:00Z"),
    ],
)  # fmt: skip
def test_a_feature_may_say_its_time_beside_its_properties(
    tmp_path: Path, members: Any, expected: Any
) -> None:
    point = {"type": "Point", "coordinates": [8.5, 47]}
    (row,) = rows(written(tmp_path / "a.geojson", collection(feature(geometry=point, **members))))
    assert (row["time"] if isinstance(expected, str) else (row["start"], row["end"])) == expected
    assert row["geometry"] == "POINT (8.5 47)"


@pytest.mark.parametrize("name", ["a.geojsonl", "a.geojsons", "a.jsonl", "a.json", "a.geojson", "a.ndjson"])
@pytest.mark.parametrize("separator", ["", "\x1e"])
def test_one_feature_a_line_is_read(tmp_path: Path, name: str, separator: str) -> None:
    point = {"type": "Point", "coordinates": [8.5, 47]}
    lines = [json.dumps(feature(geometry=point, id=f"e{n}", time=[TIMES[n], TIMES[n]])) for n in range(3)]
    path = tmp_path / name
    path.write_text("".join(f"{separator}{line}\n" for line in lines))
    if separator and name not in ("a.geojsonl", "a.geojsons"):
        path = path.rename(tmp_path / "b.geojsonl")
    assert [(row["id"], row["start"], row["geometry"]) for row in rows(path)] == [
        (f"e{n}", TIMES[n], "POINT (8.5 47)") for n in range(3)
    ]


def test_an_event_of_the_type_feature_is_no_feature(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"type": "Feature", "time": 1}, {"type": "Feature", "time": 2})
    assert [row["time"] for row in rows(path)] == [1, 2]


def test_what_cannot_be_understood_is_rejected_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.mfjson",
        collection(
            feature(temporalGeometry={**MOVING, "datetimes": TIMES[:2]}),
            feature(temporalGeometry={"type": "MovingCar"}),
            feature(temporalGeometry={"type": "MovingPoint"}),
            feature(temporalGeometry={**MOVING, "coordinates": [WAY[0], [1], ["x", 2]]}),
            feature(temporalGeometry=MOVING, temporalProperties=[{"datetimes": TIMES, "a": {"values": [1]}}]),
            {"type": "Thing"},
            feature(properties=3),
            3,
        ),
    )
    assert len(rows(path)) == 1
    assert rejected(path) == [
        (1, "the feature has 3 positions and 2 times; there must be as many"),
        (2, f"the temporalGeometry is a 'MovingCar', not one of: {', '.join(KINDS)}"),
        (3, "the feature cannot be understood (KeyError: 'datetimes')"),
        (4, "a position is not two or three numbers"),
        (4, "a position is not two or three numbers"),
        (5, "the property 'a' has 1 values and 3 times"),
        (6, "this is not a GeoJSON feature"),
        (7, "the properties of the feature are not an object"),
        (8, "the feature is not a JSON object"),
    ]  # fmt: skip


def test_a_collection_without_features_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the FeatureCollection has no list of features"):
        read_events(written(tmp_path / "a.geojson", {"type": "FeatureCollection"}))


# --- what is written ----------------------------------------------------------------------------------

moments = st.integers(0, 4_000_000_000_000_000)
places = st.tuples(st.floats(-180, 180), st.floats(-90, 90))


def detections(found: list[dict[str, Any]], coordinates: str = "lonlat") -> pa.Table:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("type", pa.string()),
            ("start", pa.timestamp("us", "UTC")),
            ("end", pa.timestamp("us", "UTC")),
            ("geometry", pa.binary()),
            ("speed", pa.float64()),
            ("events", pa.list_(pa.string())),
        ],
        metadata={COORDINATES_KEY: coordinates.encode()},
    )
    return pa.Table.from_pylist(found, schema=schema)


def moment(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


@given(
    st.lists(
        st.tuples(moments, moments, st.none() | places, st.none() | st.floats(-9, 9)), min_size=1, max_size=5
    ),
    st.sampled_from([".mfjson", ".mf.json.gz", ".mfjson.zst"]),
    st.sampled_from(["lonlat", "plane"]),
)
def test_detections_without_positions_are_read_again_as_they_were(
    given_rows: list[Any], ending: str, coordinates: str
) -> None:
    found = [
        {
            "id": f"d{number}", "type": "Met",
            "start": moment(min(one, other)), "end": moment(max(one, other)),
            "geometry": None if place is None else shapely.to_wkb(shapely.Point(place)), "speed": speed,
            "events": ["e1", "e2"],
        }
        for number, (one, other, place, speed) in enumerate(given_rows)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"found{ending}"
        write_detections(detections(found, coordinates), path)
        events = [normalise(batch).events for batch in read_events(path)]
    again = {row["id"]: row for batch in events for row in batch.to_pylist()}
    assert {batch.schema.metadata[COORDINATES_KEY].decode() for batch in events} <= {coordinates, "none"}
    for row in found:
        event = again[row["id"]]
        assert (event["type"], event["events"]) == ("Met", '["e1", "e2"]')
        assert (moment(event["start"]), moment(event["end"])) == (row["start"], row["end"])
        assert event.get("speed") == row["speed"]
        place = shapely.from_wkb(row["geometry"])
        assert (event.get("x"), event.get("y")) == ((None, None) if place is None else (place.x, place.y))


@given(st.dictionaries(moments, places, min_size=1, max_size=6), st.integers(1, 2))
def test_the_way_of_the_events_of_a_detection_is_read_again(way: dict[int, Any], sources: int) -> None:
    times = sorted(way)
    positions = pa.table(
        {
            "id": [f"e{number}" for number in range(len(times))],
            "source": [f"s{number % sources}" for number in range(len(times))],
            "end": pa.array(times, pa.int64()),
            "lon": [float(way[time][0]) for time in times],
            "lat": [float(way[time][1]) for time in times],
        }
    )
    row = {
        "id": "d", "type": "Went", "start": moment(times[0]), "end": moment(times[-1]),
        "geometry": None, "speed": 1.5,
        "events": positions["id"].to_pylist(),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.mfjson"
        write_detections(detections([row]), path, positions=positions)
        (written_feature,) = json.loads(path.read_text())["features"]
        (batch,) = read_events(path)
    parts = written_feature["temporalGeometry"]
    assert parts["type"] == ("MovingGeometryCollection" if min(sources, len(times)) == 2 else "MovingPoint")
    events = normalise(batch).events.to_pylist()
    assert {event["end"]: (event["x"], event["y"]) for event in events} == way
    assert {(event["source"], event["type"], event["speed"]) for event in events} == {("d", "Went", 1.5)}
