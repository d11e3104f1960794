"""Which queries of a session run as families, and what they do when queries come and go."""

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
"""So many queries of one outline make a family; if they are fewer, each may have much to do."""


@dataclass(slots=True)
class _Line:
    """What is known of the queries of one outline: what all need, which run alone, and their family."""

    reach: int
    required: ColumnSet
    made_of: tuple[frozenset[int], ...]
    alone: set[str] = field(default_factory=set)
    family: QueryTemplate | None = None


class QueryTemplates:
    """The families of a session."""

    def __init__(self, atoms: SourceEvents) -> None:
        self.atoms = atoms
        self.running: dict[str, QueryTemplate] = {}
        self._lines: dict[Hashable, _Line] = {}
        self._started = 0

    # -- queries come and go -----------------------------------------------------------------------------

    def deploy(self, query: Query, name: str) -> Pipeline | QueryInstance:
        """Get a query ready to run: by itself, or, if there was one like it before, perhaps in a family."""
        graph = query.rewritten
        drawn = None if query.functions else template_of(graph)
        line = None if drawn is None else self._lines.get(drawn.key)
        if drawn is not None and line is not None:
            return self._member(query, name, drawn, line)
        pipeline = self._pipeline(query, name, graph, drawn)
        if drawn is not None:
            self._lines[drawn.key] = _Line(pipeline.reach, pipeline.required.read, tuple(drawn.made_of()))
        return pipeline

    def _pipeline(self, query: Query, name: str, graph: Graph, drawn: GraphTemplate | None) -> Pipeline:
        pipeline = Pipeline(query, self.atoms, name, graph=graph)
        pipeline.outline = drawn
        return pipeline

    def _member(self, query: Query, name: str, drawn: GraphTemplate, line: _Line) -> QueryInstance:
        used = tuple((each.source.event_type, each.condition) for each in drawn.selected)
        streams = tuple(self.atoms.select(atom, name) for atom in used)
        required = all_read([line.required, *(read_by(condition) for _, condition in used)])
        return QueryInstance(query, name, drawn, line.reach, required, used, streams)

    def remove(self, name: str, query: Pipeline | QueryInstance) -> None:
        """Let go of a query."""
        if query.outline is not None:
            self._lines[query.outline.key].alone.discard(name)
        if not isinstance(query, QueryInstance):
            return
        family = query.family
        if family is None:
            for atom in query.used:
                self.atoms.release(atom, name)
            return
        family.leave(query)
        if not family.size:
            del self.running[family.name]
            line = self._lines[query.outline.key]
            line.family = None if line.family is family else line.family

    def gather(self, fresh: Collection[str], queries: dict[str, Pipeline | QueryInstance]) -> list[str]:
        """Let queries that have seen no event yet join families where that pays; name the others."""
        kin: dict[Hashable, list[str]] = {}
        for name, drawn in self._unlike_others(fresh, queries):
            kin.setdefault(drawn.key, []).append(name)
        for key, names in kin.items():
            line = self._lines[key]
            if line.family is None and len(names) + len(line.alone) < FEW:
                line.alone.update(names)
            else:
                for name in names:
                    queries[name] = self._joined(line, queries[name])
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
            drawn = queries[name].outline
            if drawn is not None:
                numbers = _selections(queries[name])
                common = {place for place, number in enumerate(numbers) if users[number] > 1}
                if not any(parts <= common for parts in self._lines[drawn.key].made_of):
                    yield name, drawn

    def _joined(self, line: _Line, query: Pipeline | QueryInstance) -> QueryInstance:
        member = self._as_member(query)
        if line.family is None or line.family.is_full:
            self._started += 1
            line.family = self._open(f"@family/{self._started}", member.outline)
        line.family.join(member)
        return member

    def _open(self, name: str, drawn: GraphTemplate) -> QueryTemplate:
        self.running[name] = QueryTemplate(drawn, self.atoms, name)
        return self.running[name]

    def _as_member(self, query: Pipeline | QueryInstance) -> QueryInstance:
        if isinstance(query, QueryInstance):
            return query
        assert query.outline is not None
        return self._member(query.query, query.name, query.outline, self._lines[query.outline.key])

    def _by_itself(self, query: Pipeline | QueryInstance) -> Pipeline:
        if isinstance(query, Pipeline):
            return query
        return self._pipeline(query.query, query.name, query.outline.graph, query.outline)

    # -- snapshots ---------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, queries: Mapping[str, Pipeline | QueryInstance]) -> list[Any]:
        """Write the state of all families; give who their members are, as JSON."""
        found = []
        for name, family in self.running.items():
            family.save(blocks, name)
            marks = {each: _mark(queries[each]) for each in family.members if each is not None}
            found.append({"name": name, "members": family.members, "graphs": marks})
        return found

    def load(self, blocks: Blocks, saved: list[Any], queries: dict[str, Pipeline | QueryInstance]) -> None:
        """Let queries be members of the families they were members of when a snapshot was taken.

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
                queries[name] = self._as_member(queries[name])
            self._reopen(each["name"], each["members"], queries).load(blocks, each["name"])
        self._started = max((int(name.split("/")[1]) for name in self.running), default=0)
        for name, query in queries.items():
            if not runs_in_template(query):
                queries[name] = self._by_itself(query)

    def _reopen(
        self, name: str, members: list[str | None], queries: Mapping[str, Pipeline | QueryInstance]
    ) -> QueryTemplate:
        """Open a family whose members have the numbers that they had before."""
        known = {each: queries[each] for each in members if each is not None}
        drawn = next(iter(known.values())).outline
        assert drawn is not None
        family = self._lines[drawn.key].family = self._open(name, drawn)
        for number, each in enumerate(members):
            query = known.get(each or "")
            if isinstance(query, QueryInstance):
                family.enter(each, query.outline.types)
                family.attach(query, number)
            else:
                family.enter(None, [""] * len(drawn.types))
        return family


def runs_in_template(query: Pipeline | QueryInstance) -> bool:
    """Tell whether a query runs as a member of a family."""
    return isinstance(query, QueryInstance) and query.family is not None


def _selections(query: Pipeline | QueryInstance) -> list[int]:
    """Tell the selections of atomic events that a query reads apart."""
    streams = query.selections if isinstance(query, Pipeline) else query.streams
    return [id(stream) for stream in streams]


def _mark(query: Pipeline | QueryInstance) -> str | None:
    return None if query.outline is None else fingerprint(query.outline.graph)
