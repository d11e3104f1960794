"""Which queries of a session run as instances of a template, and what they do when queries come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from whimbrel.engine.pipeline import Pipeline, fingerprint
from whimbrel.engine.query_template import QueryInstance, QueryTemplate
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import SourceEvents
from whimbrel.errors import StateError
from whimbrel.graph.operators import Graph
from whimbrel.graph.query import Query
from whimbrel.graph.required_columns import ColumnSet, all_read, read_by
from whimbrel.graph.template import GraphTemplate, template_of

FEW = 16
"""So many queries of one template run as one; if they are fewer, each may have much to do."""


@dataclass(slots=True)
class _KnownTemplate:
    """What is known of the queries of one template: what all need, which run alone, what runs the others."""

    reach: int
    required: ColumnSet
    made_of: tuple[frozenset[int], ...]
    alone: set[str] = field(default_factory=set)
    template: QueryTemplate | None = None


class QueryTemplates:
    """The templates of a session."""

    def __init__(self, atoms: SourceEvents) -> None:
        self.atoms = atoms
        self.running: dict[str, QueryTemplate] = {}
        self._known: dict[Hashable, _KnownTemplate] = {}
        self._started = 0

    # -- queries come and go -----------------------------------------------------------------------------

    def deploy(self, query: Query, name: str) -> Pipeline | QueryInstance:
        """Get a query ready to run: by itself, or, if there was one like it, perhaps as an instance."""
        graph = query.rewritten
        graph_template = None if query.functions else template_of(graph)
        known = None if graph_template is None else self._known.get(graph_template.key)
        if graph_template is not None and known is not None:
            return self._instance(query, name, graph_template, known)
        pipeline = self._pipeline(query, name, graph, graph_template)
        if graph_template is not None:
            self._known[graph_template.key] = _KnownTemplate(
                pipeline.reach, pipeline.required.read, tuple(graph_template.made_of())
            )
        return pipeline

    def _pipeline(
        self, query: Query, name: str, graph: Graph, graph_template: GraphTemplate | None
    ) -> Pipeline:
        pipeline = Pipeline(query, self.atoms, name, graph=graph)
        pipeline.graph_template = graph_template
        return pipeline

    def _instance(
        self, query: Query, name: str, graph_template: GraphTemplate, known: _KnownTemplate
    ) -> QueryInstance:
        used = tuple((each.source.event_type, each.condition) for each in graph_template.selected)
        streams = tuple(self.atoms.select(atom, name) for atom in used)
        required = all_read([known.required, *(read_by(condition) for _, condition in used)])
        return QueryInstance(query, name, graph_template, known.reach, required, used, streams)

    def remove(self, name: str, query: Pipeline | QueryInstance) -> None:
        """Let go of a query."""
        if query.graph_template is not None:
            self._known[query.graph_template.key].alone.discard(name)
        if not isinstance(query, QueryInstance):
            return
        template = query.template
        if template is None:
            for atom in query.used:
                self.atoms.release(atom, name)
            return
        template.leave(query)
        if not template.size:
            del self.running[template.name]
            known = self._known[query.graph_template.key]
            known.template = None if known.template is template else known.template

    def gather(self, fresh: Collection[str], queries: dict[str, Pipeline | QueryInstance]) -> list[str]:
        """Let queries that have seen no event yet join templates where that pays; name the others."""
        kin: dict[Hashable, list[str]] = {}
        for name, graph_template in self._unlike_others(fresh, queries):
            kin.setdefault(graph_template.key, []).append(name)
        for key, names in kin.items():
            known = self._known[key]
            if known.template is None and len(names) + len(known.alone) < FEW:
                known.alone.update(names)
            else:
                for name in names:
                    queries[name] = self._joined(known, queries[name])
        others = [name for name in fresh if not runs_in_template(queries[name])]
        for name in others:
            queries[name] = self._by_itself(queries[name])
        return others

    def _unlike_others(
        self, fresh: Collection[str], queries: Mapping[str, Pipeline | QueryInstance]
    ) -> Iterator[tuple[str, GraphTemplate]]:
        """Give the queries that have nothing in common with others that start with them.

        What is common is better found once for all than for each of them, even if that is done at once.
        """
        users = Counter(number for name in fresh for number in set(_selections(queries[name])))
        for name in fresh:
            graph_template = queries[name].graph_template
            if graph_template is not None:
                numbers = _selections(queries[name])
                common = {place for place, number in enumerate(numbers) if users[number] > 1}
                if not any(parts <= common for parts in self._known[graph_template.key].made_of):
                    yield name, graph_template

    def _joined(self, known: _KnownTemplate, query: Pipeline | QueryInstance) -> QueryInstance:
        instance = self._as_instance(query)
        if known.template is None or known.template.is_full:
            self._started += 1
            known.template = self._open(f"@template/{self._started}", instance.graph_template)
        known.template.join(instance)
        return instance

    def _open(self, name: str, graph_template: GraphTemplate) -> QueryTemplate:
        self.running[name] = QueryTemplate(graph_template, self.atoms, name)
        return self.running[name]

    def _as_instance(self, query: Pipeline | QueryInstance) -> QueryInstance:
        if isinstance(query, QueryInstance):
            return query
        assert query.graph_template is not None
        return self._instance(
            query.query, query.name, query.graph_template, self._known[query.graph_template.key]
        )

    def _by_itself(self, query: Pipeline | QueryInstance) -> Pipeline:
        if isinstance(query, Pipeline):
            return query
        return self._pipeline(query.query, query.name, query.graph_template.graph, query.graph_template)

    # -- snapshots ---------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, queries: Mapping[str, Pipeline | QueryInstance]) -> list[Any]:
        """Write the state of all templates; give who their instances are, as JSON."""
        found = []
        for name, template in self.running.items():
            template.save(blocks, name)
            marks = {each: _mark(queries[each]) for each in template.instances if each is not None}
            found.append({"name": name, "instances": template.instances, "graphs": marks})
        return found

    def load(self, blocks: Blocks, saved: list[Any], queries: dict[str, Pipeline | QueryInstance]) -> None:
        """Let queries be instances of the templates they were instances of when a snapshot was taken.

        Raises
        ------
        StateError
            If the snapshot is of other queries.
        """
        for name, query in queries.items():
            if runs_in_template(query):
                self.remove(name, query)
                queries[name] = self.deploy(query.query, name)
        for each in saved:
            for name, mark in each["graphs"].items():
                if _mark(queries[name]) != mark:
                    raise StateError(f"the snapshot is of another version of the query {name!r}")
                queries[name] = self._as_instance(queries[name])
            self._reopen(each["name"], each["instances"], queries).load(blocks, each["name"])
        self._started = max((int(name.split("/")[1]) for name in self.running), default=0)
        for name, query in queries.items():
            if not runs_in_template(query):
                queries[name] = self._by_itself(query)

    def _reopen(
        self, name: str, instances: list[str | None], queries: Mapping[str, Pipeline | QueryInstance]
    ) -> QueryTemplate:
        """Open a template whose instances have the numbers that they had before."""
        known = {each: queries[each] for each in instances if each is not None}
        graph_template = next(iter(known.values())).graph_template
        assert graph_template is not None
        template = self._known[graph_template.key].template = self._open(name, graph_template)
        for number, each in enumerate(instances):
            query = known.get(each or "")
            if isinstance(query, QueryInstance):
                template.enter(each, query.graph_template.types)
                template.attach(query, number)
            else:
                template.enter(None, [""] * len(graph_template.types))
        return template


def runs_in_template(query: Pipeline | QueryInstance) -> bool:
    """Tell whether a query runs as an instance of a template."""
    return isinstance(query, QueryInstance) and query.template is not None


def _selections(query: Pipeline | QueryInstance) -> list[int]:
    """Tell the selections of atomic events that a query reads apart."""
    streams = query.selections if isinstance(query, Pipeline) else query.streams
    return [id(stream) for stream in streams]


def _mark(query: Pipeline | QueryInstance) -> str | None:
    return None if query.graph_template is None else fingerprint(query.graph_template.graph)
