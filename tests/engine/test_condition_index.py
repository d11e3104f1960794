"""Conditions that are looked up let the same events through as conditions that are computed."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.engine import type_index
from whimbrel.engine.condition_index import ConditionIndex
from whimbrel.errors import QueryTypeError

CONDITIONS = [
    "k = 'x'", "k = 'y'", "'z' = k", "k != 'x'", "k in ('x', 'y')", "startswith(k, 'x')", "contains(k, 'y')",
    "v = 1", "v = 1.0", "v != 2", "v > 1", "v >= 1.5", "2 > v", "v between 0 and 2", "v between 2 and 0",
    "v in (0, 3)", "v > 0 and v <= 2", "w < 0.5", "w = 0", "w > -1 and k = 'x'", "b", "not b", "b = true",
    "k is null", "v + 1 > 2", "k = 'x' and v = 1", "k = 'y' or v = 2", "v = 9007199254740993", "w > 1e300",
    "v > 9007199254740992", "lower(k) = 'x'", "timestamp > timestamp '1970-01-01T00:00:02Z'",
    "this in box(0, 0, 2, 2)", "this in circle(1, 1, 1.5) and v > 0", "distance(this, point(0, 0)) < 2",
    "k = 'x' and intersects(this, box(1, 1, 3, 3))", "x > 1", "source = 's'", "t > timestamp '1970-01-02'",
    "t = timestamp '1970-01-03'", "missing = 1", "missing > 2 and k = 'x'",
]  # fmt: skip

ROWS = st.fixed_dictionaries(
    {"type": st.sampled_from("AB")},
    optional={
        "k": st.sampled_from([None, "x", "y", "xy", "z", ""]),
        "v": st.sampled_from([None, 0, 1, 2, 3, 2**53 + 1, 2**53, -1]),
        "w": st.sampled_from([None, -1.0, -0.0, 0.0, 0.25, 1.0, 1e301, float("nan")]),
        "b": st.sampled_from([None, True, False]),
        "t": st.sampled_from([None, "1970-01-02T00:00:00Z", "1970-01-03T00:00:00Z"]),
        "source": st.sampled_from([None, "s", "r"]),
        "place": st.sampled_from([None, (0.0, 0.0), (1.0, 1.0), (2.5, 2.0), (2.0, 0.0)]),
    },
)


@contextlib.contextmanager
def looking_up(*, always: bool) -> Iterator[None]:
    """Look up all conditions that can be, or compute all."""
    few, type_index.FEW = type_index.FEW, 1
    try:
        with type_index.COMPUTED.set_to(-1.0 if always else float("inf")):
            yield
    finally:
        type_index.FEW = few


def table(rows: list[dict], first: int) -> pa.Table:
    """Make a table whose columns have their types, whatever the rows lack."""
    places = [row.get("place") or (None, None) for row in rows]
    kinds = {"k": pa.string(), "v": pa.int64(), "w": pa.float64(), "b": pa.bool_(), "source": pa.string()}
    columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()}
    given_times = pa.array([row.get("t") for row in rows], pa.string())
    return pa.table(
        {
            "id": [f"e{first + n}" for n in range(len(rows))],
            "type": [row["type"] for row in rows],
            "time": pa.array([first + n for n in range(len(rows))], pa.int64()),
            "t": given_times.cast(pa.timestamp("us", "UTC")),
            "x": pa.array([x for x, _ in places], pa.float64()),
            "y": pa.array([y for _, y in places], pa.float64()),
            **columns,
        }
    )


def query(number: int, condition: str) -> wb.Query:
    kind = ("A", "B", "*")[number % 3]
    return wb.compile(f"coordinates plane define Q{number} detect {kind}({condition}) as e")


def found(detections: pa.Table) -> list[tuple[str, list[str]]]:
    rows = detections.select(["type", "events"]).to_pylist()
    return sorted((row["type"], row["events"]) for row in rows)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(CONDITIONS)),
        st.tuples(st.just("remove"), st.integers(0, 50)),
        st.tuples(st.just("push"), st.lists(ROWS, min_size=1, max_size=5)),
    ),
    min_size=4,
    max_size=25,
)


def play(script: list, *, always: bool) -> list:
    """Do what a script says, in a session that looks all conditions up, or computes all."""
    session, running, results, events = wb.Session(lateness="0 s"), [], [], 0
    with looking_up(always=always):
        for number, (what, given) in enumerate(script):
            if what == "add":
                session.add(query(number, given))
                running.append(f"Q{number}")
            elif what == "remove" and running:
                session.remove(running.pop(given % len(running)))
            elif what == "push":
                results.append(found(session.push(table(given, events))))
                events += len(given)
        results.append(found(session.close()))
    return results


@pytest.mark.property
@settings(max_examples=40)
@given(steps)
def test_while_queries_come_and_go_looking_up_finds_what_computing_finds(script):
    assert play(script, always=True) == play(script, always=False)


@pytest.mark.property
@given(st.lists(ROWS, min_size=1, max_size=30))
def test_single_events_are_found_by_what_finds_many(rows):
    script = [("add", condition) for condition in CONDITIONS for _ in range(2)]
    at_once = [*script, ("push", rows)]
    one_by_one = [*script, *(("push", [row]) for row in rows)]
    together, alone = play(at_once, always=True), play(one_by_one, always=True)
    assert sorted(chain(*together)) == sorted(chain(*alone))


def many_queries(count: int = 40) -> list[wb.Query]:
    return [wb.compile(f"define Q{n} detect A(k = 'k{n}', v > {n})") for n in range(count)]


@pytest.mark.parametrize("always", [True, False])
def test_what_does_not_go_together_is_told_either_way(always):
    with looking_up(always=always):
        session = wb.Session()
        for each in many_queries():
            session.add(each)
        session.push([{"type": "A", "time": 1, "k": 5, "v": 1}])
        with pytest.raises(QueryTypeError, match="compares a int with a string"):
            session.close()


def test_coordinates_that_become_known_later_count_for_what_is_looked_up():
    with looking_up(always=True):
        session = wb.Session(lateness="0 s")
        for n in range(20):
            session.add(wb.compile(f"define Q{n} detect A(this in circle({n}, 0, 100 km))"))
        session.push([{"type": "A", "time": 0}])
        detections = [session.push([{"type": "A", "time": 5, "lon": 3.5, "lat": 0.0}]), session.close()]
    assert sorted(kind for each in detections for kind, _ in found(each)) == ["Q3", "Q4"]


def test_adding_and_removing_queries_builds_nothing_anew(monkeypatch):
    added, removed, built = [], [], []
    add, remove, build = ConditionIndex.add, ConditionIndex.remove, ConditionIndex.__init__

    def counted_add(index, count, *args, **kwargs):
        added.append(count)
        return add(index, count, *args, **kwargs)

    def counted_remove(index, numbers):
        removed.append(len(numbers))
        remove(index, numbers)

    def counted_build(index, *args):
        built.append(index)
        build(index, *args)

    monkeypatch.setattr(ConditionIndex, "add", counted_add)
    monkeypatch.setattr(ConditionIndex, "remove", counted_remove)
    monkeypatch.setattr(ConditionIndex, "__init__", counted_build)
    with looking_up(always=True):
        session = wb.Session(lateness="0 s")
        for each in many_queries(100):
            session.add(each)
        session.push([{"type": "A", "time": time, "k": "k1", "v": 5} for time in (0, 1)])
        assert sum(added) == 100
        known = len(built)
        for n in range(10):
            session.remove(f"Q{n}")
            session.add(wb.compile(f"define New{n} detect A(k = 'new{n}', this in box({n}, 0, {n + 1}, 1))"))
            session.push([{"type": "A", "time": n + 2, "k": f"new{n}", "v": 5, "x": n + 0.5, "y": 0.5}])
    assert len(built) == known, "an index was built anew"
    assert sum(added) == 110, "each new query should be added once"
    assert sum(removed) == 10


def test_few_conditions_are_computed_and_many_are_looked_up_once_that_pays():
    index = type_index.TypeIndex()
    with type_index.COMPUTED.set_to(-1.0):
        session = wb.Session()
        for each in many_queries(type_index.FEW - 1):
            session.add(each)
        session.push([{"type": "A", "time": 0, "k": "k1", "v": 5}])
        session.close()
    index = session.running.events._types["A"]
    assert len(index._indexed) == 0
    with type_index.COMPUTED.set_to(-1.0):
        session = wb.Session()
        for each in many_queries(type_index.FEW):
            session.add(each)
        session.push([{"type": "A", "time": 0, "k": "k1", "v": 5}])
        session.close()
    index = session.running.events._types["A"]
    assert len(index._indexed) == type_index.FEW


def test_hundreds_of_ranges_are_found_for_many_rows_at_once():
    random = np.random.default_rng(4)
    low = random.random(300)
    queries = [wb.compile(f"define Q{n} detect A(v > {low[n]}, v < {low[n] + 0.05})") for n in range(300)]
    values = random.random(2_000)
    events = pa.table({"type": ["A"] * 2_000, "time": np.arange(2_000), "v": values})
    with looking_up(always=True):
        session = wb.Session()
        for each in queries:
            session.add(each)
        tables = [session.push(events), session.close()]
        counts = Counter(kind for each in tables for kind in each["type"].to_pylist())
    expected = {f"Q{n}": int(((values > low[n]) & (values < low[n] + 0.05)).sum()) for n in range(300)}
    assert counts == {name: count for name, count in expected.items() if count}
