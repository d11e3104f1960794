"""Queries that follow objects tell on Spark what they tell in one process."""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.spark.frames import Folder, cut, run_to_end
from tests.spark.mobile import SCHEMA, drawn, query_with, reporting, told, together, world

import whimbrel as wb
from whimbrel.spark import OnePartition, outcomes

pytestmark = pytest.mark.slow

JOBS = int(os.environ.get("WHIMBREL_MOBILE_JOBS", "2"))
"""How many jobs to run of each kind."""
TOGETHER = 12
"""How many mobile queries a job runs."""


def frame_of(spark, rows):
    names = [part.split()[0] for part in SCHEMA.split(", ")]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], SCHEMA)


def by_place(seed, together=TOGETHER):
    rng = Random(seed)
    return query_with([drawn(rng, f"m{number}") for number in range(together)]), world(rng)


@pytest.mark.parametrize("seed", range(JOBS))
def test_a_static_frame_tells_the_same_in_any_number_of_parts(spark, seed):
    query, rows = by_place(seed)
    expected = told(wb.detect(query, rows))
    assert len(expected) > 100
    frame = frame_of(spark, rows)
    for partitions in (1, 5):
        assert told(wb.detect(query, frame, partitions=partitions)) == expected


@pytest.mark.parametrize("seed", range(10, 10 + JOBS))
def test_a_stream_tells_the_same_however_it_is_cut_and_wherever_it_is_stopped(spark, tmp_path, seed):
    query, rows = by_place(seed)
    rng = Random(seed)
    end = {"id": "end", "type": "End", "time": rows[-1]["time"] + 60.0}
    expected = told(wb.detect(query, [*rows, end]))
    folder, found = Folder(spark, tmp_path / "events", SCHEMA), []
    pieces = cut(rows, [rng.randrange(10, 40) for _ in range(4)])
    for piece in [*pieces, [end]]:
        folder.put(piece)
        if rng.random() < 0.5 or piece == [end]:  # some of them in one go, then it stops, and begins again
            frame = wb.detect(query, folder.stream(), shards=3)
            found.append(run_to_end(frame, tmp_path / "checkpoint")[0])
    rows_told = [row for table in found for row in told(table)]
    until = rows[-1]["time"] + 60.0
    settled = [row for row in expected if row["told"].timestamp() < until]
    assert sorted(rows_told, key=lambda row: row["delivery"]) == settled


def test_what_cannot_be_parted_by_place_is_told_in_one_partition_with_the_reason(spark):
    rng = Random(5)
    query, rows = query_with(together(rng)), world(rng, seconds=25)
    expected = told(wb.detect(query, rows))
    assert {row["query"] for row in expected} == {each.name for each in query.mobile}
    with pytest.warns(OnePartition, match="an interest of route may reach anywhere"):
        found = wb.detect(query, frame_of(spark, rows))
    assert told(found) == expected


def test_events_count_once_however_many_shards_have_them(spark):
    query, rows = by_place(3, together=3)
    bad = {"id": "bad", "type": "Car", "source": "car1", "time": None, "x": 0.0, "y": 0.0, "make": "a"}
    found = outcomes(query, frame_of(spark, [*rows, bad]), partitions=4)
    counts = found.where("kind = 'progress'").selectExpr("sum(progress.received)", "sum(progress.rejected)")
    assert tuple(counts.collect()[0]) == (len(rows) + 1, 1)
    assert found.where("kind = 'rejected'").count() == 1
