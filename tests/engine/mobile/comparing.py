"""Run mobile queries of the reference on the engine, and put what is told in the reference's form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.comparing import as_detection, plain
from tests.reference import Event
from tests.reference import mobile as reference
from tests.reference.tables import event_table

from whimbrel.engine.mobile import cohorts
from whimbrel.engine.mobile.optimisations import Optimisations
from whimbrel.engine.running_queries import RunningQueries
from whimbrel.engine.session import Session
from whimbrel.graph import mobile
from whimbrel.graph.mobile import FocalObjects, MobilePolicy, MobileQuery
from whimbrel.graph.query import Query
from whimbrel.model.deliveries import DELIVERY_COLUMNS as COLUMNS

Told = tuple[Any, ...]
"""Focal object, number of the interest, change, live or not, and all about the detection."""


def compiled(query: reference.MobileQuery, **policy: Any) -> Query:
    """The query as the engine takes it."""
    focal = query.focal
    quality = mobile.Quality()
    if isinstance(query.refresh, reference.WhenQualityFalls):
        quality = mobile.Quality(query.refresh.threshold.precision, query.refresh.threshold.recall)
    chosen = {
        "refresh": _refresh(query.refresh),
        "quality": quality,
        "order": "by arrival" if query.order == "arrival" else query.order,
        "completeness": query.completeness,
        "grid_m": query.snap_m,
        "deliver": query.deliver,
    }
    return MobileQuery(
        Query(query.graph),
        FocalObjects(focal.type, focal.key, focal.only, focal.condition),
        _interest(query.interest),
        query.lifetime,
        MobilePolicy(**(chosen | policy)),
        name=query.name,
        of_situations=query.of == "situations",
        motion_within=query.motion == "within the interest",
        excluding_itself=query.excluding_itself,
        silent=query.silent,
    ).compile()


def _interest(shape: Any) -> mobile.Interest:
    match shape:
        case reference.Circle(radius):
            return mobile.CircleInterest(radius)
        case reference.Box(width, height):
            return mobile.BoxInterest(width, height)
        case reference.Outline(corners):
            return mobile.OutlineInterest(corners)
        case reference.Ahead(distance, degrees):
            return mobile.SectorInterest(distance, degrees)
        case reference.Along(attribute, distance):
            return mobile.CorridorInterest(attribute, distance)
    raise TypeError(f"not a shape that the engine is tested with: {shape!r}")


def _refresh(condition: Any) -> mobile.Refresh:
    match condition:
        case reference.Every(time):
            return mobile.RefreshEvery(time)
        case reference.Moved(distance):
            return mobile.RefreshWhenMoved(distance)
        case reference.WhenQualityFalls(_, over):
            return mobile.RefreshWhenQualityFalls(over)
    return mobile.RefreshAlways()


def is_taken(query: reference.MobileQuery) -> bool:
    """Whether the engine takes a query: quality that always falls is written `refresh always`."""
    refresh = query.refresh
    perfect = isinstance(refresh, reference.WhenQualityFalls) and refresh.threshold == reference.Quality()
    return not perfect


def in_batches(query: Query, batches: Sequence[Sequence[Event]], lateness: int = 0) -> list[Told]:
    """What is told, in the order in which it is told, if events are pushed batch by batch."""
    session = Session(query, lateness=lateness)
    tables = [session.push(event_table(batch)) for batch in batches if batch]
    return [each for table in [*tables, session.close()] for each in told(table)]


def with_snapshots(query: Query, batches: Sequence[Sequence[Event]], lateness: int = 0) -> list[Told]:
    """The same, but after every batch the session is thrown away and restored from its snapshot."""
    found: list[Told] = []
    session = Session(query, lateness=lateness)
    for batch in batches:
        if batch:
            found += told(session.push(event_table(batch)))
        saved = session.snapshot()
        session = Session(query, lateness=lateness)
        session.restore(saved)
    return [*found, *told(session.close())]


def told(table: pa.Table) -> list[Told]:
    """What tells deliveries apart."""
    if not table.num_rows:
        return []
    rows = table.to_pylist()
    names = [name for name in table.column_names if name not in COLUMNS]
    found = [as_detection({name: row[name] for name in names}) for row in rows]
    return [
        (row["focal"], row["interest"], row["change"], row["live"], *plain([each])[0])
        for row, each in zip(rows, found, strict=True)
    ]


def as_told(delivery: reference.Delivery) -> Told:
    """A delivery of the reference in the same form."""
    return (*delivery.told[:4], *plain([delivery.detection])[0])


def sorted_told(found: Sequence[Told]) -> list[Told]:
    """The same in one order, whatever the keys of the objects are."""
    return sorted(found, key=repr)


@contextmanager
def taking(chosen: Optimisations, many: int = cohorts.MANY) -> Iterator[None]:
    """Let mobile queries take some ways to save work, and no others."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RunningQueries, "optimisations", chosen)
        patched.setattr(cohorts, "MANY", many)
        yield
