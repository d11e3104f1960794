"""What a `Sequence` found, as rows of its stream: matches one by one, or their number and sums."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from whimbrel.engine.evaluate import evaluate
from whimbrel.engine.identity import fold_on, row_hashes, row_ids
from whimbrel.engine.kernels import runs as k
from whimbrel.engine.kernels.match_listing import list_events
from whimbrel.engine.operators.value_columns import own
from whimbrel.engine.ordered_inputs import OrderedInputs
from whimbrel.engine.reduce import Segments, count_rows, reduce
from whimbrel.engine.row_store import Lineage, different, offsets_of
from whimbrel.engine.streams import ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, Int64Array, nothing
from whimbrel.graph.expressions import GROUP, Attribute, Call, Expr, PartRef, walk
from whimbrel.model.schema import Type

if TYPE_CHECKING:
    from whimbrel.engine.operators.step_pattern import StepPatternOperator

ROOT = 56
"""By how many bits the number of the stream is shifted in the number of an event; copies have large ones."""
UNTIMED = -1
"""In place of the time that completed a match, where an event did; times before 1970 are below it."""


class MatchOwner(Protocol):
    """An operator that knows where its events came from."""

    context: ExecutionContext
    arrivals: OrderedInputs


class StepEvents:
    """The events of several results: segment r is idents[offsets[r]:offsets[r + 1]].

    Many results have the same events, so what is asked about them is asked once for each different one.
    """

    def __init__(self, of: MatchOwner, offsets: Int64Array, idents: Int64Array) -> None:
        self.of = of
        self.offsets = offsets
        self.used, self.which = different(idents)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _by_stream(self) -> Iterator[tuple[OperatorStream, slice, Int64Array]]:
        """Give the streams that the events are of, their places among the different ones, and their rows."""
        roots = self.of.arrivals.roots
        bounds = np.searchsorted(self.used, np.arange(len(roots) + 1) << ROOT)
        for number, root in enumerate(roots):
            at = slice(bounds[number], bounds[number + 1])
            if at.stop > at.start:
                yield root, at, self.used[at] & ((1 << ROOT) - 1)

    @cached_property
    def _whole(self) -> tuple[Int64Array, Int64Array]:
        """When the first event of each result starts, and the last one ends."""
        starts, ends = np.empty(len(self.used), np.int64), np.empty(len(self.used), np.int64)
        for root, at, rows in self._by_stream():
            starts[at], ends[at] = root.store.spans(rows)
        first = np.minimum.reduceat(starts[self.which], self.offsets[:-1])
        return first, np.maximum.reduceat(ends[self.which], self.offsets[:-1])

    def spans(self, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Give starts and ends; where time completed a result, it ends then."""
        start, end = self._whole
        return start, np.where(at != UNTIMED, at, end)

    def lineage(self) -> Lineage:
        """Give the atomic events below each result."""
        below = Lineage.concat([root.store.lineage(rows) for root, _, rows in self._by_stream()])
        if len(below.refs) == len(below):
            return Lineage(self.offsets, below.refs[self.which])
        taken = below.take(self.which)
        return Lineage(taken.offsets[self.offsets], taken.refs)

    def identity(self, steps: np.ndarray, at: Int64Array) -> dict[Expr, Column]:
        """Hash the events of each result, the steps they were taken for, and when time completed it."""
        high, low = np.empty(len(self.used), np.uint64), np.empty(len(self.used), np.uint64)
        for root, places, rows in self._by_stream():
            high[places], low[places] = row_hashes(self.of.context, root, rows)
        shift = steps.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        late = (at != UNTIMED) & (at > self._whole[1])
        seeds = np.where(late, at, 0).astype(np.uint64)
        return fold_on((seeds, seeds), self.offsets, high[self.which] + shift, low[self.which] ^ shift)


class ListedMatches:
    """Matches one by one: the events of each, and the step that each event was taken for."""

    def __init__(
        self, of: StepPatternOperator, offsets: Int64Array, idents: Int64Array, steps: Int64Array,
        keys: Int64Array, at: Int64Array,
    ) -> None:  # fmt: skip
        self.of = of
        self.offsets = offsets
        self.idents = idents
        self.steps = steps
        self.keys = keys
        self.at = at

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def owner(self) -> Int64Array:
        """Which match every event belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def events(self) -> StepEvents:
        """The events of the matches."""
        return StepEvents(self.of, self.offsets, self.idents)

    @cached_property
    def identity(self) -> dict[Expr, Column]:
        """The hashes of the matches."""
        return self.events.identity(self.steps, self.at)

    def once_each(self) -> ListedMatches:
        """Leave out matches that were found in several ways; what runs out of time twice does so twice."""
        high, low = (column.values.view(np.uint64) for column in self.identity.values())
        high = high + self.at.view(np.uint64)
        if len(np.unique(high)) == len(self):
            return self
        order = np.lexsort((low, high))
        new = np.ones(len(self), np.bool_)
        new[1:] = (high[order[1:]] != high[order[:-1]]) | (low[order[1:]] != low[order[:-1]])
        first = order[new]
        chosen = np.sort(first)
        lineage = Lineage(self.offsets, np.arange(len(self.idents))).take(chosen)
        return ListedMatches(
            self.of, lineage.offsets, self.idents[lineage.refs], self.steps[lineage.refs],
            self.keys[chosen], self.at[chosen],
        )  # fmt: skip

    def append_to(self, stream: OperatorStream) -> Int64Array:
        """Add the matches to a stream; give their rows."""
        columns = {need: self._needed(need) for need in self.of.required} | self.identity
        return stream.store.append(*self.events.spans(self.at), columns, self.events.lineage())

    def _needed(self, need: Expr) -> Column:
        match need:
            case Attribute(part, name) if part == GROUP:
                return self.of.keys.column(name, self.keys)
            case Attribute(str() as step, _) if step in self.of.steps:
                return self._aggregate(Call("last", (need,)), step)
            case Call("ids", (PartRef(str() as step),)):
                return self._ids(step)
            case Call(_, (PartRef(str() as step),)):
                return count_rows(self._segments(step)[0])
            case Call(_, (argument, *_)):
                step = step_of(argument, self.of.steps)
                return self._aggregate(need, step)
        return nothing(len(self))

    def _segments(self, step: str) -> tuple[Segments, Int64Array]:
        """Give the events that each match took for a step, and their rows."""
        places = np.flatnonzero(self.steps == self.of.steps[step])
        counts = np.bincount(self.owner[places], minlength=len(self))
        rows = self.idents[places] & ((1 << ROOT) - 1)
        return Segments(offsets_of(counts), np.arange(len(places))), rows

    def _aggregate(self, call: Call, step: str) -> Column:
        segments, rows = self._segments(step)
        if not len(rows):
            return (
                Column(Type.INT, np.zeros(len(self), np.int64))
                if call.function == "count"
                else nothing(len(self))
            )
        stream = self.of.inputs[self.of.slot_of_step[self.of.steps[step]]]
        used, inverse = np.unique(rows, return_inverse=True)
        frame = RowsFrame(self.of.context, stream, used, step, self.of.op.partitioning)
        column = evaluate(call.arguments[0], frame).take(inverse)
        return reduce(call.function, column, segments, self.of.context.functions, call)

    def _ids(self, step: str) -> Column:
        segments, rows = self._segments(step)
        stream = self.of.inputs[self.of.slot_of_step[self.of.steps[step]]]
        used, inverse = np.unique(rows, return_inverse=True)
        texts = row_ids(self.of.context, stream, used).take(pa.array(inverse))
        return Column(
            Type.TEXTS, pa.ListArray.from_arrays(pa.array(segments.offsets.astype(np.int32)), texts)
        )


class CountedMatches:
    """Matches counted and summed up: one result for each event, or moment, that completes any."""

    def __init__(self, of: StepPatternOperator, found: np.ndarray) -> None:
        self.of = of
        group = (k.F_KEY, k.F_AT, k.F_BY)
        self.found = found[np.lexsort(tuple(found[:, column] for column in reversed(group)))]
        begins = np.ones(len(found), np.bool_)
        begins[1:] = (self.found[1:, group] != self.found[:-1, group]).any(axis=1)
        self.first = np.flatnonzero(begins)
        self.owner = np.cumsum(begins) - 1
        self.node = np.ascontiguousarray(self.found[:, k.F_NODE])

    def append_to(self, stream: OperatorStream) -> Int64Array:
        """Add the results to a stream; give their rows."""
        events = self._events()
        columns = {need: self._needed(need) for need in self.of.required}
        at = self.found[self.first, k.F_AT]
        columns |= events.identity(np.zeros(len(events.which), np.int64), at)
        return stream.store.append(*events.spans(at), columns, events.lineage())

    def _events(self) -> StepEvents:
        """Give the events of all matches of each result, once each and in order."""
        nodes, wanted = self.of.nodes.rows, self.node
        seen = np.zeros(len(nodes), np.int64)
        list_all = list_events.at(4 * len(nodes) + len(wanted))
        size = list_all(nodes, wanted, self.owner, seen, 0, np.zeros(0, np.int64), np.zeros(0, np.int64))
        idents, owners = np.zeros(size, np.int64), np.zeros(size, np.int64)
        list_all(nodes, wanted, self.owner, seen, len(wanted), idents, owners)
        pairs = np.unique(np.stack([owners, idents], axis=1), axis=0)
        counts = np.bincount(pairs[:, 0], minlength=len(self.first))
        return StepEvents(self.of, offsets_of(counts), np.ascontiguousarray(pairs[:, 1]))

    def _needed(self, need: Expr) -> Column:
        match need:
            case Attribute(part, name) if part == GROUP:
                return self.of.keys.column(name, self.found[self.first, k.F_KEY])
            case Call("matches", ()):
                return Column(Type.INT, self._added(self.of.nodes.rows[:, k.N_PATHS]))
            case Call(function, (argument,)):
                return self._total(function, argument)
        return nothing(len(self.first))

    def _added(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values[self.node], self.first)

    def _total(self, function: str, argument: Expr) -> Column:
        step = step_of(argument, self.of.steps)
        number = self.of.memory.totals.index((step, summed(argument, step)))
        nodes = self.of.nodes
        counts = self._added(nodes.numbers[:, number])
        if function == "count":
            return Column(Type.INT, counts)
        empty = counts == 0
        if function in ("min", "max"):
            ufunc, column = (np.minimum, 1) if function == "min" else (np.maximum, 2)
            found = ufunc.reduceat(nodes.totals[self.node, 3 * number + column], self.first)
        else:
            found = self._added(nodes.totals[:, 3 * number])
        if function == "avg":
            found = found / np.maximum(counts, 1)
        found = np.where(empty, 0.0, found)
        kind = self.of.memory.kind_of(summed(argument, step))
        if function != "avg" and kind in (Type.INT, Type.TIMESTAMP, Type.DURATION):
            return Column(kind, np.rint(found).astype(np.int64), empty if empty.any() else None)
        return Column(Type.FLOAT, found, empty if empty.any() else None)


def step_of(argument: Expr, steps: dict[str, int]) -> str:
    """Name the step that the argument of an aggregate reads."""
    names = [
        node.part if isinstance(node, Attribute) else getattr(node, "name", None) for node in walk(argument)
    ]
    return next(str(name) for name in names if name in steps)


def summed(argument: Expr, step: str) -> Expr | None:
    """Give what is summed up of every event of a step; None where events are counted."""
    return None if isinstance(argument, PartRef) else own(argument, step)
