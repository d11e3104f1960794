"""Columns as they are, on Spark: the same names are taken as everywhere else, once, and told."""

from __future__ import annotations

from datetime import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from pyspark.sql import functions as fn
from tests.spark.frames import Folder, ids, run_to_end

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.graph.passes import rewrite
from whimbrel.graph.sharding import ByMeetings, sharding
from whimbrel.spark.reading import read_events
from whimbrel.spark.running import run

CLAUSE = """\
event Ship(mmsi: int, sog: float)
  from columns time = seen, lon = LAT, lat = LON
"""
IN_CANAL = """\
coordinates lonlat
region Canal = box(32, 30, 33, 31)
define In
  detect Ship enters Canal
  group by mmsi
define Fast
  detect Ship(sog > 8)
"""
ROWS = [
    {"event_id": f"e{n}", "MMSI": 219000000 + n % 3, "BaseDateTime": 1_641_168_000_000 + 60_000 * n,
     "LAT": 29.5 + n / 10, "LON": 32.5, "SOG": float(n)}
    for n in range(12)
]  # fmt: skip
NAMES = (
    "columns: time from 'BaseDateTime', lon from 'LON', lat from 'LAT', id from 'event_id', "
    "source from 'MMSI', mmsi from 'MMSI', sog from 'SOG'"
)


@pytest.fixture(scope="module")
def ships(spark):
    schema = "event_id string, MMSI long, BaseDateTime long, LAT double, LON double, SOG double"
    return spark.createDataFrame([tuple(row.values()) for row in ROWS], schema)


@pytest.fixture(scope="module")
def query():
    return wb.compile(IN_CANAL)


def test_usual_names_and_sizes_are_known(ships, query):
    expected = wb.run(query, ROWS)
    assert expected.detections.num_rows == 6
    assert ids(wb.detect(query, ships)) == ids(expected.detections)
    found = run(query, ships)
    assert found.columns == expected.columns
    assert found.notes == expected.notes
    assert found.notes == (
        NAMES,
        "type is 'Ship' for all events, the only one that the query reads",
        "time in milliseconds, by the size of its numbers",
    )


def test_what_the_query_says_is_done_once(ships, query):
    swapped = ships.toDF("event_id", "MMSI", "seen", "LON", "LAT", "SOG")
    assert ids(wb.detect(wb.compile(CLAUSE + IN_CANAL), swapped)) == ids(wb.detect(query, ROWS))


def test_names_that_are_given_come_first(ships, query):
    odd = ships.toDF("event_id", "MMSI", "lon", "LAT", "east", "SOG")
    names = {"time": "lon", "lon": fn.col("east") + 0, "lat": "LAT"}
    assert ids(wb.detect(query, odd, columns=names)) == ids(wb.detect(query, ROWS))
    swap = ships.toDF("event_id", "MMSI", "BaseDateTime", "lon", "lat", "SOG")
    columns = {"lon": "lat", "lat": "lon"}
    assert ids(wb.detect(query, swap, columns=columns)) == ids(wb.detect(query, ROWS))
    with pytest.raises(DataError, match="no column is named 'BaseDate', to be used as 'time'; did you mean"):
        wb.detect(query, ships, columns={"time": "BaseDate"})


def test_a_stream_takes_the_same_names(spark, query, tmp_path):
    folder = Folder(
        spark,
        tmp_path / "in",
        "event_id string, MMSI long, BaseDateTime long, LAT double, LON double, SOG double",
    )
    folder.put(ROWS[:5])
    folder.put(ROWS[5:])
    found, _ = run_to_end(wb.detect(query, folder.stream(), shards=2), tmp_path / "checkpoint")
    expected = wb.Session(query).push(ROWS)
    assert expected.num_rows > 2
    assert ids(found) == ids(expected)


def test_local_times_of_text_files_are_read_as_everywhere_else(spark, query, tmp_path):
    path = tmp_path / "ships.csv"
    lines = [f"{r['event_id']},{r['MMSI']},2022-01-03 00:{n:02}:00,{r['LAT']},{r['LON']},{r['SOG']}"
             for n, r in enumerate(ROWS)]  # fmt: skip
    path.write_text("\n".join(["event_id,MMSI,timestamp,LAT,LON,SOG", *lines]))
    how = {"time_zone": "Europe/Berlin"}
    expected = wb.run(query, path, **how)
    found = run(query, read_events(spark, [str(path)]), **how)
    assert found.detections["id"].to_pylist() == expected.detections["id"].to_pylist()
    assert found.detections["start"].cast(pa.int64()) == expected.detections["start"].cast(pa.int64())


def test_swapped_rows_are_told(ships, query):
    far = ships.withColumns({"LAT": fn.col("LAT") + 90, "LON": fn.col("LON")})
    found = run(query, far)
    assert found.counts.rejected == 12
    assert found.warnings[0].startswith("12 rows were rejected whose longitude and latitude look swapped")


HEAD = "time,lon,lat,sog"
SAID = {
    "swapped, out of range": (f"{HEAD}\n0,31.2,121.5,9\n1,31.3,121.6,9\n2,121.5,31.2,9", {}, "look swapped"),
    "swapped, beside all regions": (f"{HEAD}\n0,30.5,32.5,9\n60,30.2,32.5,9", {}, "all regions of the query"),
    "nanoseconds": (f"{HEAD}\n1641168000000000000,32.5,30.5,9\n1641168060000000000,32.5,29.5,9", {}, None),
    "milliseconds, some of them broken": (f"{HEAD}\n1641168000000.5,32.5,30.5,9\n,32.5,29.5,9", {}, None),
    "a wrong unit": (f"{HEAD}\n1641168000,32.5,30.5,9", {"time_unit": "us"}, "all times lie in 1970"),
    "too large a unit": (f"{HEAD}\n1641168000000,32.5,30.5,9", {"time_unit": "s"}, "leave --time-unit out"),
    "other types": (f"{HEAD},type\n0,32.5,30.5,9,Cargo\n1,32.5,30.5,9,Tanker", {}, "has none of them"),
    "ids of movers": (f"{HEAD},id\n0,32,30,9,a\n1,32,30,9,a\n2,32,30,9,a\n3,32,30,9,a", {}, "repeat an id"),
    "nothing odd": (f"{HEAD}\n0,32.5,29.5,9\n60,32.5,30.5,9", {}, None),
}  # fmt: skip
"""Files, how they are read, and what is said about them, if anything is."""
PLACES = """\
coordinates lonlat
region Canal = box(32, 30, 33, 31)
define In detect Ship(this in Canal)
"""
MEETINGS = """\
coordinates lonlat
region Canal = box(32, 30, 33, 31)

define Near(one, other)
  detect Ship as a and Ship as b within 10 s
  where a in Canal and distance(a, b) < 50 m and a.source < b.source
  assign one = a.source, other = b.source

define Together over 60 s
  detect Near
  assign one = group.one, other = group.other, times = count(Near)
  group by one, other
  having times >= 3
"""


@pytest.mark.parametrize("case", SAID)
def test_what_looks_like_a_mistake_is_told_as_by_the_embedded_engine(spark, tmp_path, case):
    text, how, said = SAID[case]
    path, places = tmp_path / "ships.csv", wb.compile(PLACES)
    path.write_text(text + "\n")
    expected = wb.run(places, path, **how)
    found = run(places, read_events(spark, [str(path)]), **how)
    assert found.warnings == expected.warnings
    assert found.notes == expected.notes
    assert [each for each in found.warnings if said is None or said not in each] == []
    assert len(found.warnings) == (said is not None)


def test_a_file_without_rows_has_no_events(spark, tmp_path):
    path, places = tmp_path / "ships.csv", wb.compile(PLACES)
    path.write_text(HEAD + "\n")
    expected, found = wb.run(places, path), run(places, read_events(spark, [str(path)]))
    assert found.counts == expected.counts
    assert (found.num_rows, found.warnings) == (expected.num_rows, expected.warnings) == (0, ())


def test_all_workers_together_tell_what_was_seen(spark, tmp_path):
    """Each of them has seen a part only, and the parts are no warnings of their own."""
    rows = [(f"e{n}", 1_641_168_000_000 + n, 30.5 + n / 100, 32.5, f"t{n}") for n in range(40)]
    names = "id string, time long, lon double, lat double, source string"
    frame = spark.createDataFrame(rows, names).repartition(5)
    meetings = wb.compile(MEETINGS)
    assert isinstance(sharding(rewrite(meetings.graph)), ByMeetings)
    events = [dict(zip(frame.columns, row, strict=True)) for row in rows]
    for query in (wb.compile(PLACES), meetings):
        found, expected = run(query, frame, partitions=3), wb.run(query, events)
        assert found.warnings == expected.warnings
        assert len(found.warnings) == 1
        assert found.notes == expected.notes


def test_timestamps_made_in_a_wrong_unit_are_told(spark, tmp_path):
    made = pa.table({"time": pa.array([1_641_168_000, 1_641_168_060], pa.timestamp("us")), "sog": [9.0, 9.0]})
    query = wb.compile("define Fast detect Ship(sog > 8)")
    pq.write_table(made, tmp_path / "ships.parquet")
    expected = wb.run(query, made)
    assert "were numbers made into timestamps in a wrong unit" in expected.warnings[0]
    for frame in (spark.createDataFrame(made), read_events(spark, [str(tmp_path / "ships.parquet")])):
        assert run(query, frame).warnings == expected.warnings


# -- date and time in two columns --------------------------------------------------------------------------

DAY_AND_CLOCK = {"time": ["day", "clock"]}
SHIPS_OF_MAY = [("2024-05-01", f"08:{n:02}:00", f"s{n % 2}", 30.0 + n / 10, 32.5, n) for n in range(12)]


def of_two_columns() -> pa.Table:
    names = ("day", "clock", "source", "lon", "lat", "sog")
    return pa.table(dict(zip(names, zip(*SHIPS_OF_MAY, strict=True), strict=True)))


@pytest.mark.parametrize("form", ["texts", "days", "times of day", "csv", "broken", "numbers"])
def test_date_and_time_in_two_columns_mean_the_same_on_spark(spark, tmp_path, form):
    data, how = of_two_columns(), {"columns": DAY_AND_CLOCK, "time_zone": "Europe/Berlin"}
    clocks = data.column("clock").to_pylist()
    if form == "broken":
        data = data.set_column(1, "clock", [[None, "", "ten", "25:00:00", *clocks[4:]]])
    if form == "numbers":
        numbers = pa.array([int(clock.replace(":", "")) for clock in clocks])
        data = data.set_column(1, "clock", [numbers])
        how["time_format"] = "%Y-%m-%d %H%M%S"
    if form in ("days", "times of day"):
        data = data.set_column(0, "day", data.column("day").cast(pa.date32()))
    if form == "times of day":
        moments = pa.array([time.fromisoformat(clock) for clock in clocks], pa.time64("us"))
        data = data.set_column(1, "clock", [moments])
    path = tmp_path / ("ships.csv" if form == "csv" else "ships.parquet")
    (csv.write_csv if form == "csv" else pq.write_table)(data, path)
    query = wb.compile("define Both detect Ship(sog > 4) as a then Ship as b within 2 min group by source")
    expected = wb.run(query, path, **how)
    assert expected.detections.num_rows > 3
    frames = [read_events(spark, [str(path)])]
    frames += [] if form in ("csv", "times of day") else [spark.createDataFrame(data).repartition(3)]
    for frame in frames:
        found = run(query, frame, partitions=2, **how)
        assert found["id"].to_pylist() == expected["id"].to_pylist()
        assert found["events"].to_pylist() == expected["events"].to_pylist()
        assert found.counts.reasons == expected.counts.reasons
        assert (found.notes, found.warnings, found.columns_taken) == (
            expected.notes, expected.warnings, expected.columns_taken,
        )  # fmt: skip


def test_a_stream_of_events_with_date_and_time_in_two_columns(spark, tmp_path):
    folder = Folder(spark, tmp_path / "in", "day string, clock string, source string, sog long")
    names = ("day", "clock", "source", "lon", "lat", "sog")
    rows = [dict(zip(names, row, strict=True)) for row in SHIPS_OF_MAY]
    rows = [{name: row[name] for name in ("day", "clock", "source", "sog")} for row in rows]
    folder.put(rows[:5])
    folder.put(rows[5:])
    declared = "event Ship(sog: int) from columns time = day + clock\n"
    text = declared + "define Fast detect Ship(sog > 4) group by source"
    found, _ = run_to_end(wb.detect(wb.compile(text), folder.stream(), shards=2), tmp_path / "checkpoint")
    expected = wb.Session(wb.compile(text)).push(rows)
    assert expected.num_rows == 6
    assert ids(found) == ids(expected)


def test_what_makes_no_time_on_spark_is_told_before_anything_runs(spark, tmp_path):
    query, frame = wb.compile("define Fast detect Ship(sog > 4)"), spark.createDataFrame(of_two_columns())
    with pytest.raises(DataError, match="no column is named 'hour', which with 'day' would be 'time'"):
        wb.detect(query, frame, columns={"time": "day+hour"})
    with pytest.raises(DataError, match="time is made of 'day' and 'sog', and 'sog' holds whole numbers"):
        wb.detect(query, frame, columns={"time": "day+sog"})
    made = of_two_columns().append_column("seen", [pa.array([time(8)] * 12)])
    pq.write_table(made, tmp_path / "ships.parquet")
    files = read_events(spark, [str(tmp_path / "ships.parquet")])
    reads = wb.compile("define Fast detect Ship as a assign seen = a.seen")
    how = {"columns": {"time": "day+clock"}}
    for events in (tmp_path / "ships.parquet", files):
        with pytest.raises(DataError, match="column 'seen' has the type time64"):
            wb.detect(reads, events, **how)
