"""What the queries of a session have in common, found once.

Queries that start together may share operators: those that do the same to the same events, and the common
beginnings of sequences. What is shared runs as a pipeline of its own, and the queries read its stream as
if they had made it. A query that starts later shares nothing with those that ran before: their operators
remember events that it must not see.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.operators.base import RunningOperator
from whimbrel.engine.operators.registry import is_worth_sharing
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.query_template import QueryInstance
from whimbrel.engine.query_templates import QueryTemplates
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.streams import OperatorStream, SharedWatermark
from whimbrel.errors import WhimbrelError
from whimbrel.graph.costs import Observed
from whimbrel.graph.estimate import NOTHING_SEEN, worth_sharing
from whimbrel.graph.expressions import Call, Expr, walk
from whimbrel.graph.fingerprints import fingerprints
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import Graph, JoinPattern, Operator
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.passes.share_prefixes import Cut, Marked, find_cuts
from whimbrel.graph.query import Query
from whimbrel.graph.required_columns import RequiredColumns
from whimbrel.graph.wiring import readers
from whimbrel.model.time import END_OF_TIME, SECOND

FEW = 64
"""Fewer events tell nothing about how many there will be."""


# -- who reads what ---------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class SharedView:
    """The stream of a common part, as one of its readers sees it."""

    common: SharedPipeline
    reader: str
    stream: OperatorStream
    wakes: bool
    """Whether the reader has to look at new events at once. A pattern need not look at those that cannot
    complete it before one comes that can."""
    waiting: list[np.ndarray] = field(default_factory=list)
    first_event: int = 0
    """The oldest atomic event that was remembered when the first of those that wait came."""

    def add(self, rows: np.ndarray) -> None:
        """Put new events where the reader will find them."""
        if not self.waiting:
            self.first_event = self.common.atoms.stream.store.first
        self.waiting.append(rows)
        if len(self.waiting) > 256:
            self.waiting = [self._remembered()]

    def take(self) -> None:
        """Let the reader see what came since it last looked."""
        self.stream.new = self._remembered()
        self.stream.watermark = self.common.stream.watermark
        self.waiting = []

    def _remembered(self) -> np.ndarray:
        """Join what waits, but not what was forgotten, or is made of what was: it is too old to matter."""
        if not self.waiting:
            return NO_ROWS
        rows = np.concatenate(self.waiting)
        rows = rows[rows >= self.stream.store.first]
        first = self.common.atoms.stream.store.first
        if first == self.first_event or not len(rows):
            return rows
        return rows[self.stream.store.lineage(rows).oldest >= first]


class LinkedPipeline(Pipeline):
    """A query at run time that reads some of its streams from common parts."""

    def __init__(
        self,
        query: Query,
        atoms: SourceEvents,
        name: str,
        given: Mapping[str, SharedPipeline],
        asked: Mapping[str, Collection[Expr]] = MappingProxyType({}),
    ) -> None:
        self.given = given
        self.views: dict[str, SharedView] = {}
        self._asked = asked
        self._own = _needed(query.graph, given)
        super().__init__(query, atoms, name, ())

    def _needs(self) -> RequiredColumns:
        return RequiredColumns(self.graph, self.query.functions, asked=self._asked)

    def _deploy(self, operator: Operator) -> None:
        if operator.name in self.given:
            self._link(operator, self.given[operator.name])
        elif operator.name in self._own:
            super()._deploy(operator)

    def _link(self, operator: Operator, common: SharedPipeline) -> None:
        # No operator of this pipeline has a number this high.
        number = len(self.graph.operators) + len(self.views) + 1
        clock = SharedWatermark(common.stream.watermark)
        stream = replace(common.stream, name=operator.name, number=number, new=NO_ROWS, users={}, clock=clock)
        view = SharedView(common, self.name, stream, wakes_up(self.graph, operator.name))
        self.views[operator.name] = view
        self.streams[operator.name] = stream
        common.readers.append(view)

    def step(self) -> None:
        """Run every operator once, in order."""
        for view in self.views.values():
            view.take()
        super().step()

    def clear_made(self) -> None:
        """Say that nothing is new, in what is given and in what was made."""
        for view in self.views.values():
            view.stream.new = NO_ROWS
        super().clear_made()

    @property
    def is_behind(self) -> bool:
        """Whether common parts have found something that it has not looked at."""
        return any(view.waiting for view in self.views.values())


class SharedPipeline(LinkedPipeline):
    """A part that several queries have in common, at run time. Its graph has one output."""

    def __init__(
        self,
        query: Query,
        atoms: SourceEvents,
        name: str,
        given: Mapping[str, SharedPipeline],
        asked: Mapping[str, Collection[Expr]],
    ) -> None:
        self.readers: list[SharedView] = []
        super().__init__(query, atoms, name, given, asked)

    @property
    def stream(self) -> OperatorStream:
        """What it finds."""
        return self.streams[self.graph.outputs[0]]

    def _read_at_once(self) -> list[RowStore]:
        return [store for store in super()._read_at_once() if store is not self.stream.store]

    def saved_as(self) -> dict[str, RunningOperator[Any]]:
        """Name operators by what they do; equal ones are numbered in the order of their own names."""
        marks = fingerprints(self.graph, partial(_is_own, {}))
        found: dict[str, RunningOperator[Any]] = {}
        for operator in sorted(self.runtimes):
            same = sum(key.startswith(f"{marks[operator]}.") for key in found)
            found[f"{marks[operator]}.{same}"] = self.runtimes[operator]
        return found


def _needed(graph: Graph, given: Collection[str]) -> set[str]:
    """Name the operators that have to run, if some streams are given."""
    needed = set(graph.outputs)
    for operator in reversed(graph.operators):
        if operator.name in needed and operator.name not in given:
            needed.update(operator.inputs)
    return needed - set(given)


def wakes_up(graph: Graph, name: str) -> bool:
    """Tell whether an event of a stream can be the one that completes something."""
    if name in graph.outputs:
        return True
    for operator in graph.operators:
        if name not in operator.inputs:
            continue
        if not isinstance(operator, JoinPattern):
            return True
        followed = {order.first for order in operator.orders}
        if any(part.input == name and n not in followed for n, part in enumerate(operator.parts)):
            return True
    return False


# -- what is shared ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class SharingGroup:
    """Queries that started together, where their sequences were cut, and what they share (fingerprints)."""

    number: int
    queries: list[str]
    cuts: list[Cut] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Write it as JSON."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> SharingGroup:
        """Read what `to_json` wrote."""
        return SharingGroup(
            data["number"], data["queries"], [Cut(**each) for each in data["cuts"]], data["shared"]
        )


@dataclass(slots=True)
class Stepped:
    """Which queries have something to do, when common parts want to run again, and what went wrong."""

    names: dict[str, None]
    due: list[tuple[int, str]] = field(default_factory=list)
    failure: WhimbrelError | None = None


class Sharing:
    """The common parts of the queries of a session."""

    def __init__(self, atoms: SourceEvents) -> None:
        self.atoms = atoms
        self.fresh: dict[str, None] = {}
        """Queries that have seen no event yet."""
        self.groups: list[SharingGroup] = []
        self.commons: dict[str, SharedPipeline] = {}
        self.templates = QueryTemplates(atoms)
        self._started = 0

    # -- queries come and go -----------------------------------------------------------------------------

    def add(self, name: str) -> None:
        """Take note of a query that starts."""
        self.fresh[name] = None

    def remove(self, name: str, pipeline: Pipeline | QueryInstance) -> None:
        """Let go of what only this query used."""
        self.fresh.pop(name, None)
        self.templates.remove(name, pipeline)
        for group in self.groups:
            if name in group.queries:
                group.queries.remove(name)
                group.cuts = [each for each in group.cuts if each.query != name]
        self.groups = [group for group in self.groups if group.queries]
        if isinstance(pipeline, Pipeline):
            self._release(name, pipeline)

    def _release(self, name: str, pipeline: Pipeline) -> None:
        for atom in pipeline.used:
            self.atoms.release(atom, name)
        if not isinstance(pipeline, LinkedPipeline):
            return
        for view in pipeline.views.values():
            view.common.readers.remove(view)
            if not view.common.readers:
                del self.commons[view.common.name]
                self._release(view.common.name, view.common)

    def settle(
        self, queries: dict[str, Pipeline | QueryInstance], events: pa.RecordBatch | None = None
    ) -> None:
        """Let the queries that have started since the last event share what they can.

        `events` are the first that they will see: how many there are of what decides what is worth it.
        """
        others = self.templates.gather(self.fresh, queries)
        self.fresh = {}
        if not others:
            return
        self._started += 1
        group = SharingGroup(self._started, others)
        pipelines = alone(queries)
        graphs = {name: _marked(pipelines[name]) for name in group.queries}
        observed = observe(events, [marked.graph for marked in graphs.values()])
        group.cuts = find_cuts(graphs, partial(worth_sharing, observed=observed))
        known = {name: _Known.of(marked, pipelines[name]) for name, marked in graphs.items()}
        group.shared = _in_common(known)
        self.groups.append(group)
        queries |= self._deployed(group, known, pipelines)

    def _deployed(
        self, group: SharingGroup, known: Mapping[str, _Known], pipelines: Mapping[str, Pipeline]
    ) -> dict[str, Pipeline]:
        """Build the pipelines of a group anew where they are cut or share something: they are empty yet."""
        built: dict[str, Pipeline] = {}
        changed = {each.query for each in group.cuts}
        asked = _asked(group.shared, known.values())
        for name in group.queries:
            graph, query = known[name].graph, pipelines[name].query
            shared = {each: mark for each, mark in known[name].shareable.items() if mark in asked}
            if not shared and name not in changed:
                continue
            self._release(name, pipelines[name])
            given = _Builder(self, group.number, graph, shared, asked).given(graph)
            linked = LinkedPipeline(replace(query, graph=graph), self.atoms, name, given)
            linked.query = query
            built[name] = linked
        return built

    # -- running -----------------------------------------------------------------------------------------

    def step(self, names: Iterable[str], queries: Mapping[str, Pipeline | QueryInstance]) -> Stepped:
        """Run the common parts that have something to do, or that some queries are about to read."""
        found = Stepped(dict.fromkeys(names))
        if not self.commons:
            return found
        done: set[str] = set()
        todo = list(found.names)
        while todo:
            name = todo.pop()
            if name in self.commons:
                todo += self._bring_up(self.commons[name], done, found)
            else:
                found.names.setdefault(name)
                pipeline = queries.get(name)
                if isinstance(pipeline, LinkedPipeline):
                    for view in pipeline.views.values():
                        todo += self._bring_up(view.common, done, found)
        found.names = {name: None for name in found.names if name not in self.commons}
        return found

    def _bring_up(self, common: SharedPipeline, done: set[str], found: Stepped) -> list[str]:
        """Run a common part, after those that it reads; name the readers that have to run now."""
        if common.name in done:
            return []
        done.add(common.name)
        woken: list[str] = []
        for view in common.views.values():
            woken += self._bring_up(view.common, done, found)
        try:
            common.step()
        except WhimbrelError as error:
            found.failure = found.failure or error
            return woken
        if common.due < END_OF_TIME:
            found.due.append((common.due, common.name))
        rows = common.stream.new
        if len(rows):
            for view in common.readers:
                view.add(rows)
                if view.wakes and view.reader not in found.names:
                    woken.append(view.reader)
        common.clear_made()
        return woken

    def forget_before(self, time: int) -> None:
        """Let go of events that can no longer take part in anything."""
        for common in self.commons.values():
            common.forget_before(time)

    # -- snapshots ---------------------------------------------------------------------------------------

    def catch_up(self, queries: Mapping[str, Pipeline | QueryInstance]) -> None:
        """Let every query look at what waits for it. It completes nothing, or it would not have waited."""
        for pipeline in (*self.commons.values(), *queries.values()):
            if isinstance(pipeline, LinkedPipeline) and pipeline.is_behind:
                pipeline.step()
                pipeline.clear_made()

    def save(self, blocks: Blocks) -> list[Any]:
        """Write the state of the common parts; give which queries share what, as JSON."""
        for name, common in self.commons.items():
            common.save_operators(blocks, f"common/{name}")
        return [group.to_json() for group in self.groups]

    def load(
        self,
        blocks: Blocks,
        groups: list[Any],
        templates: list[Any],
        queries: dict[str, Pipeline | QueryInstance],
        deploy: Callable[[Query, str], Pipeline | QueryInstance],
    ) -> None:
        """Let queries share what they shared when a snapshot was taken, and read its state."""
        for name, query in queries.items():
            if isinstance(query, LinkedPipeline):
                self._release(name, query)
                queries[name] = deploy(query.query, name)
        self.templates.load(blocks, templates, queries)
        pipelines = alone(queries)
        self.fresh = {}
        self.groups = [SharingGroup.from_json(each) for each in groups]
        self._started = max((group.number for group in self.groups), default=0)
        for group in self.groups:
            known = {name: _Known.of(_recut(name, group, pipelines[name]), pipelines[name])
                     for name in group.queries}  # fmt: skip
            queries |= self._deployed(group, known, pipelines)
        for name, common in self.commons.items():
            common.load_operators(blocks, f"common/{name}")


@dataclass(slots=True)
class _Builder:
    """Builds the common parts that a query of a group reads, each when it is first needed."""

    sharing: Sharing
    group: int
    graph: Graph
    shared: Mapping[str, str]
    """The operators of the graph that are shared, and their fingerprints."""
    asked: Mapping[str, Collection[Expr]]

    def given(self, graph: Graph, but: str | None = None) -> dict[str, SharedPipeline]:
        """Give the common parts that a graph reads, without looking below them."""
        found: dict[str, SharedPipeline] = {}
        needed = set(graph.outputs)
        for operator in reversed(graph.operators):
            if operator.name not in needed:
                continue
            if operator.name in self.shared and operator.name != but:
                found[operator.name] = self.common(operator.name)
            else:
                needed.update(operator.inputs)
        return found

    def common(self, name: str) -> SharedPipeline:
        """Give a common part, with all that it reads."""
        mark = self.shared[name]
        key = f"@{self.group}/{mark}"
        commons = self.sharing.commons
        if key not in commons:
            graph = drop_unused(replace(self.graph, outputs=(name,)))
            given = self.given(graph, but=name)
            commons[key] = SharedPipeline(
                Query(graph), self.sharing.atoms, key, given, {name: self.asked[mark]}
            )
        return commons[key]


def alone(queries: Mapping[str, Pipeline | QueryInstance]) -> dict[str, Pipeline]:
    """Give the queries that do not run as instances of a template."""
    return {name: query for name, query in queries.items() if isinstance(query, Pipeline)}


def _marked(pipeline: Pipeline) -> Marked:
    return Marked.of(pipeline.graph, partial(_is_own, pipeline.query.functions))


def _recut(name: str, group: SharingGroup, pipeline: Pipeline) -> Marked:
    """Cut the sequences of a query where they were cut before."""
    found = _marked(pipeline)
    own = [each for each in group.cuts if each.query == name]
    for _, cuts in groupby(own, key=lambda each: each.level):
        found = found.with_cuts(cuts)
    return found


def _in_common(known: Mapping[str, _Known]) -> list[str]:
    """Choose what is shared: the largest parts that several queries have in common (fingerprints)."""
    users: dict[str, set[str]] = {}
    read_by: dict[str, set[Any]] = {}
    for name, each in known.items():
        above = readers(each.graph)
        for operator, mark in each.shareable.items():
            users.setdefault(mark, set()).add(name)
            who = {each.shareable.get(reader.name, (name, reader.name)) for reader in above[operator]}
            read_by.setdefault(mark, set()).update(who)
            if operator in each.graph.outputs:
                read_by[mark].add((name, ""))
    return [mark for mark, names in users.items() if len(names) > 1 and not _is_inside(mark, users, read_by)]


def _is_inside(mark: str, users: Mapping[str, set[str]], read_by: Mapping[str, set[Any]]) -> bool:
    """Tell whether a part is only ever read by one other, which is shared as a whole."""
    if len(read_by[mark]) != 1:
        return False
    (only,) = read_by[mark]
    return only in users and users[only] == users[mark]


@dataclass(frozen=True, slots=True)
class _Known:
    """What can be shared of a query, by operator: its fingerprint, and what is asked of it."""

    graph: Graph
    shareable: Mapping[str, str]
    required: RequiredColumns

    @staticmethod
    def of(marked: Marked, pipeline: Pipeline) -> _Known:
        """Find the operators that keep what they make and do not depend on functions of the query."""
        graph, functions = marked.graph, pipeline.query.functions
        required = pipeline.required if graph is pipeline.graph else RequiredColumns(graph, functions)
        shareable = {
            operator.name: mark
            for operator in graph.operators
            if is_worth_sharing(operator)
            and (mark := marked.marks[operator.name]) is not None
            and not any(_calls(need, functions) for need in required.of[operator.name])
        }
        return _Known(graph, shareable, required)


def _asked(shared: Iterable[str], known: Iterable[_Known]) -> dict[str, set[Expr]]:
    """Tell what all queries together ask of each common part."""
    found: dict[str, set[Expr]] = {mark: set() for mark in shared}
    for each in known:
        for operator, mark in each.shareable.items():
            if mark in found:
                found[mark] |= each.required.of[operator]
    return found


def _is_own(functions: Mapping[str, Function], operator: Operator) -> bool:
    """Tell whether an operator calls a function of its query; others may mean another one by the name."""
    return bool(functions) and any(_calls(expr, functions) for expr in operator.expressions())


def _calls(expr: Expr, functions: Mapping[str, Function]) -> bool:
    return any(isinstance(node, Call) and node.function in functions for node in walk(expr))


# -- how many events there are ----------------------------------------------------------------------------


def observe(events: pa.RecordBatch | None, graphs: Iterable[Graph]) -> Observed:
    """Count the events of each type, and how many different keys they have."""
    if events is None or events.num_rows < FEW:
        return NOTHING_SEEN
    ends = events.column("end").to_numpy(zero_copy_only=False)
    seconds = max(int(ends.max()) - int(ends.min()), 1) / SECOND
    counted = pc.value_counts(events.column("type"))
    types = zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    return Observed(
        {name: count / seconds for name, count in types if name is not None},
        {name: 1.0 / different for name, different in _different(events, _keys(graphs))},
    )


def _keys(graphs: Iterable[Graph]) -> set[str]:
    matches = [o for graph in graphs for o in graph.operators if isinstance(o, JoinPattern)]
    keys = {"source" if key.kind == "source" else key.name for m in matches for key in m.partitioning.keys}
    return keys | {name for match in matches for name in match.joins}


def _different(events: pa.RecordBatch, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        if name in events.schema.names:
            column = events.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.indices
            yield name, max(int(pc.count_distinct(column).as_py()), 1)
