"""What mobile queries told is written with the columns of deliveries, in the order in which it is told."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import geopandas as gpd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from click.testing import CliRunner

import whimbrel as wb
from whimbrel.cli.main import main
from whimbrel.engine.result import Detections
from whimbrel.io.detections import sorted_detections, write_detections
from whimbrel.model.deliveries import DELIVERY, counted
from whimbrel.space.geometry import to_wkt

QUERY = """
event Car(name: string, number: int, kind: string)
event Crash(level: int)
define Bad detect Crash(level > 1) as c assign level = c.level, change = 'none'
define Any detect Crash
around Car(kind = 'medic') as rescue
  group by name
  within 400 m
  report Bad
  lifetime 1 min
  deliver changes
around Car(kind = 'medic') as {other}
  group by {key}
  within 250 m
  report Any
"""


def events() -> list[dict[str, Any]]:
    """Two medics drive through places where something crashes."""
    rows: list[dict[str, Any]] = []
    for time in range(0, 60, 5):
        for number, step in enumerate((20.0, -15.0), start=1):
            place = {"x": 500 + step * time, "y": 0.0}
            car = {"name": f"m{number}", "number": number, "kind": "medic"}
            rows.append({"type": "Car", "time": time, **car, **place})
        crash = {"level": time // 5 % 4, "x": (time * 91) % 1200.0, "y": 10.0}
        rows.append({"type": "Crash", "time": time + 1, **crash})
    return [{"id": f"e{number}", **row} for number, row in enumerate(rows)]


@pytest.fixture(scope="module")
def told() -> Detections:
    return wb.detect(wb.compile(QUERY.format(other="watch", key="name")), events())


def test_the_order_is_that_of_telling(told: Detections) -> None:
    times = told["told"].to_pylist()
    assert times == sorted(times)
    assert told["end"].to_pylist() != sorted(told["end"].to_pylist())
    assert sorted_detections(told.table).equals(told.table)
    turned = told.table.take(pa.array(range(len(told) - 1, -1, -1)))
    keys = ["told", "query", "focal", "interest", "change"]
    assert sorted_detections(turned).select(keys).equals(told.table.select(keys))
    alone, other = (table.replace_schema_metadata(None) for table in (told.table, turned))
    assert sorted_detections(alone).equals(sorted_detections(other))


def test_json_lines_have_the_columns_of_deliveries(told: Detections, tmp_path: Path) -> None:
    told.save(tmp_path / "d.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()]
    assert len(rows) == len(told)
    assert [row["delivery"] for row in rows] == told["delivery"].to_pylist()
    assert list(rows[0]) == ["type", "start", "end", "geometry", "attributes", "events", "id", *DELIVERY]
    first = next(row for row in rows if row["query"] == "rescue" and row["change"] == "added")
    assert first["attributes"] == {"level": first["attributes"]["level"], "change": "none"}
    assert (first["focal"], first["told"][-1], type(first["live"]), first["interest"]) == (
        first["focal"],
        "Z",
        bool,
        first["interest"],
    )


@pytest.mark.parametrize("name", ["d.geojson", "d.mfjson"])
def test_a_feature_has_the_id_of_the_delivery(told: Detections, tmp_path: Path, name: str) -> None:
    told.save(tmp_path / name)
    features = json.loads((tmp_path / name).read_text())["features"]
    assert [each["id"] for each in features] == told["delivery"].to_pylist()
    assert len({each["id"] for each in features}) == len(features)
    assert [each["properties"]["id"] for each in features] == told["id"].to_pylist()
    assert {each["properties"]["change"] for each in features} == {"removed", "kept", "added"}
    assert {each["properties"].get("change_") for each in features} == {"none", None}


def test_interest_areas_are_written_where_asked_for(told: Detections, tmp_path: Path) -> None:
    for name in ("d.jsonl", "d.csv", "d.parquet", "d.geojson"):
        told.save(tmp_path / name)
        assert b"interest_area" not in (tmp_path / name).read_bytes()
        told.save(tmp_path / name, interest_areas=True)
    areas = told["interest_area"].to_pylist()
    expected = [to_wkt(each) for each in areas]
    assert shapely.from_wkt(expected[0]).contains(shapely.from_wkb(told["geometry"][0].as_py()))
    with (tmp_path / "d.csv").open() as file:
        assert [row["interest_area"] for row in csv.DictReader(file)] == expected
    assert pq.read_table(tmp_path / "d.parquet")["interest_area"].to_pylist() == areas
    lines = (tmp_path / "d.jsonl").read_text().splitlines()
    assert [json.loads(line)["interest_area"] for line in lines] == expected
    features = json.loads((tmp_path / "d.geojson").read_text())["features"]
    assert [each["properties"]["interest_area"] for each in features] == expected


def test_parquet_can_be_written_again(told: Detections, tmp_path: Path) -> None:
    told.save(tmp_path / "d.parquet", interest_areas=True)
    read = pq.read_table(tmp_path / "d.parquet")
    for name in ("d.jsonl", "d.csv", "d.geojson"):
        told.save(tmp_path / name)
        write_detections(read, tmp_path / f"again-{name}")
        assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()


def test_as_frames_of_other_packages(told: Detections) -> None:
    frame = told.to_pandas()
    assert frame["interest_area"].tolist() == told["interest_area"].to_pylist()
    assert isinstance(told.to_geopandas(), gpd.GeoDataFrame)
    polars = told.to_polars()
    assert polars["delivery"].to_list() == told["delivery"].to_pylist()
    assert polars["interest_area"].to_list() == told["interest_area"].to_pylist()


def test_a_result_shows_who_is_told(told: Detections) -> None:
    head, columns = str(told).splitlines()[0:2]
    assert head.startswith(f"{len(told)} deliveries in 36 events")
    assert columns.split()[:6] == ["told", "(UTC)", "query", "focal", "interest", "live"]
    assert f"and {len(told) - 10} more deliveries" in told._repr_html_()


def test_keys_of_different_types_become_text() -> None:
    mixed = wb.detect(wb.compile(QUERY.format(other="watch", key="number")), events())
    assert mixed.schema.field("focal").type == pa.string()
    assert set(mixed["focal"].to_pylist()) == {"m1", "m2", "1", "2"}


def test_detections_among_deliveries_have_no_columns_of_theirs(tmp_path: Path) -> None:
    session = wb.Session(wb.compile(QUERY.format(other="watch", key="name")), lateness=None)
    session.add(wb.compile("define Plain detect Crash(level > 2) as c assign focal = c.level, live = 'no'"))
    session.push(events())
    both = session.close()
    assert counted(both).startswith("3 detections and ")
    write_detections(both, tmp_path / "d.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()]
    assert [row["type"] for row in rows if "delivery" not in row] == ["Plain"] * 3
    assert [row["attributes"] for row in rows if "delivery" not in row] == [{"focal_": 3, "live_": "no"}] * 3
    write_detections(both, tmp_path / "d.geojson")
    features = json.loads((tmp_path / "d.geojson").read_text())["features"]
    plain = [each for each in features if each["properties"]["type"] == "Plain"]
    assert {each["id"] for each in plain} == {row["id"] for row in rows if row["type"] == "Plain"}
    assert not any("told" in each["properties"] for each in plain)


def test_the_command_line_writes_areas_where_asked_for(tmp_path: Path) -> None:
    (tmp_path / "q.wbl").write_text(QUERY.format(other="watch", key="name"))
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in events()))
    asked = ["detect", str(tmp_path / "q.wbl"), "--events", str(tmp_path / "e.jsonl")]
    plain = CliRunner().invoke(main, asked)
    assert plain.exit_code == 0, plain.stderr
    assert "deliveries, 0 late" in plain.stderr
    assert "interest_area" not in plain.stdout
    assert '"interest_area": "POLYGON' in CliRunner().invoke(main, [*asked, "--interest-areas"]).stdout
