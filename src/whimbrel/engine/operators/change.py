"""Runs a `Change`: compares every event with the one before it of its partition, all of a batch at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.evaluate import evaluate, true_rows
from whimbrel.engine.identity import fold, row_hashes
from whimbrel.engine.operators.base import CorrelatingOperator, OperatorSetup
from whimbrel.engine.ordered_inputs import OrderedBatch
from whimbrel.engine.parts import PartsFrame
from whimbrel.engine.programs import spell_out_relations
from whimbrel.engine.row_store import Lineage
from whimbrel.engine.streams import RowsFrame
from whimbrel.engine.values import Column, Int64Array
from whimbrel.graph.expressions import GROUP, Attribute, Expr
from whimbrel.graph.operators.change import PREVIOUS, Change

FORGET_FROM = 4096
"""How many partitions are remembered whether they are still seen or not."""


@dataclass(frozen=True, slots=True)
class LastEvents:
    """The last event of every partition whose attribute was known: its row, -1 for none, and its end."""

    row: Int64Array
    end: Int64Array

    def grown(self, size: int) -> LastEvents:
        """Make room for more partitions."""
        more = size - len(self.row)
        if more <= 0:
            return self
        return LastEvents(
            np.concatenate((self.row, np.full(more, -1))),
            np.concatenate((self.end, np.zeros(more, np.int64))),
        )


class ChangeOperator(CorrelatingOperator[Change]):
    """A `Change` at run time."""

    is_worth_sharing: ClassVar = True
    state: ClassVar = (*CorrelatingOperator.state, "last")

    def __init__(self, op: Change, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        (self.events,) = self.inputs
        self.last = LastEvents(NO_ROWS, NO_ROWS)
        self.tests = tuple(map(spell_out_relations, (op.changed, *op.conditions)))

    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Compare new events with those before them."""
        if len(arrived):
            self._compare(arrived)
        self._forget_partitions(watermark)

    def _compare(self, arrived: OrderedBatch) -> None:
        frame = self._frame(arrived.row, None)
        known = ~frame.column(None, self.op.attribute).nulls
        key, row, end = self.keys.of_frame(frame)[known], arrived.row[known], arrived.end[known]
        self.last = self.last.grown(len(self.keys))
        before, before_end = self._follow(key, row, end)
        near = (before >= 0) & (end - before_end <= self.op.within)
        self._emit(key[near], before[near], row[near])

    def _follow(self, key: Int64Array, row: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Give the event before each one of its partition, row and end; remember the last of each.

        Sorts the batch by partition, which costs n log n; a partition's first event looks into the past.
        """
        if not len(key):
            return NO_ROWS, NO_ROWS
        order = np.argsort(key, kind="stable")
        key, sorted_row, sorted_end = key[order], row[order], end[order]
        first = np.concatenate(([True], key[1:] != key[:-1]))
        last = np.concatenate((first[1:], [True]))
        before, before_end = np.empty_like(row), np.empty_like(end)
        before[order] = np.where(first, self.last.row[key], np.roll(sorted_row, 1))
        before_end[order] = np.where(first, self.last.end[key], np.roll(sorted_end, 1))
        self.last.row[key[last]] = sorted_row[last]
        self.last.end[key[last]] = sorted_end[last]
        return before, before_end

    def _emit(self, key: Int64Array, before: Int64Array, row: Int64Array) -> None:
        for test in self.tests:
            if len(row):
                holds = true_rows(test, self._pair(before, row))
                key, before, row = key[holds], before[holds], row[holds]
        if not len(row):
            return
        parts = np.stack((before, row), axis=1).ravel()
        starts, ends = (times.reshape(-1, 2) for times in self.events.store.spans(parts))
        columns = fold(np.arange(0, len(parts) + 1, 2), *row_hashes(self.context, self.events, parts))
        pair = self._pair(before, row)
        for need in self.required:
            columns |= self._needed(need, pair, key)
        lineage = Lineage.zip([frame.stream.store.lineage(frame.rows) for frame in pair.frames])
        self.stream.new = self.stream.store.append(starts.min(axis=1), ends.max(axis=1), columns, lineage)

    def _needed(self, need: Expr, pair: PartsFrame, key: Int64Array) -> dict[Expr, Column]:
        assert isinstance(need, Attribute)
        if need.part == GROUP:
            return {need: self.keys.column(need.name, key)}
        if need.name == "*":
            return {Attribute(need.part, n): column for n, column in pair.attributes(need.part).items()}
        return {need: evaluate(need, pair)}

    def _pair(self, before: Int64Array, row: Int64Array) -> PartsFrame:
        """See each event as `previous` and as what the query calls it."""
        frames = self._frame(before, PREVIOUS), self._frame(row, self.op.alias)
        return PartsFrame(self.context, frames, {PREVIOUS: 0, self.op.alias: 1})

    def _frame(self, rows: Int64Array, alias: str | None) -> RowsFrame:
        return RowsFrame(self.context, self.events, rows, alias, self.op.partitioning)

    def _forget_partitions(self, watermark: int) -> None:
        """Forget the partitions whose last event is too old to be compared with."""
        if not self.keys.are_given or len(self.keys) < FORGET_FROM:
            return
        self.last = self.last.grown(len(self.keys))
        live = np.flatnonzero((self.last.row >= 0) & (self.last.end + self.op.within >= watermark))
        if 2 * len(live) <= len(self.keys):
            self.keys.keep(live)
            self.last = LastEvents(self.last.row[live], self.last.end[live])
