"""Runs an `Aggregate`: windows over groups of events, and one result for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from whimbrel.engine.copies import INSTANCE, INSTANCE_OF_GROUP
from whimbrel.engine.evaluate import cast, evaluate, true_rows
from whimbrel.engine.kernels.segments import trailing_windows
from whimbrel.engine.operators.base import OperatorSetup
from whimbrel.engine.operators.buffered import BufferedOperator
from whimbrel.engine.ordered_inputs import OrderedBatch
from whimbrel.engine.reduce import Segments, count_rows, reduce
from whimbrel.engine.row_store import offsets_of, ranges
from whimbrel.engine.streams import WINDOW, ExecutionContext
from whimbrel.engine.values import Column, Int64Array, nothing
from whimbrel.errors import QueryError
from whimbrel.graph.expressions import (
    AGGREGATES,
    GROUP,
    Attribute,
    Call,
    Expr,
    PartRef,
    children,
    format_expr,
    parts_of,
)
from whimbrel.graph.operators import Aggregate
from whimbrel.graph.policies import Assign
from whimbrel.graph.scope import scope
from whimbrel.model.schema import TYPE_NAMES, Type
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME


@dataclass(slots=True)
class ResultsFrame:
    """Results of an aggregate, as expressions see them: computed aggregates, group keys, earlier names."""

    context: ExecutionContext
    size: int
    aggregates: dict[Expr, Column] = field(default_factory=dict)
    groups: dict[str, Column] = field(default_factory=dict)
    named: dict[str, Column] = field(default_factory=dict)
    spread: bool = False
    """Whether aggregates are still to be computed, over the one partial result of each window."""

    def __len__(self) -> int:
        return self.size

    def column(self, part: str | None, name: str) -> Column:
        """Give a group key or a name that was assigned before."""
        found = self.groups if part == GROUP else self.named
        return found.get(name) or nothing(self.size)

    def attributes(self, part: str | None) -> dict[str, Column]:  # noqa: ARG002 (asked of every frame)
        """Give the names assigned before."""
        return dict(self.named)

    def known(self, expr: Expr) -> Column:
        """Give an aggregate."""
        if not self.spread:
            return self.aggregates[expr]
        assert isinstance(expr, Call)
        each = np.arange(self.size + 1)
        column = evaluate(expr.arguments[0], self)
        return reduce(expr.function, column, Segments(each, each[:-1]), self.context.functions, expr)


@dataclass(frozen=True, slots=True)
class ComputedWindows:
    """The windows that are complete: their events by place in the buffer, and the group of each."""

    segments: Segments
    group: Int64Array
    end: Int64Array | None = None
    """Where the windows lie on a grid: the end of each."""


class AggregateOperator(BufferedOperator[Aggregate]):
    """An `Aggregate` at run time."""

    is_worth_sharing: ClassVar = True
    state: ClassVar = (*BufferedOperator.state, "closed")

    def __init__(self, op: Aggregate, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self.closed = BEGINNING_OF_TIME
        """Windows with `every`: the number of the last window that was computed."""
        self.names = [{part.alias, *scope(setup.graph, part.input)} for part in op.parts]
        self.outer = [part.outer for part in op.parts]

    @property
    def due(self) -> int:
        """When a window closes even if no event comes."""
        window = self.op.window
        if window.kind == "counting" or window.every is None or not len(self.group):
            return END_OF_TIME
        earliest = int(self.events.end[0])
        number = max(earliest // window.every + 1, self.closed + 1)
        return number * window.every - 1

    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Compute the windows that are complete."""
        before = self.take_in(arrived)
        windows = self._complete(before, watermark)
        self.stream.watermark = self._progress(watermark)
        if windows is not None and len(windows.group):
            self._emit(windows)
        self.let_go(self._still_needed(watermark))

    def _progress(self, watermark: int) -> int:
        """Up to which time no further result can come."""
        window = self.op.window
        if watermark >= END_OF_TIME or window.every is None or window.kind == "counting":
            return watermark
        return ((watermark + 1) // window.every + 1) * window.every - window.length - 1

    # -- windows ---------------------------------------------------------------------------------------

    def _complete(self, before: int, watermark: int) -> ComputedWindows | None:
        if not len(self.group):
            return None
        window = self.op.window
        if window.kind == "temporal" and window.every is not None:
            return self._on_the_grid(window.length, window.every, watermark)
        return self._at_each_event(before)

    def _on_the_grid(self, length: int, every: int, watermark: int) -> ComputedWindows | None:
        """Windows [k * every - length, k * every) that the watermark has passed."""
        end = self.events.end
        last = (watermark + 1) // every if watermark < END_OF_TIME else END_OF_TIME
        low = np.maximum(end // every + 1, self.closed + 1)
        high = np.minimum((end + length) // every, last)
        self.closed = max(self.closed, last)
        repeats = np.maximum(high - low + 1, 0)
        if not repeats.any():
            return None
        place = np.repeat(np.arange(len(end)), repeats)
        number = ranges(low, repeats)
        group = self.group[place]
        # Windows in order of time, groups inside a window, events inside a group in total order.
        order = np.lexsort((place, group, number))
        place, number, group = place[order], number[order], group[order]
        new = np.ones(len(place), np.bool_)
        new[1:] = (number[1:] != number[:-1]) | (group[1:] != group[:-1])
        begin = np.nonzero(new)[0]
        return ComputedWindows(
            Segments(np.append(begin, len(place)), place), group[begin], number[begin] * every
        )

    def _at_each_event(self, before: int) -> ComputedWindows:
        """Find the window that ends with each new event."""
        window = self.op.window
        order = self.by_group()
        fresh = self._fresh(before)[order]
        counting = window.kind == "counting"
        rows, first = trailing_windows.at(2 * len(order))(
            self.group[order], self.events.end[order], fresh,
            window.length, window.length if counting else 0, window.within or END_OF_TIME,
        )  # fmt: skip
        lengths = rows - first + 1
        segments = Segments(offsets_of(lengths), order[ranges(first, lengths)])
        return ComputedWindows(segments, self.group[order][rows])

    def _fresh(self, before: int) -> np.ndarray:
        """Tell at which events a result is due."""
        fresh = np.zeros(len(self.group), np.bool_)
        fresh[before:] = True
        every = self.op.window.every
        if self.op.window.kind == "counting" and every is not None:
            for place in range(before, len(self.group)):
                group = int(self.group[place])
                number = self.counts.pop(group, 0) + 1
                fresh[place] = number == every
                if number < every:
                    self.counts[group] = number
        return fresh

    def _still_needed(self, watermark: int) -> np.ndarray:
        end, window = self.events.end, self.op.window
        if window.kind == "temporal" and window.every is not None:
            return (end + window.length) // window.every > self.closed
        if window.kind == "temporal":
            return end >= watermark - window.length
        return self._recent(window.length) & (end >= watermark - (window.within or END_OF_TIME))

    def _recent(self, number: int) -> np.ndarray:
        """Mark the last `number` events of every group."""
        order = self.by_group()
        group = self.group[order]
        last = np.searchsorted(group, group, side="right") - 1
        keep = np.zeros(len(group), np.bool_)
        keep[order] = last - np.arange(len(group)) < number
        return keep

    # -- results ---------------------------------------------------------------------------------------

    def _emit(self, windows: ComputedWindows) -> None:
        windows = self._with_required_inputs(windows)
        if not len(windows.group):
            return
        frame = ResultsFrame(self.context, len(windows.group))
        for key in self.op.partitioning.keys:
            # Whom a result is for is told by its events, if it has any.
            if key != INSTANCE or INSTANCE_OF_GROUP in self.required:
                frame.groups[key.name] = self.keys.column(key.name, windows.group)
        for call in self._aggregates():
            frame.aggregates[call] = self._aggregate(call, windows.segments)
        frame.named = self._assigned(self.op.assign, frame)
        if self.op.post:
            frame.spread = True
            frame.named = self._assigned(self.op.post, frame)
        self._append(windows, frame)

    def _append(self, windows: ComputedWindows, frame: ResultsFrame) -> None:
        segments = windows.segments
        keep = np.arange(len(segments))
        if self.op.having is not None:
            keep = np.nonzero(true_rows(self.op.having, frame))[0]
            if not len(keep):
                return
        start, end = self.spans(segments.places, segments.offsets)
        lineage = self.lineage(segments.places, segments.offsets).take(keep)
        columns: dict[Expr, Column] = {Attribute(None, n): c.take(keep) for n, c in frame.named.items()}
        columns |= {Attribute(GROUP, n): c.take(keep) for n, c in frame.groups.items()}
        hashes = self.hashes(segments.places, segments.offsets)
        columns |= {key: column.take(keep) for key, column in hashes.items()}
        if windows.end is not None:
            columns[WINDOW] = Column(Type.INT, windows.end[keep])
        self.stream.new = self.stream.store.append(start[keep], end[keep], columns, lineage)

    def _with_required_inputs(self, windows: ComputedWindows) -> ComputedWindows:
        """Leave out windows in which an input that is not outer has no event."""
        keep = np.ones(len(windows.group), np.bool_)
        for slot, outer in enumerate(self.outer):
            if not outer:
                has = self.events.fits(slot)[windows.segments.places].astype(np.int64)
                keep &= np.add.reduceat(has, windows.segments.offsets[:-1]) > 0
        if keep.all():
            return windows
        kept = np.nonzero(keep)[0]
        lengths = windows.segments.lengths[kept]
        places = windows.segments.places[ranges(windows.segments.offsets[kept], lengths)]
        ends = None if windows.end is None else windows.end[kept]
        return ComputedWindows(Segments(offsets_of(lengths), places), windows.group[kept], ends)

    def _aggregates(self) -> list[Call]:
        found: dict[Call, None] = {}
        todo: list[Expr] = [assign.value for assign in self.op.assign]
        while todo:
            expr = todo.pop()
            if isinstance(expr, Call) and self._is_aggregate(expr):
                found.setdefault(expr)
            else:
                todo.extend(children(expr))
        return list(found)

    def _is_aggregate(self, call: Call) -> bool:
        registered = self.context.functions.get(call.function)
        return call.function in AGGREGATES or (registered is not None and registered.aggregate)

    def _aggregate(self, call: Call, segments: Segments) -> Column:
        slot = self._slot(call)
        argument = call.arguments[0] if call.arguments else PartRef(None)
        if isinstance(argument, PartRef):
            inner = self._only(slot, segments)
            if call.function == "count":
                return count_rows(inner)
            raise QueryError(
                f"{format_expr(call)!r} needs an attribute, as in {call.function}(a.speed)", call.at
            )
        column = self.column(argument, slot, self.op.parts[slot].alias)
        return reduce(call.function, column, segments, self.context.functions, call)

    def _slot(self, call: Call) -> int:
        for name in parts_of(call):
            for slot, names in enumerate(self.names):
                if name in names:
                    return slot
        return 0

    def _only(self, slot: int, segments: Segments) -> Segments:
        """Leave only the events of one input in every segment."""
        fits = self.events.fits(slot)[segments.places]
        before = offsets_of(fits.astype(np.int64))
        return Segments(before[segments.offsets], segments.places[fits])

    def _assigned(self, assigns: tuple[Assign, ...], frame: ResultsFrame) -> dict[str, Column]:
        named = {}
        for assign in assigns:
            column = evaluate(assign.value, frame)
            if assign.type is not None:
                column = cast(column, TYPE_NAMES[assign.type.lower()], f"{assign.name!r}")
            named[assign.name] = column
        return named
