"""What is brought here from Spark is the same result as that of the embedded engine."""

from __future__ import annotations

import pyarrow as pa

import whimbrel as wb
from whimbrel.io import write_detections
from whimbrel.spark import run

QUERY = wb.compile("define Fast detect Position(speed > 30) group by source")
EVENTS = pa.table(
    {
        "id": ["e1", "e2", "e3", "e1", "e5"],
        "type": ["Position"] * 5,
        "time": [0, 60, 120, 0, None],
        "source": ["a", "b", "a", "a", "b"],
        "speed": [50.0, 10.0, 40.0, 50.0, 70.0],
        "lon": [10.0, 10.1, 10.2, 10.0, 10.3],
        "lat": [50.0, 50.1, 50.2, 50.0, 50.3],
    }
)


def test_the_result_of_spark_is_that_of_the_embedded_engine(spark, tmp_path):
    here, there = wb.detect(QUERY, EVENTS), run(QUERY, spark.createDataFrame(EVENTS))
    assert type(there) is wb.Detections
    assert there["id"].to_pylist() == here["id"].to_pylist()
    counts = there.counts
    assert (counts.received, counts.processed, counts.duplicate, counts.rejected) == (5, 3, 1, 1)
    assert counts.received == here.counts.received
    assert there.duplicates.select(["id", "end", "lon", "lat"]).equals(
        here.duplicates.select(["id", "end", "lon", "lat"])
    )
    assert there.rejected["reason"].to_pylist() == here.rejected["reason"].to_pylist() == ["time is missing"]
    assert there.late.num_rows == 0
    assert "<iframe" in there._repr_html_()
    for name, result in {"here": here, "there": there}.items():
        write_detections(result, tmp_path / f"{name}.jsonl")
    assert (tmp_path / "here.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()


def test_a_frame_gives_a_frame_and_its_table_can_be_read_again(spark):
    found = wb.detect(QUERY, spark.createDataFrame(EVENTS))
    assert type(found).__name__ == "DataFrame"
    plain = wb.detect(QUERY, EVENTS)
    again = spark.createDataFrame(plain.drop_columns(["events"]))
    assert again.count() == plain.num_rows == 2
