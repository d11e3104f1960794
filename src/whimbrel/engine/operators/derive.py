"""Runs a `Derive`: makes events of a named type from what its cases found."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.evaluate import cast, evaluate
from whimbrel.engine.identity import HashArray, hashes, named, row_hashes
from whimbrel.engine.operators.base import OperatorSetup, RunningOperator
from whimbrel.engine.operators.receive import ReceiveOperator
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.streams import CASE, WINDOW, OperatorStream, RowsFrame
from whimbrel.engine.values import Column
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.graph.operators import Derive, DeriveCase, Source
from whimbrel.graph.scope import only_part, selection
from whimbrel.model.schema import TYPE_NAMES, Type


class DeriveOperator(RunningOperator[Derive]):
    """A `Derive` at run time."""

    looks_back: ClassVar = False
    is_worth_sharing: ClassVar = True

    def __init__(self, op: Derive, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self.graph = setup.graph
        self._kind_hash = hashes(pa.array([op.event_type]))

    @classmethod
    def started(cls, op: Derive, setup: OperatorSetup) -> RunningOperator[Derive]:
        """Build the operator; the events of a definition without cases come from another session."""
        return cls(op, setup) if op.cases else ReceiveOperator(op, setup)

    def opened(self, setup: OperatorSetup) -> OperatorStream:  # noqa: ARG002
        """Open the stream of the new events."""
        return OperatorStream(
            self.op.name, RowStore(), event_type=self.op.event_type, keeps_order=self._input_keeps_order
        )

    @property
    def _input_keeps_order(self) -> bool:
        return any(stream.keeps_order for stream in self.inputs)

    def step(self) -> None:
        """Make an event of everything that is new in any case."""
        self.stream.watermark = min(stream.watermark for stream in self.inputs)
        self.stream.keeps_order = self._input_keeps_order  # events from elsewhere tell when they come
        made = []
        for number, (case, stream) in enumerate(zip(self.op.cases, self.inputs, strict=True)):
            if len(stream.new):
                made.append(self._make(number, case, stream))
        self.stream.new = np.concatenate(made) if made else NO_ROWS

    def _make(self, number: int, case: DeriveCase, stream: OperatorStream) -> np.ndarray:
        frame = RowsFrame(self.context, stream, stream.new, case.alias, case.partitioning)
        columns: dict[Expr, Column] = {}
        for name, column in self._attributes(case, frame).items():
            columns[Attribute(None, name)] = column
        columns[CASE] = Column(Type.INT, np.full(len(frame), number, np.int64))
        window = stream.store.column(WINDOW, stream.new)
        ends = np.zeros(len(frame), np.int64)
        if window.type is not None:
            columns[WINDOW] = window
            ends = window.values
        made_of = row_hashes(self.context, stream, stream.new)
        columns |= named(self._kind(frame), number, ends, *made_of)
        columns |= self._marks(frame)
        start, end = stream.store.spans(stream.new)
        return self.stream.store.append(start, end, columns, stream.store.lineage(stream.new))

    def _kind(self, frame: RowsFrame) -> tuple[HashArray, HashArray]:  # noqa: ARG002 (a template looks at it)
        """Give the hash of the type of the events made of some rows."""
        return self._kind_hash

    def _marks(self, frame: RowsFrame) -> dict[Expr, Column]:  # noqa: ARG002 (a template looks at it)
        """Give what else is to be known of the events made of some rows."""
        return {}

    def _attributes(self, case: DeriveCase, frame: RowsFrame) -> dict[str, Column]:
        if not case.assign:
            return self._taken_over(case, frame)
        found = {}
        for assign in case.assign:
            column = evaluate(assign.value, frame)
            if assign.type is not None:
                column = cast(column, TYPE_NAMES[assign.type.lower()], f"{assign.name!r}")
            found[assign.name] = column
        return found

    def _taken_over(self, case: DeriveCase, frame: RowsFrame) -> dict[str, Column]:
        """Without assignments: the attributes of the only part, or the group keys."""
        part = None if case.alias is not None else only_part(self.graph, case.input)
        if part is None and self.graph[case.input].is_composite and case.alias is None:
            return {key.name: frame.key(key) for key in case.partitioning.keys}
        attributes = frame.attributes(part)
        root, _ = selection(self.graph, case.input)
        if isinstance(root, Source) and root.schema is not None:
            return {name: column for name, column in attributes.items() if name in root.schema.attributes}
        if isinstance(root, Source) or part is not None:
            # The data may have columns of other types; only those with a value are this one's.
            return {name: column for name, column in attributes.items() if not column.nulls.all()}
        return attributes
