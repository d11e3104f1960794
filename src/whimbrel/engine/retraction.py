"""Taking events back: a session goes on as if they had never come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.report import together
from whimbrel.errors import QueryError
from whimbrel.graph.reach import anchors
from whimbrel.model.time import format_instant

if TYPE_CHECKING:
    from whimbrel.engine.session import Session


@dataclass(frozen=True, slots=True)
class Retraction:
    """What changed when events were taken back."""

    events: int
    """How many of them the session knew."""
    detections: pa.Table
    """Detections that hold now that the events are gone, and did not before."""
    withdrawn: pa.Table
    """Detections that had been given, and hold no longer."""


def replayed(session: Session, ids: Collection[str]) -> tuple[Retraction, Session | None]:
    """Find out what the events that a session remembers give without some of them.

    Gives the difference, and the session that has never seen them; None if none of them is remembered.
    """
    _refuse_mobile(session)
    events = session.remembered()
    gone = _named(events, ids)
    known = int(pc.sum(gone).as_py() or 0)
    if not known:
        nothing = together([], session.coordinates)
        return Retraction(0, nothing, nothing), None
    _check_memory(session)
    with_them, without = session.twin(), session.twin()
    before, after = _run(with_them, events, session), _run(without, events.filter(pc.invert(gone)), session)
    new = after.filter(pc.invert(pc.is_in(after.column("id"), before.column("id"))))
    withdrawn = before.filter(pc.invert(pc.is_in(before.column("id"), after.column("id"))))
    return Retraction(known, new, withdrawn), without


def _named(events: pa.Table, ids: Collection[str]) -> pa.Array:
    if "id" not in events.column_names:
        return pa.array([False] * events.num_rows, pa.bool_())
    texts = events.column("id").combine_chunks().cast(pa.string())
    return pc.is_in(texts, pa.array(sorted(ids), pa.string()))


def _run(twin: Session, events: pa.Table, session: Session) -> pa.Table:
    steps = twin.feed(events.combine_chunks().to_batches())
    steps += twin.feed(None, session.watermark)
    return together(steps, session.coordinates)


def _refuse_mobile(session: Session) -> None:
    """Refuse where queries follow something: their interests began with events that may be forgotten."""
    for name in session.queries:
        if session.query(name).mobile:
            raise QueryError(
                f"events cannot be taken back while {name!r} follows something: which interests there were "
                "rests on location updates that are forgotten",
                hint="run it in a session of its own, or detect anew without the events",
            )


def _check_memory(session: Session) -> None:
    """Refuse where what was forgotten may decide what becomes of events that are still remembered."""
    since = session.remembers_since
    if since is None:
        return
    for name in session.queries:
        query = session.query(name)
        for why in anchors(query.graph, query.operators).values():
            raise QueryError(
                f"{name!r} {why}, and what happened before {format_instant(since)} is forgotten",
                hint="open the session with a longer memory: Session(query, remember='1 d')",
            )
