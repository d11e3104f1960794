"""Queries that differ only in what they ask of single events, run as one.

Such queries are the *instances* of a *template*. The index finds for each of them the events that pass its
tests; from there on the template has one set of operators. An event that passes the tests of several of them
comes in several copies, one for each, and the instance is one more key by which all patterns are parted. So
instances never meet, each finds what it would find by itself, and what a step costs follows the events that
passed. Instances come and go at any time: a new one has a number that nobody had before, and so no past.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from whimbrel.engine.copies import BITS, INSTANCE, MADE_OF_COPIES, MOST_SHARERS, CopiedRows, sharers_of
from whimbrel.engine.identity import HashArray, hashes
from whimbrel.engine.operators.base import OperatorSetup
from whimbrel.engine.operators.derive import DeriveOperator
from whimbrel.engine.operators.registry import KINDS
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.streams import OperatorStream, RowsFrame, SharedWatermark
from whimbrel.engine.values import Int64Array
from whimbrel.graph.operators import Derive, Graph, JoinPattern, Operator, Source
from whimbrel.graph.policies import Partitioning
from whimbrel.graph.query import Query
from whimbrel.graph.required_columns import ColumnSet
from whimbrel.graph.template import GraphTemplate

ROWS = 1 << 20
"""Copies that are processed at once."""


@dataclass(eq=False, slots=True)
class TemplateInput:
    """One selection of atomic events, for all instances of a template."""

    stream: OperatorStream
    rows: list[Int64Array] = field(default_factory=list)
    instances: list[int] = field(default_factory=list)

    def take(self) -> Int64Array:
        """Give the copies that came since it was last asked, in order."""
        if not self.rows:
            return np.zeros(0, np.int64)
        lengths = [len(rows) for rows in self.rows]
        copies = (np.concatenate(self.rows) << BITS) | np.repeat(np.array(self.instances, np.int64), lengths)
        copies.sort()
        self.rows, self.instances = [], []
        return copies


@dataclass(eq=False, frozen=True, slots=True)
class InstanceSubscriber:
    """Where one instance of a template gets the events of one selection."""

    template: str
    slot: TemplateInput
    instance: int

    def add(self, rows: Int64Array) -> None:
        """Take new events."""
        self.slot.rows.append(rows)
        self.slot.instances.append(self.instance)


@dataclass(slots=True)
class InstanceTypeNames:
    """What the events of one definition are called, instance by instance, and the hashes of these names."""

    assigned: Collection[str]
    names: list[str] = field(default_factory=list)
    _hashes: tuple[HashArray, HashArray] = field(
        default_factory=lambda: (np.zeros(0, np.uint64), np.zeros(0, np.uint64))
    )

    def hashes(self, instances: Int64Array) -> tuple[HashArray, HashArray]:
        """Give the hash of the name for each of some instances."""
        if len(self._hashes[0]) < len(self.names):
            self._hashes = hashes(pa.array(self.names))
        high, low = self._hashes
        return high[instances], low[instances]


class TemplateDeriveOperator(DeriveOperator):
    """A `Derive` for all instances of a template."""

    def __init__(self, op: Derive, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self.names = InstanceTypeNames({assign.name for case in self.op.cases for assign in case.assign})
        self.stream.kinds = self.names

    def _kind(self, frame: RowsFrame) -> tuple[HashArray, HashArray]:
        return self.names.hashes(frame.key(INSTANCE).values)


@dataclass(slots=True)
class QueryInstance:
    """A query that runs as an instance of a template, or may, once it is known how many there are."""

    query: Query
    name: str
    graph_template: GraphTemplate
    reach: int
    required: ColumnSet
    used: tuple[Selector, ...]
    streams: tuple[OperatorStream, ...]
    """The selections of atomic events that it reads."""
    template: QueryTemplate | None = None
    subscribers: tuple[InstanceSubscriber, ...] = ()


class QueryTemplate(Pipeline):
    """Queries of one template at run time."""

    kinds: ClassVar = {**KINDS, Derive: TemplateDeriveOperator}
    first_number: ClassVar = MADE_OF_COPIES

    def __init__(self, graph_template: GraphTemplate, atoms: SourceEvents, name: str) -> None:
        self._copies = OperatorStream(
            "events", CopiedRows(atoms.stream.store), clock=SharedWatermark(atoms.stream.watermark)
        )
        self.slots: list[TemplateInput] = []
        self.instances: list[str | None] = []
        """Names of the queries by number; None for those that are gone."""
        self.size = 0
        super().__init__(Query(_parted(graph_template.model())), atoms, name, ())

    def _events(self) -> OperatorStream:
        return self._copies

    def _deploy(self, operator: Operator) -> None:
        if isinstance(operator, Source):
            known = operator.event_type
            stream = OperatorStream(
                operator.name, self._copies.store, event_type=known, clock=self._copies.clock
            )
            self.slots.append(TemplateInput(stream))
            self.streams[operator.name] = stream
        else:
            super()._deploy(operator)

    @property
    def is_full(self) -> bool:
        """Whether it has no number left for another instance."""
        return len(self.instances) >= MOST_SHARERS

    def join(self, instance: QueryInstance) -> None:
        """Take in an instance: it gets the events that come from now on."""
        number = len(self.instances)
        self.enter(instance.name, instance.graph_template.types)
        self.attach(instance, number)

    def enter(self, name: str | None, types: Iterable[str]) -> None:
        """Give the next number to an instance, or to one that is gone."""
        self.instances.append(name)
        self.size += name is not None
        for definition, kind in zip(self._definitions(), types, strict=True):
            definition.names.names.append(kind)

    def _definitions(self) -> list[TemplateDeriveOperator]:
        return [each for each in self.runtimes.values() if isinstance(each, TemplateDeriveOperator)]

    def attach(self, instance: QueryInstance, number: int) -> None:
        """Let an instance have the events that pass its tests."""
        instance.template = self
        instance.subscribers = tuple(InstanceSubscriber(self.name, slot, number) for slot in self.slots)
        for stream, subscriber in zip(instance.streams, instance.subscribers, strict=True):
            del stream.users[instance.name]
            stream.subscribers[subscriber] = None
        self.required.atoms |= instance.required.atoms
        self.required.all_atoms |= instance.required.all_atoms

    def leave(self, instance: QueryInstance) -> None:
        """Let an instance go. What its events began is found by nobody, and forgotten in time."""
        for atom, subscriber in zip(instance.used, instance.subscribers, strict=True):
            self.atoms.unsubscribe(atom, subscriber)
        self.instances[instance.subscribers[0].instance] = None
        self.size -= 1
        instance.template, instance.subscribers = None, ()

    def rounds(self) -> Iterator[None]:
        """Process what is new, a stretch of time after the other if it is much."""
        found = [slot.take() for slot in self.slots]
        for row in self._cuts(found):
            stop = row << BITS
            end = int(self.atoms.stream.store.spans(np.array([row]))[1][0])
            self._step([copies[: np.searchsorted(copies, stop)] for copies in found], end - 1)
            yield
            found = [copies[np.searchsorted(copies, stop) :] for copies in found]
        self._step(found, self.atoms.stream.watermark)
        yield

    def _cuts(self, found: list[Int64Array]) -> list[int]:
        """Give the events at which a new round begins."""
        if sum(map(len, found)) <= ROWS:
            return []
        copies = np.sort(np.concatenate(found))
        cuts: list[int] = np.unique(copies[ROWS::ROWS] >> BITS).tolist()
        return cuts

    def _step(self, found: list[Int64Array], watermark: int) -> None:
        self._copies.clock.watermark = max(self._copies.clock.watermark, watermark)
        for slot, copies in zip(self.slots, found, strict=True):
            slot.stream.new = copies
        self.step()
        for slot in self.slots:
            slot.stream.new = np.zeros(0, np.int64)

    def reported(self, stream: OperatorStream) -> Int64Array:
        """Give the new rows of an output that belong to an instance, and not to one that is gone."""
        there = np.array([name is not None for name in self.instances], np.bool_)
        return stream.new[there[sharers_of(stream.store, stream.new)]]

    def queries(self, stream: OperatorStream, rows: Int64Array) -> pa.Array:
        """Name the query that found each of some rows of an output."""
        return pa.array(self.instances, pa.string()).take(pa.array(sharers_of(stream.store, rows)))


def _parted(graph: Graph) -> Graph:
    """Part all patterns of a graph by instance."""
    return replace(graph, operators=tuple(_with_instance(operator) for operator in graph.operators))


def _with_instance(operator: Operator) -> Operator:
    if isinstance(operator, JoinPattern):
        return replace(operator, partitioning=Partitioning((*operator.partitioning.keys, INSTANCE)))
    return operator
