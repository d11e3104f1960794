"""Runs a `Merge`: every event of any branch, once.

Alternatives that select from one stream stay a selection of it, so that an event remains the same
event wherever else the pattern uses it. All others are copied into a stream of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whimbrel.engine.identity import hash_columns, row_hashes
from whimbrel.engine.ordered_inputs import OrderedBatch, OrderedInputs
from whimbrel.engine.row_store import Lineage, RowStore
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import IDENTITY, ExecutionContext, OperatorStream, RowsFrame, identities
from whimbrel.engine.values import Column, Int64Array, concat, nothing
from whimbrel.graph.expressions import GROUP, Attribute, Expr, format_expr
from whimbrel.graph.operators import ANY, Graph, Merge, Operator, Source
from whimbrel.graph.scope import scope, selection
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME


class UnionOperator:
    """A `Merge` of selections of one stream, at run time."""

    due = END_OF_TIME

    def __init__(self, graph: Graph, op: Merge, streams: dict[str, OperatorStream]) -> None:
        self.inputs = [streams[branch.input] for branch in op.branches]
        self.stream = OperatorStream(op.name, self.inputs[0].store, number=self.inputs[0].number)
        for branch, stream in zip(op.branches, self.inputs, strict=True):
            self.stream.branches |= {name: list(tests) for name, tests in stream.branches.items()}
            if branch.alias is not None:
                root, condition = selection(graph, branch.input)
                self.stream.branches.setdefault(branch.alias, []).append((_type_of(root), condition))

    @staticmethod
    def suits(op: Merge, streams: dict[str, OperatorStream]) -> bool:
        """Tell whether all branches select from one stream of plain events."""
        inputs = [streams[branch.input] for branch in op.branches]
        return all(stream.store is inputs[0].store and not stream.composite for stream in inputs)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state: there is none."""

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""

    def step(self) -> None:
        """Pass on what is new in any branch."""
        self.stream.watermark = min(stream.watermark for stream in self.inputs)
        self.stream.new = np.unique(np.concatenate([stream.new for stream in self.inputs]))


def _type_of(root: Operator) -> str | None:
    """Give the type that all events of a stream have, if there is one."""
    return root.event_type if isinstance(root, Source) and root.event_type != ANY else None


class MergeOperator:
    """A `Merge` of several streams, at run time."""

    due = END_OF_TIME

    def __init__(
        self,
        graph: Graph,
        op: Merge,
        streams: dict[str, OperatorStream],
        context: ExecutionContext,
        required: Iterable[Expr],
    ) -> None:
        self.op = op
        self.context = context
        self.arrivals = OrderedInputs(context, [streams[branch.input] for branch in op.branches])
        self.stream = OperatorStream(op.name, RowStore(), composite=True)
        self.required = sorted(set(required), key=format_expr)
        self.scopes = [scope(graph, branch.input) for branch in op.branches]

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        self.arrivals.save(blocks, f"{name}/held")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.arrivals.load(blocks, f"{name}/held")

    def step(self) -> None:
        """Pass on what is new in any branch."""
        arrived = self.arrivals.collect()
        self.stream.watermark = self.arrivals.watermark
        self.stream.new = np.zeros(0, np.int64)
        if len(arrived):
            columns = {need: self._needed(need, arrived) for need in self.required}
            columns |= self._hashes(arrived)
            columns[IDENTITY] = Column(Type.INT, self._identities(arrived))
            lineage = self._lineage(arrived)
            self.stream.new = self.stream.store.append(arrived.start, arrived.end, columns, lineage)

    def _roots(self, arrived: OrderedBatch) -> Iterable[tuple[np.ndarray, OperatorStream]]:
        for number, stream in enumerate(self.arrivals.roots):
            at = np.nonzero(arrived.root == number)[0]
            if len(at):
                yield at, stream

    def _identities(self, arrived: OrderedBatch) -> Int64Array:
        found = np.empty(len(arrived), np.int64)
        for at, stream in self._roots(arrived):
            found[at] = identities(self.context, stream, arrived.row[at])
        return found

    def _hashes(self, arrived: OrderedBatch) -> dict[Expr, Column]:
        high, low = np.empty(len(arrived), np.uint64), np.empty(len(arrived), np.uint64)
        for at, stream in self._roots(arrived):
            high[at], low[at] = row_hashes(self.context, stream, arrived.row[at])
        return hash_columns(high, low)

    def _lineage(self, arrived: OrderedBatch) -> Lineage:
        pieces, places = [], []
        for at, stream in self._roots(arrived):
            pieces.append(stream.store.lineage(arrived.row[at]))
            places.append(at)
        return Lineage.concat(pieces).take(np.argsort(np.concatenate(places), kind="stable"))

    def _needed(self, need: Expr, arrived: OrderedBatch) -> Column:
        """Give a column for all arrived events, null where the branch it belongs to does not fit."""
        pieces, places = [], []
        for at, stream in self._roots(arrived):
            frame = RowsFrame(self.context, stream, arrived.row[at])
            pieces.append(self._of_root(need, frame, arrived.mask[at]))
            places.append(at)
        return concat(pieces).take(np.argsort(np.concatenate(places), kind="stable"))

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
