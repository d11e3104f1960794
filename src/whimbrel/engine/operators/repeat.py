"""Runs a `Repeat`: runs of successive events in one partition."""

from __future__ import annotations

from typing import ClassVar

from whimbrel.engine.kernels.segments import list_iterations
from whimbrel.engine.operators.buffered import BufferedOperator
from whimbrel.engine.ordered_inputs import OrderedBatch
from whimbrel.engine.reduce import Segments, count_rows, reduce
from whimbrel.engine.values import Column
from whimbrel.graph.expressions import GROUP, Attribute, Call, Expr, PartRef
from whimbrel.graph.operators import Repeat


class RepeatOperator(BufferedOperator[Repeat]):
    """A `Repeat` at run time."""

    is_worth_sharing: ClassVar = True

    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Give every run that a new event ends."""
        before = self.take_in(arrived)
        if len(arrived):
            self._find(before)
        self.let_go(self.events.end >= watermark - self.op.within)

    def _find(self, before: int) -> None:
        op, order = self.op, self.by_group()
        events = self.events.take(order)
        fresh = order >= before
        offsets, places = list_iterations.at(len(order) ** 2)(
            self.group[order], events.fits(0), events.fits(1),
            events.start, events.end, fresh,
            op.at_least, -1 if op.at_most is None else op.at_most, op.within,
        )  # fmt: skip
        if len(offsets) > 1:
            self._emit(Segments(offsets, order[places]))

    def _emit(self, segments: Segments) -> None:
        runs = segments.places, segments.offsets
        columns = {need: self._needed(need, segments) for need in self.required} | self.hashes(*runs)
        self.stream.new = self.stream.store.append(*self.spans(*runs), columns, self.lineage(*runs))

    def _needed(self, need: Expr, segments: Segments) -> Column:
        if isinstance(need, Attribute) and need.part == GROUP:
            return self.keys.column(need.name, self.group[segments.places[segments.offsets[:-1]]])
        assert isinstance(need, Call)
        argument = need.arguments[0]
        if isinstance(argument, PartRef):
            return count_rows(segments)
        column = self.column(argument, 0, self.op.alias)
        return reduce(need.function, column, segments, self.context.functions, need)
