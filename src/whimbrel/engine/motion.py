"""Runs a `Motion`: walks along the samples of every mover, and gives what is found as composites."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from whimbrel.engine.evaluate import evaluate
from whimbrel.engine.identity import fold_on, hashes, row_hashes
from whimbrel.engine.interner import Interner
from whimbrel.engine.kernels import border_crossings as k
from whimbrel.engine.motion_state import Approaches, BorderCrossings, MotionDetector, MotionEvents, Stops
from whimbrel.engine.ordered_inputs import OrderedBatch, OrderedInputs
from whimbrel.engine.row_store import Lineage, RowStore, offsets_of
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, FloatArray, Int64Array, from_arrow, nothing
from whimbrel.graph.expressions import GROUP, Attribute, Expr, format_expr
from whimbrel.graph.operators.motion import MOTION, Motion, Verb
from whimbrel.model.schema import Type

FORGET_FROM = 4096
"""How many movers are remembered whether they are still seen or not."""


class MotionOperator:
    """A `Motion` at run time."""

    def __init__(
        self,
        op: Motion,
        streams: dict[str, OperatorStream],
        context: ExecutionContext,
        required: Iterable[Expr],
    ) -> None:
        self.op = op
        self.context = context
        self.samples = streams[op.input]
        self.arrivals = OrderedInputs(context, [self.samples])
        self.stream = OperatorStream(op.name, RowStore(), composite=True)
        self.required = sorted(set(required), key=format_expr)
        self.keys = Interner()
        self.walker = _walker(op, context)
        self._names = [region.name for region in op.regions] or [None]

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return self.walker.due

    def step(self) -> None:
        """Process what is new in the samples, and let time pass."""
        arrived = self.arrivals.collect()
        watermark = self.arrivals.watermark
        self.stream.watermark = watermark
        self.stream.new = np.zeros(0, np.int64)
        if len(arrived):
            self._walk(arrived)
        if self.due <= watermark:
            self.walker.sweep(watermark)
        found = self.walker.take()
        if len(found):
            self._emit(found)
        self._forget_movers(watermark)

    def _walk(self, arrived: OrderedBatch) -> None:
        frame = RowsFrame(self.context, self.samples, arrived.row, None, self.op.partitioning)
        x, y = (floats(frame.column(None, axis)) for axis in ("@x", "@y"))
        seen = np.ones(len(arrived), np.bool_)
        if self.op.verb is not Verb.IS_SILENT:
            # What says nothing about where it was is no sample of a movement.
            seen = ~(np.isnan(x) | np.isnan(y))
        accuracy = inaccuracy(self.op.accuracy, frame)
        samples = k.Samples(self._keys(frame)[seen], arrived.end[seen], arrived.row[seen], x[seen], y[seen])
        if len(samples.key):
            self.walker.walk(samples, accuracy[seen], len(self.keys))

    def _keys(self, frame: RowsFrame) -> Int64Array:
        keys = self.op.partitioning.keys
        if not keys:
            if not len(self.keys):
                self.keys = Interner.of([None])
            return np.zeros(len(frame), np.int64)
        columns = [frame.key(key) for key in keys]
        return self.keys.codes(columns[0]) if len(columns) == 1 else self.keys.row_codes(columns)

    def _forget_movers(self, watermark: int) -> None:
        """Forget the movers that were not seen for so long that they would count as new."""
        if not self.op.partitioning.keys or len(self.keys) < FORGET_FROM:
            return
        live = self.walker.live(watermark, len(self.keys))
        if 2 * len(live) > len(self.keys):
            return
        self.walker.keep(live)
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
            return {need: self._group_column(need.name, found.ints[:, k.F_KEY])}
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
        share = self.walker.meeting(found.ints[:, k.F_REGION], xy, first=inward)
        # A border that lies before both was crossed earlier, within the margin; all that is known is now.
        share = np.where(np.isnan(share), 1.0, share)
        at = before + np.round(share * (first - before)).astype(np.int64)
        return {
            "at": Column(Type.TIMESTAMP, at),
            "x": Column(Type.FLOAT, xy[:, 0] + share * self.walker.across(xy)),
            "y": Column(Type.FLOAT, xy[:, 1] + share * (xy[:, 3] - xy[:, 1])),
        }

    def _group_column(self, name: str, codes: Int64Array) -> Column:
        names = [key.name for key in self.op.partitioning.keys]
        used, inverse = np.unique(codes, return_inverse=True)
        values = self.keys.values()
        chosen = [values[code] for code in used.tolist()]
        if len(names) > 1:
            chosen = [row[names.index(name)] for row in chosen]
        return from_arrow(pa.array(chosen)).take(inverse)

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        self.arrivals.save(blocks, f"{name}/held")
        blocks.put_json(f"{name}/keys", self.keys.values())
        blocks.put_arrays(f"{name}/walker", self.walker.state())

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.arrivals.load(blocks, f"{name}/held")
        self.keys = Interner.of(blocks.json(f"{name}/keys"))
        self.walker.restore(blocks.arrays(f"{name}/walker"))


def _walker(op: Motion, context: ExecutionContext) -> MotionDetector:
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
