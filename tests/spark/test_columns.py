"""Columns as they are, on Spark: the same names are taken as everywhere else, once, and told."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as fn
from tests.spark.frames import Folder, ids, run_to_end

import whimbrel as wb
from whimbrel.errors import DataError
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
    assert found.notes == (NAMES, "type is 'Ship' for all events, the only one that the query reads")
    assert expected.notes[:1] == found.notes[:1]


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
