"""What can be read off a graph without running it: types, attributes, reach and memory of its streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whimbrel.errors import UnboundedError
from whimbrel.graph.columns import GraphColumns
from whimbrel.graph.costs import StateEstimate
from whimbrel.graph.estimate import stream_rates
from whimbrel.graph.operators import Graph, Source
from whimbrel.graph.operators.base import Columns
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.reach import reach
from whimbrel.graph.scope import selection
from whimbrel.model.time import END_OF_TIME

if TYPE_CHECKING:
    from whimbrel.graph.mobile.query import MobileQuery


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """A graph, and what is worked out about each of its streams."""

    graph: Graph
    types: Mapping[str, str | None]
    """The event type; None for composites."""
    columns: Mapping[str, Columns]
    rates: Mapping[str, float]
    states: Mapping[str, StateEstimate]
    mobile: tuple[MobileQuery, ...] = ()
    """The mobile queries that what it finds is for."""

    @classmethod
    def of(cls, graph: Graph, rates: Mapping[str, float], mobile: tuple[MobileQuery, ...] = ()) -> GraphFacts:
        """Work everything out once."""
        every, columns = stream_rates(graph, rates), GraphColumns(graph)
        names = [operator.name for operator in graph.operators]
        return cls(
            graph,
            {name: selection(graph, name)[0].made_type for name in names},
            {name: columns.of(name) for name in names},
            every,
            {operator.name: operator.state(every) for operator in graph.operators},
            mobile,
        )

    def reach(self, name: str) -> int | None:
        """Tell how far back a stream reaches; None: without bound."""
        try:
            found = reach(self.below(name), name)
        except UnboundedError:
            return None
        return found if found < END_OF_TIME else None

    @property
    def whole_reach(self) -> int | None:
        """How far back any output reaches; None: without bound."""
        reaches = [self.reach(name) for name in self.graph.outputs]
        return None if None in reaches else max((each or 0 for each in reaches), default=0)

    def below(self, name: str) -> Graph:
        """Give the part of the graph that makes one stream."""
        return drop_unused(Graph(self.graph.operators, (name,)))

    def sources(self, name: str) -> list[str]:
        """Name the event types that a stream is made from, in the order of the graph."""
        sources = [each for each in self.below(name).operators if isinstance(each, Source)]
        return [each.event_type if each.at is None else each.name for each in sources]

    def remembered(self, name: str | None = None) -> float | None:
        """Tell how many events all operators remember, or those below a stream; None: without bound."""
        operators = self.graph.operators if name is None else self.below(name).operators
        amounts = [self.states[operator.name].events for operator in operators]
        return None if None in amounts else sum(amount or 0.0 for amount in amounts)
