"""What runs on Spark's workers in a batch job: one engine for each shard of the events."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from whimbrel import logs
from whimbrel.engine.bounded import run_bounded
from whimbrel.engine.ingest import Counts
from whimbrel.engine.session import SLICE, Session
from whimbrel.graph.operators.base import Types
from whimbrel.graph.query import Query
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME
from whimbrel.space.partitioning import Cells
from whimbrel.spark.lines import Gate
from whimbrel.spark.rows import OutcomeRows, counts_since
from whimbrel.spark.types import DeliveryColumns

SHARD, PRIMARY = "@shard", "@primary"
"""Columns added where nearby events are partitioned together: the shard that a copy of an event is for, and
whether it is the primary copy, in the shard that the event itself lies in."""

IS_UPDATE = "@is_update"
"""The column that marks location updates of objects that a query follows: every shard needs them."""

IS_EVENT = "@is_event"
"""The column that tells events from a row that is there so that a worker starts."""

Batches = Iterator[pa.RecordBatch]
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerJob:
    """A query, and how its events are given: plain data that is sent to the workers."""

    query: Query
    attributes: Types
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the session: coordinates, reading."""
    is_sorted: bool = False
    """Whether events come in the order of their ends (in each shard)."""
    is_sharded: bool = False
    """Whether events say in a column which shard they are for; then there is a session for each."""
    by_space: bool = False
    """Whether some of them are copies from a neighbouring shard."""
    told: DeliveryColumns | None = None
    """What deliveries have besides detections, if the query follows objects."""
    cells: Cells | None = None
    """How places are parted, where each shard tells of the interests around its own."""
    hands_on: bool = False
    """Whether what is told is compared afterwards, object by object."""
    query_of: Callable[[int], Query] | None = None
    """The query that a shard runs, where each runs another."""
    whole: bool = False
    """Whether to give everything that comes of the events, or detections only."""
    log_level: int = field(default_factory=logs.level)
    """From which level on the workers log."""

    @property
    def rows(self) -> OutcomeRows:
        """How results are written."""
        return OutcomeRows(self.attributes, self.whole, self.told)

    def session(self, shard: int) -> Session:
        """Open a session for one shard."""
        query = self.query if self.query_of is None else self.query_of(shard)
        session = Session(
            query,
            lateness=None,
            owned=PRIMARY if self.by_space else None,
            places=None if self.cells is None else self.cells.of_shard(shard),
            **self.settings,
        )
        session.reads_once = True
        return session


def run_partition(job: WorkerJob) -> Callable[[Batches], Batches]:
    """Make the function that detects in one partition of a DataFrame."""

    def run(batches: Batches) -> Batches:
        logs.follow(job.log_level)
        alone = [(0, (_events(batch) for batch in batches))]
        for number, shard in _shards(batches) if job.is_sharded else alone:
            yield from _run_shard(job, number, shard)
        spare_modules()

    return run


def _events(batch: pa.RecordBatch) -> pa.RecordBatch:
    if IS_EVENT not in batch.schema.names:
        return batch
    return batch.filter(batch.column(IS_EVENT)).drop_columns([IS_EVENT])


def spare_modules() -> None:
    """Keep what a worker has loaded out of its garbage collection.

    Spark collects garbage after every task, and looks through some hundred thousand objects of modules each
    time: longer than a micro-batch takes.
    """
    if TaskContext.get() is not None:
        _spare(len(sys.modules))


@lru_cache(maxsize=1)
def _spare(_modules: int) -> None:
    """Do it again only if more has been loaded: what is kept out is never looked at again."""
    gc.collect()
    gc.freeze()


def _run_shard(job: WorkerJob, shard: int, batches: Iterable[pa.RecordBatch]) -> Batches:
    session, rows, detections = job.session(shard), job.rows, 0
    gate = Gate(session)
    run = _in_order if job.is_sorted else _at_once
    steps = run(session, (gate.normalise(batch) for batch in larger(batches)))
    for tables in steps:
        for table in tables:
            detections += table.num_rows
            yield from rows.detections(table)
        yield from rows.interests(session.take_interests())
        yield from rows.set_aside(session, gate.take_rejected())
    progress = counts_since(session.counts, Counts())
    _LOG.info("shard %d: %d events, %d detections", shard, session.counts.received, detections)
    counted = 0 if job.hands_on else detections  # who compares them counts what is told in the end
    yield from rows.progress(
        {**progress, "detections": counted, "shard": shard}, session.ingest.noticed.seen()
    )


def _in_order(session: Session, batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.Table]]:
    """Detect in sorted events, remembering no more of them than the query does."""
    for events in batches:
        # More events of the last time may follow.
        last = events.column("end")[-1].as_py() - 1 if events.num_rows else BEGINNING_OF_TIME
        yield session.feed(events, last)
    yield session.feed(None, END_OF_TIME)


def _at_once(session: Session, batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.Table]]:
    """Detect in events in any order."""
    events = []
    for batch in batches:
        events.append(batch)
        yield []
    yield run_bounded(session, events)


def larger(batches: Iterable[pa.RecordBatch], rows: int = SLICE) -> Batches:
    """Join the small batches that Spark sends: the engine's work for a batch hardly grows with its size."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield joined(waiting)
            waiting, count = [], 0
    if count:
        yield joined(waiting)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Put batches of one schema one after the other."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _shards(batches: Batches) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Part the events of a partition, sorted by shard, into those of one shard each."""
    pieces = (piece for batch in batches for piece in _pieces(batch))
    for number, group in groupby(pieces, key=lambda piece: piece[0]):
        yield number, (piece for _, piece in group)


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    numbers = batch.column(SHARD).to_numpy()
    rest = batch.drop_columns([SHARD])
    bounds = [0, *(np.nonzero(np.diff(numbers))[0] + 1).tolist(), len(numbers)]
    for begin, end in pairwise(bounds):
        if end > begin:
            yield int(numbers[begin]), rest.slice(begin, end - begin)
