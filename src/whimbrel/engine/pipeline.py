"""One deployed query: its operators at run time, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, ClassVar

import pyarrow as pa

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.observer import Observer
from whimbrel.engine.operators.base import OperatorSetup, RunningOperator
from whimbrel.engine.operators.registry import KINDS, Kinds, looks_back, start
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.values import Int64Array
from whimbrel.errors import StateError
from whimbrel.graph.expressions import Call, Expr, children
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import Graph, Operator, Source
from whimbrel.graph.passes import PASSES, Pass, rewrite
from whimbrel.graph.query import Query
from whimbrel.graph.reach import remembered
from whimbrel.graph.required_columns import RequiredColumns
from whimbrel.graph.scope import selection
from whimbrel.graph.template import GraphTemplate
from whimbrel.graph.wiring import readers
from whimbrel.model.time import END_OF_TIME


class Pipeline:
    """A query at run time."""

    kinds: ClassVar[Kinds] = KINDS
    """The classes that run its operators."""

    first_number: ClassVar = 1
    """The number of the stream of its first operator, from which its rows have theirs."""

    graph_template: GraphTemplate | None = None
    """What it does apart from what it asks of single events, where it could be an instance of a template."""

    def __init__(
        self,
        query: Query,
        atoms: SourceEvents,
        name: str,
        passes: Iterable[Pass] = PASSES,
        graph: Graph | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.query = query
        self.name = name
        self.observer = observer
        self.graph = rewrite(query.graph, tuple(passes)) if graph is None else graph
        self.atoms = atoms
        self.context = ExecutionContext(self._events(), query.functions, query.graph.coordinates)
        self.required = self._needs()
        self.used: list[Selector] = []
        self.selections: list[OperatorStream] = []
        self.streams: dict[str, OperatorStream] = {}
        self.runtimes: dict[str, RunningOperator[Any]] = {}
        every = observer is not None and observer.sees_every_stream
        left_out = set() if every else self._selected_further()
        for operator in self.graph.operators:
            if operator.name not in left_out:
                self._deploy(operator)
        self.reach = max((remembered(self.graph, name) for name in self.graph.outputs), default=0)
        self.outputs = [self.streams[name] for name in self.graph.outputs]
        self._passing = self._read_at_once()
        if observer is not None:
            observer.started(self)

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
        runtime = start(operator, self._setup(), self.kinds)
        if runtime.owns_rows:
            runtime.stream.number = self.first_number + len(self.runtimes)
        self.runtimes[operator.name] = runtime
        self.streams[operator.name] = runtime.stream

    def _setup(self) -> OperatorSetup:
        of = self.required.of
        return OperatorSetup(self.graph, self.context, self.streams, self.runtimes, of, self.query.operators)

    def _read_at_once(self) -> list[RowStore]:
        """Give the stores of which nobody reads a row later than in the step that made it."""
        read_later = {
            name for operator in self.graph.operators if looks_back(operator) for name in operator.inputs
        }
        return [
            runtime.stream.store
            for name, runtime in self.runtimes.items()
            if name not in read_later and runtime.owns_rows
        ]

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        runtimes = self.runtimes.values()
        return min((min(runtime.due, runtime.held_until) for runtime in runtimes), default=END_OF_TIME)

    @property
    def dropped(self) -> int:
        """How many matches in the making were given up because a partition had too many of them."""
        return sum(runtime.dropped for runtime in self.runtimes.values())

    def rounds(self) -> Iterator[None]:
        """Process what is new, once or in several rounds; after each, its outputs have to be looked at."""
        self.step()
        yield

    def step(self) -> None:
        """Run every operator once, in order."""
        if self.observer is not None:
            for name, runtime in self.runtimes.items():
                self.observer.run(name, runtime)
            self.observer.stepped(self)
            return
        for runtime in self.runtimes.values():
            runtime.step()

    def told(self) -> Iterator[pa.Table]:
        """Give what it has written as tables by itself, besides what is new in its outputs."""
        return iter(())

    def reported(self, stream: OperatorStream) -> Int64Array:
        """Give the rows that are new in an output."""
        return stream.new

    def queries(self, stream: OperatorStream, rows: Int64Array) -> pa.Array:  # noqa: ARG002 (a template looks at it)
        """Name the query that found each of some rows of an output."""
        return pa.repeat(self.name, len(rows))

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state of all operators."""
        blocks.put_json(name, {"graph": fingerprint(self.graph), "operators": list(self.runtimes)})
        self.save_operators(blocks, name)

    def save_operators(self, blocks: Blocks, name: str) -> None:
        """Write the state of all operators, and nothing about the query."""
        for operator, runtime in self.saved_as().items():
            runtime.save(blocks, f"{name}/{operator}")

    def load_operators(self, blocks: Blocks, name: str) -> None:
        """Read what `save_operators` wrote."""
        for operator, runtime in self.saved_as().items():
            runtime.load(blocks, f"{name}/{operator}")

    def saved_as(self) -> Mapping[str, RunningOperator[Any]]:
        """Name every operator as snapshots do."""
        return self.runtimes

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote.

        Raises
        ------
        StateError
            If the snapshot is of another query.
        """
        if blocks.json(name)["graph"] != fingerprint(self.graph):
            raise StateError(f"the snapshot is of another version of the query {self.name!r}")
        self.load_operators(blocks, name)

    def forget_before(self, time: int) -> None:
        """Let go of events that can no longer take part in anything."""
        for runtime in self.runtimes.values():
            runtime.forget_before(time)

    def clear_made(self) -> None:
        """Say that nothing is new in what the operators made, and let go of what nobody reads again."""
        for runtime in self.runtimes.values():
            runtime.stream.new = NO_ROWS
        if self.observer is not None and self.observer.keeps_rows:
            return
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
