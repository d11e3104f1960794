"""Backtests of queries that follow something; what cannot be said of them is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.io.test_deliveries import QUERY, events

import whimbrel as wb
from whimbrel.backtesting.measure import measure
from whimbrel.errors import QueryError
from whimbrel.io.detections import write_detections
from whimbrel.sim.recordings import normalised

OLD = QUERY.format(other="watch", key="name")
NEW = OLD.replace("250 m", "100 m")
GROUPED = """
event Car(name: string, kind: string)
define Pair detect Car as a then Car as b within 6 s group by name
around Car(kind = 'medic') as rescue group by name within 400 m report Pair lifetime 1 min deliver {deliver}
"""


def test_a_backtest_finds_what_detect_finds(tmp_path: Path) -> None:
    query = wb.compile(OLD)
    result = wb.backtest(query, events())
    write_detections(result.detections, tmp_path / "tested.jsonl")
    wb.detect(query, events()).save(tmp_path / "detected.jsonl")
    assert (tmp_path / "tested.jsonl").read_bytes() == (tmp_path / "detected.jsonl").read_bytes()


@pytest.mark.parametrize("deliver", ["all", "new", "changes"])
def test_definitions_with_keys_are_told_once(deliver: str) -> None:
    query = wb.compile(GROUPED.format(deliver=deliver))
    expected = wb.detect(query, events())
    assert len(expected) > 5
    assert wb.backtest(query, events()).detections.equals(expected.table)


def test_deliveries_are_counted_by_whom_they_are_told_to() -> None:
    told = wb.detect(wb.compile(GROUPED.format(deliver="all")), events())
    counted = wb.backtest(wb.compile(GROUPED.format(deliver="all")), events()).by_key().to_pylist()
    assert {row["key"]: row["detections"] for row in counted} == {
        f"focal={name}": count for name, count in Counter(told["focal"].to_pylist()).items()
    }
    first = {row["key"]: row["first"] for row in counted}
    assert min(first.values()) == min(told["told"].to_pylist())
    both = wb.backtest(wb.compile(OLD), events()).by_key().to_pylist()
    assert {row["key"] for row in both} >= {"query=rescue, focal=m1", "query=watch, focal=m2"}
    by = wb.backtest(wb.compile(OLD), events(), by="live").by_key().to_pylist()
    assert {row["key"] for row in by} <= {"live=true", "live=false"}


def test_two_queries_are_compared_object_by_object(tmp_path: Path) -> None:
    old, new = wb.compile(OLD), wb.compile(NEW)
    result = wb.backtest(old, events(), against=new)
    watched = [row for row in result.dropped.to_pylist() if row["query"] == "watch"]
    assert watched
    assert result.added.num_rows == 0
    assert result.changes["same"] == wb.detect(new, events()).num_rows
    assert {row["query"] for row in result.dropped.to_pylist()} == {"watch"}
    assert wb.backtest(old, events(), against=old).changes["same"] == wb.detect(old, events()).num_rows
    write_detections(result.comparison, tmp_path / "c.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert {row["change"] for row in rows} == {"same", "dropped"}
    assert {row["attributes"]["change"] for row in rows} >= {"added", "kept", "removed"}
    for text in (result.to_html(), result.to_json(), result.to_svg(), result.summary()):
        assert "focal=m1" in text or text.startswith("<svg")


def test_what_is_told_at_another_time_has_changed() -> None:
    old = wb.compile(GROUPED.format(deliver="new"))
    later = wb.compile(GROUPED.format(deliver="new") + " refresh every 11 s")
    result = wb.backtest(old, events(), against=later)
    assert result.changes["changed"] > 0
    before = json.loads(result.changed.column("before")[0].as_py())
    assert {"interest", "interest_start", "told", "live"} >= set(before)


@pytest.mark.parametrize(
    "use",
    [
        lambda query: measure(query, events()),
        lambda query: normalised(query, events()),
        lambda query: wb.Shadow(query, query),
        lambda query: wb.Shadow(wb.compile("define X detect Car"), query),
    ],
)
def test_what_cannot_be_said_is_refused(use) -> None:
    with pytest.raises(QueryError, match=r"follow.*(rescue|watch)"):
        use(wb.compile(OLD))


def test_events_cannot_be_taken_back() -> None:
    session = wb.Session(wb.compile(OLD), lateness=None)
    session.push(events())
    session.advance(30_000_000)
    with pytest.raises(QueryError, match="cannot be taken back"):
        session.invalidate("e12")
