"""Runs a `Motion`: follows the samples of every mover, and gives what is found as composites."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from whimbrel.engine.evaluate import evaluate
from whimbrel.engine.identity import fold_on, hashes, row_hashes
from whimbrel.engine.kernels import border_crossings as k
from whimbrel.engine.operators.base import CorrelatingOperator, OperatorSetup
from whimbrel.engine.operators.motion_detectors import (
    Approaches,
    BorderCrossings,
    MotionDetector,
    MotionEvents,
    Stops,
)
from whimbrel.engine.ordered_inputs import OrderedBatch
from whimbrel.engine.row_store import Lineage, offsets_of
from whimbrel.engine.streams import ExecutionContext, RowsFrame
from whimbrel.engine.values import Column, FloatArray, Int64Array, nothing
from whimbrel.graph.expressions import GROUP, Attribute, Expr
from whimbrel.graph.operators.motion import MOTION, Motion, Verb
from whimbrel.model.schema import Type

FORGET_FROM = 4096
"""How many movers are remembered whether they are still seen or not."""


class MotionOperator(CorrelatingOperator[Motion]):
    """A `Motion` at run time."""

    state: ClassVar = (*CorrelatingOperator.state, "detector")

    def __init__(self, op: Motion, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        (self.samples,) = self.inputs
        self.detector = _detector(op, self.context)
        self._names = [region.name for region in op.regions] or [None]

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return self.detector.due

    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Follow the movers along their new samples, and let time pass."""
        if len(arrived):
            self._take_in(arrived)
        if self.due <= watermark:
            self.detector.expire(watermark)
        found = self.detector.take()
        if len(found):
            self._emit(found)
        self._forget_movers(watermark)

    def _take_in(self, arrived: OrderedBatch) -> None:
        frame = RowsFrame(self.context, self.samples, arrived.row, None, self.op.partitioning)
        x, y = (floats(frame.column(None, axis)) for axis in ("@x", "@y"))
        seen = np.ones(len(arrived), np.bool_)
        if self.op.verb is not Verb.IS_SILENT:
            # What says nothing about where it was is no sample of a movement.
            seen = ~(np.isnan(x) | np.isnan(y))
        accuracy = inaccuracy(self.op.accuracy, frame)
        samples = k.Samples(
            self.keys.of_frame(frame)[seen], arrived.end[seen], arrived.row[seen], x[seen], y[seen]
        )
        if len(samples.key):
            self.detector.process(samples, accuracy[seen], len(self.keys))

    def _forget_movers(self, watermark: int) -> None:
        """Forget the movers that were not seen for so long that they would count as new."""
        if not self.keys.are_given or len(self.keys) < FORGET_FROM:
            return
        live = self.detector.live(watermark, len(self.keys))
        if 2 * len(live) > len(self.keys):
            return
        self.detector.keep(live)
        self.keys.keep(live)

    # -- what was found ------------------------------------------------------------------------------------

    def _emit(self, found: MotionEvents) -> None:
        rows = found.ints[:, [k.F_BEFORE, k.F_FIRST, k.F_LAST]]
        there = rows >= 0
        offsets = offsets_of(there.sum(axis=1))
        parts = rows[there]
        starts, ends = self.samples.store.spans(parts)
        until = found.ints[:, k.F_UNTIL]
        start = np.minimum.reduceat(starts, offsets[:-1])
        end = np.maximum(np.maximum.reduceat(ends, offsets[:-1]), until)
        below = self.samples.store.lineage(parts)
        lineage = Lineage(below.offsets[offsets], below.refs)
        columns = self._identity(found, offsets, parts)
        deciding = np.where(there[:, 2], rows[:, 2], rows[:, 1])
        frame = RowsFrame(self.context, self.samples, deciding, self.op.alias, self.op.partitioning)
        known = self._known(found)
        for need in self.required:
            columns |= self._needed(need, frame, found, known)
        self.stream.new = self.stream.store.append(start, end, columns, lineage)

    def _identity(self, found: MotionEvents, offsets: Int64Array, parts: Int64Array) -> dict[Expr, Column]:
        """Hash the samples of each motion, its region, and when time completed it."""
        high, low = hashes(pa.array([name or "" for name in self._names], pa.string()))
        region = found.ints[:, k.F_REGION]
        until = found.ints[:, k.F_UNTIL]
        late = np.where(until == k.NO_TIME, 0, until).astype(np.uint64)
        seeds = (high[region] + late, low[region] ^ late)
        return fold_on(seeds, offsets, *row_hashes(self.context, self.samples, parts))

    def _needed(
        self, need: Expr, frame: RowsFrame, found: MotionEvents, known: dict[str, Column]
    ) -> dict[Expr, Column]:
        assert isinstance(need, Attribute)
        if need.part == GROUP:
            return {need: self.keys.column(need.name, found.ints[:, k.F_KEY])}
        if need.part == MOTION:
            return {need: known.get(need.name, nothing(len(frame)))}
        if need.name == "*":
            return {Attribute(need.part, n): column for n, column in frame.attributes(need.part).items()}
        return {need: evaluate(need, frame)}

    def _known(self, found: MotionEvents) -> dict[str, Column]:
        """Compute what is known of each motion itself."""
        region = pa.array(found.ints[:, k.F_REGION].astype(np.int32))
        names = pa.DictionaryArray.from_arrays(region, pa.array([name or "" for name in self._names]))
        unnamed = np.array([name is None for name in self._names])[found.ints[:, k.F_REGION]]
        known = {
            "region": Column(Type.STRING, names, unnamed if unnamed.any() else None),
            "since": time_column(found.ints[:, k.F_SINCE]),
        }
        if found.distance is not None:
            known["distance"] = Column(Type.FLOAT, found.distance)
        if found.xy is not None and "at" in self.op.verb.attributes:
            known |= self._crossing(found, found.xy)
        return known

    def _crossing(self, found: MotionEvents, xy: FloatArray) -> dict[str, Column]:
        """Compute when and where the border was crossed, on the straight line between two samples."""
        before, first = found.ints[:, k.F_BEFORE_AT], found.ints[:, k.F_FIRST_AT]
        inward = self.op.verb in (Verb.ENTERS, Verb.REACHES)
        share = self.detector.meeting(found.ints[:, k.F_REGION], xy, first=inward)
        # A border that lies before both was crossed earlier, within the margin; all that is known is now.
        share = np.where(np.isnan(share), 1.0, share)
        at = before + np.round(share * (first - before)).astype(np.int64)
        return {
            "at": Column(Type.TIMESTAMP, at),
            "x": Column(Type.FLOAT, xy[:, 0] + share * self.detector.across(xy)),
            "y": Column(Type.FLOAT, xy[:, 1] + share * (xy[:, 3] - xy[:, 1])),
        }


def _detector(op: Motion, context: ExecutionContext) -> MotionDetector:
    match op.verb:
        case Verb.STOPS | Verb.IS_SILENT:
            return Stops(op, context)
        case Verb.APPROACHES:
            return Approaches(op, context)
    return BorderCrossings(op, context)


def floats(column: Column) -> FloatArray:
    """Give numbers, NaN where there is none."""
    if column.type not in (Type.INT, Type.FLOAT):
        return np.full(len(column), np.nan)
    values: FloatArray = column.values.astype(np.float64, copy=False)
    return values if column.null is None else np.where(column.null, np.nan, values)


def inaccuracy(attribute: str | None, frame: RowsFrame) -> FloatArray:
    """Give by how many metres each location may be wrong; 0 where nothing is said."""
    if attribute is None:
        return np.zeros(len(frame))
    return np.maximum(np.nan_to_num(floats(evaluate(Attribute(None, attribute), frame))), 0.0)


def time_column(values: Int64Array) -> Column:
    """Give times; null where there is none."""
    missing = values == k.NO_TIME
    return Column(Type.TIMESTAMP, np.where(missing, 0, values), missing if missing.any() else None)
