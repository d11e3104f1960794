"""Detection over a bounded input: files, tables, data frames."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Unpack

import pyarrow as pa

from whimbrel.engine.report import together
from whimbrel.engine.result import Detections, account, set_aside
from whimbrel.engine.session import Session
from whimbrel.errors import DataError, WhimbrelError
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.io.files import read_events
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.frames import EventPaths, EventTable, are_files, batches, listed_paths, row_count
from whimbrel.model.reading import Reading, ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME

_LOG = logging.getLogger(__name__)
Progress = Callable[[int, int | None], None]
"""Called with what has been read so far and, if known, the whole (bytes of files, rows of tables)."""


class RunSettings(ReadSettings, total=False):
    """The settings of `run`; each may be left out."""

    lateness: timedelta | str | int | None
    coordinates: Coordinates | str | None
    rejected: str | os.PathLike[str] | None
    progress: Progress | None
    ready: Callable[[], None] | None
    opened: Callable[[Session], None] | None
    reading: Reading | None


def run(
    query: Query | Compilable,
    events: EventTable | EventPaths,
    *,
    lateness: timedelta | str | int | None = None,
    coordinates: Coordinates | str | None = None,
    rejected: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    ready: Callable[[], None] | None = None,
    opened: Callable[[Session], None] | None = None,
    reading: Reading | None = None,
    **how: Unpack[ReadSettings],
) -> Detections:
    """Find all detections of a query in a bounded input, and count what became of the events.

    The result has the columns `id`, `type`, `start`, `end`, `geometry` (WKB), the
    attributes, and `events` (the ids of the atomic events each depends on), in the order (end, start, type,
    events).

    Parameters
    ----------
    events
        A path or several (CSV, JSON lines, Parquet, GeoParquet, GeoJSON; folders and globs too), an Arrow
        table, a pandas or polars data frame, or a list of dicts.
    lateness
        None sorts the whole input, so that nothing is late. Otherwise events are taken in the order
        they stand in, as a live stream would, and those that come later than this are set aside.
    rejected
        A file for rows that are no events, each with its reason (JSON lines); made only if there are any.
    ready
        Called before detecting begins: after a bounded input has been read, or before a replay.
    opened
        Called with the session that runs the query before any event comes, to have a look at it afterwards:
        what mobile queries did is in its `monitor()`.
    reading, columns, time_unit, time_format, day_first, time_zone, default_type
        How events are read, as for `Session`; what came of it is in `columns_taken`, `notes` and `warnings`.
    """
    if isinstance(query, str | os.PathLike):
        raise WhimbrelError("this is no query yet; compile it first: wb.compile(text) or wb.read(path)")
    query = compiled(query)
    session = Session(query, lateness=lateness, coordinates=coordinates, reading=reading, **how)
    session.reads_once = True
    if opened is not None:
        opened(session)
    with RejectedWriter(rejected) as writer:
        source = normalised_batches(session, events, writer, progress)
        if lateness is None:
            steps = run_bounded(session, _then(source, ready))
        else:
            steps = _replay(session, _then(iter(()), ready, source))
        rejected_rows = writer.table()
    detections = together(steps, session.coordinates, query.attributes)
    _LOG.info("%s: %s", ", ".join(query.types), account(detections, session.counts))
    return Detections(
        detections,
        session.counts,
        session.notes,
        session.warnings(detections.num_rows),
        session.columns_taken,
        read_as={"schemas": query.schemas, **how},
        rejected=rejected_rows,
        **set_aside(session.ingest.look_aside(), session.coordinates),
    )


def normalised_batches(
    session: Session,
    events: EventTable | EventPaths,
    writer: RejectedWriter,
    progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Bring files, tables, data frames or rows into the common form; what is no event goes to the writer."""
    if are_files(events):
        return _files(session, events, writer, progress)
    return _rows(session, events, writer, progress)


def _then(
    source: Iterator[pa.RecordBatch], call: Callable[[], None] | None, more: Iterable[pa.RecordBatch] = ()
) -> Iterator[pa.RecordBatch]:
    yield from source
    if call is not None:
        call()
    yield from more


def run_bounded(session: Session, source: Iterable[pa.RecordBatch]) -> list[pa.Table]:
    """Feed a whole input, already in the common form, to a session, time following as far as the rest allows.

    Slices are fed one by one, so that sorted inputs of any size need little memory.
    """
    slices: list[pa.RecordBatch | None] = list(source)
    session.ingest.look_ahead([events for events in slices if events is not None])
    first_ends = [_first_end(events) for events in slices] + [END_OF_TIME + 1]
    for number in range(len(slices) - 1, -1, -1):
        first_ends[number] = min(first_ends[number], first_ends[number + 1])
    steps: list[pa.Table] = []
    for number, events in enumerate(slices):
        slices[number] = None  # let go of it as soon as it is processed
        steps += session.feed(events, first_ends[number + 1] - 1)
    return steps if slices else session.feed(None, END_OF_TIME)


def _first_end(events: pa.RecordBatch | None) -> int:
    if events is None or not events.num_rows:
        return END_OF_TIME + 1
    return int(events.column("end").to_numpy(zero_copy_only=False).min())


def _replay(session: Session, source: Iterator[pa.RecordBatch]) -> list[pa.Table]:
    """Feed batches as they come, as a live stream would."""
    steps = [table for batch in source for table in session.feed(batch)]
    return steps + session.feed(None, END_OF_TIME)


def _files(
    session: Session, events: EventPaths, writer: RejectedWriter, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    files = read_events(listed_paths(events), schemas=session.schemas, reading=session.reading)
    for piece in files.pieces():
        before = session.counts.received
        try:
            normalised = session.normalise(piece.batch)
        except DataError as error:
            raise DataError(f"{piece.file}: {error}") from error
        if piece.rejected is not None and piece.rejected.num_rows:
            session.ingest.count_rejected(piece.rejected)
            writer.write(piece.rejected, piece.file)
        writer.write(piece.numbered(normalised.rejected, before), piece.file)
        if progress is not None:
            progress(files.bytes_read, files.bytes_total)
        yield normalised.events


def _rows(
    session: Session, events: Any, writer: RejectedWriter, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    total = row_count(events) if progress is not None else None
    for batch in batches(events, rows=session.slice_rows):
        normalised = session.normalise(batch)
        writer.write(normalised.rejected, "")
        if progress is not None:
            progress(session.counts.received, total)
        yield normalised.events
