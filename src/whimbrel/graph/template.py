"""What a graph does, apart from what it asks of single events and how its definitions are called.

Queries that are deployed by the thousand are often one query, written again and again with other constants.
Their graphs are instances of one template, and an engine may run all of them as one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from whimbrel.graph.expressions import Binary, Expr
from whimbrel.graph.operators import Derive, Filter, Graph, JoinPattern, Operator, Source


@dataclass(frozen=True, slots=True)
class Selected:
    """The atomic events that an operator of the template reads: all of one type that pass a condition."""

    name: str
    source: Source
    condition: Expr | None


@dataclass(frozen=True, slots=True)
class GraphTemplate:
    """A graph whose selections of atomic events may be exchanged for others."""

    key: Hashable
    """The same for graphs that do the same to what they select."""
    graph: Graph
    selected: tuple[Selected, ...]
    others: tuple[Operator, ...]
    """The operators that work on what is selected."""
    types: tuple[str, ...]
    """What the definitions are called, in the order of the graph."""

    def model(self) -> Graph:
        """Give what all graphs of this template have in common, as a graph that selects events by type only.

        The names in it are the same for all, and in the order of those that they stand for.
        """
        names = {each.name: f"@{number}" for number, each in enumerate(self.selected)}
        ranks = _order([_maker(operator) for operator in self.others])
        names |= {each.name: f"#{rank:06}" for each, rank in zip(self.others, ranks, strict=True)}
        sources = [
            Source(names[each.name], each.source.event_type, each.source.schema) for each in self.selected
        ]
        others = [_renamed(operator, names) for operator in self.others]
        outputs = tuple(names[name] for name in self.graph.outputs)
        return Graph((*sources, *others), outputs, self.graph.coordinates)

    def made_of(self) -> Iterator[frozenset[int]]:
        """Give the selections that each thing is made of that another query could have as well.

        These are patterns, definitions, and the beginnings of patterns.
        """
        below = {each.name: frozenset({number}) for number, each in enumerate(self.selected)}
        for operator in self.others:
            below[operator.name] = frozenset().union(*(below[name] for name in operator.inputs))
            if isinstance(operator, JoinPattern | Derive):
                yield below[operator.name]
            if isinstance(operator, JoinPattern) and len(operator.parts) > 2:
                yield below[operator.parts[0].input] | below[operator.parts[1].input]


def template_of(graph: Graph) -> GraphTemplate | None:
    """Find the template of a graph; None if it has an operator whose work cannot be kept apart by queries."""
    selections: dict[str, Selected] = {}
    others: list[Operator] = []
    for operator in graph.operators:
        if isinstance(operator, Source):
            selections[operator.name] = Selected(operator.name, operator, None)
        elif isinstance(operator, Filter) and operator.input in selections:
            selections[operator.name] = _selected(operator, selections[operator.input])
        elif isinstance(operator, Filter | JoinPattern) or (
            isinstance(operator, Derive) and _is_plain(operator)
        ):
            others.append(operator)
        else:
            return None
    if any(name in selections for name in graph.outputs):
        return None
    read = {name for operator in others for name in operator.inputs}
    selected = tuple(each for name, each in selections.items() if name in read)
    streams = [*(each.name for each in selected), *(operator.name for operator in others)]
    names = {name: str(number) for number, name in enumerate(streams)}
    key = (
        graph.coordinates,
        tuple((each.source.event_type, repr(each.source.schema)) for each in selected),
        tuple(_renamed(operator, names, "") for operator in others),
        tuple(names[name] for name in graph.outputs),
        _order([_maker(operator) for operator in others]),
    )
    types = tuple(operator.event_type for operator in others if isinstance(operator, Derive))
    return GraphTemplate(key, graph, selected, tuple(others), types)


def _selected(operator: Filter, below: Selected) -> Selected:
    condition = operator.condition
    joined = condition if below.condition is None else Binary("and", below.condition, condition)
    return Selected(operator.name, below.source, joined)


def _is_plain(operator: Derive) -> bool:
    """Tell whether all its events have the same attributes, whichever case found them."""
    if len(operator.cases) == 1:
        return True
    assigned = {tuple(assign.name for assign in case.assign) for case in operator.cases}
    return len(assigned) == 1 and assigned != {()}


def _renamed(operator: Operator, names: Mapping[str, str], name: str | None = None) -> Operator:
    """Give an operator, and what it makes, another name: the one that it has in `names`, or `name`."""
    name = names[operator.name] if name is None else name
    found = operator.reading(names)
    return (
        replace(found, name=name, event_type=name) if isinstance(found, Derive) else replace(found, name=name)
    )


def _maker(operator: Operator) -> str:
    return operator.event_type if isinstance(operator, Derive) else operator.name


def _order(names: list[str]) -> tuple[int, ...]:
    """Tell the order of names: it decides between events that are made of the same."""
    ranks = {name: rank for rank, name in enumerate(sorted(set(names)))}
    return tuple(ranks[name] for name in names)
