"""Recordings come in the order asked for, in the same micro-batches every time."""

from __future__ import annotations

import os
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.spark.frames import ids, run_to_end

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.model.reading import Reading
from whimbrel.spark.sources import read_replay
from whimbrel.spark.sources._replay_cache import BATCH_ROWS, ReplayFiles, open_cache
from whimbrel.spark.sources.replay import ReplayOptions, ReplayReader

LIMIT = ReadMaxRows(10)


@pytest.fixture
def recording(tmp_path):
    """Seven events, one of them out of order, each received a second after the one before it in the file."""

    def make(**options: str) -> ReplayFiles:
        seconds = [0, 1, 2, 5, 3, 6, 9]
        table = pa.table(
            {
                "type": ["A"] * 7,
                "time": pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us", "UTC")),
                "t_recv": pa.array(range(20, 13, -1)),
                "n": range(7),
            }
        )
        pq.write_table(table, tmp_path / "events.parquet")
        return ReplayFiles(str(tmp_path / "events.parquet"), cache=str(tmp_path / "replays"), **options)

    return make


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def numbers(cache) -> list[int]:
    return [number for batch in cache.batches(0, cache.rows) for number in batch.column("n").to_pylist()]


def cuts(reader: ReplayReader) -> list[int]:
    """Ask for one micro-batch after another, without waiting."""
    reader.prepareForTriggerAvailableNow()
    found = [reader.initialOffset()]
    while True:
        offset = reader.latestOffset(found[-1], LIMIT)
        if offset == found[-1]:
            return [offset["row"] for offset in found]
        found.append(offset)


def test_rows_come_in_event_time_order(recording):
    assert numbers(open_cache(recording())) == [0, 1, 2, 4, 3, 5, 6]


def test_rows_come_in_file_order(recording):
    cache = open_cache(recording(order="file"))
    assert numbers(cache) == list(range(7))
    # A late row is due when the newest event before it was.
    assert [due // 1_000_000 for due in cache.due.tolist()] == [0, 1, 2, 5, 5, 6, 9]


def test_rows_come_in_the_order_of_receipt(recording):
    cache = open_cache(recording(order="t_recv"))
    assert numbers(cache) == list(range(6, -1, -1))
    assert [due // 1_000_000 for due in cache.due.tolist()] == list(range(14, 21))


def test_an_unknown_column_to_order_by_is_named(recording):
    with pytest.raises(DataError, match="no column 't_rcv' to order by; did you mean 't_recv'"):
        open_cache(recording(order="t_rcv"))


def test_lines_that_cannot_be_read_are_kept_as_they_are(tmp_path):
    (tmp_path / "a.csv").write_text("type,time,n\nA,2,0\nB,oops,1\nA,1,2\nhalf a line\n", encoding="utf-8")
    cache = open_cache(ReplayFiles(str(tmp_path / "a.csv"), cache=str(tmp_path / "replays")))
    rows = [row for batch in cache.batches(0, cache.rows) for row in batch.to_pylist()]
    # A row without a readable time stays with the row before it.
    assert [row["n"] for row in rows] == [2, None, 0, 1]
    assert [row["time"] for row in rows] == ["1", None, "2", "oops"]
    assert rows[1] == {"type": None, "time": None, "n": None, "_raw": "half a line"}


def test_files_of_a_folder_are_one_recording(tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "a.csv").write_text("type,time,n\nA,3,0\n", encoding="utf-8")
    (folder / "b.jsonl").write_text('{"type": "A", "time": 1, "n": 1, "extra": true}\n', encoding="utf-8")
    cache = open_cache(ReplayFiles(str(folder), cache=str(tmp_path / "replays")))
    assert numbers(cache) == [1, 0]
    assert cache.schema.field("time").type == pa.timestamp("us", "UTC")


def test_reading_by_row_number_crosses_the_pieces(tmp_path):
    rows = 2 * BATCH_ROWS + 5
    table = pa.table({"type": ["A"] * rows, "time": range(rows), "n": range(rows)})
    pq.write_table(table, tmp_path / "many.parquet")
    recording = ReplayFiles(str(tmp_path / "many.parquet"), cache=str(tmp_path / "replays"))
    cache = open_cache(recording)
    found = [n for batch in cache.batches(BATCH_ROWS - 2, rows) for n in batch.column("n").to_pylist()]
    assert found == list(range(BATCH_ROWS - 2, rows))
    reader = ReplayReader(ReplayOptions(recording), ["n"])
    first, last = reader.initialOffset(), reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    spans = [partition.value for partition in reader.partitions(first, last)]
    assert spans == [(0, BATCH_ROWS), (BATCH_ROWS, 2 * BATCH_ROWS), (2 * BATCH_ROWS, rows)]
    assert reader.partitions(last, last) == []


def test_micro_batches_are_cut_by_rows(recording):
    assert cuts(ReplayReader(ReplayOptions(recording(), rows_per_batch=3), ["n"])) == [0, 3, 6, 7]


def test_micro_batches_are_cut_by_ticks_and_rows(recording):
    # Twice as fast, a tick of a second covers two: events at 0, 1 | 2, 3 | 5 | 6 | 9.
    assert cuts(ReplayReader(ReplayOptions(recording(), speed=2), ["n"])) == [0, 2, 4, 5, 6, 7]
    assert cuts(ReplayReader(ReplayOptions(recording(), speed=2, rows_per_batch=1), ["n"])) == list(range(8))


def test_a_replay_waits_until_events_are_due(recording):
    clock = Clock()
    reader = ReplayReader(ReplayOptions(recording(), speed=2), ["n"], clock)
    offset = reader.initialOffset()
    seen = []
    for clock.now in (100, 100.4, 100.6, 101, 102, 104, 104, 104.4, 104.5):
        offset = reader.latestOffset(offset, LIMIT)
        seen.append(offset["row"])
    # Late by then, it still goes on cut by cut.
    assert seen == [0, 0, 2, 2, 4, 5, 6, 6, 7]


def test_a_restarted_replay_goes_on_from_where_it_was(recording):
    clock = Clock()
    reader = ReplayReader(ReplayOptions(recording(), speed=2), ["n"], clock)
    offset = {**reader.initialOffset(), "row": 4}
    rows = []
    for clock.now in (500, 500.5, 501, 502):
        offset = reader.latestOffset(offset, LIMIT)
        rows.append(offset["row"])
    assert rows == [5, 6, 6, 7]


def test_a_recording_that_has_changed_is_refused(recording):
    reader = ReplayReader(ReplayOptions(recording()), ["n"])
    old = {**reader.initialOffset(), "of": 6}
    with pytest.raises(DataError, match=r"made with another recording \(it had 6 rows, this one has 7"):
        reader.latestOffset(old, LIMIT)


def test_old_tapes_are_forgotten(recording, tmp_path):
    first = recording()
    open_cache(first)
    os.utime(first.place(), (0, 0))
    open_cache(recording(order="file"))
    assert not first.place().exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'path'"),
        ({"path": "x", "sped": "1"}, "no option 'sped'; did you mean 'speed'"),
        ({"path": "x", "speed": "quick"}, "speed must be a number or 'max', not 'quick'"),
        ({"path": "x", "speed": "-1"}, "speed is -1; it must be at least 0"),
        ({"path": "x", "rows_per_batch": "0"}, "rows_per_batch is 0; it must be at least 1"),
    ],
)
def test_wrong_options_are_explained(options, message):
    with pytest.raises(DataError, match=message):
        ReplayOptions.of(options)


def replayed(spark, path, folder, checkpoint, *, fail_at=None, **options) -> dict[int, list[int]]:
    """Replay until the end and return the rows of each micro-batch; one of them may fail."""
    batches = {}

    def keep(frame, batch_id):
        if batch_id == fail_at:
            raise RuntimeError("as if the driver had died")
        batches[batch_id] = [row["n"] for row in frame.select("n").collect()]

    frame = read_replay(spark, str(path), cache=str(folder / "replays"), **options)
    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(folder / checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination(60)
    except StreamingQueryException:
        assert fail_at is not None
    return batches


@pytest.mark.slow
def test_a_restart_gives_the_same_micro_batches(spark, tmp_path):
    rows = [f"A,{(7 * n) % 50},{n}" for n in range(50)]
    (tmp_path / "a.csv").write_text("\n".join(["type,time,n", *rows]) + "\n", encoding="utf-8")
    order = sorted(range(50), key=lambda n: (7 * n) % 50)
    whole = [order[:20], order[20:40], order[40:]]
    first = replayed(spark, tmp_path / "a.csv", tmp_path, "cut", rows_per_batch=20, fail_at=1)
    second = replayed(spark, tmp_path / "a.csv", tmp_path, "cut", rows_per_batch=20)
    assert first == {0: whole[0]}
    assert second == {1: whole[1], 2: whole[2]}


@pytest.mark.slow
def test_a_replay_keeps_to_its_speed(spark, tmp_path):
    (tmp_path / "a.csv").write_text(
        "\n".join(["type,time,n", *(f"A,{n},{n}" for n in range(40))]) + "\n", encoding="utf-8"
    )
    frame = read_replay(spark, str(tmp_path / "a.csv"), speed=10, cache=str(tmp_path / "replays"))
    arrivals = []

    def note(frame, _batch_id):
        arrivals.extend((time.monotonic(), row["n"]) for row in frame.select("n").collect())

    query = frame.writeStream.foreachBatch(note).option("checkpointLocation", str(tmp_path / "cp")).start()
    try:
        began = time.monotonic()
        while len(arrivals) < 40 and time.monotonic() < began + 60:
            assert query.exception() is None
            time.sleep(0.1)
    finally:
        query.stop()
    assert [n for _, n in arrivals] == list(range(40))
    # Forty seconds at ten times the speed: the last event is not there before 3.9 seconds after the first.
    assert all(later >= earlier for (earlier, _), (later, _) in pairwise(arrivals))
    assert arrivals[-1][0] - began >= 3.0


# -- times as they are -------------------------------------------------------------------------------------

LOCAL = [datetime(2024, 3, 31, 1, 30), datetime(2024, 3, 31, 3, 15), datetime(2024, 3, 31, 12)]  # noqa: DTZ001
"""Times of clocks that leave out an hour in between."""


PAIR = "define D detect A as a then A as b within 1 h"


def local_times(folder: Path, name: str = "time", **more: object) -> Path:
    columns = {"type": ["A"] * 3, name: pa.array(LOCAL, pa.timestamp("us")), "id": list("abc")}
    pq.write_table(pa.table({**columns, **more}), folder / "local.parquet")
    return folder / "local.parquet"


@pytest.mark.parametrize("name", ["time", "timestamp", "seen"])
@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("s"), pa.date32()])
def test_times_without_a_zone_stay_without_one(tmp_path, name, kind):
    path = local_times(tmp_path)
    table = pq.read_table(path)
    made = table.column("time").cast(kind, safe=False)
    pq.write_table(table.set_column(1, name, made), path)
    cache = open_cache(ReplayFiles(str(path), order=name, cache=str(tmp_path / "replays")))
    assert cache.schema.field(name).type == pa.timestamp("us")


def test_how_times_are_read_decides_about_their_order(tmp_path):
    path = local_times(tmp_path)
    reading = Reading.of(time_zone="Europe/Berlin")
    utc, local = (
        open_cache(ReplayFiles(str(path), cache=str(tmp_path / "replays"), reading=each)).due.tolist()
        for each in (Reading(), reading)
    )
    assert [(one - other) // 3_600_000_000 for one, other in zip(utc, local, strict=True)] == [1, 2, 2]
    (tmp_path / "days.csv").write_text("type,day,clock,n\nA,02/05/2024,08:00,0\nA,01/06/2024,07:00,1\n")
    for order, found in ((True, [0, 1]), (False, [1, 0])):
        how = Reading.of(columns={"time": "day+clock"}, day_first=order)
        cache = open_cache(
            ReplayFiles(str(tmp_path / "days.csv"), cache=str(tmp_path / "replays"), reading=how)
        )
        assert numbers(cache) == found
    bad = Reading.of(columns={"time": "day+hour"})
    recording = ReplayFiles(str(tmp_path / "days.csv"), cache=str(tmp_path / "replays"), reading=bad)
    with pytest.raises(DataError, match=r"days\.csv: no column is named 'hour', which with 'day' would be"):
        open_cache(recording)


def test_what_a_query_says_of_columns_is_known(tmp_path):
    (tmp_path / "days.csv").write_text("type,day,clock,n\nA,2024-05-02,08:00,0\nA,2024-05-01,09:00,1\n")
    said = {"time": ("day", "clock")}
    cache = open_cache(ReplayFiles(str(tmp_path / "days.csv"), cache=str(tmp_path / "replays"), said=said))
    assert numbers(cache) == [1, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"day_first": "maybe"}, "day_first must be true or false, not 'maybe'"),
        ({"columns": "time"}, "columns must be a JSON object"),
        ({"time_zone": "Mars/Base"}, "'Mars/Base' is no time zone"),
        ({"time_unit": "min"}, "time unit 'min' is not known"),
    ],
)
def test_wrong_options_about_times_are_told(options, message):
    with pytest.raises(DataError, match=message):
        ReplayOptions.of({"path": "a.csv", **options})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["time", "seen"])
def test_a_replay_means_the_same_in_every_zone(spark, tmp_path, name):
    path, query = local_times(tmp_path, name), wb.compile(PAIR)
    how = {"columns": {"time": name}, "default_type": "A"}
    for zone, count in ((None, 0), ("UTC", 0), ("Europe/Berlin", 1)):
        stream = read_replay(spark, str(path), cache=str(tmp_path / "replays"), time_zone=zone, **how)
        found, _ = run_to_end(
            wb.detect(query, stream, time_zone=zone, shards=1, **how), tmp_path / f"state-{zone}"
        )
        expected = wb.detect(query, path, time_zone=zone, **how)
        assert ids(found) == ids(expected)
        assert expected.num_rows == count
        assert sorted(found["start"].to_pylist()) == sorted(expected["start"].to_pylist())
