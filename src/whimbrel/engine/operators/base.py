"""What all operators have in common when they run.

To add a kind of operator: derive from `RunningOperator`, or from `CorrelatingOperator` if it reads the events
of its inputs in total order; say in `process` what it does with those that are new; name in `state` the
attributes that a snapshot has to hold; list the class in `registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.key_codes import KeyCodes
from whimbrel.engine.ordered_inputs import OrderedBatch, OrderedInputs
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.snapshot import Blocks, load_store, save_store
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.graph.custom import CustomOperator
from whimbrel.graph.expressions import Expr, format_expr
from whimbrel.graph.operators import Graph, Operator
from whimbrel.graph.policies import Partitioning
from whimbrel.graph.reach import waiting
from whimbrel.model.time import END_OF_TIME

Op = TypeVar("Op", bound=Operator)


@dataclass(frozen=True, slots=True)
class OperatorSetup:
    """What an operator is built from: its query, the streams before it, and what is read of its own."""

    graph: Graph
    context: ExecutionContext
    streams: Mapping[str, OperatorStream]
    running: Mapping[str, RunningOperator[Any]]
    """The operators before it."""
    required: Mapping[str, Collection[Expr]]
    """Which columns later operators read of each stream."""
    functions: Mapping[str, type[CustomOperator]] = field(default_factory=dict)
    """The Python classes that `Custom` operators name."""


class RunningOperator(SavedState, ABC, Generic[Op]):
    """An operator at run time: it reads the streams of its inputs and makes one of its own."""

    owns_rows: ClassVar[bool] = True
    """Whether its stream has rows of its own. Those that are only passed on are kept where they come from."""
    keeps_order: ClassVar[bool] = False
    """Whether the events of a row are reported in the order in which they were taken."""
    looks_back: ClassVar[bool] = True
    """Whether it reads rows of its inputs later than in the step that brings them."""
    is_worth_sharing: ClassVar[bool] = False
    """Whether queries that have such an operator in common gain by running it once."""

    def __init__(self, op: Op, setup: OperatorSetup) -> None:
        self.op = op
        self.context = setup.context
        self.inputs = [setup.streams[name] for name in self.read_by(op)]
        self.required = sorted(set(setup.required.get(op.name, ())), key=format_expr)
        self.stream = self.opened(setup)

    @classmethod
    def read_by(cls, op: Op) -> Iterable[str]:
        """Name the streams that it reads, as often as it does."""
        return (link.stream for link in op.links)

    @classmethod
    def started(cls, op: Op, setup: OperatorSetup) -> RunningOperator[Op]:
        """Build the operator; a kind that runs in several ways chooses among them."""
        return cls(op, setup)

    def opened(self, setup: OperatorSetup) -> OperatorStream:  # noqa: ARG002 (some are made of what is there)
        """Open the stream of what it makes."""
        return OperatorStream(
            self.op.name, RowStore(), composite=self.op.is_composite, keeps_order=self.keeps_order
        )

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return END_OF_TIME

    @property
    def held_until(self) -> int:
        """When events that are held back can be processed, even if no other event comes."""
        return END_OF_TIME

    @property
    def dropped(self) -> int:
        """How many matches in the making it gave up, having too many of them."""
        return 0

    @abstractmethod
    def step(self) -> None:
        """Process what is new in the inputs."""

    def forget_before(self, time: int) -> None:
        """Let go of what ended before `time` and can take part in nothing any more."""
        if self.owns_rows:
            self.stream.store.forget_before(time)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state, and the rows of its stream that are still remembered."""
        super().save(blocks, name)
        blocks.put_json(f"{name}/watermark", self.stream.watermark)
        if self.owns_rows:
            save_store(blocks, f"{name}/stream", self.stream.store)

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote; the operators before it have read theirs."""
        super().load(blocks, name)
        self.stream.watermark = blocks.json(f"{name}/watermark")
        if self.owns_rows:
            load_store(blocks, f"{name}/stream", self.stream.store)


class CorrelatingOperator(RunningOperator[Op]):
    """An operator that takes the events of all its inputs in total order, none before its time."""

    state: ClassVar[tuple[str, ...]] = ("arrivals", "keys")

    def __init__(self, op: Op, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        partitioning = self.parted_by(op)
        self.arrivals = OrderedInputs(self.context, self.inputs, partitioning)
        self.keys = KeyCodes(partitioning.keys)
        self.waiting = waiting(setup.graph).get(op.name, 0)

    @property
    def held_until(self) -> int:
        """When the first event that is held back can be processed: its inputs are complete by then."""
        held = self.arrivals.held
        return int(held.end[0]) + self.waiting if len(held) else END_OF_TIME

    @classmethod
    def parted_by(cls, op: Op) -> Partitioning:
        """Give the keys that part its events."""
        return op.partitioning

    def step(self) -> None:
        """Process what is new in the inputs."""
        arrived = self.arrivals.collect()
        watermark = self.arrivals.watermark
        self.stream.watermark = watermark
        self.stream.new = NO_ROWS
        self.process(arrived, watermark)

    @abstractmethod
    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Take in events in total order and let time pass; what is found goes to the stream."""
