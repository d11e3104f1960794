"""Queries that follow objects tell on Spark what they tell in one process."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from tests.spark.frames import Folder, cut, run_to_end
from tests.spark.mobile import SCHEMA, drawn, query_with, reporting, together, told, world

import whimbrel as wb
from whimbrel.errors import DataError, QueryError
from whimbrel.graph.custom import CustomOperator, restriction, window
from whimbrel.graph.mobile import CircleInterest, FocalObjects, ListedObject, MobilePolicy, MobileQuery
from whimbrel.graph.policies import SelectionPolicy
from whimbrel.lang.custom import custom_query
from whimbrel.lang.following import follow
from whimbrel.model.deliveries import REUSED
from whimbrel.model.time import SECOND
from whimbrel.spark import OnePartition, outcomes

pytestmark = pytest.mark.slow

JOBS = int(os.environ.get("WHIMBREL_MOBILE_JOBS", "1"))
"""How many jobs to run of each kind."""
TOGETHER = 12
"""How many mobile queries a job runs."""
FOLLOWED = "action string, key string, radius string, lifetime string, query string"


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
        if piece == pieces[2] or piece == [end]:  # some of them in one go, then it stops, and begins again
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


class Speeds(CustomOperator):
    """How fast the last cars were, together."""

    stateless = True

    def process(self, events):  # noqa: ARG002 (it looks at all)
        yield {"sum": sum(event["speed"] or 0.0 for event in self.selected["Car"])}


def test_deliveries_say_whose_selection_stood_for_ones_own(spark):
    policy = SelectionPolicy(
        (window("Car", 4, bound="end", initial="newest"),), restriction("6 s", bound="end")
    )
    speeds = custom_query("Speeds", Speeds, ["Car"], policy, attributes={"sum": "float"})
    similar = MobilePolicy(reuse="similar", quality=0.4)
    query = follow(speeds, type="Car", within="300 m", policy=similar)
    rows = world(Random(2), seconds=12, cars=4)
    expected = told(wb.detect(query, rows))
    with pytest.warns(OnePartition, match="may be found in other places"):
        found = wb.detect(query, frame_of(spark, rows))
    assert told(found) == expected
    assert {type(row.get("by")) for row in expected} == {type(None), str}
    assert set(REUSED) <= set(found.columns)
    exact = wb.detect(follow(speeds, type="Car", within="300 m"), frame_of(spark, rows))
    assert not set(REUSED) & set(exact.columns)


def test_events_count_once_however_many_shards_have_them(spark):
    query, rows = by_place(3, together=3)
    bad = {"id": "bad", "type": "Car", "source": "car1", "time": None, "x": 0.0, "y": 0.0, "make": "a"}
    found = outcomes(query, frame_of(spark, [*rows, bad]), partitions=4)
    counts = found.where("kind = 'progress'").selectExpr("sum(progress.received)", "sum(progress.rejected)")
    assert tuple(counts.collect()[0]) == (len(rows) + 1, 1)
    assert found.where("kind = 'rejected'").count() == 1


def following(deliver):
    policy = MobilePolicy(deliver=deliver)
    focal = FocalObjects("Car", listed=(ListedObject("car0"),))
    return MobileQuery(reporting("Fast", "Count"), focal, CircleInterest(100.0), 3 * SECOND, policy).compile()


def in_one_session(query, steps, lateness):
    """What a session tells whose list changes as the orders say."""
    session, found = wb.Session(query, lateness=lateness, coordinates="plane"), []
    for orders, rows in steps:
        for order in orders:
            if order["action"] == "follow":
                given = (order["key"], order.get("radius"), order.get("lifetime"))
                session.follow([ListedObject(*given)])
            else:
                session.unfollow([order["key"]])
        found.append(session.push(rows))
    return [row for table in found for row in told(table)]


def test_objects_are_put_on_a_list_and_taken_off_while_the_stream_runs(spark, tmp_path):
    query, rows = following("changes"), world(Random(7), seconds=30)
    pieces = [*cut(rows, [40, 40, 40]), [{"id": "end", "type": "End", "time": rows[-1]["time"] + 60.0}]]
    orders = [
        [{"action": "follow", "key": "car2", "radius": "200 m", "lifetime": "9 s"}],
        [{"action": "follow", "key": "car5"}, {"action": "unfollow", "key": "car0"}],
        [{"action": "follow", "key": "car3", "radius": "2 km"}, {"action": "drop", "key": "car5"}],
        [],
        [],
    ]
    events = Folder(spark, tmp_path / "events", SCHEMA)
    control = Folder(spark, tmp_path / "control", FOLLOWED)
    tables = []
    for asked, piece in zip(orders, pieces, strict=True):
        events.put(piece)
        control.put(asked)  # a file of each makes a micro-batch
        if piece not in (pieces[1], pieces[-1]):
            continue
        frame = outcomes(
            query, events.stream(), followed=control.stream(), reach="300 m", shards=3, lateness="1 s"
        )
        tables.append(run_to_end(frame, tmp_path / "checkpoint")[0])
    outcome = pa.concat_tables(tables).to_pylist()
    reasons = [row["reason"] for row in outcome if row["kind"] == "refused"]
    assert len(reasons) == 2
    assert "needs events from 2000 m away, and they are sent over 300 m" in " ".join(reasons)
    done = [
        [each for each in asked if each["key"] != "car3" and each["action"] != "drop"] for asked in orders
    ]
    expected = in_one_session(query, list(zip(done, pieces, strict=True)), "1 s")
    assert {row["focal"] for row in expected} == {"car0", "car2", "car5"}
    ids = [row["delivery"] for row in outcome if row["kind"] == "detection"]
    assert sorted(ids) == sorted(row["delivery"] for row in expected)


def test_rows_of_followed_objects_need_a_list(spark, tmp_path):
    events, control = Folder(spark, tmp_path / "e", SCHEMA), Folder(spark, tmp_path / "c", FOLLOWED)
    query, _ = by_place(1, together=1)
    unlisted = replace(query.mobile[0], focal=FocalObjects("Car")).compile()
    with pytest.raises(QueryError, match="no mobile query has a list"):
        wb.detect(unlisted, events.stream(), followed=control.stream())
    with pytest.raises(DataError, match="no column 'key'"):
        wb.detect(following("all"), events.stream(), followed=control.stream().drop("key"))
