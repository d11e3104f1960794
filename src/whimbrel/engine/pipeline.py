"""One deployed query: its operators at run time, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Protocol

import numpy as np
import pyarrow as pa

from whimbrel.engine.aggregator import Aggregator
from whimbrel.engine.atoms import Atom, Atoms
from whimbrel.engine.deriver import Deriver
from whimbrel.engine.encounters import Encounters
from whimbrel.engine.environment import Environment
from whimbrel.engine.forms import rows_passing
from whimbrel.engine.matcher import Matcher
from whimbrel.engine.merger import Merger, Union
from whimbrel.engine.mover import Mover
from whimbrel.engine.needs import Needs
from whimbrel.engine.receiver import Receiver
from whimbrel.engine.repeater import Repeater
from whimbrel.engine.sequencer import Overdue, Sequencer
from whimbrel.engine.snapshot import Blocks, load_store, save_store
from whimbrel.engine.store import Store
from whimbrel.engine.streams import Stream, Surroundings
from whimbrel.engine.values import Int64Array
from whimbrel.errors import QueryError, StateError
from whimbrel.graph.expressions import Call, Expr, children
from whimbrel.graph.functions import Function
from whimbrel.graph.motion import Encounter, Motion
from whimbrel.graph.operators import (
    Aggregate,
    Custom,
    Derive,
    Filter,
    Graph,
    Match,
    Merge,
    Operator,
    Repeat,
    Source,
)
from whimbrel.graph.outline import Outline
from whimbrel.graph.passes import PASSES, Pass, rewrite
from whimbrel.graph.query import Query
from whimbrel.graph.reach import reach
from whimbrel.graph.scope import selection
from whimbrel.graph.sequence import Sequence, TimedOut
from whimbrel.graph.wiring import readers
from whimbrel.model.time import END_OF_TIME


class Runtime(Protocol):
    """An operator at run time."""

    stream: Stream

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


class Sieve:
    """A `Filter` over events that another operator made."""

    due = END_OF_TIME

    def __init__(self, op: Filter, source: Stream, around: Surroundings) -> None:
        self.op = op
        self.source = source
        self.around = around
        self.stream = Stream(
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
            rows = rows_passing(self.op.condition, self.around, self.source, rows)
        self.stream.new = rows


class Pipeline:
    """A query at run time."""

    has_every_stream = False
    """Whether there is a stream for each operator, also for selections that only further ones read. Those are
    tested by themselves, and a query need not be looked at for events that fail them."""

    outline: Outline | None = None
    """What it does apart from what it asks of single events, where it could be a member of a family."""

    def __init__(
        self,
        query: Query,
        atoms: Atoms,
        name: str,
        passes: Iterable[Pass] = PASSES,
        graph: Graph | None = None,
    ) -> None:
        self.query = query
        self.name = name
        self.graph = rewrite(query.graph, tuple(passes)) if graph is None else graph
        self.atoms = atoms
        self.around = Surroundings(self._events(), query.functions, query.graph.coordinates)
        self.needs = self._needs()
        self.used: list[Atom] = []
        self.selections: list[Stream] = []
        self.streams: dict[str, Stream] = {}
        self.runtimes: dict[str, Runtime] = {}
        left_out = set() if self.has_every_stream else self._selected_further()
        for operator in self.graph.operators:
            if operator.name not in left_out:
                self._deploy(operator)
        self.reach = max((reach(self.graph, name) for name in self.graph.outputs), default=0)
        self.outputs = [self.streams[name] for name in self.graph.outputs]
        self._passing = self._read_at_once()

    def _events(self) -> Stream:
        return self.atoms.stream

    def _needs(self) -> Needs:
        return Needs(self.graph, self.query.functions)

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
        if not isinstance(runtime, Sieve | Union):
            runtime.stream.number = len(self.runtimes) + 1
        self.runtimes[operator.name] = runtime
        self.streams[operator.name] = runtime.stream

    def _runtime(self, operator: Operator) -> Runtime:  # noqa: C901, PLR0912 - one case for each kind
        needs = self.needs.of[operator.name]
        match operator:
            case Filter():
                return Sieve(operator, self.streams[operator.input], self.around)
            case Match():
                return Matcher(self.graph, operator, self.streams, self.around, needs)
            case Repeat():
                return Repeater(operator, self.streams, self.around, needs)
            case Merge():
                if Union.suits(operator, self.streams):
                    return Union(self.graph, operator, self.streams)
                return Merger(self.graph, operator, self.streams, self.around, needs)
            case Aggregate():
                return Aggregator(self.graph, operator, self.streams, self.around)
            case Custom():
                return Environment(operator, self.streams, self.around, self.query.operators)
            case Sequence():
                return Sequencer(self.graph, operator, self.streams, self.around, needs)
            case Motion():
                return Mover(operator, self.streams, self.around, needs)
            case Encounter():
                return Encounters(operator, self.streams, self.around, needs)
            case TimedOut():
                sequencer = self.runtimes[operator.input]
                assert isinstance(sequencer, Sequencer)
                return Overdue(operator, sequencer)
            case Derive(cases=()):
                return Receiver(operator, self.around)
            case Derive():
                return Deriver(self.graph, operator, self.streams, self.around)
        raise QueryError(f"the embedded engine cannot run {type(operator).__name__} ({operator.name!r})")

    def _read_at_once(self) -> list[Store]:
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
            if name not in read_later and not isinstance(runtime, Sieve | Union)
        ]

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return min((runtime.due for runtime in self.runtimes.values()), default=END_OF_TIME)

    @property
    def dropped(self) -> int:
        """How many matches in the making were given up because a partition had too many of them."""
        return sum(each.dropped for each in self.runtimes.values() if isinstance(each, Sequencer))

    def rounds(self) -> Iterator[None]:
        """Process what is new, once or in several rounds; after each, its outputs have to be looked at."""
        self.step()
        yield

    def step(self) -> None:
        """Run every operator once, in order."""
        for runtime in self.runtimes.values():
            runtime.step()

    def reported(self, stream: Stream) -> Int64Array:
        """Give the rows that are new in an output."""
        return stream.new

    def queries(self, stream: Stream, rows: Int64Array) -> pa.Array:  # noqa: ARG002 (a family looks at it)
        """Name the query that found each of some rows of an output."""
        return pa.repeat(self.name, len(rows))

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state of all operators."""
        blocks.put_json(name, {"graph": fingerprint(self.graph), "operators": list(self.runtimes)})
        for operator, runtime in self.runtimes.items():
            where = f"{name}/{operator}"
            runtime.save(blocks, where)
            blocks.put_json(f"{where}/watermark", runtime.stream.watermark)
            if not isinstance(runtime, Sieve | Union):
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
            if not isinstance(runtime, Sieve | Union):
                load_store(blocks, f"{where}/stream", runtime.stream.store)

    def forget_before(self, time: int) -> None:
        """Let go of events that can no longer take part in anything."""
        for runtime in self.runtimes.values():
            if isinstance(runtime, Aggregator | Repeater):
                runtime.buffer.forget_before(time)
            if not isinstance(runtime, Sieve | Union):
                runtime.stream.store.forget_before(time)

    def clear_made(self) -> None:
        """Say that nothing is new in what the operators made, and let go of what nobody reads again."""
        for runtime in self.runtimes.values():
            runtime.stream.new = np.zeros(0, np.int64)
        for store in self._passing:
            store.forget_all()


def _atom(graph: Graph, operator: Operator, functions: Mapping[str, Function]) -> Atom | None:
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
