"""Event files of every format are read right, and what is wrong with one is said clearly."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from whimbrel.errors import DataError
from whimbrel.io import _csv, _jsonl, read_events
from whimbrel.io._kinds import join
from whimbrel.model.batch import normalise
from whimbrel.model.schema import Coordinates, EventSchema, Type


def rows(path: Path | list[Path], **options: Any) -> list[dict[str, Any]]:
    return [row for batch in read_events(path, **options) for row in batch.to_pylist()]


def values(path: Path, name: str, **options: Any) -> list[Any]:
    return [row[name] for row in rows(path, **options)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut text files into many blocks, as large files are."""
    monkeypatch.setattr(_csv, "_BLOCK", 64)
    monkeypatch.setattr(_jsonl, "_BLOCK", 64)


# --- CSV -----------------------------------------------------------------------------------------------


def csv(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_csv_file_is_read(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", "type,time,speed,label", "bus,1,2.5,x", 'bus,2,,"a, ""b"""')
    assert rows(path) == [
        {"type": "bus", "time": 1, "speed": 2.5, "label": "x"},
        {"type": "bus", "time": 2, "speed": None, "label": 'a, "b"'},
    ]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("last", "expected"),
    [("7", 7), ("7.5", 7.5), ("seven", "seven"), ("", None), ("007", "007"), ("1e3", 1000.0)],
)
def test_what_a_column_holds_does_not_depend_on_blocks(tmp_path: Path, last: str, expected: Any) -> None:
    path = csv(tmp_path / "a.csv", "type,time,v", *["bus,1,1"] * 100, f"bus,2,{last}")
    found = values(path, "v")
    assert found[-1] == expected
    assert {type(value) for value in found[:-1]} == {type(expected) if expected is not None else int}


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["1", "2.5"], [1.0, 2.5]),
        (["true", "FALSE"], [True, False]),
        (["true", "1"], ["true", "1"]),
        (["0x10", "1"], ["0x10", "1"]),
        (["00.5", "1"], ["00.5", "1"]),
        (["-01", "1"], ["-01", "1"]),
        (["0", "-0.5"], [0.0, -0.5]),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
        (["1e30", "1"], [1e30, 1.0]),
        (["", ""], [None, None]),
        (['""', "1"], [None, 1]),
        (['""', "x"], ["", "x"]),
        (["2024-05-01", "2024-05-02"], ["2024-05-01", "2024-05-02"]),
        (["NA", "1"], ["NA", "1"]),
    ],
)
def test_columns_are_numbers_only_if_every_value_is_one(
    tmp_path: Path, column: list[str], expected: list[Any]
) -> None:
    path = csv(tmp_path / "a.csv", "type,time,v", *[f"bus,1,{value}" for value in column])
    assert values(path, "v") == expected


def test_names_stay_text_even_if_they_look_like_numbers(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", "id,type,source,time", "1,2,3,4")
    assert rows(path) == [{"id": "1", "type": "2", "source": "3", "time": 4}]


def test_a_declared_attribute_is_left_as_text_for_the_schema_to_judge(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", "type,time,code,speed", "bus,1,1.50,2")
    schemas = {"bus": EventSchema("bus", {"code": Type.STRING, "speed": Type.FLOAT})}
    (batch,) = read_events(path, schemas=schemas)
    events = normalise(batch, schemas=schemas).events
    assert events["code"].to_pylist() == ["1.50"]
    assert events["speed"].to_pylist() == [2.0]


@pytest.mark.parametrize("small", [True, False])
def test_a_malformed_line_is_a_rejected_row(
    tmp_path: Path, small: bool, request: pytest.FixtureRequest
) -> None:
    if small:
        request.getfixturevalue("small_blocks")
    good = ["bus,1,5"] * 20
    path = csv(tmp_path / "a.csv", "type,time,v", *good, "bus,1", *good, "bus,,7", "bus,1,2,3")
    seen: dict[int, str] = {}
    for piece in read_events(path).pieces():
        found = [piece.numbered(normalise(piece.batch).rejected)]
        found += [piece.rejected] if piece.rejected else []
        for batch in found:
            seen |= dict(zip(batch["row"].to_pylist(), batch["reason"].to_pylist(), strict=True))
    assert seen == {
        21: "the line has a wrong number of fields: 2, not 3",
        42: "time is missing",
        43: "the line has a wrong number of fields: 4, not 3",
    }


@pytest.mark.parametrize("columns", [None, []])
def test_a_quote_that_is_never_closed_does_not_swallow_rows_silently(
    tmp_path: Path, columns: list[str] | None
) -> None:
    path = csv(tmp_path / "a.csv", "type,time,v", "a,1,2", 'a,2,"3', "a,3,4")
    pieces = list(read_events(path, columns=columns).pieces())
    assert [row["time"] for piece in pieces for row in piece.batch.to_pylist()] == [1]
    (bad,) = [row for piece in pieces if piece.rejected for row in piece.rejected.to_pylist()]
    assert (bad["row"], bad["reason"].split(":")[0]) == (2, "a quote is not closed")
    assert "a,3,4" in bad["event"]
    assert columns is not None or pieces[0].batch["v"].to_pylist() == [2]


def test_a_header_alone_is_no_events(tmp_path: Path) -> None:
    for text in ("type,time\n", "type,time"):
        path = tmp_path / "a.csv"
        path.write_text(text)
        assert rows(path) == []


def test_line_ends_marks_and_tabs_make_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbftype\ttime\r\nbus\t1\r\n")
    assert rows(path) == [{"type": "bus", "time": 1}]


def test_a_column_that_occurs_twice_is_a_clear_error(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", "type,time,v,v", "bus,1,2,3")
    with pytest.raises(DataError, match="'v' occurs more than once"):
        normalise(next(iter(read_events(path))))
    assert rows(path, columns=[]) == [{"type": "bus", "time": 1}]


def test_text_may_span_lines(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", "type,time,note", 'bus,1,"one', 'two"', "bus,2,x")
    assert values(path, "note") == ["one\ntwo", "x"]


# --- JSON ----------------------------------------------------------------------------------------------


def jsonl(path: Path, *lines: Any) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_json_lines_are_read(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"type": "a", "time": 1, "v": 1}, {"type": "a", "time": 2, "w": "x"})
    assert rows(path) == [
        {"type": "a", "time": 1, "v": 1, "w": None},
        {"type": "a", "time": 2, "v": None, "w": "x"},
    ]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("last", "expected"),
    [(7.5, 7.5), ("x", "x"), (2**70, str(2**70)), ([1, {"a": 2}], '[1, {"a": 2}]'), (True, "true")],
)
def test_what_a_member_holds_does_not_depend_on_blocks(tmp_path: Path, last: Any, expected: Any) -> None:
    path = jsonl(
        tmp_path / "a.jsonl", *[{"type": "a", "time": 1, "v": 1}] * 50, {"type": "a", "time": 2, "v": last}
    )
    found = values(path, "v")
    assert found[-1] == expected
    assert {type(value) for value in found} == {type(expected)}


@pytest.mark.parametrize("small", [True, False])
def test_a_malformed_json_line_is_a_rejected_row(
    tmp_path: Path, small: bool, request: pytest.FixtureRequest
) -> None:
    if small:
        request.getfixturevalue("small_blocks")
    good = [{"type": "a", "time": 1}] * 40
    path = jsonl(tmp_path / "a.jsonl", *good, "{oops", "", *good, "[1]", '{"type": "\\ud800"}', {"type": "a"})
    pieces = list(read_events(path).pieces())
    bad = [row for piece in pieces if piece.rejected for row in piece.rejected.to_pylist()]
    assert [(row["row"], row["event"]) for row in bad] == [
        (41, "{oops"),
        (83, "[1]"),
        (84, '{"type": "\\ud800"}'),
    ]
    late = [row for piece in pieces for row in piece.numbered(normalise(piece.batch).rejected).to_pylist()]
    assert [(row["row"], row["reason"]) for row in late] == [(85, "time is missing")]


def test_a_line_that_is_not_utf8_is_a_rejected_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"type": "a", "time": 1}\n{"type": "\xff", "time": 1}\n')
    (piece,) = read_events(path).pieces()
    assert piece.rejected["reason"].to_pylist() == ["the line is not UTF-8 text"]
    assert piece.batch.num_rows == 1


def test_text_that_looks_like_a_time_stays_text(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"type": "a", "time": "2024-05-01T00:00:00Z"})
    assert values(path, "time") == ["2024-05-01T00:00:00Z"]


def test_deep_nesting_does_not_break_the_parser(tmp_path: Path) -> None:
    deep = '{"type": "a", "time": 1, "v": ' + "[" * 100_000 + "]" * 100_000 + "}"
    path = jsonl(tmp_path / "a.jsonl", deep, {"type": "a", "time": 1})
    (piece,) = read_events(path).pieces()
    assert piece.rejected["row"].to_pylist() == [1]


@pytest.mark.parametrize(
    "text",
    [
        '[{"type": "a", "time": 1}]',
        '[\n{"type": "a",\n"time": 1}]',
        '{"type": "a", "time": 1}\n',
        '{\n"type": "a",\n"time": 1}',
    ],
)
def test_a_json_file_may_be_a_list_an_object_or_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert rows(path) == [{"type": "a", "time": 1}]


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def test_geojson_features_are_events_in_degrees(tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [1.5, 2]}
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    features = [
        feature(point, type="a", time=1),
        feature(square, type="b", time=2),
        feature(None, type="c", time=3),
        7,
    ]
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    (piece,) = read_events(path).pieces()
    found = normalise(piece.batch)
    assert found.coordinates is Coordinates.LONLAT
    assert found.events["x"].to_pylist() == [1.5, None, None]
    assert piece.rejected["row"].to_pylist() == [4]


# --- Parquet -------------------------------------------------------------------------------------------


def parquet(path: Path, metadata: dict[str, Any] | None = None, **columns: Any) -> Path:
    table = pa.table({"type": ["a", "b"], "time": [1, 2], **columns})
    pq.write_table(
        table.replace_schema_metadata({k: json.dumps(v) for k, v in (metadata or {}).items()}), path
    )
    return path


def test_parquet_is_read_in_batches_with_types_as_dictionaries(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", v=[1, 2], unused=[[1], [2]])
    files = read_events(path, batch_rows=1, columns=["v"])
    assert files.rows_total == 2
    first, second = files
    assert first.schema.names == ["type", "time", "v"]
    assert pa.types.is_dictionary(first.schema.field("type").type)
    assert second.to_pylist() == [{"type": "b", "time": 2, "v": 2}]


@pytest.mark.parametrize(
    ("crs", "coordinates"),
    [
        ({}, Coordinates.LONLAT),
        ({"crs": {"type": "GeographicCRS"}}, Coordinates.LONLAT),
        ({"crs": {"type": "ProjectedCRS"}}, Coordinates.PLANE),
        ({"crs": {"type": "CompoundCRS", "components": [{"type": "ProjectedCRS"}]}}, Coordinates.PLANE),
        ({"crs": None}, Coordinates.PLANE),
    ],
)
def test_the_crs_of_geoparquet_decides_the_coordinates(
    tmp_path: Path, crs: Any, coordinates: Coordinates
) -> None:
    box = {"bbox": {side: ["bbox", side] for side in ("xmin", "ymin", "xmax", "ymax")}}
    geo = {
        "version": "1.1.0",
        "primary_column": "place",
        "columns": {"place": {"encoding": "WKB", "covering": box, **crs}, "other": {"encoding": "WKB"}},
    }
    place = [shapely.Point(1, 2).wkb, shapely.box(0, 0, 1, 1).wkb]
    path = parquet(
        tmp_path / "a.parquet", {"geo": geo}, place=place, other=place, bbox=[{"xmin": 0.0}] * 2, v=[1, 2]
    )
    (batch,) = read_events(path)
    assert batch.schema.names == ["type", "time", "geometry", "v"]
    assert normalise(batch).coordinates is coordinates


@pytest.mark.parametrize(
    "geo",
    [
        {},
        {"primary_column": "x", "columns": {}},
        [1],
        "x",
        {"primary_column": "g", "columns": {"g": {"encoding": "point"}}},
    ],
)
def test_broken_geo_metadata_is_an_error(tmp_path: Path, geo: Any) -> None:
    path = parquet(tmp_path / "a.parquet", {"geo": geo}, g=[b"", b""])
    with pytest.raises(DataError, match=r"GeoParquet|encoded"):
        rows(path)


# --- many files ----------------------------------------------------------------------------------------


def test_folders_and_patterns_stand_for_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", ".hidden.csv", "_SUCCESS"):
        csv(tmp_path / name, "type,time", f"{name},1")
    (tmp_path / "notes.txt").write_text("x")
    assert values(tmp_path, "type") == ["a.csv", "b.csv"]
    assert values(tmp_path / "[a-b].csv", "type") == ["a.csv", "b.csv"]
    assert rows([tmp_path / "b.csv", tmp_path / "a.csv"])[0]["type"] == "b.csv"


def test_all_files_give_the_same_attributes(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", "type,time,v,w", "a,1,1,true")
    csv(tmp_path / "b.csv", "type,time,v", "a,1,2.5")
    parquet(tmp_path / "c.parquet", v=[3, 4], u=["x", "y"])
    jsonl(tmp_path / "d.jsonl", {"type": "a", "time": 1, "v": None})
    schemas = {
        frozenset((f.name, str(f.type)) for f in batch.schema if f.name in "uvw")
        for batch in read_events(tmp_path)
    }
    assert schemas == {frozenset({("u", "string"), ("v", "double"), ("w", "bool")})}


def test_packed_files_are_unpacked_and_progress_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"type,time\n" + b"bus,1\n" * 1000) + gzip.compress(b"tram,2\n"))
    told: list[tuple[int, int]] = []
    files = read_events(path, on_progress=lambda done, total: told.append((done, total)))
    assert sum(batch.num_rows for batch in files) == 1001
    assert files.bytes_read == files.bytes_total == told[-1][0]
    assert files.bytes_total == 2 * path.stat().st_size


def test_iterating_again_reads_again(tmp_path: Path) -> None:
    files = read_events(csv(tmp_path / "a.csv", "type,time", "a,1"))
    assert [batch.num_rows for batch in files] == [batch.num_rows for batch in files] == [1]


def test_kinds_join_in_any_order() -> None:
    kinds = [None, Type.BOOL, Type.INT, Type.FLOAT, Type.STRING]
    for one in kinds:
        for other in kinds:
            assert join(one, other) == join(other, one)
            for third in kinds:
                assert join(join(one, other), third) == join(one, join(other, third))


SQUARE = [[[{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 0.0}, {"x": 1.0, "y": 1.0}, {"x": 0.0, "y": 0.0}]]]


@pytest.mark.parametrize(
    ("encoding", "shapes", "expected"),
    [
        ("point", [{"x": 1.0, "y": 2.0}, None, {"x": 1.0, "y": 2.0}], "POINT (1 2)"),
        ("point", pa.array([[1.0, 2.0], None, [1.0, 2.0]], pa.list_(pa.float64(), 2)), "POINT (1 2)"),
        ("polygon", [SQUARE[0], None, SQUARE[0]], "POLYGON ((0 0, 1 0, 1 1, 0 0))"),
        ("linestring", [SQUARE[0][0], None, SQUARE[0][0]], "LINESTRING (0 0, 1 0, 1 1, 0 0)"),
        ("multipolygon", [SQUARE, None, SQUARE], "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"),
    ],
)  # fmt: skip
def test_native_encodings_of_geoparquet_are_read(
    tmp_path: Path, encoding: str, shapes: Any, expected: str
) -> None:
    said = {
        "version": "1.1.0",
        "primary_column": "place",
        "columns": {
            "place": {
                "encoding": encoding,
                "geometry_types": [],
                "covering": {"bbox": {side: ["bbox", side] for side in ("xmin", "ymin", "xmax", "ymax")}},
            },
            "home": {"encoding": "WKB", "geometry_types": []},
        },
    }
    box = {"xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}
    columns = {"type": ["a"] * 3, "time": [1, 2, 3], "place": shapes, "home": [b"x"] * 3, "bbox": [box] * 3}
    table = pa.table(columns).replace_schema_metadata({"geo": json.dumps(said)})
    pq.write_table(table, tmp_path / "a.parquet")
    for rows_in_batch in (1, 10):
        found = values(tmp_path / "a.parquet", "geometry", batch_rows=rows_in_batch)
        assert [None if wkb is None else shapely.to_wkt(shapely.from_wkb(wkb)) for wkb in found] == [
            expected,
            None,
            expected,
        ]
    (batch,) = read_events(tmp_path / "a.parquet")
    assert batch.schema.names == ["type", "time", "geometry"]
    assert normalise(batch).coordinates is Coordinates.LONLAT


def test_a_column_that_is_not_what_its_encoding_says_is_an_error(tmp_path: Path) -> None:
    column = {"encoding": "point", "geometry_types": []}
    said = {"version": "1.1.0", "primary_column": "place", "columns": {"place": column}}
    table = pa.table({"type": ["a"], "time": [1], "place": [b"x"]})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(said)}), tmp_path / "a.parquet")
    with pytest.raises(
        DataError, match=r"a\.parquet: geometries are encoded as 'point', but the column holds binary"
    ):
        rows(tmp_path / "a.parquet")


# --- what cannot be read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "a.csv: the file is empty; its first line must name the columns"),
        ("a.csv", b"\n\n", "a.csv: the file is empty"),
        ("a.csv", b"type,time\n\xff,1\n", r"a\.csv: .*UTF-?8"),
        ("a.csv", "type,time\n".encode("utf-16-le"), "not text: it holds zero bytes.*--encoding utf-16-le"),
        ("a.csv", b"type,time\n\0\0\0\0\0\0\0\0", "not text: it holds zero bytes"),
        ("a.csv.gz", gzip.compress(b"type,time\n" + b"bus,1\n" * 10000)[:-20], "cut off or damaged"),
        ("a.csv.gz", b"not packed", "cut off or damaged"),
        ("a.csv", b'type,time,v\na,1,"' + b"x" * 20_000_000, "a closing quote missing"),
        ("a.jsonl", b"", "a.jsonl: the file is empty; each line must be a JSON object"),
        ("a.jsonl.gz", gzip.compress(b'{"type": 1}\n' * 10000)[:-20], "cut off or damaged"),
        ("a.json", b"", "a.json: the file is empty"),
        ("a.geojson", b"", "a.geojson: the file is empty"),
        ("a.geojson", b"{", "the file is not JSON"),
        ("a.geojson", b"3", "neither a list of events nor a GeoJSON"),
        ("a.geojson", b"[" * 100_000, "nothing in it could be read as an event; row 1: .*is not JSON"),
        ("a.parquet", b"", "a.parquet: cannot be read"),
        ("a.parquet", b"PAR1xxxxPAR1", "a.parquet: cannot be read"),
        ("a.xls", b"", "ending does not tell a format; known: .csv, .tsv, .jsonl"),
        (
            "a.parquet.gz",
            b"",
            "Parquet is packed inside and is not read out of a packed file; unpack it first",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_a_clear_error(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        rows(tmp_path / name)


def test_a_truncated_parquet_file_is_a_clear_error(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read"):
        rows(path)


def test_files_that_are_not_there_are_a_clear_error(tmp_path: Path) -> None:
    csv(tmp_path / "events.csv", "type,time")
    with pytest.raises(DataError, match=r"event\.csv: no such file; did you mean 'events.csv'"):
        read_events(tmp_path / "event.csv")
    with pytest.raises(DataError, match="there is no folder"):
        read_events(tmp_path / "nowhere" / "a.csv")
    with pytest.raises(DataError, match="no file matches this pattern"):
        read_events(tmp_path / "*.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no event files in this folder"):
        read_events(tmp_path / "empty")
    with pytest.raises(DataError, match="no event file is given"):
        read_events([])
    with pytest.raises(DataError, match="format 'xml' is not known"):
        read_events(tmp_path / "events.csv", format="xml")
