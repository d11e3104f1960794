"""Sources have a text form, and folders are streams."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
import pytest

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.spark import outcomes
from whimbrel.spark.sources import open_source, read_folder, register
from whimbrel.spark.sources.mqtt import MayComeTwice


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("traffic.parquet", "names no kind of source or sink; write one of: replay:traffic.parquet"),
        ("repaly:traffic.parquet", "did you mean 'replay'"),
        ("replay:", "nothing follows 'replay'; write it like replay:traffic.parquet"),
        ("replay:a.csv?sped=60", "replay has no option 'sped'; did you mean 'speed'"),
        ("replay:a.csv?path=b.csv", "replay has no option 'path'"),
        ("replay:a.csv?speed=quick", "speed must be a number, not 'quick'"),
        ("replay:a.csv?schema=type STRING", "a replay takes its columns from the files"),
        ("folder:a?max_files=0", "max_files is 0; it must be at least 1"),
        (
            "folder:a?format=xml",
            "format 'xml' is not known; known names: csv, geojson, geojsonl, gpx, json, jsonl, mfjson, nmea",
        ),
        ("kafka://h:9092/a?begin=latest", "kafka has no option 'begin'"),
        ("kafka:///a", "no server is named; write kafka://host:port/topic"),
        ("mqtt://h:1883/", "no topic is named; write mqtt://h:1883/topic"),
        ("mqtt://h:port/a?spool=s", "the port must be a number, not 'port'"),
        ("mqtt://h/a", "mqtt needs the option 'spool'; name a folder"),
        ("mqtt://h/a?spool=s&qos=2", "qos is 2; it must be 1"),
    ],
)
def test_wrong_text_forms_are_explained(text, message):
    with pytest.raises(DataError, match=message):
        open_source(None, text)


def test_a_file_that_is_not_there_is_named(tmp_path, spark):
    with pytest.raises(DataError, match=r"nothing\.csv: no such file"):
        open_source(spark, f"replay:{tmp_path}/nothing.csv")


def streamed(frame, folder: Path) -> list[dict]:
    """Run a stream over what is there now, and return its rows."""
    found = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: found.extend(row.asDict() for row in batch.collect()))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_lines_of_a_folder_that_do_not_fit_are_rejected_with_file_row_and_reason(spark, tmp_path, kind):
    lines = {
        "json": ['{"type": "A", "time": "2025-03-03T08:00:00Z", "n": 1}', '{"type": "A", "n": "x"}', "{oops"],
        "csv": ["type,time,n", "A,2025-03-03T08:00:00Z,1", "A,,x", "{oops"],
    }[kind]
    # On a stream an event is processed when a later one has come.
    lines += {
        "json": ['{"type": "End", "time": "2025-03-04T08:00:00Z"}'],
        "csv": ["End,2025-03-04T08:00:00Z,"],
    }[kind]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("\n".join(lines) + "\n", encoding="utf-8")
    schema = "type STRING, time TIMESTAMP, n LONG"
    frame = open_source(spark, f"folder:{tmp_path}/in?format={kind}&max_files=1&schema={schema}")
    query = wb.compile("define Seen(n) detect A as a assign n = a.n")
    rows = streamed(outcomes(query, frame, shards=1), tmp_path)
    assert [row["n"] for row in rows if row["kind"] == "detection"] == [1]
    broken = {"json": "not JSON", "csv": "a wrong number of fields"}[kind]
    refused = sorted((row["@line"], row["reason"]) for row in rows if row["kind"] == "rejected")
    assert [place for place, _ in refused] == [(str(tmp_path / "in" / "a"), row) for row in (2, 3)]
    assert refused[0][1] == "attribute 'n' is not a whole number: 'x'"
    assert broken in refused[1][1]


@pytest.mark.slow
def test_the_files_of_a_folder_tell_the_schema(spark, tmp_path):
    with pytest.raises(DataError, match="no file tells which columns the events have; put one there"):
        read_folder(spark, str(tmp_path / "in"))
    spark.sql("SELECT 'A' AS type, 1 AS n").write.parquet(str(tmp_path / "in"))
    assert read_folder(spark, str(tmp_path / "in")).columns == ["type", "n", "@line"]
    with pytest.raises(DataError, match=r"no option 'sep'; known names: "):
        read_folder(spark, str(tmp_path / "in"), options={"sep": ";"})
    with pytest.raises(DataError, match="the schema 'type WORDS' cannot be read; write it like"):
        read_folder(spark, str(tmp_path / "in"), schema="type WORDS")


@pytest.mark.slow
def test_a_folder_takes_files_of_several_formats_and_passes_others_by(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    moment = pd.Timestamp("2024-05-01T12:00:00.000000999Z")
    pd.DataFrame({"type": ["A"], "time": [moment], "n": [7]}).to_parquet(folder / "a.parquet")
    (folder / "b c%.csv").write_text("type,time,n,more\nA,2024-05-01T12:00:01Z,8,x\n", encoding="utf-8")
    frame = read_folder(spark, str(folder))
    late = '{"type": "A", "time": 1714564802, "n": 9.0}\n{"type": "End", "time": 1714569999}\n'
    (folder / "late.jsonl").write_text(late, encoding="utf-8")
    (folder / "README.txt").write_text("no events\n", encoding="utf-8")
    (folder / "empty.csv").touch()
    query = wb.compile("define Seen(n) detect A as a assign n = a.n")
    rows = streamed(outcomes(query, frame, shards=1), tmp_path)
    found = {row["n"]: row["start"] for row in rows if row["kind"] == "detection"}
    assert {n: f"{start:%H:%M:%S.%f}" for n, start in found.items()} == {
        7: "12:00:00.000000",
        8: "12:00:01.000000",
        9: "12:00:02.000000",
    }
    assert not [row for row in rows if row["kind"] == "rejected"]


@pytest.mark.slow
def test_the_data_sources_can_be_used_by_their_names(spark, tmp_path):
    register(spark)
    (tmp_path / "a.csv").write_text("type,time\nA,1\n", encoding="utf-8")
    options = {"path": str(tmp_path / "a.csv"), "cache": str(tmp_path / "replays")}
    frame = spark.readStream.format("whimbrel-replay").options(**options).load()
    assert frame.isStreaming
    assert frame.columns == ["type", "time"]
    raw = spark.readStream.format("whimbrel-mqtt").options(host="h", topic="t", spool=str(tmp_path)).load()
    assert raw.columns == ["topic", "received", "payload"]


def test_a_source_that_may_deliver_twice_warns_where_events_have_no_ids(spark, tmp_path):
    source = f"mqtt://127.0.0.1:1883/fleet?spool={tmp_path}"
    with pytest.warns(MayComeTwice, match="name a column 'id' in the schema"):
        open_source(spark, source, schema="type STRING, time TIMESTAMP")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_source(spark, source, schema="id STRING, type STRING, time TIMESTAMP")
        open_source(spark, f"{source}&qos=0", schema="type STRING, time TIMESTAMP")
