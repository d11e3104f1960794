"""One deployed query: its operators at run time, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Protocol

import numpy as np
import pyarrow as pa

from whimbrel.engine.aggregator import AggregateOperator
from whimbrel.engine.condition_templates import rows_passing
from whimbrel.engine.deriver import DeriveOperator
from whimbrel.engine.encounters import EncounterOperator
from whimbrel.engine.environment import CustomRuntime
from whimbrel.engine.join_pattern import JoinPatternOperator
from whimbrel.engine.merger import MergeOperator, UnionOperator
from whimbrel.engine.motion import MotionOperator
from whimbrel.engine.receiver import ReceiveOperator
from whimbrel.engine.repeater import RepeatOperator
from whimbrel.engine.required_columns import RequiredColumns
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.snapshot import Blocks, load_store, save_store
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.step_pattern import StepPatternOperator, TimeoutOperator
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.values import Int64Array
from whimbrel.errors import QueryError, StateError
from whimbrel.graph.expressions import Call, Expr, children
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import (
    Aggregate,
    Custom,
    Derive,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    Repeat,
    Source,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.graph.passes import PASSES, Pass, rewrite
from whimbrel.graph.query import Query
from whimbrel.graph.reach import reach
from whimbrel.graph.scope import selection
from whimbrel.graph.template import GraphTemplate
from whimbrel.graph.wiring import readers
from whimbrel.model.time import END_OF_TIME


class RunningOperator(Protocol):
    """An operator at run time."""

    stream: OperatorStream

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        ...

    def step(self) -> None:
        """Process what is new in the inputs."""
        ...

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state that is not in the stream."""
        ...

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        ...


class FilterOperator:
    """A `Filter` over events that another operator made."""

    due = END_OF_TIME

    def __init__(self, op: Filter, source: OperatorStream, context: ExecutionContext) -> None:
        self.op = op
        self.source = source
        self.context = context
        self.stream = OperatorStream(
            op.name,
            source.store,
            source.composite,
            source.event_type,
            branches=source.branches,
            number=source.number,
            kinds=source.kinds,
        )

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state: there is none."""

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""

    def step(self) -> None:
        """Pass on the new events for which the condition is true."""
        self.stream.watermark = self.source.watermark
        rows = self.source.new
        if len(rows):
            rows = rows_passing(self.op.condition, self.context, self.source, rows)
        self.stream.new = rows


class Pipeline:
    """A query at run time."""

    has_every_stream = False
    """Whether there is a stream for each operator, also for selections that only further ones read. Those are
    tested by themselves, and a query need not be looked at for events that fail them."""

    outline: GraphTemplate | None = None
    """What it does apart from what it asks of single events, where it could be a member of a family."""

    def __init__(
        self,
        query: Query,
        atoms: SourceEvents,
        name: str,
        passes: Iterable[Pass] = PASSES,
        graph: Graph | None = None,
    ) -> None:
        self.query = query
        self.name = name
        self.graph = rewrite(query.graph, tuple(passes)) if graph is None else graph
        self.atoms = atoms
        self.context = ExecutionContext(self._events(), query.functions, query.graph.coordinates)
        self.required = self._needs()
        self.used: list[Selector] = []
        self.selections: list[OperatorStream] = []
        self.streams: dict[str, OperatorStream] = {}
        self.runtimes: dict[str, RunningOperator] = {}
        left_out = set() if self.has_every_stream else self._selected_further()
        for operator in self.graph.operators:
            if operator.name not in left_out:
                self._deploy(operator)
        self.reach = max((reach(self.graph, name) for name in self.graph.outputs), default=0)
        self.outputs = [self.streams[name] for name in self.graph.outputs]
        self._passing = self._read_at_once()

    def _events(self) -> OperatorStream:
        return self.atoms.stream

    def _needs(self) -> RequiredColumns:
        return RequiredColumns(self.graph, self.query.functions)

    def _selected_further(self) -> set[str]:
        """Name the selections of atomic events that only further selections read."""
        selections = {
            operator.name
            for operator in self.graph.operators
            if _atom(self.graph, operator, self.query.functions) is not None
        }
        return {
            name
            for name, above in readers(self.graph).items()
            if name in selections
            and name not in self.graph.outputs
            and all(each.name in selections for each in above)
        }

    def _deploy(self, operator: Operator) -> None:
        atom = _atom(self.graph, operator, self.query.functions)
        if atom is not None:
            self.used.append(atom)
            self.selections.append(self.atoms.select(atom, self.name))
            self.streams[operator.name] = self.selections[-1]
            return
        runtime = self._runtime(operator)
        if not isinstance(runtime, FilterOperator | UnionOperator):
            runtime.stream.number = len(self.runtimes) + 1
        self.runtimes[operator.name] = runtime
        self.streams[operator.name] = runtime.stream

    def _runtime(self, operator: Operator) -> RunningOperator:  # noqa: C901, PLR0912 - one case for each kind
        required = self.required.of[operator.name]
        match operator:
            case Filter():
                return FilterOperator(operator, self.streams[operator.input], self.context)
            case JoinPattern():
                return JoinPatternOperator(self.graph, operator, self.streams, self.context, required)
            case Repeat():
                return RepeatOperator(operator, self.streams, self.context, required)
            case Merge():
                if UnionOperator.suits(operator, self.streams):
                    return UnionOperator(self.graph, operator, self.streams)
                return MergeOperator(self.graph, operator, self.streams, self.context, required)
            case Aggregate():
                return AggregateOperator(self.graph, operator, self.streams, self.context)
            case Custom():
                return CustomRuntime(operator, self.streams, self.context, self.query.operators)
            case StepPattern():
                return StepPatternOperator(self.graph, operator, self.streams, self.context, required)
            case Motion():
                return MotionOperator(operator, self.streams, self.context, required)
            case Encounter():
                return EncounterOperator(operator, self.streams, self.context, required)
            case TimedOut():
                sequencer = self.runtimes[operator.input]
                assert isinstance(sequencer, StepPatternOperator)
                return TimeoutOperator(operator, sequencer)
            case Derive(cases=()):
                return ReceiveOperator(operator, self.context)
            case Derive():
                return DeriveOperator(self.graph, operator, self.streams, self.context)
        raise QueryError(f"the embedded engine cannot run {type(operator).__name__} ({operator.name!r})")

    def _read_at_once(self) -> list[RowStore]:
        """Give the stores of which nobody reads a row later than in the step that made it."""
        read_later = {
            name
            for operator in self.graph.operators
            if not isinstance(operator, Derive)
            for name in operator.inputs
        }
        return [
            runtime.stream.store
            for name, runtime in self.runtimes.items()
            if name not in read_later and not isinstance(runtime, FilterOperator | UnionOperator)
        ]

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return min((runtime.due for runtime in self.runtimes.values()), default=END_OF_TIME)

    @property
    def dropped(self) -> int:
        """How many matches in the making were given up because a partition had too many of them."""
        return sum(each.dropped for each in self.runtimes.values() if isinstance(each, StepPatternOperator))

    def rounds(self) -> Iterator[None]:
        """Process what is new, once or in several rounds; after each, its outputs have to be looked at."""
        self.step()
        yield

    def step(self) -> None:
        """Run every operator once, in order."""
        for runtime in self.runtimes.values():
            runtime.step()

    def reported(self, stream: OperatorStream) -> Int64Array:
        """Give the rows that are new in an output."""
        return stream.new

    def queries(self, stream: OperatorStream, rows: Int64Array) -> pa.Array:  # noqa: ARG002 (a family looks at it)
        """Name the query that found each of some rows of an output."""
        return pa.repeat(self.name, len(rows))

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state of all operators."""
        blocks.put_json(name, {"graph": fingerprint(self.graph), "operators": list(self.runtimes)})
        for operator, runtime in self.runtimes.items():
            where = f"{name}/{operator}"
            runtime.save(blocks, where)
            blocks.put_json(f"{where}/watermark", runtime.stream.watermark)
            if not isinstance(runtime, FilterOperator | UnionOperator):
                save_store(blocks, f"{where}/stream", runtime.stream.store)

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote.

        Raises
        ------
        StateError
            If the snapshot is of another query.
        """
        if blocks.json(name)["graph"] != fingerprint(self.graph):
            raise StateError(f"the snapshot is of another version of the query {self.name!r}")
        for operator, runtime in self.runtimes.items():
            where = f"{name}/{operator}"
            runtime.load(blocks, where)
            runtime.stream.watermark = blocks.json(f"{where}/watermark")
            if not isinstance(runtime, FilterOperator | UnionOperator):
                load_store(blocks, f"{where}/stream", runtime.stream.store)

    def forget_before(self, time: int) -> None:
        """Let go of events that can no longer take part in anything."""
        for runtime in self.runtimes.values():
            if isinstance(runtime, AggregateOperator | RepeatOperator):
                runtime.buffer.forget_before(time)
            if not isinstance(runtime, FilterOperator | UnionOperator):
                runtime.stream.store.forget_before(time)

    def clear_made(self) -> None:
        """Say that nothing is new in what the operators made, and let go of what nobody reads again."""
        for runtime in self.runtimes.values():
            runtime.stream.new = np.zeros(0, np.int64)
        for store in self._passing:
            store.forget_all()


def _atom(graph: Graph, operator: Operator, functions: Mapping[str, Function]) -> Selector | None:
    """Give the type and condition of a selection of atomic events; None for all other operators.

    A condition that calls a function of the query's own is not shared: another query may mean another one.
    """
    root, condition = selection(graph, operator.name)
    if not isinstance(root, Source) or (condition is not None and _calls(condition, functions)):
        return None
    return root.event_type, condition


def _calls(expr: Expr, functions: Mapping[str, Function]) -> bool:
    own = isinstance(expr, Call) and expr.function in functions
    return own or any(_calls(child, functions) for child in children(expr))


def fingerprint(graph: Graph) -> str:
    """Name a graph so that a changed one has another name."""
    return sha256(repr(graph).encode()).hexdigest()
