"""Queries that follow something, over a store: it gives location updates, and what happened before them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.backtesting.collect import collected
from whimbrel.graph.query import Query
from whimbrel.model.time import SECOND
from whimbrel.store import Store

DEFINITIONS = """
event Car(name: string, kind: string, speed: float)
event Crash(level: int)
define Bad detect Crash(level > 1) as c assign level = c.level
define Jam over 20 s every 10 s detect Car(speed < 10) assign cars = count(Car) having cars > 1
define Twice detect Crash as a then not Car(speed > 50) as b then Crash as c within 20 s
"""
AROUND = """
around Car(kind = 'medic') as rescue
  group by name
  within 400 m
  report {report}
  lifetime {lifetime}
  {clauses}
"""


def query(report: str = "Bad, Jam", lifetime: str = "30 s", clauses: str = "") -> Query:
    return wb.compile(DEFINITIONS + AROUND.format(report=report, lifetime=lifetime, clauses=clauses))


def events(seconds: int = 120) -> list[dict[str, object]]:
    """Two medics go through traffic; every few seconds something crashes."""
    rows: list[dict[str, object]] = []
    for time in range(0, seconds, 5):
        for name, step in (("m1", 8.0), ("m2", -6.0)):
            place = {"x": 500 + step * time, "y": 500.0}
            rows.append({"type": "Car", "time": time, "name": name, "kind": "medic", "speed": 9.0, **place})
        for number in range(6):
            slow = {"name": f"c{number}", "kind": "car", "speed": float((number * 7 + time) % 60)}
            rows.append({"type": "Car", "time": time, "x": number * 250.0, "y": 450.0 + time % 7, **slow})
        crash = {"level": time // 5 % 3, "x": (time * 37) % 1500.0, "y": 520.0}
        rows.append({"type": "Crash", "time": time + 1, **crash})
    return [{"id": f"e{number}", **row} for number, row in enumerate(rows)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store.create(tmp_path_factory.mktemp("s") / "events", coordinates="plane", cell_m=300)
    made.append(events())
    return made


def recalled(asked: Query, store: Store, since: int, until: int) -> pa.Table:
    """Tell it in a session that is told what happened before."""
    every = pa.table(store)
    ends = every["end"].cast(pa.int64())
    session = wb.Session(asked, lateness=None)
    session.recall(every.filter(pc.less(ends, since * SECOND)), until=since * SECOND - 1)
    there = pc.and_(pc.greater_equal(ends, since * SECOND), pc.less(ends, until * SECOND))
    return collected(asked, [session.push(every.filter(there)), session.close()])


def test_all_of_a_store_gives_what_all_events_give(store: Store) -> None:
    asked = query()
    assert store.detect(asked).num_rows > 50
    assert store.detect(asked).equals(wb.detect(asked, events()))


@given(
    since=st.sampled_from((0, 5, 31, 60, 90)),
    length=st.sampled_from((5, 30, 100)),
    report=st.sampled_from(("Bad", "Jam", "Bad, Jam", "Twice, Bad")),
    lifetime=st.sampled_from(("0 s", "7 s", "40 s", "1 h")),
    clauses=st.sampled_from(
        (
            "excluding itself",
            "deliver changes",
            "of situations refresh when moved 60 m",
            "refresh when quality falls over 15 s quality 0.8",
        )
    ),
)
def test_a_stretch_of_time_begins_with_the_history_of_its_first_interests(
    store: Store, since: int, length: int, report: str, lifetime: str, clauses: str
) -> None:
    within = "400 m of situations" if clauses.startswith("of") else "400 m"
    text = AROUND.format(report=report, lifetime=lifetime, clauses=clauses.removeprefix("of situations"))
    asked = wb.compile(DEFINITIONS + text.replace("400 m", within))
    given_out = store.detect(asked, since=since * SECOND, until=(since + length) * SECOND)
    expected = recalled(asked, store, since, since + length)
    assert given_out.table.select(expected.column_names).equals(expected)


def test_what_is_read_is_what_the_query_can_use(store: Store) -> None:
    asked = query(report="Bad", lifetime="10 s", clauses="excluding itself")
    bounds = {str(each) for each in store.bounds_of(asked, since=60 * SECOND)}
    assert bounds == {
        "Car, end from 1970-01-01T00:01:00.000000Z",
        "Crash, end from 1970-01-01T00:00:50.000000Z",
    }
    assert {"name", "kind", "level"} <= set(store.scan(asked).schema.names)
    assert "speed" not in store.scan(asked).schema.names


def test_conditions_on_location_updates_bound_what_is_read(tmp_path: Path) -> None:
    text = "define Bad detect Crash around Car(x > 100) within 50 m report Bad"
    made = Store.create(tmp_path / "s", coordinates="plane")
    assert {str(each) for each in made.bounds_of(wb.compile(text))} == {"Car, x 100 to any", "Crash"}
