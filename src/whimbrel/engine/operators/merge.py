"""Runs a `Merge`: every event of any branch, once.

Alternatives that select from one stream stay a selection of it, so that an event remains the same
event wherever else the pattern uses it. All others are copied into a stream of their own.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from whimbrel.engine.identity import hash_columns
from whimbrel.engine.operators.base import CorrelatingOperator, OperatorSetup, RunningOperator
from whimbrel.engine.ordered_inputs import OrderedBatch, order_of
from whimbrel.engine.streams import IDENTITY, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, concat, nothing
from whimbrel.graph.expressions import GROUP, Attribute, Expr
from whimbrel.graph.operators import ANY, Merge, Operator, Source
from whimbrel.graph.scope import scope, selection
from whimbrel.model.schema import Type


class UnionOperator(RunningOperator[Merge]):
    """A `Merge` of selections of one stream, at run time."""

    owns_rows: ClassVar = False

    def opened(self, setup: OperatorSetup) -> OperatorStream:
        """Open a selection of the rows that all branches select from."""
        stream = OperatorStream(self.op.name, self.inputs[0].store, number=self.inputs[0].number)
        for branch, selected in zip(self.op.branches, self.inputs, strict=True):
            stream.branches |= {name: list(tests) for name, tests in selected.branches.items()}
            if branch.alias is not None:
                root, condition = selection(setup.graph, branch.input)
                stream.branches.setdefault(branch.alias, []).append((_type_of(root), condition))
        return stream

    def step(self) -> None:
        """Pass on what is new in any branch."""
        self.stream.watermark = min(stream.watermark for stream in self.inputs)
        self.stream.new = np.unique(np.concatenate([stream.new for stream in self.inputs]))


def _type_of(root: Operator) -> str | None:
    """Give the type that all events of a stream have, if there is one."""
    return root.event_type if isinstance(root, Source) and root.event_type != ANY else None


class MergeOperator(CorrelatingOperator[Merge]):
    """A `Merge` of several streams, at run time."""

    def __init__(self, op: Merge, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self.scopes = [scope(setup.graph, branch.input) for branch in op.branches]

    @classmethod
    def started(cls, op: Merge, setup: OperatorSetup) -> RunningOperator[Merge]:
        """Build the operator; nothing is copied where all branches select from one stream of plain events."""
        inputs = [setup.streams[name] for name in cls.read_by(op)]
        is_union = all(stream.store is inputs[0].store and not stream.composite for stream in inputs)
        return UnionOperator(op, setup) if is_union else cls(op, setup)

    def process(self, arrived: OrderedBatch, watermark: int) -> None:  # noqa: ARG002 (nothing waits for it)
        """Pass on what is new in any branch."""
        if not len(arrived):
            return
        rows = arrived.root, arrived.row
        columns = {need: self._needed(need, arrived) for need in self.required}
        columns |= hash_columns(*self.arrivals.hashes(*rows))
        columns[IDENTITY] = Column(Type.INT, self.arrivals.identities(*rows))
        lineage = self.arrivals.lineage(*rows)
        self.stream.new = self.stream.store.append(arrived.start, arrived.end, columns, lineage)

    def _needed(self, need: Expr, arrived: OrderedBatch) -> Column:
        """Give a column for all arrived events, null where the branch it belongs to does not fit."""
        pieces, places = [], []
        for at, frame in self.arrivals.frames(arrived.root, arrived.row):
            pieces.append(self._of_root(need, frame, arrived.mask[at]))
            places.append(at)
        if len(pieces) == 1:
            return pieces[0]
        return concat(pieces).take(order_of(places))

    def _of_root(self, need: Expr, frame: RowsFrame, mask: np.ndarray) -> Column:
        if isinstance(need, Attribute) and need.part is None:
            found = frame.column(None, need.name)
            if found.type is None and frame.stream.composite:
                found = frame.stream.store.column(Attribute(GROUP, need.name), frame.rows)
            return found
        if not isinstance(need, Attribute):
            return frame.known(need)
        fits = np.zeros(len(frame), np.bool_)
        column = nothing(len(frame))
        for number, branch in enumerate(self.op.branches):
            has = (mask >> np.uint64(number)) & np.uint64(1) == 1
            if branch.alias == need.part:
                column, fits = frame.column(None, need.name), fits | has
            elif need.part in self.scopes[number]:
                column, fits = frame.column(need.part, need.name), fits | has
        return Column(column.type, column.values, column.nulls | ~fits)
