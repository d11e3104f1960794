"""Count what every stream of a query has in a recording of events, for planning where its parts run.

The query runs over the recording as it would for detections; what each operator makes is counted, and what
can travel is weighed as Arrow would send it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.report import report
from whimbrel.engine.session import Session, run_bounded
from whimbrel.errors import DataError
from whimbrel.graph.operators import ANY, Derive, Source
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.io.files import read_events
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.frames import batches
from whimbrel.model.time import SECOND
from whimbrel.plan.demand import Statistics

WEIGHED = 1_000
"""How many events of each stream are weighed."""
Clock = Callable[[], float]
"""Seconds, from any beginning: `time.process_time` for one."""


def measure(
    query: Query | Compilable,
    events: Any,
    *,
    clock: Clock | None = None,
    rejected: RejectedWriter | None = None,
    **settings: Any,
) -> Statistics:
    """Count the events of every stream of a query in a recording.

    Parameters
    ----------
    events
        As for `whimbrel.detect`: paths, Arrow, pandas, polars or a list of dicts.
    clock
        Times the operators, if given. Without it planners estimate their work, which is the same every time.
    rejected
        Is told the rows that are no events, and why.
    settings
        `coordinates`, `time_unit` and `default_type` as for `whimbrel.run`.

    Raises
    ------
    DataError
        If the recording has no events, or all at one time, so that it says nothing about rates.
    """
    session = _Measuring(compiled(query), clock, **settings)
    run_bounded(session, session.tallied(_source(session, events, rejected or RejectedWriter())))
    return session.statistics()


def _source(session: Session, events: Any, rejected: RejectedWriter) -> Iterator[pa.RecordBatch]:
    if isinstance(events, str | os.PathLike):
        events = [events]
    is_paths = isinstance(events, Sequence) and all(isinstance(each, str | os.PathLike) for each in events)
    if is_paths and len(events) > 0:
        for piece in read_events([Path(each) for each in events], schemas=session.schemas).pieces():
            before = session.counts.received
            try:
                conformed = session.conform(piece.batch)
            except DataError as error:
                raise DataError(f"{piece.file}: {error}") from error
            if piece.rejected is not None:
                session.count_rejected(piece.rejected)
                rejected.write(piece.rejected, piece.file)
            rejected.write(piece.numbered(conformed.rejected, before), piece.file)
            yield conformed.events
        return
    for batch in batches(events, rows=session.slice_rows):
        conformed = session.conform(batch)
        rejected.write(conformed.rejected)
        yield conformed.events


class _Counted(Pipeline):
    has_every_stream = True


class _Measuring(Session):
    """A session of one query that counts what its operators make."""

    shares_work = False

    def __init__(self, query: Query, clock: Clock | None, **settings: Any) -> None:
        super().__init__(query, lateness=None, name="measured", **settings)
        self._clock = clock
        self._made: dict[str, int] = {}
        self._weights: dict[str, list[float]] = {}
        self._took: dict[str, float] = {}
        self._sent: dict[tuple[str, str | None], int] = {}
        self._sent_bytes: dict[str, float] = {}
        self._span = [2**62, -(2**62)]

    def _deployed(self, query: Query, name: str) -> Pipeline:
        return _Counted(query, self._atoms, name)

    @property
    def _measured(self) -> Pipeline:
        pipeline = self._pipelines["measured"]
        assert isinstance(pipeline, Pipeline)
        return pipeline

    def _step(self, names: Iterable[str]) -> list[pa.Table]:  # noqa: ARG002 (there is one query)
        pipeline = self._measured
        for name, runtime in pipeline.runtimes.items():
            before = self._clock() if self._clock else 0.0
            runtime.step()
            if self._clock:
                self._took[name] = self._took.get(name, 0.0) + self._clock() - before
        for name, stream in pipeline.streams.items():
            self._made[name] = self._made.get(name, 0) + len(stream.new)
            weights = self._weights.setdefault(name, [])
            if isinstance(pipeline.graph[name], Derive) and len(stream.new) and len(weights) < WEIGHED:
                table = report(stream, stream.new[:WEIGHED], pipeline.around)
                weights += np.sum([_bytes_of(column) for column in table.columns], axis=0).tolist()
        pipeline.clear_made()
        return []

    def tallied(self, source: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count and weigh the events that come in, by type and source."""
        for batch in source:
            if batch.num_rows:
                self._tally(batch)
            yield batch

    def _tally(self, batch: pa.RecordBatch) -> None:
        weights = np.sum([_bytes_of(column) for column in batch.columns], axis=0)
        kinds = batch.column("type").cast(pa.string())
        table = pa.table({"type": kinds, "weight": pa.array(weights, pa.float64())})
        has_source = "source" in batch.schema.names
        source = batch.column("source").cast(pa.string()) if has_source else pa.nulls(len(kinds), pa.string())
        counted = table.append_column("source", source).group_by(["type", "source"])
        for row in counted.aggregate([("weight", "sum"), ("weight", "count")]).to_pylist():
            key = (row["type"], row["source"])
            self._sent[key] = self._sent.get(key, 0) + row["weight_count"]
            self._sent_bytes[key[0]] = self._sent_bytes.get(key[0], 0.0) + row["weight_sum"]
        self._span[0] = min(self._span[0], pc.min(batch.column("start")).as_py())
        self._span[1] = max(self._span[1], pc.max(batch.column("end")).as_py())

    def statistics(self) -> Statistics:
        """Give what was counted, a second of the events' time."""
        seconds = (self._span[1] - self._span[0]) / SECOND
        if seconds <= 0:
            refused = self.counts.rejected
            left = f"; {refused:,} of {self.counts.received:,} rows were rejected" if refused else ""
            raise DataError(
                f"a recording of no events, or of one time, says nothing about rates; give a longer one{left}"
            )
        graph = self._measured.graph
        by_type: dict[str, dict[str, float]] = {}
        totals: dict[str, int] = {}
        for (kind, source), count in self._sent.items():
            by_type.setdefault(kind, {})
            totals[kind] = totals.get(kind, 0) + count
            if source is not None:
                by_type[kind][source] = count / seconds
        rates = {name: count / seconds for name, count in self._made.items()}
        sizes = {name: float(np.mean(each)) for name, each in self._weights.items() if each}
        for operator in graph.operators:
            if isinstance(operator, Source):
                kinds = [*totals] if operator.event_type == ANY else [operator.event_type]
                count = sum(totals.get(kind, 0) for kind in kinds)
                rates[operator.name] = count / seconds
                if count:
                    sizes[operator.name] = sum(self._sent_bytes.get(kind, 0.0) for kind in kinds) / count
        work = {name: took / seconds for name, took in self._took.items()}
        return Statistics(rates, sizes, {kind: each for kind, each in by_type.items() if each}, work)


def _bytes_of(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Give the bytes of every value of a column; none for a null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_list(kind):
        inner = _bytes_of(column.flatten())
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        owner = np.repeat(np.arange(len(column)), lengths)
        return np.bincount(owner, inner, len(column)) + 4.0
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        lengths = pc.binary_length(column).cast(pa.float64())
        return pc.fill_null(pc.add(lengths, 4.0), 0.0).to_numpy(zero_copy_only=False)
    width = 0.125 if pa.types.is_boolean(kind) else 0.0 if pa.types.is_null(kind) else kind.bit_width / 8
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), width, 0.0)
