"""Detections are written as every backend promises, byte for byte."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import geopandas as gpd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from whimbrel.errors import DataError
from whimbrel.io import read_events, write_detections
from whimbrel.io.detections import sorted_detections
from whimbrel.model.batch import normalise

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("type", pa.dictionary(pa.int32(), pa.string())),
        ("start", TIME),
        ("end", TIME),
        ("geometry", pa.binary()),
        ("speed", pa.float64()),
        ("seen", TIME),
        ("note", pa.string()),
        ("events", pa.list_(pa.string())),
    ],
    metadata={
        "whimbrel.coordinates": "plane",
        "whimbrel.attributes": json.dumps({"jam": ["speed", "seen"], "stop": ["note"]}),
    },
)
ROWS: list[dict[str, Any]] = [
    {"id": "d3", "type": "stop", "start": 2, "end": 9, "note": 'a "b"\n☃', "events": ["e2", "e10"]},
    {
        "id": "d1",
        "type": "jam",
        "start": 1,
        "end": 5,
        "speed": 3.0,
        "seen": 7,
        "events": ["e1"],
        "geometry": shapely.Point(1, 2).wkb,
    },
    {
        "id": "d2",
        "type": "jam",
        "start": 1,
        "end": 5,
        "speed": None,
        "events": ["e1", "e2"],
        "geometry": shapely.from_wkt("POLYGON ((0 0, 1 0, 1 1, 0 0))").wkb,
    },
]


EXPECTED = (
    '{"type": "jam", "start": "1970-01-01T00:00:00.000001Z", "end": "1970-01-01T00:00:00.000005Z", '
    '"geometry": "POINT (1 2)", "attributes": {"speed": 3.0, "seen": "1970-01-01T00:00:00.000007Z"}, '
    '"events": ["e1"], "id": "d1"}\n'
    '{"type": "jam", "start": "1970-01-01T00:00:00.000001Z", "end": "1970-01-01T00:00:00.000005Z", '
    '"geometry": "POLYGON ((0 0, 1 0, 1 1, 0 0))", "attributes": {"speed": null, "seen": null}, '
    '"events": ["e1", "e2"], "id": "d2"}\n'
    '{"type": "stop", "start": "1970-01-01T00:00:00.000002Z", "end": "1970-01-01T00:00:00.000009Z", '
    '"geometry": null, "attributes": {"note": "a \\"b\\"\\n☃"}, "events": ["e2", "e10"], "id": "d3"}\n'
)


def table(rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def test_json_lines_are_exactly_as_promised(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_detections(table(), path)
    assert path.read_text(encoding="utf-8") == EXPECTED


def test_without_a_list_every_type_has_all_attributes(tmp_path: Path) -> None:
    write_detections(table().replace_schema_metadata({}), tmp_path / "out.jsonl")
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert list(first["attributes"]) == ["speed", "seen", "note"]


def test_csv_has_a_column_for_each_attribute(tmp_path: Path) -> None:
    write_detections(table(), tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["id", "type", "start", "end", "geometry", "speed", "seen", "note", "events"]
    assert found[1]["events"] == "e1 e2"
    assert found[0]["geometry"] == "POINT (1 2)"
    assert found[2]["note"] == 'a "b"\n☃'
    assert found[0]["seen"] == "1970-01-01T00:00:00.000007Z"


def test_geojson_says_that_coordinates_are_plane(tmp_path: Path) -> None:
    write_detections(table(), tmp_path / "out.geojson")
    found = json.loads((tmp_path / "out.geojson").read_text(encoding="utf-8"))
    assert found["coordinates"] == "plane"
    assert found["features"][0] == {
        "type": "Feature",
        "id": "d1",
        "geometry": {"type": "Point", "coordinates": [1.0, 2.0]},
        "properties": {
            "type": "jam",
            "start": "1970-01-01T00:00:00.000001Z",
            "end": "1970-01-01T00:00:00.000005Z",
            "speed": 3.0,
            "seen": "1970-01-01T00:00:00.000007Z",
            "events": ["e1"],
        },
    }
    assert found["features"][2]["geometry"] is None


def test_geojson_of_detections_can_be_read_as_events(tmp_path: Path) -> None:
    write_detections(
        table().replace_schema_metadata({"whimbrel.coordinates": "lonlat"}), tmp_path / "out.geojson"
    )
    (batch,) = read_events(tmp_path / "out.geojson")
    found = normalise(batch)
    assert found.coordinates == "lonlat"
    assert found.events["id"].to_pylist() == ["d1", "d2", "d3"]


@pytest.mark.parametrize(("coordinates", "crs"), [("lonlat", "OGC:CRS84"), ("plane", None)])
def test_parquet_with_geometry_is_geoparquet(tmp_path: Path, coordinates: str, crs: str | None) -> None:
    path = tmp_path / "out.parquet"
    write_detections(table().replace_schema_metadata({"whimbrel.coordinates": coordinates}), path)
    frame = gpd.read_parquet(path)
    assert frame.crs == crs
    assert frame.geometry.iloc[0] == shapely.Point(1, 2)
    assert pq.read_table(path).schema.metadata[b"whimbrel.coordinates"] == coordinates.encode()


def test_parquet_without_geometry_is_plain(tmp_path: Path) -> None:
    write_detections(table(ROWS[:1]), tmp_path / "out.parquet")
    assert b"geo" not in pq.read_schema(tmp_path / "out.parquet").metadata


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "geojson"])
def test_no_detections_are_a_file_too(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    write_detections(table([]), path)
    text = path.read_bytes()
    if ending == "jsonl":
        assert text == b""
    if ending == "csv":
        assert text.startswith(b'"id","type"')
    if ending == "geojson":
        assert json.loads(text)["features"] == []


def test_lists_of_ids_are_sorted_as_lists() -> None:
    ids = [["a", "c"], ["a"], ["a", "b"], ["a!"], []]
    rows = [{"id": "", "type": "t", "start": 0, "end": 0, "events": events} for events in ids]
    assert sorted_detections(table(rows))["events"].to_pylist() == sorted(ids)


def test_a_dash_is_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdout", out)
    write_detections(table(), "-")
    assert len(out.buffer.getvalue().splitlines()) == 3  # type: ignore[attr-defined]


def test_what_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="ending does not tell a format"):
        write_detections(table(), tmp_path / "out.xls")
    with pytest.raises(
        DataError, match="format 'xls' is not known; use one of: jsonl, csv, parquet, geojson"
    ):
        write_detections(table(), tmp_path / "out", "xls")
    with pytest.raises(DataError, match="cannot be written: No such file"):
        write_detections(table(), tmp_path / "nowhere" / "out.csv")
    with pytest.raises(DataError, match="is a folder"):
        write_detections(table(), tmp_path, "csv")
    with pytest.raises(DataError, match="no table of detections: it has no column 'type'"):
        write_detections(pa.table({"x": [1]}), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
