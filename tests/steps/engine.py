"""Run patterns of steps on the engine, and put what it detects into the form in which Flink answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

import whimbrel as wb
from whimbrel.graph.query import Query
from whimbrel.lang.steps import Pattern
from whimbrel.model.time import instant

Json = dict[str, Any]
Taken = tuple[tuple[str, tuple[str, ...]], ...]
"""Which events each step took, by name; steps that took none are left out."""

FIXED = ("id", "type", "start", "end", "geometry", "events", "car")
MATCH, LATE = "Match", "Late"


def read(pattern: Mapping[str, Any]) -> Pattern:
    """Read a pattern, and have what times out listed too where it can be."""
    return Pattern.from_dict(pattern if pattern.get("count") else {**pattern, "timeouts": LATE})


def compiled(pattern: Mapping[str, Any]) -> Query:
    """Compile a pattern."""
    return read(pattern).compile(MATCH)


def rows(events: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Events as the engine reads them."""
    return [
        {"id": event["id"], "type": event["type"], "time": event["time"], **event["attributes"]}
        for event in events
    ]


def whole(pattern: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> Found:
    """What the engine finds if it gets everything at once."""
    return detected(compiled(pattern), events)


def detected(query: Query, events: Sequence[Mapping[str, Any]]) -> Found:
    """The same, of a query."""
    return Found([wb.detect(query, rows(events), time_unit="ms")])


def in_batches(
    pattern: Mapping[str, Any],
    batches: Iterable[Sequence[Mapping[str, Any]]],
    *,
    lateness: str = "0 s",
    restoring: bool = False,
) -> Found:
    """What a session finds batch by batch; `restoring` replaces it by its snapshot after every batch."""
    query, tables = compiled(pattern), []
    session = wb.Session(query, lateness=lateness, time_unit="ms")
    for batch in batches:
        if batch:
            tables.append(session.push(rows(batch)))
        if restoring:
            saved = session.snapshot()
            session = wb.Session(query, lateness=lateness, time_unit="ms")
            session.restore(saved)
    tables.append(session.close())
    assert session.counts.late == 0
    return Found(tables, session.dropped)


class Found:
    """What was detected: `matches`, and `timeouts` with their times in milliseconds.

    `rows` are the detections themselves; `dropped` says how many runs were given up.
    """

    def __init__(self, tables: Iterable[pa.Table], dropped: Mapping[str, int] | None = None) -> None:
        self.dropped = sum((dropped or {}).values())
        listed = [row for table in tables for row in table.to_pylist()]
        self.rows = listed
        self.matches = sorted(taken(row) for row in listed if row["type"] == MATCH)
        self.timeouts = sorted(
            (instant(row["end"]) // 1000, taken(row)) for row in listed if row["type"] == LATE
        )


def taken(row: Mapping[str, Any]) -> Taken:
    """What each step took, of a detection."""
    return taken_of({name: ids for name, ids in row.items() if isinstance(ids, list) and name not in FIXED})


def taken_of(steps: Mapping[str, Sequence[str]]) -> Taken:
    """What each step took, of an answer of Flink."""
    return tuple(sorted((name, tuple(ids)) for name, ids in steps.items() if ids))


def flinks(
    pattern: Mapping[str, Any], events: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]
) -> tuple[list[Taken], list[tuple[int, Taken]]]:
    """Matches and timeouts of Flink, each once.

    Where a match is too late both after its first event and after its previous one, Flink tells the one or
    the other, as its clock happened to move. What came first is what counts.
    """
    within = pattern.get("within") or {}
    bound = within["ms"] if within.get("type") == "first_to_last" else None
    times = {event["id"]: event["time"] for event in events}
    matches = {taken_of(match["steps"]) for match in answer["matches"]}
    timeouts = set()
    for timeout in answer["timeouts"]:
        first = min(times[each] for ids in timeout["steps"].values() for each in ids)
        time = timeout["time"] if bound is None else min(timeout["time"], first + bound)
        timeouts.add((time, taken_of(timeout["steps"])))
    return sorted(matches), sorted(timeouts)
