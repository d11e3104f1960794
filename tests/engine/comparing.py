"""Run the engine on the events of the reference, and put its detections in the reference's form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from tests.reference import Detection, Event
from tests.reference.tables import event_table, vertices

from whimbrel import detect
from whimbrel.engine.session import Session
from whimbrel.graph.operators import Graph
from whimbrel.graph.query import Query
from whimbrel.model.time import instant

FIXED = {"id", "type", "start", "end", "geometry", "events"}


def session(graph: Graph, **settings: Any) -> Session:
    return Session(Query(graph), **settings)


def whole(graph: Graph, events: Sequence[Event]) -> list[Detection]:
    """All events at once, as a bounded input."""
    return as_detections(detect(Query(graph), event_table(events)))


def in_batches(graph: Graph, batches: Sequence[Sequence[Event]], lateness: int = 0) -> list[Detection]:
    """Pushed batch by batch to a session."""
    running = session(graph, lateness=lateness)
    tables = [running.push(event_table(batch)) for batch in batches if batch]
    tables.append(running.close())
    return sorted(found for table in tables for found in as_detections(table))


def with_snapshots(graph: Graph, batches: Sequence[Sequence[Event]], lateness: int = 0) -> list[Detection]:
    """The same, but after every batch the session is thrown away and restored from its snapshot."""
    found: list[Detection] = []
    running = session(graph, lateness=lateness)
    for batch in batches:
        if batch:
            found += as_detections(running.push(event_table(batch)))
        saved = running.snapshot()
        running = session(graph, lateness=lateness)
        running.restore(saved)
    return sorted(found + as_detections(running.close()))


def as_detections(table: pa.Table) -> list[Detection]:
    return sorted(as_detection(row) for row in table.to_pylist())


def as_detection(row: dict[str, Any]) -> Detection:
    attributes = {name: _value(row[name]) for name in row if name not in FIXED and row[name] is not None}
    return Detection(
        type=row["type"],
        start=instant(row["start"]),
        end=instant(row["end"]),
        events=tuple(row["events"]),
        attributes=attributes,
        hull=vertices(row["geometry"]),
        source=None,
    )


def _value(value: Any) -> Any:
    return instant(value) if isinstance(value, datetime) else value


def plain(detections: Sequence[Detection]) -> list[tuple[Any, ...]]:
    """Everything about detections that backends report, comparable and readable."""
    return sorted(
        (
            d.type,
            d.start,
            d.end,
            d.events,
            tuple(sorted((k, _number(v)) for k, v in d.attributes.items())),
            d.hull,
        )
        for d in detections
    )


def _number(value: Any) -> Any:
    return (
        repr(float(value) + 0.0)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else repr(value)
    )
