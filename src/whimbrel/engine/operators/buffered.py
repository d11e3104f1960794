"""Operators whose events wait, parted into groups: aggregates, repetitions and custom operators."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.evaluate import evaluate
from whimbrel.engine.identity import fold
from whimbrel.engine.operators.base import CorrelatingOperator, Op, OperatorSetup
from whimbrel.engine.ordered_inputs import EMPTY, OrderedBatch, joined
from whimbrel.engine.row_store import Lineage
from whimbrel.engine.streams import RowsFrame
from whimbrel.engine.values import Column, Int64Array, concat, nothing
from whimbrel.graph.expressions import Expr

FORGET_FROM = 1024
"""How many groups are kept whether they have events or not."""


class BufferedOperator(CorrelatingOperator[Op]):
    """An operator that keeps arrived events in total order, with the group of each, until they are let go."""

    state: ClassVar = (*CorrelatingOperator.state, "events", "group", "counts")

    def __init__(self, op: Op, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self.events = EMPTY
        self.group = NO_ROWS
        self.counts: dict[int, int] = {}
        """Where every n-th event of a group counts: how many events came since the last that did."""

    def loaded(self) -> None:
        """Bring the counts into the form that they have in memory: JSON knows no numbers as keys."""
        self.counts = {int(group): number for group, number in self.counts.items()}

    def take_in(self, arrived: OrderedBatch) -> int:
        """Add events to those that wait; give how many waited before."""
        before = len(self.group)
        if len(arrived):
            self.events = joined([self.events, arrived]) if before else arrived
            self.group = np.concatenate([self.group, self.keys.of_batch(self.arrivals, arrived)])
        return before

    def column(self, expr: Expr, slot: int, alias: str | None) -> Column:
        """Evaluate an expression over one input for all events; null for events of other inputs."""
        fits = self.events.fits(slot)
        mine, rest = np.nonzero(fits)[0], np.nonzero(~fits)[0]
        stream = self.inputs[slot]
        frame = RowsFrame(self.context, stream, self.events.row[mine], alias, self.arrivals.partitioning)
        order = np.argsort(np.concatenate([mine, rest]), kind="stable")
        return concat([evaluate(expr, frame), nothing(len(rest))]).take(order)

    def lineage(self, places: Int64Array, offsets: Int64Array) -> Lineage:
        """Join the lineages of the events at `places`, segment by segment."""
        below = self.arrivals.lineage(self.events.root[places], self.events.row[places])
        return Lineage(below.offsets[offsets], below.refs)

    def hashes(self, places: Int64Array, offsets: Int64Array) -> dict[Expr, Column]:
        """Hash the events at `places`, segment by segment."""
        return fold(offsets, *self.arrivals.hashes(self.events.root[places], self.events.row[places]))

    def spans(self, places: Int64Array, offsets: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Give when the first of the events at `places` starts and the last one ends, segment by segment."""
        start = np.minimum.reduceat(self.events.start[places], offsets[:-1])
        return start, np.maximum.reduceat(self.events.end[places], offsets[:-1])

    def let_go(self, keep: np.ndarray) -> None:
        """Forget all events but those that `keep` marks."""
        if keep.all():
            return
        self.events = self.events.take(keep)
        self.group = self.group[keep]
        live = np.union1d(self.group, np.fromiter(self.counts, np.int64, len(self.counts)))
        if len(self.keys) > FORGET_FROM and len(self.keys) > 2 * len(live):
            table = self.keys.keep(live)
            self.group = table[self.group]
            self.counts = {int(table[group]): number for group, number in self.counts.items()}

    def forget_before(self, time: int) -> None:
        """Forget what ended before `time`; the streams that the events came from do so too."""
        super().forget_before(time)
        self.let_go(self.events.end >= time)

    def by_group(self) -> Int64Array:
        """Give the order of the events by group, and inside a group by the total order."""
        return np.argsort(self.group, kind="stable")
