"""Changes in running sessions: shared between queries, restored, forgotten."""

from __future__ import annotations

import numpy as np
import pytest

import whimbrel as wb
from whimbrel.engine.operators import change

TURNED = (
    "define Turned detect P as p changes v within 1 min assign k = p.k, v = p.v, was = previous.v group by k"
)
TWICE = TURNED + " define Twice detect Turned as a then Turned as b within 1 min where a.v = b.was group by k"


def rows(seconds, keys, values):
    return [
        {"type": "P", "time": f"2024-05-01T08:00:{second:02}Z", "id": f"e{n}", "k": str(key), "v": int(value)}
        for n, (second, key, value) in enumerate(zip(seconds, keys, values, strict=True))
    ]


@pytest.fixture
def events():
    rng = np.random.default_rng(5)
    return rows(np.sort(rng.integers(0, 60, 40)), rng.integers(0, 3, 40), rng.integers(0, 3, 40))


def found(tables):
    return sorted(
        (row["type"], row["id"], tuple(row["events"])) for table in tables for row in table.to_pylist()
    )


def test_queries_that_have_a_change_in_common_find_what_each_finds_alone(events):
    texts = {"one": TURNED, "other": TURNED, "more": TWICE}
    running = wb.Session(wb.compile(TURNED.replace("Turned", "First")))
    for name, text in texts.items():
        running.add(wb.compile(text), name=name)
    together = [running.push(events[n : n + 7]) for n in range(0, len(events), 7)]
    together.append(running.close())
    alone = [wb.detect(wb.compile(text), events) for text in texts.values()]
    assert [each for each in found(together) if each[0] != "First"] == found(alone)


def test_a_snapshot_holds_the_last_event_of_every_partition(events):
    query = wb.compile(TWICE)
    running, tables = wb.Session(query), []
    for event in events:
        tables.append(running.push([event]))
        saved = running.snapshot()
        running = wb.Session(query)
        running.restore(saved)
    tables.append(running.close())
    assert found(tables) == found([wb.detect(query, events)])


def test_partitions_that_fell_silent_are_forgotten(monkeypatch):
    monkeypatch.setattr(change, "FORGET_FROM", 8)
    running = wb.Session(wb.compile("define D detect P changes v within 1 s group by k"))
    events = [{"type": "P", "time": n, "id": f"e{n}", "k": n // 2, "v": n % 3} for n in range(200)]
    tables = [running.push([event]) for event in events]
    tables.append(running.close())
    (operator,) = (
        runtime
        for pipeline in running.running.pipelines.values()
        for runtime in pipeline.runtimes.values()
        if isinstance(runtime, change.ChangeOperator)
    )
    assert len(operator.keys) < 20
    assert len(found(tables)) == 100
