"""Runs one fragment of a query that was cut: it takes and gives events of definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from whimbrel.engine.derived_batch import DerivedBatch, derived_batch
from whimbrel.engine.observer import Observer
from whimbrel.engine.operators.receive import ReceiveOperator
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.report import together
from whimbrel.engine.session import Session
from whimbrel.engine.streams import OperatorStream
from whimbrel.engine.values import Int64Array
from whimbrel.errors import QueryError
from whimbrel.graph.fragments import Fragment
from whimbrel.model.schema import Coordinates


@dataclass
class FragmentOutput:
    """What a fragment found in one step, and how far it is."""

    detections: pa.Table
    """Events of the definitions that the whole query reports."""
    derived: dict[str, list[DerivedBatch]] = field(default_factory=dict)
    """Events of definitions that other fragments read."""
    complete: dict[str, int] = field(default_factory=dict)
    """Up to which time all events of each definition have been given."""


class FragmentSession(Observer):
    """One fragment of a query at run time, in a session of its own.

    Time moves with what `take` says: up to which time everything that the fragment reads has come. Events
    that came later than that are counted as late, derived ones in `late_derived`.
    """

    # It has to tell how far it is even where it has nothing to do.
    steps_always: ClassVar = True

    def __init__(self, fragment: Fragment, *, coordinates: Coordinates | str | None = None) -> None:
        self.fragment = fragment
        self.late_derived = 0
        self._derived: dict[str, list[DerivedBatch]] = {}
        self.session = Session(lateness=None, coordinates=coordinates, observer=self)
        self.session.add(fragment.query, name=fragment.name)
        self.session.ingest.expect_each_once()

    def take(
        self,
        events: Iterable[pa.RecordBatch],
        derived: Mapping[str, Iterable[DerivedBatch]],
        watermark: int,
    ) -> FragmentOutput:
        """Take in events in the common form and events of definitions; give what that completes."""
        self._derived = {}
        for batch in events:
            self.session.accept(batch)
        for name, several in derived.items():
            for each in several:
                self._receiver(name).accept(self._in_time(each))
        found = self.session.advance(watermark)
        detections = together([found], self.session.coordinates, self.fragment.query.attributes)
        complete = {stream.name: stream.watermark for stream in self._pipeline.outputs}
        return FragmentOutput(detections, self._derived, complete)

    def _receiver(self, name: str) -> ReceiveOperator:
        found = self._pipeline.runtimes.get(name)
        if not isinstance(found, ReceiveOperator):
            raise QueryError(f"the fragment {self.fragment.name!r} does not take events of {name!r}")
        return found

    def _in_time(self, derived: DerivedBatch) -> DerivedBatch:
        late = derived.end <= self.session.watermark
        self.late_derived += int(late.sum())
        return derived.taken(np.flatnonzero(~late)) if late.any() else derived

    # -- what it observes ----------------------------------------------------------------------------------

    def started(self, pipeline: Pipeline) -> None:
        """Get to know the operators that take events of definitions."""
        self._pipeline = pipeline

    def report(self, stream: OperatorStream, rows: Int64Array, pipeline: Pipeline) -> pa.Table | None:
        """Keep new events for other fragments; report them only if the whole query does."""
        self._derived.setdefault(stream.name, []).append(derived_batch(stream, rows, pipeline.context))
        return super().report(stream, rows, pipeline) if stream.name in self.fragment.reports else None
