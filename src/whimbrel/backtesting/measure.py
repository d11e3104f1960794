"""Count what every stream of a query has in a recording of events, for planning where its parts run.

The query runs over the recording as it would for detections; what each operator makes is counted, and what
can travel is weighed as Arrow would send it. Events as they come in, and those that pass a condition on
single ones, are counted for each source of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.bounded import normalised_batches, run_bounded
from whimbrel.engine.ingest import Counts
from whimbrel.engine.observer import Observer
from whimbrel.engine.operators.base import RunningOperator
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.report import report
from whimbrel.engine.row_filter import rows_passing_filter
from whimbrel.engine.session import Session
from whimbrel.engine.streams import OperatorStream
from whimbrel.errors import DataError
from whimbrel.graph.expressions import Expr
from whimbrel.graph.operators import ANY, Derive, Filter, Source, TimePoints
from whimbrel.graph.query import Compilable, Query, compiled, refuse_mobile_parts
from whimbrel.graph.scope import selection
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.frames import EventPaths, EventTable
from whimbrel.model.reading import ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND
from whimbrel.plan.statistics import MULTIPLES, Bursts, Origin, SourceStatistics, Statistics

WEIGHED = 1_000
"""How many events of each stream are weighed."""
Clock = Callable[[], float]
"""Seconds, from any beginning: `time.process_time` for one."""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def measure(
    query: Query | Compilable,
    events: EventTable | EventPaths,
    *,
    clock: Clock | None = None,
    rejected: RejectedWriter | None = None,
    coordinates: Coordinates | str | None = None,
    **how: Unpack[ReadSettings],
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
    coordinates, columns, time_unit, time_format, day_first, time_zone, default_type
        As for `whimbrel.run`.

    Raises
    ------
    QueryError
        If the query follows something: what runs for each interest has no rate of its own.
    DataError
        If the recording has no events, or all at one time, so that it says nothing about rates.
    """
    query = compiled(query)
    refuse_mobile_parts(query, "measuring")
    counting = _StreamCounts(query, clock)
    session = Session(
        query, lateness=None, name="measured", coordinates=coordinates, observer=counting, **how
    )
    source = normalised_batches(session, events, rejected or RejectedWriter())
    run_bounded(session, counting.tallied(source, session))
    return counting.statistics(session.counts)


class _StreamCounts(Observer):
    """Counts what the operators of one query make."""

    sees_every_stream: ClassVar = True
    steps_always: ClassVar = True

    def __init__(self, query: Query, clock: Clock | None) -> None:
        self._clock = clock
        self._made: dict[str, int] = {}
        self._weights: dict[str, list[float]] = {}
        self._took: dict[str, float] = {}
        self._functions = query.functions
        self._numbers: dict[Origin, int] = {}
        self._came: dict[str, list[_Arrivals]] = {}
        self._ends: dict[str, list[Ints]] = {}
        self._span = [2**62, -(2**62)]

    def started(self, pipeline: Pipeline) -> None:
        """Take note of the operators there are."""
        self._graph = pipeline.graph

    def run(self, name: str, operator: RunningOperator[Any]) -> None:
        """Time an operator, where a clock is given."""
        if self._clock is None:
            operator.step()
            return
        before = self._clock()
        operator.step()
        self._took[name] = self._took.get(name, 0.0) + self._clock() - before

    def stepped(self, pipeline: Pipeline) -> None:
        """Count what is new in every stream."""
        for name, stream in pipeline.streams.items():
            self._made[name] = self._made.get(name, 0) + len(stream.new)
            if name in self._made_of_definitions:
                self._ends.setdefault(name, []).append(stream.store.spans(stream.new)[1])
            weights = self._weights.setdefault(name, [])
            if isinstance(pipeline.graph[name], Derive) and len(stream.new) and len(weights) < WEIGHED:
                table = report(stream, stream.new[:WEIGHED], pipeline.context)
                weights += np.sum([_bytes_of(column) for column in table.columns], axis=0).tolist()

    def report(self, stream: OperatorStream, rows: Ints, pipeline: Pipeline) -> None:
        """Report nothing: all is counted already."""

    def tallied(self, source: Iterable[pa.RecordBatch], session: Session) -> Iterator[pa.RecordBatch]:
        """Count and weigh the events that come in, by type and source."""
        for batch in source:
            if batch.num_rows:
                self._tally(batch, session.coordinates)
            yield batch

    @cached_property
    def _made_of_definitions(self) -> set[str]:
        """The streams of definitions, and of conditions on what these make."""
        graph = self._graph
        names = (node.name for node in graph.operators if isinstance(node, Derive | Filter))
        return {name for name in names if isinstance(selection(graph, name)[0], Derive)}

    @cached_property
    def _of_sources(self) -> list[tuple[str, Source, Expr | None]]:
        """The streams of events as they come in, and of conditions on these."""
        graph, streams = self._graph, []
        for operator in graph.operators:
            root, condition = selection(graph, operator.name)
            if isinstance(root, Source) and not isinstance(root, TimePoints):
                streams.append((operator.name, root, condition))
        return streams

    def _tally(self, batch: pa.RecordBatch, coordinates: Coordinates | None) -> None:
        weights = np.sum([_bytes_of(column) for column in batch.columns], axis=0)
        origins, kinds = self._origins(batch)
        ends = batch.column("end").to_numpy(zero_copy_only=False)
        for name, root, condition in self._of_sources:
            rows = (
                np.arange(len(kinds)) if root.event_type == ANY else np.flatnonzero(kinds == root.event_type)
            )
            if condition is not None and len(rows):
                events = batch.take(pa.array(rows))
                rows = rows[rows_passing_filter(events, condition, self._functions, coordinates)]
            self._came.setdefault(name, []).append(_Arrivals(origins[rows], ends[rows], weights[rows]))
        self._span[0] = min(self._span[0], pc.min(batch.column("start")).as_py())
        self._span[1] = max(self._span[1], pc.max(batch.column("end")).as_py())

    def _origins(self, batch: pa.RecordBatch) -> tuple[Ints, np.ndarray]:
        """Map the type and source of every event to a number, and list the types."""
        kinds = np.array(batch.column("type").cast(pa.string()).to_pylist(), object)
        has_source = "source" in batch.schema.names
        sources = batch.column("source").cast(pa.string()).to_pylist() if has_source else [None] * len(kinds)
        numbers = self._numbers
        origins = [numbers.setdefault(origin, len(numbers)) for origin in zip(kinds, sources, strict=True)]
        return np.array(origins, np.int64), kinds

    def statistics(self, counts: Counts) -> Statistics:
        """Sum up what was counted, a second of the events' time."""
        seconds = (self._span[1] - self._span[0]) / SECOND
        if seconds <= 0:
            refused = counts.rejected
            left = f"; {refused:,} of {counts.received:,} rows were rejected" if refused else ""
            raise DataError(
                f"a recording of no events, or of one time, says nothing about rates; give a longer one{left}"
            )
        parts = {name: self._parts(came, seconds) for name, came in self._came.items()}
        rates = {name: count / seconds for name, count in self._made.items()}
        sizes = {name: float(np.mean(weights)) for name, weights in self._weights.items() if weights}
        for name, root, _ in self._of_sources:
            rates[name] = sum(part.rate_hz for part in parts[name].values())
            if name == root.name and rates[name]:
                bytes_s = sum(part.rate_hz * part.size_b for part in parts[name].values())
                sizes[name] = bytes_s / rates[name]
        bursts = {}
        for name, pieces in self._ends.items():
            ends = np.sort(np.concatenate(pieces))
            if len(ends):
                times_s = (ends - self._span[0]) / SECOND
                bursts[name] = _bursts(times_s, np.ones(len(ends)), len(ends) / seconds)
        work = {name: took / seconds for name, took in self._took.items()}
        return Statistics(rates, sizes, parts, bursts, work)

    def _parts(self, pieces: list[_Arrivals], seconds: float) -> dict[Origin, SourceStatistics]:
        """Take a stream apart by where its events come from."""
        origins, ends, weights = map(np.concatenate, zip(*pieces, strict=True))
        order = np.lexsort((ends, origins))
        borders = np.flatnonzero(np.diff(origins[order])) + 1
        names = {number: origin for origin, number in self._numbers.items()}
        return {
            names[int(origins[rows[0]])]: _part((ends[rows] - self._span[0]) / SECOND, weights[rows], seconds)
            for rows in np.split(order, borders)
            if len(rows)
        }


class _Arrivals(NamedTuple):
    """Events that came in: numbers of their types and sources, ends, bytes."""

    origins: Ints
    ends: Ints
    weights: Floats


def _part(times_s: Floats, weights: Floats, seconds: float) -> SourceStatistics:
    rate, size = len(times_s) / seconds, float(weights.mean())
    # Bounds hold for events as large as they were, and for as many that all have the same size.
    bursts = [_bursts(times_s, amounts, rate) for amounts in (np.ones(len(times_s)), weights / size)]
    return SourceStatistics(rate, size, tuple(map(max, *bursts)))


def _bursts(times_s: Floats, amounts: Floats, rate: float) -> Bursts:
    return tuple(burst_of(times_s, amounts, rate * multiple) for multiple in MULTIPLES)


def burst_of(times_s: Floats, amounts: Floats, rate: float) -> float:
    """Find the smallest burst for which no t seconds have more than burst + rate t, both ends included.

    Parameters
    ----------
    times_s
        When something comes, in order.
    amounts
        How much.

    Examples
    --------
    >>> float(burst_of(np.array([0.0, 1.0, 1.0, 10.0]), np.ones(4), 0.5))
    2.5
    """
    so_far = np.cumsum(amounts)
    after, before = so_far - rate * times_s, so_far - amounts - rate * times_s
    return float((after - np.minimum.accumulate(before)).max())


def _bytes_of(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Weigh every value of a column in bytes; a null has none."""
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
