"""Files on Spark: the same rows, types, rejected lines and errors as in the embedded engine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whimbrel as wb
from whimbrel.engine.bounded import run as run_embedded
from whimbrel.errors import DataError
from whimbrel.spark import read_events
from whimbrel.spark.running import run

pytestmark = pytest.mark.slow

ALL = wb.compile("define Seen(v) detect P as a assign v = a.v")
PLACED = wb.compile(
    "region Here = circle(4.5, 51, 2 km)\ndefine Seen(v) detect P(this in Here) as a assign v = a.v"
)
DECLARED = wb.compile("event P(v: int)\ndefine Seen(v) detect P as a assign v = a.v")
MOMENTS = [datetime(2024, 5, 1, 12, 0, second, 123_456, UTC) for second in range(4)]


def table(**more: object) -> pa.Table:
    columns = {"id": ["a", "b", "c", "d"], "type": ["P"] * 4, "time": MOMENTS, "v": [1, 2, 3, 4]}
    return pa.table({name: value for name, value in (columns | more).items() if value is not None})


def parquet(made: pa.Table, **settings: object) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        pq.write_table(made, folder / "events.parquet", **settings)
        return folder / "events.parquet"

    return write


def pandas(**more: object) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        frame = table().to_pandas().assign(time=pd.to_datetime(MOMENTS).as_unit("ns"))
        frame.assign(**more).to_parquet(folder / "events.parquet")
        return folder / "events.parquet"

    return write


def indexed(folder: Path) -> Path:
    frame = table().to_pandas().assign(time=pd.to_datetime(MOMENTS).as_unit("ns"))
    frame[frame.v != 2].to_parquet(folder / "events.parquet")
    assert "__index_level_0__" in pq.read_schema(folder / "events.parquet").names
    return folder / "events.parquet"


def polars(folder: Path) -> Path:
    import polars as pl

    frame = pl.DataFrame(table()).with_columns(pl.col("type").cast(pl.Categorical))
    frame.with_columns(pl.col("time").cast(pl.Datetime("ns", "UTC"))).write_parquet(folder / "events.parquet")
    return folder / "events.parquet"


def text(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return folder / name

    return write


def several(*writers: Callable[[Path], Path]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        for number, writer in enumerate(writers):
            (folder / f"{number}").mkdir()
            path = writer(folder / f"{number}")
            path.rename(folder / f"{number}{path.name}")
            (folder / f"{number}").rmdir()
        return folder

    return write


def geoparquet(crs: object) -> Callable[[Path], Path]:
    import shapely

    points = shapely.to_wkb(shapely.points([4.5, 4.51, 5.5, 4.5], 51.0)).tolist()
    column = {"encoding": "WKB", "geometry_types": ["Point"]} | ({} if crs == "absent" else {"crs": crs})
    said = {"version": "1.1.0", "primary_column": "where", "columns": {"where": column}}
    made = table(where=pa.array(points, pa.binary()))
    return parquet(made.replace_schema_metadata({b"geo": json.dumps(said).encode()}))


NS = pa.timestamp("ns", "UTC")
NANOS = [-1_001, -1, 999, 1_714_564_800_123_456_789]
FEATURES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [4.5, 51.0]},
            "properties": {"id": "a", "type": "P", "time": "2024-05-01T12:00:00Z", "v": 7},
        },
        {"type": "Feature", "geometry": None, "properties": {"id": "b", "type": "P", "time": "?", "v": 7}},
    ],
}
CSV = "id,type,time,v\na,P,2024-05-01T12:00:00Z,1\nb,P,2024-05-01T12:00:01.5+02:00,2\n"
JSON = '{"id": "a", "type": "P", "time": 1, "v": 5}\n'

ALIKE: dict[str, Callable[[Path], Path]] = {
    "pandas": pandas(),
    "pandas-categories": pandas(type=pd.Categorical(["P", "P", "Q", "P"]), v=pd.Categorical([3, 1, 3, 2])),
    "pandas-without-zone": pandas(time=pd.to_datetime(MOMENTS).as_unit("ns").tz_localize(None)),
    "pandas-in-another-zone": pandas(time=pd.to_datetime(MOMENTS).as_unit("ns").tz_convert("Asia/Tokyo")),
    "pandas-index": indexed,
    "polars": polars,
    "nanoseconds-before-1970": parquet(table(time=pa.array(NANOS, NS))),
    "nanoseconds-as-int96": parquet(table(), use_deprecated_int96_timestamps=True),
    "nanoseconds-in-an-attribute": parquet(table(v=pa.array(NANOS, NS))),
    "milliseconds": parquet(table(time=pa.array(MOMENTS, pa.timestamp("ms")))),
    "seconds": parquet(table(time=pa.array([1, 2, 3, None], pa.timestamp("s")))),
    "dates": parquet(table(v=pa.array([moment.date() for moment in MOMENTS]))),
    "large-strings": parquet(table(v=pa.array(["x", "", None, "é"], pa.large_string()))),
    "dictionaries": parquet(table(type=pa.array(["P", "P", "Q", None]).dictionary_encode())),
    "uint8": parquet(table(v=pa.array([0, 255, None, 7], pa.uint8()))),
    "uint32": parquet(table(v=pa.array([0, 2**32 - 1, None, 7], pa.uint32()))),
    "uint64": parquet(table(v=pa.array([0, 2**64 - 1, None, 7], pa.uint64()))),
    "float16": parquet(table(v=pa.array(np.array([0.5, np.nan, 2, 3], "f2")))),
    "float32": parquet(table(v=pa.array([0.1, float("nan"), None, 3], pa.float32()))),
    "decimals": parquet(table(v=pa.array([Decimal("1.10"), None, Decimal("-3.25"), Decimal(0)]))),
    "durations": parquet(table(v=pa.array([timedelta(seconds=1)] * 4))),
    "durations-that-nobody-reads": parquet(table(w=pa.array([timedelta(seconds=1)] * 4))),
    "times-of-day": parquet(table(time=pa.array([time(12)] * 4))),
    "lists": parquet(table(v=pa.array([[1], [], None, [2, 3]]))),
    "lists-that-nobody-reads": parquet(table(w=pa.array([[1], [], None, [2, 3]]))),
    "nothing-at-all": parquet(table(v=pa.nulls(4))),
    "no-rows": parquet(table().slice(0, 0)),
    "numbers-as-ids": parquet(table(id=pa.array([7, 8, 9, 10], pa.int32()))),
    "numbers-as-types": parquet(table(type=pa.array([7, 8, 9, 10], pa.int32()))),
    "bad-rows": parquet(table(time=[*MOMENTS[:3], None], type=["P", None, "P", "P"])),
    "bad-texts-as-times": parquet(table(time=["2024-05-01T12:00:00Z", "noon", "", "3"])),
    "no-time": parquet(table(time=None, when=MOMENTS)),
    "zstd": parquet(table(), compression="zstd"),
    "brotli": parquet(table(), compression="brotli"),
    "lz4": parquet(table(), compression="lz4"),
    "gzip": parquet(table(), compression="gzip"),
    "corrupt": text("events.parquet", b"PAR1 this is no Parquet file PAR1"),
    "csv": text("events.csv", CSV),
    "csv-of-names": text("events.csv", CSV.replace(",1\n", ",007\n")),
    "csv-of-t1": text("events.csv", CSV.replace(",1\n", ",T1\n")),
    "csv-with-a-mark": text("events.csv", b"\xef\xbb\xbf" + CSV.encode()),
    "csv-gz": text("events.csv.gz", gzip.compress(CSV.encode())),
    "csv-with-lines-in-quotes": text("events.csv", CSV + 'c,P,3,"two\nlines"\nd,P,4,x,y\ne,P,5,z\n'),
    "csv-broken": text("events.csv", CSV + "c,P\n\nd,P,2024-05-01T12:00:03Z,4,5\n,P,5,6\ne,P,soon,6\n"),
    "csv-cut-off": text("events.csv", CSV + 'c,P,3,"never closed'),
    "csv-empty": text("events.csv", ""),
    "csv-latin": text("events.csv", CSV.encode() + "c,P,3,Málaga\n".encode("latin-1")),
    "tsv": text("events.tsv", CSV.replace(",", "\t")),
    "jsonl": text("events.jsonl", JSON + '{"id": "b", "type": "P", "time": 2.5, "v": null}\n'),
    "jsonl-mixed": text("events.jsonl", JSON + '{"id": "b", "type": "P", "time": "3", "v": "x"}\n'),
    "jsonl-broken": text("events.jsonl", JSON + '{"id": \n[1]\n\n{"id": "c", "type": "P", "time": 3}\n'),
    "json": text("events.json", f"[{JSON.strip()}]"),
    "geojson": text("events.geojson", json.dumps(FEATURES)),
    "geoparquet": geoparquet("absent"),
    "geoparquet-in-the-plane": geoparquet({"type": "ProjectedCRS", "name": "somewhere"}),
    "several-kinds": several(text("a.csv", CSV), text("b.jsonl", JSON), parquet(table())),
    "several-types": several(text("a.csv", CSV), text("b.csv", CSV.replace(",1\n", ",x\n"))),
    "several-parquet-files": several(parquet(table()), parquet(table(v=[0.5, 1.5, None, 2.5]))),
}


QUERIES = {
    "all": (ALL, list(ALIKE)),
    "declared": (DECLARED, ["pandas", "large-strings", "csv-of-t1", "several-kinds", "durations"]),
    "placed": (PLACED, ["geojson", "geoparquet", "geoparquet-in-the-plane"]),
}
CASES = [(query, name) for query, (_, names) in QUERIES.items() for name in names]


@pytest.mark.parametrize(("query", "name"), CASES, ids=["-".join(case) for case in CASES])
def test_a_file_gives_the_same_on_both_engines_or_fails_with_the_same_words(spark, tmp_path, query, name):
    query = QUERIES[query][0]
    (tmp_path / "in").mkdir()
    path = ALIKE[name](tmp_path / "in")

    def embedded():
        return run_embedded(query, path, rejected=tmp_path / "embedded.jsonl")

    def on_spark():
        frame = read_events(spark, path, schemas=query.schemas)
        return run(query, frame, rejected=tmp_path / "spark.jsonl", partitions=1)

    assert _told(on_spark, tmp_path / "spark.jsonl") == _told(embedded, tmp_path / "embedded.jsonl")


def _told(run, rejected: Path):
    try:
        outcome = run()
    except DataError as error:
        return str(error)
    lines = rejected.read_text().splitlines() if rejected.exists() else []
    counts = outcome.counts
    return (
        outcome.detections.to_pylist(),
        (counts.received, counts.processed, counts.rejected, counts.reasons),
        sorted((row["file"], row["row"], row["reason"]) for row in map(json.loads, lines)),
    )


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_local_times_without_a_zone_are_of_the_zone_that_is_told(spark, tmp_path, unit):
    moments = pa.array([moment.replace(tzinfo=None) for moment in MOMENTS], pa.timestamp(unit))
    path = parquet(table(time=moments))(tmp_path)
    told = {"time_zone": "Europe/Berlin"}
    expected = run_embedded(ALL, path, **told)
    assert expected["start"].to_pylist()[0] == MOMENTS[0] - timedelta(hours=2)
    found = run(ALL, read_events(spark, path), **told)
    assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("codec", ["snappy", "brotli"])
def test_days_begin_in_the_zone_that_is_told_whoever_reads_the_file(spark, tmp_path, codec):
    path = parquet(table(time=[moment.date() for moment in MOMENTS]), compression=codec)(tmp_path)
    told = {"time_zone": "Europe/Berlin"}
    expected = run_embedded(ALL, path, **told)
    assert expected["start"].to_pylist()[0] == datetime(2024, 4, 30, 22, tzinfo=UTC)
    assert run(ALL, read_events(spark, path), **told).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("name", ["time", "timestamp"])
def test_files_with_and_without_a_zone_are_read_together(spark, tmp_path, name):
    naive = pa.array([moment.replace(tzinfo=None) for moment in MOMENTS], pa.timestamp("us"))
    for number, moments in enumerate((naive, pa.array(MOMENTS), naive.cast(pa.date32()))):
        ids = [f"{number}-{each}" for each in "abcd"]
        parquet(table(**{"id": ids, "time": None, name: moments}))(tmp_path).rename(
            tmp_path / f"{number}.parquet"
        )
    told = {"time_zone": "Europe/Berlin"}
    expected = run_embedded(ALL, tmp_path, **told)
    assert len(set(expected["start"].to_pylist())) == 9
    assert run(ALL, read_events(spark, tmp_path), **told).to_pylist() == expected.to_pylist()
