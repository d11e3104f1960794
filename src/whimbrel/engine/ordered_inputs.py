"""The new events of an operator's inputs, once each, in total order, and not before their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.derived_batch import numbered
from whimbrel.engine.identity import HashArray, row_hashes
from whimbrel.engine.row_store import Lineage
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.streams import CASE, WINDOW, ExecutionContext, OperatorStream, RowsFrame, identities
from whimbrel.engine.values import BoolArray, Int64Array, decoded
from whimbrel.graph.policies import WHOLE, Partitioning
from whimbrel.model.schema import Type

MaskArray = npt.NDArray[np.uint64]
Places = Int64Array | slice
"""Which of some rows: all of them is a slice, which copies nothing."""


@dataclass(frozen=True, slots=True)
class OrderedBatch:
    """Events in total order: the root stream, the row in it, the inputs it fits (bits), its times."""

    root: Int64Array
    row: Int64Array
    mask: MaskArray
    start: Int64Array
    end: Int64Array

    def __len__(self) -> int:
        return len(self.row)

    def take(self, places: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> OrderedBatch:
        """Give some of the events."""
        return OrderedBatch(*(getattr(self, name)[places] for name in self.__slots__))

    def fits(self, slot: int) -> BoolArray:
        """Tell which events are of one input."""
        return (self.mask >> np.uint64(slot)) & np.uint64(1) == 1


EMPTY = OrderedBatch(NO_ROWS, NO_ROWS, np.zeros(0, np.uint64), NO_ROWS, NO_ROWS)


class OrderedInputs(SavedState):
    """Collects what is new in several input streams.

    Inputs that are selections of one stream share its rows: an event that fits two inputs arrives
    once, with two bits set. Events later than the slowest input's watermark are held back.
    """

    state: ClassVar = ("held",)

    def __init__(
        self, context: ExecutionContext, inputs: list[OperatorStream], partitioning: Partitioning = WHOLE
    ) -> None:
        self.context = context
        self.inputs = inputs
        self.partitioning = partitioning
        stores: dict[int, OperatorStream] = {}
        for stream in inputs:
            stores.setdefault(id(stream.store), stream)
        self.roots: list[OperatorStream] = list(stores.values())
        numbers = {key: number for number, key in enumerate(stores)}
        self._root_of = [numbers[id(stream.store)] for stream in inputs]
        self.held = EMPTY

    @property
    def watermark(self) -> int:
        """Up to which time every input is complete."""
        return min(stream.watermark for stream in self.inputs)

    # -- events of several streams -----------------------------------------------------------------------

    def by_root(self, root: Int64Array, row: Int64Array) -> Iterator[tuple[Places, int, Int64Array]]:
        """Part rows by the stream they are of: their places, its number, and their numbers there."""
        if len(self.roots) == 1:
            if len(row):
                yield slice(None), 0, row
            return
        for number in range(len(self.roots)):
            at = np.flatnonzero(root == number)
            if len(at):
                yield at, number, row[at]

    def frames(self, root: Int64Array, row: Int64Array) -> Iterator[tuple[Places, RowsFrame]]:
        """Part rows by the stream they are of, as expressions see them."""
        for at, number, rows in self.by_root(root, row):
            yield at, RowsFrame(self.context, self.roots[number], rows, None, self.partitioning)

    def lineage(self, root: Int64Array, row: Int64Array) -> Lineage:
        """Give the atomic events below some rows."""
        pieces, places = [], []
        for at, number, rows in self.by_root(root, row):
            pieces.append(self.roots[number].store.lineage(rows))
            places.append(at)
        if not pieces:
            return Lineage(np.zeros(1, np.int64), NO_ROWS)
        if len(pieces) == 1:
            return pieces[0]
        return Lineage.concat(pieces).take(order_of(places))

    def hashes(self, root: Int64Array, row: Int64Array) -> tuple[HashArray, HashArray]:
        """Hash some rows."""
        high, low = np.empty(len(row), np.uint64), np.empty(len(row), np.uint64)
        for at, number, rows in self.by_root(root, row):
            high[at], low[at] = row_hashes(self.context, self.roots[number], rows)
        return high, low

    def identities(self, root: Int64Array, row: Int64Array) -> Int64Array:
        """Give rows numbers, the same whatever stream an event came by."""
        found = np.empty(len(row), np.int64)
        for at, number, rows in self.by_root(root, row):
            found[at] = identities(self.context, self.roots[number], rows)
        return found

    # -- what is new ---------------------------------------------------------------------------------------

    def collect(self) -> OrderedBatch:
        """Give the events that can be processed now."""
        found = [self._of_root(number) for number in range(len(self.roots))]
        found = [arrived for arrived in [self.held, *found] if len(arrived)]
        if not found:
            return EMPTY
        if len(found) == 1 and self._is_ordered():
            arrived = found[0]
        else:
            arrived = joined(found)
            arrived = arrived.take(self.total_order(arrived))
        ready = int(np.searchsorted(arrived.end, self.watermark, side="right"))
        if ready == len(arrived):
            self.held = EMPTY
            return arrived
        self.held = arrived.take(np.arange(ready, len(arrived)))
        return arrived.take(np.arange(ready))

    def _is_ordered(self) -> bool:
        # Atomic events are numbered in total order.
        return len(self.roots) == 1 and self.roots[0].store is self.context.atoms.store

    def _of_root(self, number: int) -> OrderedBatch:
        bits = [
            (slot, s.new)
            for slot, s in enumerate(self.inputs)
            if self._root_of[slot] == number and len(s.new)
        ]
        if not bits:
            return EMPTY
        rows, mask = _with_bits(bits)
        start, end = self.roots[number].store.spans(rows)
        return OrderedBatch(np.full(len(rows), number, np.int64), rows, mask, start, end)

    def total_order(self, arrived: OrderedBatch) -> npt.NDArray[np.intp]:
        """Give the order by (end, start, source, atomic events below, maker)."""
        order = np.lexsort((arrived.start, arrived.end))
        end, start = arrived.end[order], arrived.start[order]
        tied = (end[1:] == end[:-1]) & (start[1:] == start[:-1])
        if not tied.any():
            return order
        keys = self._tie_breakers(arrived)
        return np.lexsort((*keys, arrived.start, arrived.end))

    def _tie_breakers(self, arrived: OrderedBatch) -> list[Int64Array]:
        """Give sort keys, least important first: the maker, the lineage from its last event, the source."""
        size = len(arrived)
        source = np.zeros(size, np.int64)
        texts: list[list[str | None]] = []
        lineages = []
        places = []
        for number, stream in enumerate(self.roots):
            at = np.nonzero(arrived.root == number)[0]
            rows = arrived.row[at]
            column = RowsFrame(self.context, stream, rows).column(None, "source")
            if column.type is Type.STRING:
                values = decoded(column.values).to_pylist()
                texts.append([None if gone else v for v, gone in zip(values, column.nulls, strict=True)])
            else:
                texts.append([None] * len(rows))
            lineages.append(stream.store.lineage(rows))
            places.append(at)
        ranks = {
            text: rank for rank, text in enumerate(sorted({t for ts in texts for t in ts if t is not None}))
        }
        depth = max(int(np.diff(lineage.offsets).max(initial=0)) for lineage in lineages)
        refs = np.full((depth, size), -1, np.int64)
        _, numbers = numbered(self.context.atoms.store, np.concatenate([each.refs for each in lineages]))
        begin = 0
        for at, values, lineage in zip(places, texts, lineages, strict=True):
            source[at] = [-1 if value is None else ranks[value] for value in values]
            lengths = np.diff(lineage.offsets)
            level = np.arange(len(lineage.refs)) - np.repeat(lineage.offsets[:-1], lengths)
            refs[level, np.repeat(at, lengths)] = numbers[begin : begin + len(lineage.refs)]
            begin += len(lineage.refs)
        return [*self._last_resorts(arrived), *refs[::-1], source]

    def _last_resorts(self, arrived: OrderedBatch) -> list[Int64Array]:
        """Give sort keys for derived events made of the same atomic events: case, window, maker."""
        case, window = np.zeros(len(arrived), np.int64), np.zeros(len(arrived), np.int64)
        for number, stream in enumerate(self.roots):
            at = np.nonzero(arrived.root == number)[0]
            for key, found in ((CASE, case), (WINDOW, window)):
                column = stream.store.column(key, arrived.row[at])
                if column.type is not None:
                    found[at] = np.where(column.nulls, 0, column.values)
        makers = [self._maker(stream) for stream in self.roots]
        rank = np.array([sorted(makers).index(maker) for maker in makers])
        return [case, window, rank[arrived.root]]

    def _maker(self, stream: OperatorStream) -> str:
        """Name what made the events of a stream; atomic events come first."""
        return "" if stream.store is self.context.atoms.store else stream.event_type or stream.name


def order_of(places: list[Places]) -> Int64Array:
    """Give the order that brings the pieces of several streams, one after the other, to their places."""
    return np.argsort(np.concatenate([at for at in places if not isinstance(at, slice)]), kind="stable")


def joined(found: list[OrderedBatch]) -> OrderedBatch:
    """Put arrived events one after the other."""
    return OrderedBatch(
        *(np.concatenate([getattr(a, name) for a in found]) for name in OrderedBatch.__slots__)
    )


def _with_bits(selections: list[tuple[int, Int64Array]]) -> tuple[Int64Array, MaskArray]:
    """Unite row numbers; bit k of the mask says that selection k has the row."""
    if len(selections) == 1:
        slot, rows = selections[0]
        return rows, np.full(len(rows), np.uint64(1 << slot))
    low = min(int(rows[0]) for _, rows in selections)
    high = max(int(rows[-1]) for _, rows in selections) + 1
    if high - low <= 8 * sum(len(rows) for _, rows in selections):
        dense = np.zeros(high - low, np.uint64)
        for slot, rows in selections:
            dense[rows - low] |= np.uint64(1 << slot)
        places = np.nonzero(dense)[0]
        return places + low, dense[places]
    united, inverse = np.unique(np.concatenate([rows for _, rows in selections]), return_inverse=True)
    mask = np.zeros(len(united), np.uint64)
    begin = 0
    for slot, rows in selections:
        mask[inverse[begin : begin + len(rows)]] |= np.uint64(1 << slot)
        begin += len(rows)
    return united, mask
