"""Operators that differ a little where many members share a run: definitions, and operators in Python."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from whimbrel.engine.copies import BITS, INSTANCE, INSTANCE_KEPT, CopiedRows, sharers_of
from whimbrel.engine.mobile.borrowed import BORROWED, borrowed_columns
from whimbrel.engine.mobile.member_steps import MemberSteps, SelectionReuse, WaitingSelection
from whimbrel.engine.operators.base import OperatorSetup
from whimbrel.engine.operators.custom.runtime import CustomRuntime, Key
from whimbrel.engine.operators.custom.steps import CorrelationSteps, Emitted
from whimbrel.engine.operators.custom.windows import WindowItem
from whimbrel.engine.operators.derive import DeriveOperator
from whimbrel.engine.streams import WINDOW, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, Int64Array
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.graph.mobile.knowing import is_behind, known_when, on_the_grid
from whimbrel.graph.operators import Custom, Derive, Graph
from whimbrel.graph.scope import selection
from whimbrel.graph.wiring import below
from whimbrel.model.schema import Type
from whimbrel.model.time import BEGINNING_OF_TIME

KNOWN = Attribute(None, "@known")
"""By which watermark an event of a definition is known, where that is not its end."""
MOMENT = Attribute(None, "@moment")
"""At which time an operator in Python made a detection."""


def known_of(graph: Graph, stream: OperatorStream, rows: Int64Array) -> Int64Array:
    """Tell by which watermark each of some rows of a stream is known."""
    store, decided = stream.store, stream.store.spans(rows)[1]
    if all(each.name != stream.name for each in graph.operators):
        return decided  # atomic events: queries share their streams, which have names of their own
    maker, _ = selection(graph, stream.name)
    if not is_behind(graph, maker.name):
        return decided
    if isinstance(maker, Derive):
        return store.column(KNOWN, rows).values
    if on_the_grid(maker):
        decided = store.column(WINDOW, rows).values - 1
    elif isinstance(maker, Custom):
        decided = store.column(MOMENT, rows).values
    return known_when(graph, maker, decided)


class MemberDeriveOperator(DeriveOperator):
    """A `Derive` for many members.

    Its events say by when they are known, and whose they are, where that follows from nothing else.
    """

    def __init__(self, op: Derive, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self._is_behind = is_behind(setup.graph, op.name)
        self._may_be_of_nothing = any(
            isinstance(setup.graph[name], Custom) for name in below(setup.graph, (op.name,))
        )

    def _marks(self, frame: RowsFrame) -> dict[Expr, Column]:
        marks: dict[Expr, Column] = {}
        if self._is_behind:
            marks[KNOWN] = Column(Type.INT, known_of(self.graph, frame.stream, frame.rows))
        if self._may_be_of_nothing:
            marks[INSTANCE_KEPT] = Column(Type.INT, sharers_of(frame.stream.store, frame.rows))
        for name in BORROWED:
            column = frame.stream.store.column(name, frame.rows)
            if column.type is not None:
                marks[name] = column
        return marks


class MemberCustomRuntime(CustomRuntime):
    """A `Custom` for many members: each has partitions of its own, which do not know of the others."""

    def __init__(self, op: Custom, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self.graph = setup.graph
        self.reuse = SelectionReuse()
        """What it shares with the other runs of the query."""
        self._waiting: list[tuple[Key, WaitingSelection]] = []

    @property
    def _defers(self) -> bool:
        """Whether selections wait until it is decided which of them are processed."""
        return self.op.name in self.reuse.similar

    def _steps(self, key: Key, emit: Callable[[Emitted], None]) -> CorrelationSteps:
        defer = (lambda one: self._waiting.append((key, one))) if self._defers else None
        return MemberSteps(self.plan, self._values(key), emit, self.reuse, self._identity, defer)

    def take_waiting(self) -> list[tuple[Key, WaitingSelection]]:
        """Take the selections of this step that wait for a decision, with the keys of their partitions."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def settle(self, found: Iterable[tuple[Key, Emitted]]) -> None:
        """Add what was found in selections that have waited to what is new."""
        self.outbox += found
        self.stream.new = np.concatenate([self.stream.new, self.flush()])

    def member(self, key: Key) -> int:
        """Give the member of a partition; it is the last key."""
        return int(key[-1]) if self._is_parted else 0

    def _identity(self, item: WindowItem) -> Hashable:
        """Name an event in all interests that hold it; one that was made for this member, by its content."""
        if isinstance(self.arrivals.roots[item.root].store, CopiedRows):
            return item.root, item.row >> BITS
        event = item.event
        about = (event.source, event.x, event.y, *sorted(event.attributes.items()))
        return item.root, event.type, event.id, event.start, event.end, repr(about)

    @property
    def _is_parted(self) -> bool:
        return INSTANCE in self.op.partitioning.keys

    def _values(self, key: Key) -> Mapping[str, Any]:
        names = [each.name for each in self.op.partitioning.keys if each != INSTANCE]
        return MappingProxyType(dict(zip(names, key, strict=False)))

    def _advance_to_last(self) -> None:
        """Let time pass up to the last event there is, wherever it is: so far it passes while events come."""
        events = cast("CopiedRows", self.context.atoms.store).rows
        self._advance(max((chunk.last for chunk in events.chunks), default=BEGINNING_OF_TIME))

    def _marks(self, emitted: list[tuple[Key, Emitted]]) -> dict[Expr, Column]:
        members = np.array([self.member(key) for key, _ in emitted], np.int64)
        moments = np.array([each.moment for _, each in emitted], np.int64)
        marks: dict[Expr, Column] = {
            INSTANCE_KEPT: Column(Type.INT, members),
            MOMENT: Column(Type.INT, moments),
        }
        return marks | borrowed_columns([each for _, each in emitted]) if self._defers else marks
