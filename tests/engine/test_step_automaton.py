"""What a walk along events keeps, and what it lets go of."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.engine.operators import step_pattern


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(step_pattern, "FORGET_FROM", 16)


def sizes(session: wb.Session) -> tuple[int, int]:
    (runtime,) = (
        each
        for pipeline in session.running.pipelines.values()
        for each in pipeline.runtimes.values()
        if isinstance(each, step_pattern.StepPatternOperator)
    )
    return len(runtime.keys), len(runtime.memory.values.texts)


@pytest.mark.parametrize("skip", ["", "skip past last event"])
def test_keys_and_texts_that_are_over_are_forgotten(small, skip):
    text = (
        "define M detect A as a followed by B(name != first(a.name)) as b within 5 s "
        f"assign k = group.k group by k {skip}"
    )
    session = wb.Session(wb.compile(text))
    found = []
    for second in range(400):
        trip = second // 2
        kind = "A" if second % 2 == 0 else "B"
        event = {"type": kind, "time": second, "id": f"e{second}", "k": f"trip {trip}", "name": f"n{second}"}
        found += session.push([event]).to_pylist()
        assert max(sizes(session)) < 64
    found += session.close().to_pylist()
    assert [row["k"] for row in found] == [f"trip {trip}" for trip in range(200)]


@pytest.mark.parametrize("skip", ["", "skip past last event"])
def test_a_snapshot_after_keys_were_forgotten_goes_on_the_same(small, skip):
    query = wb.compile(f"define M detect A as a followed by B as b within 60 s group by k {skip}")
    events = [
        {"type": "A" if n % 2 == 0 else "B", "time": n, "id": f"e{n}", "k": f"trip {n // 2 % 45}"}
        for n in range(300)
    ]
    whole = wb.detect(query, events).column("events").to_pylist()
    session, found = wb.Session(query), []
    for event in events:
        found += session.push([event]).column("events").to_pylist()
        saved = session.snapshot()
        session = wb.Session(query)
        session.restore(saved)
    found += session.close().column("events").to_pylist()
    assert sorted(found) == sorted(whole)
