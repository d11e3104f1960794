"""Events from data frames, detections as data frames and maps: all through `whimbrel.detect`."""

from __future__ import annotations

import importlib

import geopandas
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import whimbrel as wb

frames = importlib.import_module("whimbrel.io.frames")

QUERY = wb.compile(
    "define Fast(vehicle, speed) detect Position(speed > 30) as p assign vehicle = p.source, speed = p.speed"
)
TIMES = pd.to_datetime(["2024-05-01T08:00:00Z", "2024-05-01T08:01:00Z", "2024-05-01T08:02:00Z"])
COLUMNS = {
    "id": ["e1", "e2", "e3"],
    "type": ["Position"] * 3,
    "source": ["a", "b", "a"],
    "speed": [50.0, 10.0, 40.0],
}
LON, LAT = [10.0, 10.1, 10.2], [50.0, 50.1, 50.2]
FOUND = [("a", 50.0, ["e1"]), ("a", 40.0, ["e3"])]


def as_table(x: str = "lon", y: str = "lat") -> pa.Table:
    return pa.table({**COLUMNS, "time": pa.array(TIMES), x: LON, y: LAT})


def as_geo_frame() -> geopandas.GeoDataFrame:
    frame = pd.DataFrame({**COLUMNS, "time": TIMES})
    return geopandas.GeoDataFrame(frame, geometry=geopandas.points_from_xy(LON, LAT), crs="EPSG:4326")


KINDS = {
    "Arrow": as_table,
    "record batch": lambda: as_table().to_batches()[0],
    "pandas": lambda: as_table().to_pandas(),
    "polars": lambda: pl.from_arrow(as_table()),
    "lazy polars": lambda: pl.from_arrow(as_table()).lazy(),
    "GeoPandas": as_geo_frame,
    "dicts": lambda: as_table().to_pylist(),
}


def rows(table: pa.Table) -> list[tuple]:
    return list(zip(*(table[name].to_pylist() for name in ("vehicle", "speed", "events")), strict=True))


@pytest.fixture
def found() -> pa.Table:
    return wb.detect(QUERY, as_table())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_detections(kind, found):
    given = wb.detect(QUERY, KINDS[kind]())
    assert rows(given) == FOUND
    assert given.equals(found, check_metadata=True)


@pytest.mark.parametrize("many", [False, True])
def test_paths_give_the_same_detections(many, found, tmp_path):
    path = tmp_path / "events.parquet"
    pq.write_table(as_table(), path)
    assert wb.detect(QUERY, [path] if many else str(path)).equals(found, check_metadata=True)


def test_a_query_is_compiled_first(tmp_path):
    for text in ("define Fast detect Position", tmp_path / "fast.wbl"):
        with pytest.raises(
            wb.WhimbrelError, match=r"compile it first: wb.compile\(text\) or wb.read\(path\)"
        ):
            wb.detect(text, as_table())


# Detections as data frames ----------------------------------------------------------------------------------


def test_pandas(found):
    frame = wb.to_pandas(found)
    assert list(zip(frame["vehicle"], frame["speed"], frame["events"], strict=True)) == FOUND
    assert str(frame["end"].dtype) == "datetime64[us, UTC]"
    assert shapely.from_wkb(frame["geometry"][0]) == shapely.Point(10, 50)


def test_polars(found):
    frame = wb.to_polars(found)
    assert list(zip(frame["vehicle"], frame["speed"], frame["events"].to_list(), strict=True)) == FOUND
    assert frame.schema["end"] == pl.Datetime("us", "UTC")


def test_geopandas_has_wgs84_for_lonlat(found):
    frame = wb.to_geopandas(found)
    assert isinstance(frame, geopandas.GeoDataFrame)
    assert frame.crs == "EPSG:4326"
    assert frame.geometry.tolist() == [shapely.Point(10, 50), shapely.Point(10.2, 50.2)]
    assert list(frame.columns) == found.column_names


def test_geopandas_has_no_crs_for_a_plane():
    frame = wb.to_geopandas(wb.detect(QUERY, as_table("x", "y")))
    assert frame.crs is None
    assert frame.geometry.iloc[0] == shapely.Point(10, 50)


def test_geopandas_of_detections_without_a_place():
    plain = as_table().drop_columns(["lon", "lat"])
    frame = wb.to_geopandas(wb.detect(QUERY, plain))
    assert len(frame) == 2
    assert frame.geometry.isna().all()


@pytest.mark.parametrize("make", [wb.to_pandas, wb.to_polars, wb.to_geopandas])
def test_no_detections_are_an_empty_frame(make):
    none = wb.detect(QUERY, as_table().slice(1, 1))
    frame = make(none)
    assert len(frame) == 0
    assert {"id", "type", "start", "end", "geometry", "events"} <= set(frame.columns)


@pytest.mark.parametrize("make", [wb.to_pandas, wb.to_polars, wb.to_geopandas])
def test_detections_are_events_for_another_query(make, found):
    again = wb.compile("define Twice detect Fast as a then Fast as b within 5 min")
    frame = make(found)
    frame = frame.drop("events", axis=1) if hasattr(frame, "iloc") else frame.drop("events")
    assert wb.detect(again, frame, coordinates="lonlat").num_rows == 1


@pytest.mark.parametrize(
    ("make", "package", "extra"),
    [
        (wb.to_pandas, "pandas", "pandas"),
        (wb.to_polars, "polars", "polars"),
        (wb.to_geopandas, "geopandas", "geo"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(make, package, extra, found, monkeypatch):
    def without(name, *rest):
        if name == package:
            raise ImportError(name)
        return importlib.import_module(name, *rest)

    monkeypatch.setattr(frames, "import_module", without)
    with pytest.raises(wb.WhimbrelError, match=rf"pip install 'whimbrel\[{extra}\]'"):
        make(found)


# The map ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_shows_itself_in_a_notebook(kind, found):
    shown = wb.show(found, KINDS[kind]())._repr_html_()
    assert shown.startswith("<iframe")
    assert "2 detections in 3 positions of 2 objects" in shown


def test_a_map_is_saved(found, tmp_path):
    events = tmp_path / "events.parquet"
    pq.write_table(as_table(), events)
    page = wb.show(found, str(events), title="Fast ones").save(tmp_path / "maps" / "fast.html")
    text = page.read_text(encoding="utf-8")
    assert "<title>Fast ones" in text
    assert "2 detections in 3 positions of 2 objects" in text


def test_a_map_needs_no_events(found):
    assert "2 detections" in wb.show(found)._repr_html_()
    assert repr(wb.show(found.slice(1))) == "<map of 1 detection; save(path) writes it>"
    assert repr(wb.show(found)) == "<map of 2 detections; save(path) writes it>"
