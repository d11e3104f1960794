"""A query that runs for many members at once, each over events of its own.

The events of a member come as copies (`whimbrel.engine.copies`), and the member is one more key by which
every operator parts its events. So members never meet, each finds what it would find by itself, and what a
step costs follows the copies, not the members. What an operator finds belongs to the member whose copies it
is made of.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.copies import (
    GIVEN,
    GIVEN_BITS,
    INSTANCE,
    INSTANCE_KEPT,
    INSTANCE_OF_GROUP,
    MADE_OF_COPIES,
    CopiedDerivedRows,
    CopiedRows,
    sharers_of,
)
from whimbrel.engine.mobile.member_operators import MemberCustomRuntime, MemberDeriveOperator, known_of
from whimbrel.engine.mobile.member_steps import SelectionReuse
from whimbrel.engine.operators.registry import KINDS, Kinds
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.streams import OperatorStream, SharedWatermark
from whimbrel.engine.values import Int64Array
from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Expr
from whimbrel.graph.operators import Aggregate, Custom, Derive, Graph, Merge, Operator
from whimbrel.graph.policies import Partitioning
from whimbrel.graph.query import Query
from whimbrel.graph.required_columns import RequiredColumns
from whimbrel.graph.wiring import below
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME

ROWS = 1 << 20
"""About so many copies are processed at once."""
_SAMPLES = 64
"""Of the copies of one round, about so many are looked at to find out where the next one begins."""


def why_together(graph: Graph) -> str | None:
    """Say why the members of a graph cannot share a run; None if they can.

    >>> from whimbrel.lang.wbl import compile_text
    >>> why_together(compile_text("define X detect A then B within 5 s").graph)
    """
    for operator in graph.operators:
        if not _goes_with_members(operator):
            return f"{operator.name!r} compares events of all movers with each other, by no key"
    return None


def can_part(graph: Graph) -> bool:
    """Tell whether every operator can take the member as a key; if not, it runs for member 0 only."""
    return why_together(graph) is None


class MemberPipeline(Pipeline):
    """A query that runs for many members at once, each over events of its own.

    Parameters
    ----------
    events
        The atomic events of the session, of which copies are fed.
    given
        Streams of definitions that another pipeline finds, by the names that they have here: what makes them
        is not run. Copies of their rows are fed.
    reuse
        What it shares with the other runs of the query.
    """

    kinds: ClassVar[Kinds] = {**KINDS, Derive: MemberDeriveOperator, Custom: MemberCustomRuntime}
    first_number: ClassVar = MADE_OF_COPIES

    def __init__(
        self,
        query: Query,
        events: SourceEvents,
        name: str,
        given: Mapping[str, OperatorStream] = MappingProxyType({}),
        reuse: SelectionReuse | None = None,
    ) -> None:
        self.given = dict(given)
        self._copies = OperatorStream(
            "events", CopiedRows(events.stream.store), clock=SharedWatermark(BEGINNING_OF_TIME)
        )
        self._inputs: list[_CopiedInput] = []
        graph = _cut(query.rewritten, self.given)
        self.parts_members = can_part(graph)
        super().__init__(query, events, name, graph=_parted(graph) if self.parts_members else graph)
        self._idle = END_OF_TIME
        """For how long it need not run if nothing happens: operators in Python have to let go of events."""
        for each in self.runtimes.values():
            if isinstance(each, MemberCustomRuntime):
                each.reuse = reuse or each.reuse
                self._idle = min(self._idle, each.op.policy.restriction.length)

    # -- how it is built -----------------------------------------------------------------------------------

    def _events(self) -> OperatorStream:
        return self._copies

    def _needs(self) -> RequiredColumns:
        """Ask every stream for what is read of it; whom a row is for, only where no event may tell."""
        required = RequiredColumns(self.graph, self.query.functions, asked=self._told_by_column())
        required.atoms.discard(INSTANCE.name)
        for name, asked in required.of.items():
            if name not in required.asked:
                asked.discard(INSTANCE_OF_GROUP)
        return required

    def _told_by_column(self) -> dict[str, set[Expr]]:
        asked: dict[str, set[Expr]] = {}
        for operator in self.graph.operators:
            keeps_columns = operator.is_composite or isinstance(operator, Aggregate)
            if keeps_columns and _may_be_of_nothing(self.graph, operator.name):
                keeps = INSTANCE_KEPT if isinstance(operator, Merge) else INSTANCE_OF_GROUP
                asked[operator.name] = {keeps}
        return asked

    def _deploy(self, operator: Operator) -> None:
        if operator.name in self.given:
            self._take_from_elsewhere(operator, self.given[operator.name])
            return
        super()._deploy(operator)
        if operator.name not in self.runtimes:
            self.streams[operator.name] = self._copied(self.streams[operator.name])

    def _copied(self, selection: OperatorStream) -> OperatorStream:
        """Open the stream of the copies of a selection of atomic events; equal selections have one."""
        for known in self._inputs:
            if known.origin is selection:
                self.used.pop()
                self.selections.pop()
                return known.stream
        stream = OperatorStream(
            selection.name, self._copies.store, event_type=selection.event_type, clock=self._copies.clock
        )
        self._inputs.append(_CopiedInput(selection, stream))
        return stream

    def _take_from_elsewhere(self, operator: Operator, origin: OperatorStream) -> None:
        stream = replace(
            origin,
            name=operator.name,
            store=CopiedDerivedRows(origin.store),
            number=GIVEN + (len(self._given_inputs()) << GIVEN_BITS),
            new=NO_ROWS,
            clock=SharedWatermark(BEGINNING_OF_TIME),
            users={},
            subscribers={},
        )
        self._inputs.append(_CopiedInput(origin, stream, is_given=True))
        self.streams[operator.name] = stream

    def _given_inputs(self) -> list[_CopiedInput]:
        return [each for each in self._inputs if each.is_given]

    # -- what it reads -------------------------------------------------------------------------------------

    @property
    def selectors(self) -> list[tuple[Selector, OperatorStream]]:
        """The selections of atomic events that it reads, each once, and the shared stream of each."""
        return list(zip(self.used, self.selections, strict=True))

    @property
    def takes(self) -> list[OperatorStream]:
        """The streams of which copies are fed, in this order: selections of events, then what is given."""
        return [each.origin for each in self._in_order()]

    def _in_order(self) -> list[_CopiedInput]:
        return sorted(self._inputs, key=lambda each: each.is_given)

    def feed(self, copies: Sequence[Int64Array]) -> None:
        """Take in copies for the next `advance`: a sorted array for each of the streams that it takes."""
        for each, more in zip(self._in_order(), copies, strict=True):
            if len(more):
                each.add(more)

    # -- a step --------------------------------------------------------------------------------------------

    def rounds(self) -> Iterator[None]:
        """Process what was fed, up to the watermark of the session."""
        return self.advance(self.atoms.stream.watermark)

    def advance(self, watermark: int) -> Iterator[None]:
        """Process what was fed, a stretch of time after the other if it is much, and let time pass.

        After each round the new rows of the outputs are to be looked at; then they may be forgotten.
        """
        for cut in [*_cuts(self._inputs), None]:
            if self._begin_round(cut, watermark):
                self.step()
                yield
                self._end_round(cut, watermark)

    def _begin_round(self, cut: int | None, watermark: int) -> bool:
        """Take what was fed before a time, or all of it; tell whether there is anything to do."""
        found = [each.take() if cut is None else each.before(cut) for each in self._inputs]
        watermark = watermark if cut is None else cut - 1
        is_idle = watermark - self._copies.clock.watermark <= self._idle
        if is_idle and not any(map(len, found)) and self.due > watermark:
            if watermark < END_OF_TIME:
                self.forget_before(watermark - self.reach)  # the session lets go of its events, too
            return False
        self._copies.clock.watermark = max(self._copies.clock.watermark, watermark)
        for each, copies in zip(self._inputs, found, strict=True):
            each.stream.new = copies
            if each.is_given:
                each.stream.watermark = max(each.stream.watermark, min(watermark, each.origin.watermark))
        return True

    def _end_round(self, cut: int | None, watermark: int) -> None:
        watermark = watermark if cut is None else cut - 1
        self.clear_made()
        if watermark < END_OF_TIME:
            self.forget_before(watermark - self.reach)

    def clear_made(self) -> None:
        """Say that nothing is new, in what was fed and in what was made."""
        for each in self._inputs:
            each.stream.new = NO_ROWS
        super().clear_made()

    # -- what it finds -------------------------------------------------------------------------------------

    def members(self, stream: OperatorStream, rows: Int64Array) -> Int64Array:
        """Tell which member each of some rows belongs to."""
        return sharers_of(stream.store, rows) if self.parts_members else np.zeros(len(rows), np.int64)

    def known(self, stream: OperatorStream, rows: Int64Array) -> Int64Array:
        """Tell by which watermark each of some rows is known."""
        return known_of(self.graph, stream, rows)

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state of all operators, and what was fed and is not processed yet."""
        super().save(blocks, name)
        clocks = [each.stream.watermark for each in self._inputs]
        blocks.put_json(f"{name}/clocks", {"events": self._copies.watermark, "inputs": clocks})
        for number, each in enumerate(self._inputs):
            blocks.put_array(f"{name}/fed/{number}", each.all())

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote; the events, and what is given, are there already.

        Raises
        ------
        StateError
            If the snapshot is of another query.
        """
        clocks = blocks.json(f"{name}/clocks")
        self._copies.watermark = clocks["events"]
        for number, (each, watermark) in enumerate(zip(self._inputs, clocks["inputs"], strict=True)):
            each.stream.watermark = watermark
            each.fed = [blocks.array(f"{name}/fed/{number}")]
        super().load(blocks, name)


Settle = Callable[[str, Mapping[int, MemberCustomRuntime]], None]
"""What happens when an operator in Python has run in several runs: its name, and the operator in each."""


def advance_together(runs: Mapping[int, MemberPipeline], watermark: int, settle: Settle) -> Iterator[int]:
    """Advance several runs of one query as `MemberPipeline.advance` does, operator by operator.

    Gives the number of a run whenever its outputs are to be looked at.
    """
    inputs = [each for run in runs.values() for each in run._inputs]  # noqa: SLF001 (of this module)
    for cut in [*_cuts(inputs), None]:
        busy = {number: run for number, run in runs.items() if run._begin_round(cut, watermark)}  # noqa: SLF001
        for name in next(iter(busy.values())).runtimes if busy else ():
            written: dict[int, MemberCustomRuntime] = {}
            for number, run in busy.items():
                runtime = run.runtimes[name]
                runtime.step()
                if isinstance(runtime, MemberCustomRuntime):
                    written[number] = runtime
            if written:
                settle(name, written)
        for number, run in busy.items():
            yield number
            run._end_round(cut, watermark)  # noqa: SLF001


@dataclass(eq=False, slots=True)
class _CopiedInput:
    """A stream that is shared, the stream of its copies, and the copies that wait."""

    origin: OperatorStream
    stream: OperatorStream
    is_given: bool = False
    fed: list[Int64Array] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return sum(map(len, self.fed))

    @property
    def _store(self) -> RowStore:
        return self.stream.store

    def add(self, copies: Int64Array) -> None:
        self.fed.append(np.asarray(copies, np.int64))

    def all(self) -> Int64Array:
        """Give all copies that wait, in order."""
        if len(self.fed) != 1:
            whole = np.concatenate([NO_ROWS, *self.fed])
            if len(self.fed) > 1:
                whole.sort(kind="stable")  # mostly they follow each other
            self.fed = [whole]
        return self.fed[0]

    def take(self) -> Int64Array:
        """Take all copies."""
        found = self.all()
        self.fed = []
        return found

    def before(self, time: int) -> Int64Array:
        """Take the copies that end before a time."""
        copies = self.all()
        if self.is_given:  # what is derived is not numbered in order of time
            early = self._store.spans(copies)[1] < time
            self.fed = [copies[~early]]
            return copies[early]
        stop = bisect_left(range(len(copies)), time, key=lambda place: int(self._end_at(copies, place)))
        self.fed = [copies[stop:]]
        return copies[:stop]

    def _end_at(self, copies: Int64Array, place: int) -> int:
        return int(self._store.spans(copies[place : place + 1])[1][0])

    def ends(self, apart: int) -> Int64Array:
        """Look up when every so many-th copy ends."""
        return self._store.spans(self.all()[::apart])[1]


def _cuts(inputs: Sequence[_CopiedInput]) -> list[int]:
    """Give the times at which new rounds begin."""
    total = sum(each.waiting for each in inputs)
    if total <= ROWS:
        return []
    apart = max(ROWS // _SAMPLES, 1)
    ends = np.sort(np.concatenate([each.ends(apart) for each in inputs]))
    cuts: list[int] = np.unique(ends[:: ROWS // apart][1:]).tolist()
    return cuts


# -- the graph ---------------------------------------------------------------------------------------------


class _Parted(Protocol):
    partitioning: Partitioning


def _goes_with_members(operator: Operator) -> bool:
    """Tell whether an operator looks at single events, or parts events by keys to which one can be added."""
    return operator.looks_at_each or operator.hands_on_groups or _has_keys(operator)


def _has_keys(operator: Operator) -> bool:
    return any(each.name == "partitioning" for each in fields(operator))


def _parted(graph: Graph) -> Graph:
    """Part the events of all operators by member."""
    return replace(graph, operators=tuple(map(_with_member, graph.operators)))


def _with_member(operator: Operator) -> Operator:
    if not _has_keys(operator):
        return operator
    keys = cast("_Parted", operator).partitioning.keys
    changed: dict[str, Any] = {"partitioning": Partitioning((*keys, INSTANCE))}
    return replace(operator, **changed)


def _cut(graph: Graph, given: Mapping[str, OperatorStream]) -> Graph:
    """Leave out what makes the definitions that are given."""
    for name in given:
        if not any(each.name == name and isinstance(each, Derive) for each in graph.operators):
            raise QueryError(f"{name!r} is given, and is no definition of the query")
    needed = below(graph, graph.outputs, stop=given)
    operators = tuple(
        replace(each, cases=()) if each.name in given and isinstance(each, Derive) else each
        for each in graph.operators
        if each.name in needed
    )
    return replace(graph, operators=operators)


def _may_be_of_nothing(graph: Graph, name: str) -> bool:
    """Tell whether a stream may have rows that are made of no event."""
    return any(isinstance(graph[each], Custom) for each in below(graph, (name,)))
