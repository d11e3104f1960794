"""Layers: regions by name from GeoJSON and GeoParquet, and what is wrong with those that are none."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import whimbrel as wb
from whimbrel.errors import DataError, QueryError
from whimbrel.io.layers import read_layer
from whimbrel.model.schema import Coordinates

SQUARE = [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]
QUERY = "region Shops = layer('shops.geojson', name = 'shop')\ndefine In\n  detect T enters Shops\n"


def feature(geometry: dict | None, **properties: object) -> dict:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def polygon(rings: list = SQUARE) -> dict:
    return {"type": "Polygon", "coordinates": rings}


def written(folder: Path, *features: dict, name: str = "shops.geojson") -> Path:
    file = folder / name
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return file


def test_regions_of_geojson_are_named_by_a_property(tmp_path):
    file = written(tmp_path, feature(polygon(), shop="a"), feature(polygon(), shop=7))
    assert [name for name, _ in read_layer(file, "shop", None)] == ["a", "7"]


def test_regions_without_names_are_numbered(tmp_path):
    file = written(tmp_path, feature(polygon()), feature(polygon()))
    assert [name for name, _ in read_layer(file, None, None)] == ["1", "2"]


def test_geoparquet_says_which_column_is_the_geometry(tmp_path):
    table = pa.table({"shop": ["a", "b"], "area": [shapely.box(0, 0, n, n).wkb for n in (1, 2)]})
    about = {"primary_column": "area", "columns": {"area": {"encoding": "WKB"}}}
    file = tmp_path / "shops.parquet"
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(about)}), file)
    found = read_layer(file, "shop", None)
    assert [(name, shapely.from_wkt(wkt).area) for name, wkt in found] == [("a", 1.0), ("b", 4.0)]


def test_a_layer_is_looked_up_beside_the_query_file(tmp_path, monkeypatch):
    written(tmp_path, feature(polygon(), shop="a"))
    (tmp_path / "in.wbl").write_text(QUERY)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    query = wb.read(tmp_path / "in.wbl")
    rows = [
        {"type": "T", "time": t, "id": str(t), "source": "v", "x": x, "y": 1.0}
        for t, x in ((0, -3.0), (1, 1.0))
    ]
    assert wb.detect(query, rows).column("region").to_pylist() == ["a"]


BOW = [[[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]]]


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        ({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}, "it is a LineString, and a region"),
        ({"type": "Point", "coordinates": [0, 0]}, "it is a Point"),
        (polygon([]), "it is empty"),
        (polygon(BOW), "it is no simple polygon: Self-intersection"),
        (None, "it has no geometry"),
        ({"type": "Polygon", "coordinates": 5}, "the geometry is not a GeoJSON geometry"),
    ],
)  # fmt: skip
def test_what_is_no_region_is_refused_by_name(tmp_path, geometry, message):
    file = written(tmp_path, feature(polygon(), shop="good"), feature(geometry, shop="bad"))
    with pytest.raises(DataError, match="region 2") as caught:
        read_layer(file, "shop", None)
    assert message in str(caught.value)


def test_a_coordinate_that_is_no_number_is_refused(tmp_path):
    broken = bytearray(shapely.box(0, 0, 1, 1).wkb)
    broken[29:37] = struct.pack("<d", float("nan"))  # the second corner
    pq.write_table(pa.table({"shop": ["a"], "geometry": [bytes(broken)]}), tmp_path / "shops.parquet")
    with pytest.raises(DataError, match="region 1: it has a coordinate that is not a finite number"):
        read_layer(tmp_path / "shops.parquet", "shop", None)


def test_metres_are_no_longitude_and_latitude(tmp_path):
    large = [[[400_000, 5_000_000], [400_100, 5_000_000], [400_100, 5_000_100], [400_000, 5_000_000]]]
    file = written(tmp_path, feature(polygon(large), shop="a"))
    assert read_layer(file, "shop", Coordinates.PLANE)
    with pytest.raises(DataError, match=r"no longitude and latitude; is it in metres\?"):
        read_layer(file, "shop", Coordinates.LONLAT)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([feature(polygon(), shop="a"), feature(polygon(), shop="a")], "has the name of another one"),
        ([feature(polygon(), shop=None)], "has no name"),
        ([feature(polygon(), shops="a")], "no property 'shop'; did you mean 'shops'?"),
        ([], "has no region"),
        ([5], "is no GeoJSON feature"),
    ],
)
def test_regions_need_different_names(tmp_path, features, message):
    with pytest.raises(DataError) as caught:
        read_layer(written(tmp_path, *features), "shop", None)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.geojson", "{", "is no GeoJSON"),
        ("a.geojson", "[]", "it is no object with a type"),
        ("a.geojson", '{"type": "FeatureCollection", "features": 1}', "its features are no list"),
        ("a.shp", "", "a layer is GeoJSON or GeoParquet"),
        ("a.parquet", "no", "is no Parquet file"),
    ],
)
def test_files_that_are_no_layer(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        read_layer(tmp_path / name, None, None)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"shop": ["a"]}, "has no column 'geometry'"),
        ({"shop": ["a"], "geometry": ["POINT (1 2)"]}, "the column 'geometry' holds no WKB"),
        ({"shop": ["a"], "geometry": [b"nonsense"]}, "is not a geometry"),
        ({"name": ["a"], "geometry": [shapely.box(0, 0, 1, 1).wkb]}, "has no column 'shop'"),
    ],
)
def test_parquet_files_that_are_no_layer(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError) as caught:
        read_layer(tmp_path / "a.parquet", "shop", None)
    assert message in str(caught.value)


def test_a_bad_layer_is_shown_where_the_query_names_it(tmp_path):
    written(tmp_path, feature(polygon(BOW), shop="bow"))
    (tmp_path / "in.wbl").write_text(QUERY)
    with pytest.raises(QueryError, match="line 1") as caught:
        wb.read(tmp_path / "in.wbl")
    assert "'bow'" in str(caught.value)
    assert "^^^" in str(caught.value)
