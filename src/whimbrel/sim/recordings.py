"""Recorded events for a run: in the common form, each with the source and the broker that it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.engine.bounded import normalised_batches
from whimbrel.engine.identity import CONTENT
from whimbrel.engine.session import Session
from whimbrel.engine.total_order import with_ids
from whimbrel.errors import DataError
from whimbrel.graph.query import Query, refuse_mobile_parts
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.frames import EventPaths, EventTable
from whimbrel.model.reading import ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.plan.network import EventSource

Ints = npt.NDArray[np.int64]
ARRIVAL = "@arrival"


@dataclass(frozen=True)
class Recording:
    """All events of a run, in order of their ends, numbered by their arrival."""

    events: pa.RecordBatch
    coordinates: Coordinates | None
    since_us: int
    until_us: int
    rejected: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why rows are no events, and how many."""


def normalised(
    query: Query,
    events: EventTable | EventPaths,
    *,
    coordinates: Coordinates | str | None = None,
    **how: Unpack[ReadSettings],
) -> Recording:
    """Bring all events into the common form.

    Parameters
    ----------
    events
        As for `whimbrel.detect`: paths, Arrow, pandas, polars or a list of dicts. Events without ids get the
        ones that `whimbrel.detect` would make for them.
    how
        How events are read (`columns`, `time_unit`, ...), as for a session.
    """
    refuse_mobile_parts(query, "simulating")
    session = Session(query, lateness=None, coordinates=coordinates, **how)
    parts = list(normalised_batches(session, events, RejectedWriter()))
    if not parts or not sum(part.num_rows for part in parts):
        raise DataError("there are no events to run the query on")
    whole = pa.concat_tables([pa.Table.from_batches([part]) for part in parts], promote_options="permissive")
    batch = _with_ids(whole.combine_chunks().to_batches()[0])
    batch = batch.append_column(ARRIVAL, pa.array(np.arange(batch.num_rows)))
    ends = batch.column("end").to_numpy(zero_copy_only=False)
    batch = batch.take(pa.array(np.argsort(ends, kind="stable")))
    starts = batch.column("start").to_numpy(zero_copy_only=False)
    counts = session.counts
    return Recording(
        batch,
        session.coordinates,
        int(starts.min()),
        int(ends.max()) + 1,
        counts.rejected,
        dict(counts.reasons),
    )


def _with_ids(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch = with_ids(batch)
    ids = batch.column("id")
    if len(ids.unique()) < len(ids):
        raise DataError(
            "events that are sent through a network need ids of their own, each once; "
            "leave out those that are repeated, or the column `id`"
        )
    return batch.drop_columns([CONTENT]) if CONTENT in batch.schema.names else batch


# -- where events come from -------------------------------------------------------------------------------


def texts(column: pa.Array) -> list[str | None]:
    """Return a column of texts, dictionaries or not, as a list."""
    return list(column.cast(pa.string()).to_pylist())


def sender_numbers(events: pa.RecordBatch, sources: Sequence[EventSource]) -> Ints:
    """Return the number of the source that sends each event; -1 where none sends its type.

    An event belongs to the source of its type that has the name of its `source`, or is at what has it.
    Those of other names go to the sources that have none of their own, name by name in turn.
    """
    kinds = texts(events.column("type"))
    names = texts(events.column("source")) if "source" in events.schema.names else [None] * len(kinds)
    by_type: dict[str, list[int]] = {}
    known: dict[tuple[str | None, str | None], int] = {}
    for number, source in enumerate(sources):
        by_type.setdefault(source.event_type, []).append(number)
    for number, source in reversed([*enumerate(sources)]):
        known.setdefault((source.event_type, source.at), number)
    known |= {(source.event_type, source.name): number for number, source in enumerate(sources)}
    pairs = list(zip(kinds, names, strict=True))
    found: dict[tuple[str | None, str | None], int] = {pair: known[pair] for pair in pairs if pair in known}
    own = set(found.values())
    turns: dict[str | None, int] = {}
    for kind, name in dict.fromkeys(pairs):
        if (kind, name) in found:
            continue
        senders = by_type.get(str(kind), [])
        free = [each for each in senders if each not in own] or senders
        turn = turns[kind] = turns.get(kind, -1) + 1
        found[kind, name] = free[turn % len(free)] if free else -1
    return np.array([found[pair] for pair in pairs], np.int64)
