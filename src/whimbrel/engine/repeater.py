"""Runs a `Repeat`: runs of successive events in one partition."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whimbrel.engine.group_buffer import GroupBuffer
from whimbrel.engine.kernels.segments import stretches
from whimbrel.engine.reduce import Segments, count_rows, reduce
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.values import Column
from whimbrel.graph.expressions import GROUP, Attribute, Call, Expr, PartRef, format_expr
from whimbrel.graph.operators import Repeat
from whimbrel.model.time import END_OF_TIME


class RepeatOperator:
    """A `Repeat` at run time."""

    due = END_OF_TIME

    def __init__(
        self,
        op: Repeat,
        streams: dict[str, OperatorStream],
        context: ExecutionContext,
        required: Iterable[Expr],
    ) -> None:
        self.op = op
        self.context = context
        inputs = [streams[op.input]] + ([streams[op.until]] if op.until else [])
        self.buffer = GroupBuffer(context, inputs, op.partitioning)
        self.stream = OperatorStream(op.name, RowStore(), composite=True)
        self.required = sorted(set(required), key=format_expr)

    def step(self) -> None:
        """Take in what is new and give every run that a new event ends."""
        before = self.buffer.collect()
        watermark = self.buffer.arrivals.watermark
        self.stream.watermark = watermark
        self.stream.new = np.zeros(0, np.int64)
        if len(self.buffer) > before:
            self._find(before)
        self.buffer.let_go(self.buffer.events.end >= watermark - self.op.within)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        self.buffer.save(blocks, f"{name}/buffer")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.buffer.load(blocks, f"{name}/buffer")

    def _find(self, before: int) -> None:
        buffer, op = self.buffer, self.op
        order = buffer.by_group()
        events = buffer.events.take(order)
        fresh = order >= before
        offsets, places = stretches.at(len(order) ** 2)(
            buffer.group[order],
            (events.mask & np.uint64(1)) != 0,
            (events.mask & np.uint64(2)) != 0,
            events.start, events.end, fresh,
            op.at_least, -1 if op.at_most is None else op.at_most, op.within,
        )  # fmt: skip
        if len(offsets) > 1:
            self._emit(Segments(offsets, order[places]))

    def _emit(self, segments: Segments) -> None:
        events = self.buffer.events
        start = np.minimum.reduceat(events.start[segments.places], segments.offsets[:-1])
        end = np.maximum.reduceat(events.end[segments.places], segments.offsets[:-1])
        lineage = self.buffer.lineage(segments.places, segments.offsets)
        columns = {need: self._needed(need, segments) for need in self.required}
        columns |= self.buffer.hashes(segments.places, segments.offsets)
        self.stream.new = self.stream.store.append(start, end, columns, lineage)

    def _needed(self, need: Expr, segments: Segments) -> Column:
        if isinstance(need, Attribute) and need.part == GROUP:
            names = [key.name for key in self.op.partitioning.keys]
            codes = self.buffer.group[segments.places[segments.offsets[:-1]]]
            return self.buffer.group_column(names.index(need.name), codes)
        assert isinstance(need, Call)
        argument = need.arguments[0]
        if isinstance(argument, PartRef):
            return count_rows(segments)
        column = self.buffer.column(argument, 0, self.op.alias)
        return reduce(need.function, column, segments, self.context.functions, need)
