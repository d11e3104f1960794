"""Events that wait in an operator, parted into groups: what aggregates and repetitions stand on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from whimbrel.engine.evaluate import evaluate
from whimbrel.engine.identity import fold, row_hashes
from whimbrel.engine.interner import Interner
from whimbrel.engine.ordered_inputs import OrderedBatch, OrderedInputs, joined
from whimbrel.engine.row_store import Lineage
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, Int64Array, concat, from_arrow, nothing
from whimbrel.graph.expressions import Expr
from whimbrel.graph.policies import Partitioning


class GroupBuffer:
    """Arrived events in total order with the group of each, until they are let go."""

    def __init__(
        self, context: ExecutionContext, inputs: list[OperatorStream], partitioning: Partitioning
    ) -> None:
        self.context = context
        self.arrivals = OrderedInputs(context, inputs)
        self.partitioning = partitioning
        self.groups = Interner()
        self.events = self.arrivals.held
        self.group = np.zeros(0, np.int64)
        self.counts: dict[int, int] = {}
        """Where every n-th event of a group counts: how many events came since the last that did."""

    def __len__(self) -> int:
        return len(self.group)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the waiting events and their groups."""
        self.arrivals.save(blocks, f"{name}/held")
        blocks.put_arrays(
            f"{name}/events", {field: getattr(self.events, field) for field in OrderedBatch.__slots__}
        )
        blocks.put_array(f"{name}/group", self.group)
        blocks.put_json(f"{name}/groups", self.groups.values())

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.arrivals.load(blocks, f"{name}/held")
        self.events = OrderedBatch(**blocks.arrays(f"{name}/events"))
        self.group = blocks.array(f"{name}/group")
        self.groups = Interner.of(blocks.json(f"{name}/groups"))

    def collect(self) -> int:
        """Take in what is new; give how many events were there before."""
        before = len(self)
        arrived = self.arrivals.collect()
        if len(arrived):
            self.events = joined([self.events, arrived]) if before else arrived
            self.group = np.concatenate([self.group, self._codes(arrived)])
        return before

    def _codes(self, arrived: OrderedBatch) -> Int64Array:
        if not self.partitioning.keys:
            if not len(self.groups):
                self.groups = Interner.of([None])
            return np.zeros(len(arrived), np.int64)
        codes = np.zeros(len(arrived), np.int64)
        for at, frame in self._frames(arrived.root, arrived.row):
            columns = [frame.key(key) for key in self.partitioning.keys]
            codes[at] = self.groups.codes(columns[0]) if len(columns) == 1 else self.groups.row_codes(columns)
        return codes

    def _frames(self, root: Int64Array, row: Int64Array) -> Iterable[tuple[np.ndarray, RowsFrame]]:
        for number, stream in enumerate(self.arrivals.roots):
            at = np.nonzero(root == number)[0]
            if len(at):
                yield at, RowsFrame(self.context, stream, row[at], None, self.partitioning)

    def column(self, expr: Expr, slot: int, alias: str | None) -> Column:
        """Evaluate an expression over one input for all events; null for events of other inputs."""
        fits = (self.events.mask >> np.uint64(slot)) & np.uint64(1) == 1
        mine, rest = np.nonzero(fits)[0], np.nonzero(~fits)[0]
        stream = self.arrivals.inputs[slot]
        frame = RowsFrame(self.context, stream, self.events.row[mine], alias, self.partitioning)
        order = np.argsort(np.concatenate([mine, rest]), kind="stable")
        return concat([evaluate(expr, frame), nothing(len(rest))]).take(order)

    def group_column(self, number: int, codes: Int64Array) -> Column:
        """Give the value of group key `number` for some group codes."""
        used, inverse = np.unique(codes, return_inverse=True)
        values = self.groups.values()
        several = len(self.partitioning.keys) > 1
        chosen = [values[code][number] if several else values[code] for code in used.tolist()]
        return from_arrow(pa.array(chosen)).take(inverse)

    def lineage(self, places: Int64Array, offsets: Int64Array) -> Lineage:
        """Join the lineages of the events at `places`, segment by segment."""
        pieces, order = [], []
        root, row = self.events.root[places], self.events.row[places]
        for number, stream in enumerate(self.arrivals.roots):
            at = np.nonzero(root == number)[0]
            if len(at):
                pieces.append(stream.store.lineage(row[at]))
                order.append(at)
        if not pieces:
            return Lineage(np.zeros(len(offsets), np.int64), np.zeros(0, np.int64))
        joined = Lineage.concat(pieces)
        if len(pieces) > 1:
            joined = joined.take(np.argsort(np.concatenate(order), kind="stable"))
        return Lineage(joined.offsets[offsets], joined.refs)

    def hashes(self, places: Int64Array, offsets: Int64Array) -> dict[Expr, Column]:
        """Hash the events at `places`, segment by segment."""
        root, row = self.events.root[places], self.events.row[places]
        high, low = np.empty(len(places), np.uint64), np.empty(len(places), np.uint64)
        for number, stream in enumerate(self.arrivals.roots):
            at = np.nonzero(root == number)[0]
            if len(at):
                high[at], low[at] = row_hashes(self.context, stream, row[at])
        return fold(offsets, high, low)

    def let_go(self, keep: np.ndarray) -> None:
        """Forget all events but those that `keep` marks."""
        if keep.all():
            return
        self.events = self.events.take(keep)
        self.group = self.group[keep]
        live = np.union1d(self.group, np.fromiter(self.counts, np.int64, len(self.counts)))
        if len(self.groups) > 1024 and len(self.groups) > 2 * len(live):
            table = self.groups.keep(live)
            self.group = table[self.group]
            self.counts = {int(table[group]): number for group, number in self.counts.items()}

    def forget_before(self, time: int) -> None:
        """Forget the events that ended before `time`; the streams they came from do so too."""
        self.let_go(self.events.end >= time)

    def by_group(self) -> Int64Array:
        """Give the order of the events by group, and inside a group by the total order."""
        return np.argsort(self.group, kind="stable")
