"""A compiled query: what the user asked, checked once, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from whimbrel.errors import QueryError
from whimbrel.graph.custom import CustomOperator
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import Derive, Graph, JoinPattern, Operator, Source
from whimbrel.graph.passes import rewrite
from whimbrel.graph.policies import Context
from whimbrel.graph.scope import selection
from whimbrel.model.schema import EventSchema

if TYPE_CHECKING:
    from whimbrel.graph.mobile.query import MobileQuery


@dataclass(frozen=True, slots=True)
class Subscription:
    """Who asked for a detection, and which actor it goes to."""

    type: str
    sequence: int
    subscriber: str
    actor: str


@dataclass(frozen=True, slots=True)
class Query:
    """A compiled query. `text` is the query in the formatted Whimbrel language."""

    graph: Graph
    text: str = ""
    schemas: Mapping[str, EventSchema] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    subscriptions: tuple[Subscription, ...] = ()
    warnings: tuple[str, ...] = ()
    operators: Mapping[str, type[CustomOperator]] = field(default_factory=dict)
    """The classes behind its `Custom` operators, by the name of their function."""
    mobile: tuple[MobileQuery, ...] = ()
    """The mobile queries in it: what its outputs find is told of their interests, and not by itself."""
    _rewritten: Graph | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def rewritten(self) -> Graph:
        """The graph after all rewrites: what the engine runs. It is worked out once."""
        if self._rewritten is None:
            object.__setattr__(self, "_rewritten", rewrite(self.graph))
        assert self._rewritten is not None
        return self._rewritten

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the detections this query reports."""
        return tuple(getattr(self.graph[name], "event_type", name) for name in self.graph.outputs)

    @property
    def attributes(self) -> dict[str, list[str]]:
        """The attributes that each type of detection is known to have before any event is seen."""
        found: dict[str, list[str]] = {}
        for kind, name in zip(self.types, self.graph.outputs, strict=True):
            known = [*found.get(kind, []), *_attributes(self.graph, self.graph[name])]
            found[kind] = list(dict.fromkeys(known))
        return found

    def in_context(self, context: Context | str) -> Query:
        """Give the same query with another context for all its patterns: `query.in_context("recent")`."""
        chosen = Context(context)
        operators = tuple(
            replace(operator, context=chosen) if isinstance(operator, JoinPattern) else operator
            for operator in self.graph.operators
        )
        mobile = tuple(each.with_detect(each.detect.in_context(chosen)) for each in self.mobile)
        return replace(self, graph=replace(self.graph, operators=operators), mobile=mobile)

    def __str__(self) -> str:
        return self.text


def _attributes(graph: Graph, operator: Operator) -> Iterator[str]:
    """Name what the cases of a definition assign, or take over from declared events."""
    for case in operator.cases if isinstance(operator, Derive) else ():
        yield from (assign.name for assign in case.assign)
        root, _ = selection(graph, case.input)
        if not case.assign and isinstance(root, Source) and root.schema is not None:
            yield from root.schema.attributes


class Compilable(Protocol):
    """What can be compiled to a query: a pattern of steps, a definition made with the builder."""

    def compile(self) -> Query:
        """Give the query."""
        ...


def refuse_mobile_parts(query: Query, what: str) -> None:
    """Refuse a query that follows objects where only plain queries are understood."""
    if query.mobile:
        names = ", ".join(each.name for each in query.mobile)
        raise QueryError(
            f"{what} takes plain queries, and this one follows objects: {names}",
            hint="give it the definitions: compile(text, emit='all'), or the query that it follows them with",
        )


def compiled(query: Query | Compilable) -> Query:
    """Give the query that something stands for, wherever one is asked for."""
    if isinstance(query, str):
        raise QueryError("this is the text of a query", hint="compile it first: whimbrel.compile(text)")
    return query if isinstance(query, Query) else query.compile()
