"""The map: what is packed into the page can be unpacked again, and no text of the data becomes markup."""

from __future__ import annotations

import base64
import html
import json
import re
import subprocess
import sys
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from whimbrel.errors import DataError
from whimbrel.io.map import map_html, map_snippet, write_map

START = datetime(2025, 3, 3, 7, tzinfo=UTC)
ROADS = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"width": 12, "lanes": 2},
            "geometry": {"type": "LineString", "coordinates": [[0, 0], [500, 0]]},
        },
        {
            "type": "Feature",
            "properties": {"kind": "water"},
            "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 0]]]},
        },
    ],
}


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def positions(*rows: tuple[float, str | None, float | None, float | None], **names: str) -> pa.Table:
    """Make events from (second, source, x, y)."""
    across, along = names.get("x", "x"), names.get("y", "y")
    return pa.table(
        {
            "type": ["Position"] * len(rows),
            "time": pa.array([at(row[0]) for row in rows], pa.timestamp("us", "UTC")),
            "source": pa.array([row[1] for row in rows], pa.string()),
            across: pa.array([row[2] for row in rows], pa.float64()),
            along: pa.array([row[3] for row in rows], pa.float64()),
        }
    )


def found(*rows: dict[str, Any]) -> pa.Table:
    """Make detections; what a row leaves out has a default."""
    shapes = [row.get("shape", "POINT (10 20)") for row in rows]
    return pa.table(
        {
            "id": [f"d{number}" for number in range(len(rows))],
            "type": pa.array([row.get("type", "Accident") for row in rows], pa.string()),
            "start": pa.array([at(row.get("start", 0)) for row in rows], pa.timestamp("us", "UTC")),
            "end": pa.array([at(row.get("end", 10)) for row in rows], pa.timestamp("us", "UTC")),
            "geometry": pa.array([shape and shapely.from_wkt(shape).wkb for shape in shapes], pa.binary()),
            "road": pa.array([row.get("road", "A-B") for row in rows], pa.string()),
            "load": pa.array([row.get("load") for row in rows], pa.float64()),
            "events": pa.array([row.get("events", []) for row in rows], pa.list_(pa.string())),
        }
    )


def embedded(page: str) -> Any:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def unpacked(data: Any) -> dict[str, list[tuple[float, float, float]]]:
    """Give the reports of each object as (second, x, y), as the page's script does it."""
    counts = data["objects"]["counts"]
    raw = zlib.decompress(base64.b64decode(data["objects"]["packed"]))
    time, x, y = np.cumsum(np.frombuffer(raw, "<i4").reshape(3, -1).astype(np.int64), axis=1)
    seconds = time * data["tick"] / 1000
    rows = list(
        zip(seconds, x * data["step"] + data["origin"][0], y * data["step"] + data["origin"][1], strict=True)
    )
    ends = np.cumsum(counts)
    return {
        name: rows[end - count : end]
        for name, count, end in zip(data["objects"]["names"], counts, ends, strict=True)
    }


def test_reports_come_back_object_by_object_and_in_order_of_time():
    events = positions((5, "b", 100, 7.3), (0, "a", 0, 0), (1, "a", 12.5, 0.2), (3, "b", 90, -7.1))
    reports = unpacked(embedded(map_html(detections=found(), events=events)))
    assert sorted(reports) == ["a", "b"]
    np.testing.assert_allclose(reports["a"], [(0, 0, 0), (1, 12.5, 0.2)], atol=0.06)
    np.testing.assert_allclose(reports["b"], [(3, 90, -7.1), (5, 100, 7.3)], atol=0.06)


def test_detections_come_in_order_of_their_end_with_all_they_say():
    table = found(
        {"end": 60, "shape": "POLYGON ((0 0, 40 0, 0 30, 0 0))", "load": 2.5, "type": "Jam"},
        {"end": 20, "road": "C-D"},
    )
    data = embedded(map_html(detections=table))
    first, second = data["detections"]
    assert [data["types"][each["type"]]["name"] for each in (first, second)] == ["Accident", "Jam"]
    assert first["attributes"] == {"road": "C-D", "load": None}
    assert second["rings"] == [[0, 0, 40, 0, 0, 30, 0, 0]]
    assert (second["start"], second["end"]) == (0, 60_000)
    assert data["t0"] == START.timestamp() * 1000
    assert data["facts"] == "2 detections"


def test_constituents_are_found_by_the_ids_that_events_were_given():
    moment = int(at(3).timestamp()) * 1_000_000
    table = found({"events": [f"a:{moment}:00ff00ff00ff00ff:000000:Position", "elsewhere"]})
    data = embedded(map_html(detections=table, events=positions((0, "a", 0, 0), (3, "a", 1, 1))))
    assert data["detections"][0]["events"] == [["a", 3000], ["elsewhere", None]]
    assert data["detections"][0]["members"] == [0]


def test_constituents_are_found_by_ids_of_their_own():
    events = positions((0, "a", 0, 0), (4, "b", 1, 1)).append_column("id", pa.array(["one", "two"]))
    data = embedded(map_html(detections=found({"events": ["two"]}), events=events))
    assert data["detections"][0]["events"] == [["two", 4000]]
    assert data["detections"][0]["members"] == [data["objects"]["names"].index("b")]


def test_the_page_needs_no_network():
    page = map_html(detections=found({}), events=positions((0, "a", 0, 0)), roads=ROADS)
    assert not re.search(r"https?:|//\w+\.\w+/|@import|url\(|<link|<img|src=", page)
    assert "default-src 'none'" in page


HOSTILE = "</script><script>alert(1)</script><!--{{data}}{{title}}\u2028&quot;"


def test_hostile_names_stay_text():
    events = positions((0, HOSTILE, 0, 0))
    table = found({"type": HOSTILE, "road": HOSTILE, "events": [HOSTILE]})
    page = map_html(detections=table, events=events, title=HOSTILE)
    assert "alert(1)</script>" not in page
    assert page.count("<script") == 2
    data = embedded(page)
    assert data["objects"]["names"] == [HOSTILE]
    assert data["types"][0]["name"] == HOSTILE
    assert data["detections"][0]["attributes"]["road"] == HOSTILE
    assert f"<h1>{html.escape(HOSTILE)}</h1>" in page


def test_nothing_found_is_a_page_too():
    data = embedded(map_html(detections=found(), events=positions((0, "a", 1, 2), (9, "a", 3, 4))))
    assert data["detections"] == []
    assert data["span"] == 9000
    assert data["box"] == [1, 2, 3, 4]


def test_nothing_at_all_is_a_page_too():
    data = embedded(map_html(detections=found()))
    assert data["span"] == 0
    assert unpacked(data) == {}


def test_events_without_a_place_or_a_source_are_counted():
    events = positions((0, "a", 0, 0), (1, "a", None, 0), (2, None, 5, 5), (3, "a", 1, 0))
    data = embedded(map_html(detections=found({"shape": None}), events=events))
    assert data["objects"]["counts"] == [2]
    assert data["notes"] == ["2 events without a source or a place are not shown."]
    assert data["detections"][0]["box"] is None


def test_events_without_any_location_column_are_no_error():
    events = positions((0, "a", 0, 0)).drop_columns(["x", "y"])
    assert embedded(map_html(detections=found({}), events=events))["objects"]["names"] == []


def test_too_many_positions_are_thinned_but_keep_both_ends():
    events = positions(*((second, "a", second, 0) for second in range(100)))
    data = embedded(map_html(detections=found(), events=events, max_points=30))
    seconds = [row[0] for row in unpacked(data)["a"]]
    assert seconds[0] == 0
    assert seconds[-1] == 99
    assert len(seconds) == 26
    assert data["notes"] == ["One position in 4 of each object is shown."]


def test_degrees_become_metres_at_the_middle_latitude():
    events = positions((0, "ship", 10.0, 59.0), (60, "ship", 10.1, 61.0), x="lon", y="lat")
    data = embedded(
        map_html(detections=found({"shape": "POINT (10 60)"}), events=events, coordinates="lonlat")
    )
    (_, x0, y0), (_, x1, y1) = unpacked(data)["ship"]
    assert x1 - x0 == pytest.approx(0.1 * 111_195 * 0.5, rel=1e-3)
    assert y1 - y0 == pytest.approx(2 * 111_195, rel=1e-3)
    assert data["detections"][0]["label"] == "60.00000°, 10.00000°"


def test_a_track_across_the_antimeridian_stays_in_one_piece():
    events = positions((0, "ship", 179.9, 0), (60, "ship", -179.9, 0), x="lon", y="lat")
    (_, x0, _), (_, x1, _) = unpacked(
        embedded(map_html(detections=found(), events=events, coordinates="lonlat"))
    )["ship"]
    assert x1 - x0 == pytest.approx(0.2 * 111_195, rel=1e-3)


def test_geometry_columns_and_interval_events_are_read():
    events = pa.table(
        {
            "source": ["a", "a"],
            "start": pa.array([0, 1_000_000]),
            "end": pa.array([500_000, 2_000_000]),
            "geometry": [shapely.Point(1, 2).wkb, shapely.box(0, 0, 4, 4).wkb],
        }
    )
    data = embedded(map_html(detections=found().slice(0, 0), events=events))
    np.testing.assert_allclose(unpacked(data)["a"], [(0, 1, 2), (1.5, 2, 2)], atol=0.06)


def test_roads_become_lines_and_areas():
    ground = embedded(map_html(detections=found(), roads=ROADS))["ground"]
    assert ground["lines"] == [{"path": [0, 0, 500, 0], "width": 12, "lanes": 2}]
    assert [area["kind"] for area in ground["areas"]] == ["water"]


def test_the_file_is_written_with_its_folders(tmp_path):
    path = write_map(tmp_path / "new" / "map.html", detections=found({}))
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_notebook_gets_a_frame_that_holds_the_whole_page():
    arguments = {"detections": found({"road": '"quoted"'}), "title": "A & B"}
    match = re.search(r'srcdoc="([^"]*)"', map_snippet(**arguments))
    assert match is not None
    assert html.unescape(match[1]) == map_html(**arguments)


def test_unknown_coordinates_are_refused():
    with pytest.raises(DataError, match="'plane' or 'lonlat', not 'mars'"):
        map_html(detections=found(), coordinates="mars")


def test_events_without_times_are_refused():
    with pytest.raises(DataError, match="no column 'time'"):
        map_html(detections=found(), events=positions((0, "a", 0, 0)).drop_columns(["time"]))


def test_three_hundred_thousand_positions_fit_in_a_few_megabytes():
    chance = np.random.default_rng(3)
    cars, reports = 300, 1000
    steps = chance.normal(0, 8, (2, cars, reports)).cumsum(axis=2)
    seconds = np.tile(np.arange(reports), cars) * 1_000_000
    events = pa.table(
        {
            "time": pa.array(seconds),
            "source": np.repeat([f"car-{n}" for n in range(cars)], reports),
            "x": steps[0].ravel(),
            "y": steps[1].ravel(),
        }
    )
    assert len(map_html(detections=found(), events=events)) < 3_000_000


def test_importing_the_module_alone_loads_nothing_heavy():
    code = (
        "import sys, importlib.util as u, whimbrel.errors;"
        "from pathlib import Path; path = Path(whimbrel.errors.__file__).parent / 'io' / 'map.py';"
        "spec = u.spec_from_file_location('map_alone', path); module = u.module_from_spec(spec);"
        "sys.modules['map_alone'] = module; spec.loader.exec_module(module);"
        "print([name for name in ('numpy', 'pyarrow', 'shapely') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
