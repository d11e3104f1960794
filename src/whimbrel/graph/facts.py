"""What can be read off a graph without running it: types, attributes, reach and memory of its streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from whimbrel.errors import UnboundedError
from whimbrel.graph.estimate import StateEstimate, state_of, stream_rates
from whimbrel.graph.operators import (
    Aggregate,
    Custom,
    Derive,
    DeriveCase,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    Source,
    TimePoints,
)
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.reach import reach
from whimbrel.graph.scope import is_composite, scope
from whimbrel.model.time import END_OF_TIME


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a stream's events."""

    names: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    """Undeclared event types, whose attributes it has too, whatever they are."""

    @property
    def listed(self) -> list[str] | None:
        """All names, or None if the graph does not tell them."""
        return None if self.of else list(self.names)


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """A graph, and what is worked out about each of its streams."""

    graph: Graph
    types: Mapping[str, str | None]
    """The event type; None for composites."""
    attributes: Mapping[str, Attributes]
    rates: Mapping[str, float]
    states: Mapping[str, StateEstimate]

    @classmethod
    def of(cls, graph: Graph, rates: Mapping[str, float]) -> GraphFacts:
        """Work everything out once."""
        every = stream_rates(graph, rates)
        types: dict[str, str | None] = {}
        attributes: dict[str, Attributes] = {}
        for operator in graph.operators:
            types[operator.name] = _type(operator, types)
            attributes[operator.name] = _attributes(graph, operator, attributes)
        states = {operator.name: state_of(operator, every) for operator in graph.operators}
        return cls(graph, types, attributes, every, states)

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
        return [each.name if isinstance(each, TimePoints) else each.event_type for each in sources]

    def remembered(self, name: str | None = None) -> float | None:
        """Tell how many events all operators remember, or those below a stream; None: without bound."""
        operators = self.graph.operators if name is None else self.below(name).operators
        amounts = [self.states[operator.name].events for operator in operators]
        return None if None in amounts else sum(amount or 0.0 for amount in amounts)


def _type(operator: Operator, below: Mapping[str, str | None]) -> str | None:
    if isinstance(operator, Source | Derive):
        return operator.event_type
    return below[operator.input] if isinstance(operator, Filter) else None


def _attributes(graph: Graph, operator: Operator, below: Mapping[str, Attributes]) -> Attributes:
    match operator:
        case Source():
            if operator.schema is None:
                return Attributes(of=(operator.event_type,))
            return Attributes(tuple(operator.schema.attributes))
        case Filter():
            return below[operator.input]
        case Aggregate():
            return Attributes(tuple(assign.name for assign in operator.post or operator.assign))
        case Custom():
            return Attributes(operator.attributes)
        case Derive():
            cases = [_case_attributes(graph, case, below) for case in operator.cases]
            return Attributes(
                tuple(dict.fromkeys(name for case in cases for name in case.names)),
                tuple(dict.fromkeys(name for case in cases for name in case.of)),
            )
    return Attributes()


def _case_attributes(graph: Graph, case: DeriveCase, below: Mapping[str, Attributes]) -> Attributes:
    if case.assign:
        return Attributes(tuple(assign.name for assign in case.assign))
    part = _only_part(graph, case)
    return Attributes(tuple(key.name for key in case.partitioning.keys)) if part is None else below[part]


def _only_part(graph: Graph, case: DeriveCase) -> str | None:
    """Name the stream whose attributes a case without assignments takes over; None if there are several."""
    if not is_composite(graph[case.input]):
        return case.input
    names = scope(graph, case.input)
    if len(names) != 1 or any(names.values()):
        return None
    name = case.input
    while is_composite(operator := graph[name]):
        match operator:
            case JoinPattern():
                name = operator.parts[0].input
            case Merge():
                name = operator.branches[0].input
            case _:
                return None
    return name
