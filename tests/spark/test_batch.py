"""Detection over static frames, as a Spark user meets it."""

from __future__ import annotations

import random
import sys
import warnings

import pandas as pd
import pytest
from pyspark.sql import functions as fn
from tests.spark.frames import ids

import whimbrel as wb
from whimbrel.errors import DataError, QueryError, WhimbrelError
from whimbrel.spark import detect, outcomes, read_events, worker
from whimbrel.spark.batch import OnePartition
from whimbrel.spark.running import run

pytestmark = pytest.mark.slow

STOP = wb.compile("""
define Stopped(vehicle, speed)
  detect Position(speed > 10) as a then Position(speed < 6) as b within 5 s
  assign vehicle = group.source, speed = a.speed
  group by source
""")


def positions(count: int = 400) -> list[dict[str, object]]:
    rng = random.Random(7)
    return [
        {
            "id": f"e{number}",
            "type": rng.choice(["Position", "Other"]),
            "time": pd.Timestamp("2024-05-01", tz="UTC") + pd.Timedelta(seconds=number / 2),
            "source": f"car-{rng.randrange(5)}",
            "speed": rng.uniform(0, 30),
        }
        for number in range(count)
    ]


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(pd.DataFrame(positions()))


def test_a_static_frame_gives_a_static_frame_with_the_embedded_engines_detections(frame):
    found = wb.detect(STOP, frame)
    assert not found.isStreaming
    expected = wb.detect(STOP, positions())
    assert expected.num_rows > 5
    assert ids(found) == ids(expected)


@pytest.mark.parametrize("on_a_worker", [True, False])
def test_garbage_is_not_looked_for_in_modules(monkeypatch, on_a_worker):
    monkeypatch.setattr(worker.TaskContext, "get", lambda: "a task" if on_a_worker else None)
    frozen = []
    monkeypatch.setattr(worker.gc, "freeze", lambda: frozen.append(len(sys.modules)))
    worker._spare.cache_clear()
    worker.spare_modules()
    worker.spare_modules()
    monkeypatch.setitem(sys.modules, "loaded.later", sys)
    worker.spare_modules()
    assert len(frozen) == (2 if on_a_worker else 0)


def test_the_schema_is_known_before_anything_runs(frame):
    assert wb.detect(STOP, frame).schema.simpleString() == (
        "struct<id:string,type:string,start:timestamp,end:timestamp,geometry:binary,"
        "vehicle:string,speed:double,events:array<string>>"
    )


def test_columns_may_have_other_names(frame):
    other = frame.select(
        fn.col("id"),
        fn.col("type").alias("kind"),
        fn.col("time").alias("ts"),
        "speed",
        fn.col("source").alias("car"),
    )
    names = {"type": "kind", "time": "ts", "source": "car"}
    assert ids(wb.detect(STOP, other, columns=names)) == ids(wb.detect(STOP, frame))


def test_a_column_may_be_an_expression(frame):
    bare = frame.drop("type")
    found = wb.detect(
        STOP, bare, columns={"type": fn.lit("Position"), "id": fn.concat("source", fn.lit("-"), "id")}
    )
    assert found.count() > 0
    assert found.first().events[0].startswith("car-")


def test_a_column_that_is_not_there_is_named_with_a_hint(frame):
    with pytest.raises(DataError, match=r"no column is named 'sped'.*did you mean 'speed'"):
        wb.detect(STOP, frame, columns={"velocity": "sped"})


def test_frames_that_make_no_events_are_refused_before_any_job(frame):
    with pytest.raises(DataError, match="no column says when"):
        wb.detect(STOP, frame.drop("time"))


def test_filters_and_columns_are_pushed_to_the_scan(spark, frame, tmp_path):
    path = str(tmp_path / "events")
    frame.withColumn("unused", fn.lit("x")).write.parquet(path)
    plan = wb.detect(STOP, spark.read.parquet(path))._jdf.queryExecution().executedPlan().toString()
    assert "unused" not in plan
    assert "EqualTo(type,Position)" in plan
    assert "GreaterThan(speed,10.0)" in plan


def test_rows_that_are_no_events_pass_the_filter_and_are_told(spark):
    rows = [("a", "Position", 1.0, "car"), ("b", None, 2.0, "car")]
    frame = spark.createDataFrame(rows, "id string, type string, time double, source string")
    found = outcomes(STOP, frame).where("kind = 'rejected'").collect()
    assert [row.reason for row in found] == ["type is missing"]
    assert '"b"' in found[0].event


def test_every_event_is_accounted_for(spark):
    rows = pd.DataFrame([*positions(50), *positions(3), {"id": "x", "type": "Position", "speed": 1.0}])
    outcome = run(STOP, spark.createDataFrame(rows))
    counts = outcome.counts
    assert (counts.received, counts.processed, counts.duplicate, counts.rejected) == (54, 50, 3, 1)
    assert dict(counts.reasons) == {"time is missing": 1}
    assert ids(outcome.detections) == ids(wb.detect(STOP, positions(50)))


def test_a_query_that_compares_everything_says_that_it_runs_on_one_core(frame):
    query = wb.compile(
        "define Pair detect Position(speed > 29) as a then Position(speed < 1) as b within 2 s"
    )
    with pytest.warns(OnePartition, match=r"Pair compares events of all objects.*group by"):
        found = detect(query, frame)
    assert ids(found) == ids(wb.detect(query, positions()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detect(query, frame, partitions=1)


def test_events_without_ids_are_told_apart_wherever_they_go(spark):
    query = wb.compile(
        "define D(lane) detect P as a then P as b within 9 s assign lane = group.lane group by lane"
    )
    rows = [
        {"type": "P", "time": time, "source": "s", "lane": lane} for time in (1, 2, 3) for lane in range(6)
    ]
    frame = spark.createDataFrame(pd.DataFrame(rows))
    found = [wb.detect(query, frame, partitions=number) for number in (1, 2, 5)]
    assert len(set(ids(found[0]))) == 18
    assert ids(found[0]) == ids(found[1]) == ids(found[2]) == ids(wb.detect(query, rows))


def test_equal_rows_whose_times_are_written_otherwise_are_numbered_together(spark):
    rows = [("P", f"1970-01-01T00:00:0{n % 3}{zone}", n % 2) for n in range(6) for zone in ("Z", "+00:00")]
    frame = spark.createDataFrame(rows, "type string, time string, lane int")
    query = wb.compile("define D detect P")
    found = wb.detect(query, frame, partitions=7)
    assert len(set(ids(found))) == 12
    assert ids(found) == ids(wb.detect(query, pd.DataFrame(rows, columns=["type", "time", "lane"])))


def test_equal_rows_without_ids_stay_different_events(spark):
    query = wb.compile("define D(n) every 10 s detect P assign n = count(P) group by lane")
    rows = pd.DataFrame([{"type": "P", "time": 1, "lane": 1}] * 3)
    assert wb.detect(query, spark.createDataFrame(rows)).first().n == 3


def test_missing_numbers_are_one_group(spark):
    query = wb.compile("define D(n) every 10 s detect P assign n = count(P) group by v")
    rows = [("P", 1.0, float("nan")), ("P", 2.0, None), ("P", 3.0, 0.0), ("P", 4.0, -0.0)]
    frame = spark.createDataFrame(rows, "type string, time double, v double")
    assert sorted(row.n for row in wb.detect(query, frame, partitions=8).collect()) == [2, 2]


def test_a_key_that_is_declared_as_a_number_and_comes_as_text_is_one_number(spark):
    query = wb.compile("event P(v: float)\ndefine D(n) every 10 s detect P assign n = count(P) group by v")
    frame = spark.createDataFrame([("P", 1, "1"), ("P", 2, "1.0")], "type string, time long, v string")
    with pytest.warns(OnePartition, match="no column for v"):
        assert [row.n for row in wb.detect(query, frame).collect()] == [2]


def test_attributes_of_two_definitions_that_clash_are_refused(frame):
    one = "define D(p) detect Position as a assign p = a.speed"
    query = wb.compile(f"{one}\ndefine E(p) detect Position as a assign p = a.id")
    with pytest.raises(QueryError, match="one table cannot hold both"):
        wb.detect(query, frame)


def test_numbers_of_partitions_below_one_are_refused(frame):
    with pytest.raises(WhimbrelError, match="at least 1"):
        wb.detect(STOP, frame, partitions=0)


def test_functions_of_the_query_travel_to_the_workers(frame):
    double = wb.function(lambda x: 2 * x, name="twice", returns="float")
    query = wb.compile(
        "define D(p) detect Position(speed > 29) as a assign p = twice(a.speed)", functions=[double]
    )
    assert ids(wb.detect(query, frame)) == ids(wb.detect(query, positions()))


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_files_are_read_as_the_embedded_engine_reads_them(spark, tmp_path, form):
    rows = pd.DataFrame(positions(60)).assign(lane="T1")
    path = tmp_path / f"events.{form}"
    write = {"csv": rows.to_csv, "parquet": rows.to_parquet}.get(form)
    if write is None:
        rows.to_json(path, orient="records", lines=True, date_format="iso")
    else:
        write(path, index=False)
    query = wb.compile("define D detect Position(speed > 20)")
    embedded, on_spark = wb.detect(query, path), run(query, read_events(spark, [str(path)])).detections
    assert on_spark.to_pylist() == embedded.to_pylist()


def test_an_empty_file_and_a_frame_without_columns_are_told_plainly(spark, tmp_path):
    (tmp_path / "a.csv").touch()
    with pytest.raises(DataError, match="the file is empty"):
        read_events(spark, [str(tmp_path / "a.csv")])
    by_lane = wb.compile("define D detect P as a then P as b within 9 s group by lane")
    with pytest.raises(DataError, match="no column says when"):
        wb.detect(by_lane, spark.range(1).select())
