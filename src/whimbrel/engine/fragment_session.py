"""A session that runs one piece of a query that was cut: it takes and gives events of definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.derived_batch import DerivedBatch, carry
from whimbrel.engine.ingest import RecentIds
from whimbrel.engine.operators.receive import ReceiveOperator
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.report import together
from whimbrel.engine.session import Session
from whimbrel.engine.streams import OperatorStream
from whimbrel.engine.values import Int64Array
from whimbrel.errors import QueryError
from whimbrel.graph.fragments import Fragment
from whimbrel.graph.query import Query
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME


@dataclass
class FragmentOutput:
    """What a piece found in one step, and how far it is."""

    detections: pa.Table
    """Events of the definitions that the whole query reports."""
    carried: dict[str, list[DerivedBatch]] = field(default_factory=dict)
    """Events of definitions that other pieces read."""
    complete: dict[str, int] = field(default_factory=dict)
    """Up to which time all events of each definition have been given."""


class FragmentSession(Session):
    """One piece of a query at run time.

    Time moves with what `take` says: up to which time everything that the piece reads has come. Events that
    came later than that are counted as late, derived ones in `late_derived`.
    """

    shares_work = False

    def __init__(
        self, piece: Fragment, *, coordinates: Coordinates | str | None = None, carries: bool = True
    ) -> None:
        super().__init__(lateness=None, coordinates=coordinates)
        self.piece = piece
        self.late_derived = 0
        self._carries = carries
        self._given = FragmentOutput(pa.table({}))
        self.add(piece.query, name=piece.name)
        # Senders deliver once, so that ids need not be remembered, nor be sent along when the piece moves.
        self.look_ahead([])
        self._ingest.recent = RecentIds(END_OF_TIME, room=1)

    @property
    def columns(self) -> set[str] | None:
        """The attributes of atomic events that the piece reads; None: all."""
        self._plan()
        return self._columns

    def take(
        self,
        events: Iterable[pa.RecordBatch] = (),
        carried: Mapping[str, Iterable[DerivedBatch]] | None = None,
        watermark: int | None = None,
    ) -> FragmentOutput:
        """Take in events in the common form and events of definitions; give what that completes."""
        self._given = FragmentOutput(pa.table({}))
        self._plan()
        for batch in events:
            self._ingest.counts.received += batch.num_rows
            self._ingest.accept(batch)
        for name, several in (carried or {}).items():
            for each in several:
                self._receiver(name).accept(self._in_time(each))
        if watermark is not None:
            self._ingest.advance(watermark)
        tables = self._run()
        self._given.detections = together(tables, self._ingest.coordinates, self.piece.query.attributes)
        self._given.complete = {stream.name: stream.watermark for stream in self._pipeline.outputs}
        return self._given

    def _deployed(self, query: Query, name: str) -> Pipeline:
        return Pipeline(query, self._atoms, name)

    @property
    def _pipeline(self) -> Pipeline:
        found = self._pipelines[self.piece.name]
        assert isinstance(found, Pipeline)
        return found

    def _receiver(self, name: str) -> ReceiveOperator:
        found = self._pipeline.runtimes.get(name)
        if not isinstance(found, ReceiveOperator):
            raise QueryError(f"the piece {self.piece.name!r} does not take events of {name!r}")
        return found

    def _in_time(self, carried: DerivedBatch) -> DerivedBatch:
        late = carried.end <= self.watermark
        self.late_derived += int(late.sum())
        return carried.taken(np.flatnonzero(~late)) if late.any() else carried

    def _due_by(self, watermark: int) -> dict[str, None]:
        """Let the query run in every step, so that it can tell how far it is."""
        super()._due_by(watermark)
        return dict.fromkeys(self._pipelines)

    def _written(self, stream: OperatorStream, rows: Int64Array, pipeline: Pipeline) -> pa.Table:
        if self._carries:
            self._given.carried.setdefault(stream.name, []).append(carry(stream, rows, pipeline.context))
        table: Any = super()._written(stream, rows, pipeline)
        return table if stream.name in self.piece.reports else table.slice(0, 0)
