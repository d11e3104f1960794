"""Detection over streaming frames, as a Spark user meets it."""

from __future__ import annotations

import json
import random
import time

import pytest
from tests.spark.frames import Folder, cut, ids, run_to_end

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.spark import outcomes

pytestmark = pytest.mark.slow

SCHEMA = "id string, type string, time double, source string, speed double"
LATE = wb.compile("""
define Missing(truck) detect Leave as a then not Arrive for 10 s assign truck = group.source group by source
define Slow(truck) detect Leave as a then Arrive as b within 9 s assign truck = group.source group by source
""")


def trips(count: int, seed: int = 1) -> list[dict[str, object]]:
    rng = random.Random(seed)
    return [
        {
            "id": f"e{number}",
            "type": rng.choice(["Leave", "Arrive"]),
            "time": number * 0.5,
            "source": f"truck-{rng.randrange(6)}",
            "speed": 1.0,
        }
        for number in range(count)
    ]


def closed_by(rows, moment):
    """What the embedded engine has found by a watermark."""
    found = wb.detect(LATE, rows)
    return sorted(row["id"] for row in found.to_pylist() if row["end"].timestamp() <= moment)


@pytest.fixture
def folder(spark, tmp_path):
    return Folder(spark, tmp_path / "events", SCHEMA)


def test_a_streaming_frame_gives_a_streaming_frame_with_the_same_detections(folder, tmp_path):
    rows = trips(300)
    for piece in cut(rows, [120, 1, 80]):
        folder.put(piece)
    found = wb.detect(LATE, folder.stream(), shards=3)
    assert found.isStreaming
    assert found.columns == ["id", "type", "start", "end", "geometry", "truck", "events"]
    table, progress = run_to_end(found, tmp_path / "checkpoint")
    expected = closed_by(rows, rows[-1]["time"] - 1e-6)
    assert len(expected) > 20
    assert ids(table) == expected
    assert len(progress) == 4


def test_counts_stand_in_the_progress_of_the_query(folder, tmp_path):
    rows = trips(40)
    folder.put(rows[:30])
    folder.put([*rows[30:], rows[0], {"id": "x", "type": None, "time": 20.0}])
    _, progress = run_to_end(wb.detect(LATE, folder.stream(), shards=2), tmp_path / "checkpoint")
    first, second = (each["observedMetrics"]["whimbrel"] for each in progress)
    assert (first.received, second.received) == (30, 12)
    assert (second.late, second.rejected) == (1, 1)
    assert first.processed + second.processed + second.waiting + first.waiting == 40
    assert second.watermark == 19_499_999
    assert second.state_bytes > 0


def test_late_repeated_and_rejected_events_can_be_looked_at(folder, tmp_path):
    folder.put([{"id": "a", "type": "Leave", "time": 100.0, "source": "t"}])
    folder.put(
        [
            {"id": "b", "type": "Leave", "time": 10.0, "source": "t"},
            {"id": "a", "type": "Leave", "time": 100.0, "source": "t"},
            {"id": "c", "type": "Leave", "time": None, "source": "t"},
            {"id": "d", "type": "Leave", "time": 300.0, "source": "t"},
        ]
    )
    folder.put([{"id": "e", "type": "Leave", "time": 900.0, "source": "t"}])
    table, _ = run_to_end(outcomes(LATE, folder.stream(), lateness="60s", shards=2), tmp_path / "checkpoint")
    aside = {
        row["kind"]: row for row in table.to_pylist() if row["kind"] in ("late", "duplicate", "rejected")
    }
    assert json.loads(aside["late"]["event"])["id"] == "b"
    assert json.loads(aside["duplicate"]["event"])["id"] == "a"
    assert json.loads(aside["rejected"]["event"])["id"] == "c"
    assert aside["rejected"]["reason"] == "time is missing"


def test_an_absence_fires_when_time_has_passed_in_every_shard(folder, tmp_path):
    folder.put([{"id": "a", "type": "Leave", "time": 0.0, "source": "lonely"}])
    folder.put([{"id": "b", "type": "Other", "time": 30.0, "source": "another"}])
    table, _ = run_to_end(wb.detect(LATE, folder.stream(), shards=7), tmp_path / "checkpoint")
    assert table.column("events").to_pylist() == [["a"]]


def test_a_stream_goes_on_where_its_checkpoint_left_off(folder, tmp_path):
    rows, found = trips(200), []
    for piece in cut(rows, [50, 50, 50]):
        folder.put(piece)
        table, _ = run_to_end(wb.detect(LATE, folder.stream(), shards=3), tmp_path / "checkpoint")
        found += ids(table)
    assert sorted(found) == closed_by(rows, rows[-1]["time"] - 1e-6)


def test_state_does_not_grow_with_the_stream(folder, tmp_path):
    for piece in cut(trips(3000), [500] * 5):
        folder.put(piece)
    _, progress = run_to_end(wb.detect(LATE, folder.stream(), shards=2), tmp_path / "checkpoint")
    sizes = [each["observedMetrics"]["whimbrel"].state_bytes for each in progress]
    assert sizes[-1] < 1.5 * sizes[1]


def test_patterns_between_objects_are_partitioned_by_space_on_streams_too(spark, tmp_path):
    query = wb.compile(
        "define Near detect P as a and P as b within 5 s where distance(a, b) < 50 m and a.source < b.source"
    )
    rng = random.Random(5)
    rows = [
        {"id": f"e{n}", "type": "P", "time": n * 0.1, "source": f"s{n % 9}",
         "x": rng.uniform(0, 900), "y": rng.uniform(0, 300)}
        for n in range(600)
    ]  # fmt: skip
    folder = Folder(
        spark, tmp_path / "events", "id string, type string, time double, source string, x double, y double"
    )
    for piece in cut(rows, [200, 150]):
        folder.put(piece)
    folder.put([{"id": "end", "type": "End", "time": 1e6}])
    table, progress = run_to_end(wb.detect(query, folder.stream(), shards=5), tmp_path / "checkpoint")
    assert ids(table) == ids(wb.detect(query, rows))
    assert sum(each["observedMetrics"]["whimbrel"].received for each in progress) == 601


def test_time_follows_the_clock_if_asked_to(spark, folder, tmp_path):
    folder.put([{"id": "a", "type": "Leave", "time": time.time() - 3600, "source": "t"}])
    found = wb.detect(LATE, folder.stream(), shards=1, heartbeat="1 min")
    writer = found.writeStream.format("memory").queryName("beating")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        until = time.monotonic() + 120
        while spark.table("beating").count() == 0 and time.monotonic() < until:
            time.sleep(0.5)
        assert [row.events for row in spark.table("beating").collect()] == [["a"]]
    finally:
        query.stop()


def test_another_query_on_the_same_checkpoint_is_refused(folder, tmp_path):
    folder.put(trips(20))
    run_to_end(wb.detect(LATE, folder.stream(), shards=2), tmp_path / "checkpoint")
    folder.put(trips(20, seed=2))
    other = wb.compile("define Missing(truck) detect Leave as a then not Arrive for 99 s "
                       "assign truck = group.source group by source")  # fmt: skip
    with pytest.raises(Exception, match="the snapshot is of"):
        run_to_end(wb.detect(other, folder.stream(), shards=2), tmp_path / "checkpoint")


def test_streams_that_make_no_events_are_refused_at_once(folder):
    with pytest.raises(DataError, match="no column says when"):
        wb.detect(LATE, folder.stream().drop("time"))
