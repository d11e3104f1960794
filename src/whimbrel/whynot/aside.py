"""Events that took no part: late, delivered again, rejected, or waiting for their time."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from whimbrel.engine.session import Session
from whimbrel.graph.operators import ANY
from whimbrel.model.time import format_duration
from whimbrel.whynot.asking import same_value
from whimbrel.whynot.explanation import Unprocessed
from whimbrel.whynot.words import clock, cut


def unprocessed(
    session: Session, key: Mapping[str, Any], types: Collection[str], limit: int
) -> tuple[Unprocessed, ...]:
    """Say which events were not processed, showing the last ones that the query would have read."""
    counts, aside = session.counts, session.ingest.look_aside()
    outcomes = [
        Unprocessed("late", counts.late, _events(aside["late"], key, types, limit, _late(session))),
        Unprocessed("duplicate", counts.duplicate, _events(aside["duplicate"], key, types, limit, _AGAIN)),
        Unprocessed("rejected", counts.rejected, _rejected(aside["rejected"], key, limit)),
        Unprocessed("waiting", counts.waiting, (_WAITING,) if counts.waiting else ()),
    ]
    return tuple(outcome for outcome in outcomes if outcome.count)


_AGAIN = "had an id that was processed before"
_WAITING = "their time has not come: earlier events may still follow"


def _late(session: Session) -> str:
    wait = session.ingest.lateness
    return "came too late" if wait is None else f"came more than {format_duration(wait)} late"


def _events(
    table: pa.Table | None, key: Mapping[str, Any], types: Collection[str], limit: int, what: str
) -> tuple[str, ...]:
    if table is None:
        return ()
    rows = [row for row in table.to_pylist() if _is_read(row["type"], types) and _has_key(row, key)]
    return tuple(f"{_named(row)} {what}" for row in rows[-limit:])


def _is_read(event_type: str, types: Collection[str]) -> bool:
    return event_type in types or ANY in types


def _named(row: Mapping[str, Any]) -> str:
    name = " ".join(str(part) for part in (row["type"], row.get("id"), row.get("source")) if part is not None)
    return f"{name} at {clock(row['end'])}"


def _has_key(row: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    return all(same_value(row[name], wanted) for name, wanted in key.items() if name in row)


def _rejected(table: pa.Table | None, key: Mapping[str, Any], limit: int) -> tuple[str, ...]:
    if table is None:
        return ()
    rows = [row for row in table.to_pylist() if _has_key(_parsed(row["event"]), key)]
    return tuple(
        f"row {row['row'] + 1}: {row['reason']} in {cut(row['event'] or '', 100)}" for row in rows[-limit:]
    )


def _parsed(text: str | None) -> dict[str, Any]:
    """Read a rejected row; what was no table row at all has no key."""
    try:
        fields = json.loads(text or "")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
