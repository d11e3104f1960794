"""Queries come and go while the stream runs, and the others do not notice."""

from __future__ import annotations

import json

import pytest
from tests.spark.frames import Folder, run_to_end

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.spark import detect_live, outcomes_live

pytestmark = pytest.mark.slow

EVENTS = "id string, type string, time double, source string, speed double, x double, y double"
ORDERS = "action string, name string, query string, number long"
FAST = "define Fast(v) detect P(speed > 20) as p assign v = p.speed group by source"
BRAKES = "define Brakes detect P(speed > 20) as a then P(speed < 5) as b within 9 s group by source"
EVERYONE = "define Everyone detect P as a then P as b within 1 s"


def driving(first: int, last: int) -> list[dict[str, object]]:
    return [
        {"id": f"e{n}", "type": "P", "time": float(n), "source": f"t{n % 3}", "speed": float(n * 7 % 30)}
        for n in range(first, last)
    ]


def order(action: str, name: str, query: str = "", number: int = 0) -> dict[str, object]:
    return {"action": action, "name": name, "query": query, "number": number}


class Live:
    """A stream that is stopped and started again for every step, going on from its checkpoint."""

    def __init__(self, spark, path):
        self.path = path
        self.events, self.orders = (
            Folder(spark, path / "events", EVENTS),
            Folder(spark, path / "orders", ORDERS),
        )

    def step(self, events=(), orders=()):
        """Orders take effect with the events of their micro-batch."""
        if orders:
            self.orders.put(orders)
        if events:
            self.events.put(events)
        frame = outcomes_live(self.events.stream(), self.orders.stream(), shards=3)
        return run_to_end(frame, self.path / "checkpoint")[0].to_pylist()


def found(rows, query):
    return sorted(row["id"] for row in rows if row["kind"] == "detection" and row["query"] == query)


def embedded(text, rows, before):
    table = wb.detect(wb.compile(text), rows)
    return sorted(row["id"] for row in table.to_pylist() if row["end"].timestamp() < before)


def test_queries_come_and_go_and_the_state_of_the_others_stays(spark, tmp_path):
    live = Live(spark, tmp_path)
    first = live.step(driving(0, 50), [order("add", "brakes", BRAKES)])
    second = live.step(driving(50, 100), [order("add", "fast", FAST)])
    third = live.step(driving(100, 150), [order("remove", "fast"), order("remove", "nobody", number=1)])
    every = first + second + third
    assert found(every, "brakes") == embedded(BRAKES, driving(0, 150), 149)
    assert found(first, "fast") == []
    assert found(second, "fast") == embedded(FAST, driving(50, 100), 99)
    assert found(third, "fast") == []
    refused = [row for row in third if row["kind"] == "refused"]
    assert [json.loads(row["event"])["name"] for row in refused] == ["nobody"]
    assert "running: brakes" in refused[0]["reason"]


def test_a_bad_order_changes_nothing_and_is_told_once_with_the_reason(spark, tmp_path):
    live = Live(spark, tmp_path)
    rows = live.step(
        driving(0, 30),
        [
            order("add", "fast", FAST, 0),
            order("replace", "fast", "define Fast detct", 1),
            order("add", "everyone", EVERYONE, 2),
            order("add", "fast", FAST, 3),
            order("frobnicate", "fast", FAST, 4),
        ],
    )
    assert found(rows, "fast") == embedded(FAST, driving(0, 30), 29)
    reasons = [row["reason"] for row in rows if row["kind"] == "refused"]
    assert len(reasons) == 4
    assert "did you mean 'detect'" in reasons[0]
    assert "does not group all its events by source" in reasons[1]
    assert "running already" in reasons[2]
    assert "is no action" in reasons[3]


def test_a_query_is_replaced_from_one_micro_batch_to_the_next(spark, tmp_path):
    live = Live(spark, tmp_path)
    live.step(driving(0, 30), [order("add", "fast", FAST)])
    faster = FAST.replace("20", "26")
    rows = live.step(driving(30, 60), [order("replace", "fast", faster)])
    assert found(rows, "fast") == embedded(faster, driving(30, 60), 59)


def test_attributes_come_as_json_because_queries_are_not_known_before(spark, tmp_path):
    live = Live(spark, tmp_path)
    live.orders.put([order("add", "fast", FAST)])
    live.events.put(driving(0, 10))
    frame = detect_live(live.events.stream(), live.orders.stream(), shards=1)
    assert frame.columns == ["query", "id", "type", "start", "end", "geometry", "attributes", "events"]
    table, _ = run_to_end(frame, tmp_path / "checkpoint")
    assert sorted(json.loads(text)["v"] for text in table.column("attributes").to_pylist()) == [
        21.0,
        26.0,
        28.0,
    ]


def test_streams_without_the_right_columns_are_refused(spark, tmp_path):
    live = Live(spark, tmp_path)
    with pytest.raises(DataError, match="control stream has no column 'query'"):
        detect_live(live.events.stream(), live.orders.stream().drop("query"))
    with pytest.raises(DataError, match="by='car'"):
        detect_live(live.events.stream(), live.orders.stream(), by="car")


AROUND = """
define Fast detect P(speed > 20)
around P(speed < 3) as slow within 20 m report Fast lifetime 9 s
"""


def test_a_query_that_follows_objects_comes_while_the_stream_runs(spark, tmp_path):
    live = Live(spark, tmp_path)
    steps = [driving(0, 40), driving(40, 90)]
    session, found, expected = wb.Session(coordinates="plane"), [], []
    for number, step in enumerate(steps):
        rows = [{**row, "x": row["time"] % 7 * 9, "y": 0.0} for row in step]
        live.events.put(rows)
        live.orders.put([order("add", "around", AROUND)] if number else [order("add", "fast", FAST)])
        session.add(wb.compile(AROUND if number else FAST), name="around" if number else "fast")
        frame = outcomes_live(live.events.stream(), live.orders.stream(), by=None)
        found += run_to_end(frame, tmp_path / "checkpoint")[0].to_pylist()
        expected += session.push(rows).to_pylist()
    told = [json.loads(row["attributes"]) for row in found if row["query"] == "around"]
    wanted = [row["delivery"] for row in expected if row.get("delivery")]
    assert len(wanted) > 5
    assert sorted(each["delivery"] for each in told) == sorted(wanted)
    assert {each["focal"] for each in told} <= {"t0", "t1", "t2"}


def test_a_query_that_follows_objects_needs_all_events_in_one_shard(spark, tmp_path):
    rows = Live(spark, tmp_path).step(driving(0, 9), [order("add", "around", AROUND)])
    (reason,) = [row["reason"] for row in rows if row["kind"] == "refused"]
    assert "slow follows objects: it needs those around them" in reason
