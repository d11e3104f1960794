"""A compiled query: what the user asked, checked once, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from whimbrel.graph.custom import CustomOperator
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import Graph, Match
from whimbrel.graph.policies import Context
from whimbrel.model.schema import EventSchema


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

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the detections this query reports."""
        return tuple(getattr(self.graph[name], "event_type", name) for name in self.graph.outputs)

    def in_context(self, context: Context) -> Query:
        """Give the same query with another context for all its patterns."""
        operators = tuple(
            replace(operator, context=context) if isinstance(operator, Match) else operator
            for operator in self.graph.operators
        )
        return replace(self, graph=replace(self.graph, operators=operators))

    def __str__(self) -> str:
        return self.text


class Compilable(Protocol):
    """What can be compiled to a query: a pattern of steps, a definition made with the builder."""

    def compile(self) -> Query:
        """Give the query."""
        ...


def compiled(query: Query | Compilable) -> Query:
    """Give the query that something stands for, wherever one is asked for."""
    return query if isinstance(query, Query) else query.compile()
