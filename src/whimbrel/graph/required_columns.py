"""Which columns every stream has to hold, read off the graph from its end to its beginning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from whimbrel.graph.expressions import (
    GROUP,
    KEPT,
    PLACE,
    PLACE_RELATIONS,
    Attribute,
    Call,
    Expr,
    PartRef,
    children,
    parts_of,
)
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import ANY, Graph, Source
from whimbrel.graph.operators.base import EVERYTHING
from whimbrel.graph.policies import WHOLE, Partitioning
from whimbrel.graph.scope import scope

_EVENTS = Graph((Source("events", ANY),), ("events",))


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """Which attributes of atomic events are read: some, or all."""

    atoms: frozenset[str] = frozenset()
    all_atoms: bool = False


def all_read(each: Iterable[ColumnSet]) -> ColumnSet:
    """Give what any of several read."""
    found = list(each)
    return ColumnSet(frozenset().union(*(one.atoms for one in found)), any(one.all_atoms for one in found))


def read_by(condition: Expr | None) -> ColumnSet:
    """Give what a condition on one event reads."""
    if condition is None:
        return ColumnSet()
    required = RequiredColumns(_EVENTS, {})
    required.ask_for(_EVENTS.outputs[0], condition)
    return required.read


@dataclass
class RequiredColumns:
    """What each stream is asked for. `atoms` are attributes of atomic events."""

    graph: Graph
    functions: Mapping[str, Function]
    of: dict[str, set[Expr]] = field(default_factory=dict)
    atoms: set[str] = field(default_factory=set)
    all_atoms: bool = False

    asked: Mapping[str, Collection[Expr]] = field(default_factory=dict)
    """What readers outside the graph ask of its streams."""

    def __post_init__(self) -> None:
        for operator in self.graph.operators:
            self.of[operator.name] = set(self.asked.get(operator.name, ()))
        for operator in reversed(self.graph.operators):
            operator.request(self)

    @property
    def read(self) -> ColumnSet:
        """What is read of atomic events."""
        return ColumnSet(frozenset(self.atoms), self.all_atoms)

    def ask_for(self, stream: str, condition: Expr) -> None:
        """Ask a stream for all that a condition on its events reads."""
        self.want_expression(stream, None, condition, WHOLE)

    def asked_of(self, stream: str) -> Collection[Expr]:
        """Give what later operators ask of a stream."""
        return self.of[stream]

    def want(self, stream: str, column: Expr) -> None:
        """Ask a stream for a column."""
        operator = self.graph[stream]
        if operator.passes_on is not None:
            self.want(operator.passes_on, column)
        elif isinstance(operator, Source):
            if column == EVERYTHING:
                self.all_atoms = True
            elif isinstance(column, Attribute):
                self.atoms.add(column.name)
        else:
            self.of[stream].add(column)

    def want_keys(self, stream: str, partitioning: Partitioning) -> None:
        """Ask a stream for the values that part it."""
        for key in partitioning.keys:
            if self.graph[stream].knows_groups:
                self.want(stream, Attribute(GROUP, key.name))
            elif key.kind == "attribute":
                self.want(stream, Attribute(None, key.name))

    def want_expression(self, stream: str, alias: str | None, expr: Expr, partitioning: Partitioning) -> None:
        """Ask `stream`, known as `alias`, for all that `expr` reads of it."""
        for node in self.leaves(expr):
            if isinstance(node, Call):
                self.want(stream, node)
            elif isinstance(node, PartRef):
                own = node.name is None or node.name == alias
                self.want(stream, EVERYTHING if own else Attribute(node.name, "*"))
            elif isinstance(node, Attribute) and node.part == GROUP:
                self.want_keys(stream, partitioning)
            elif isinstance(node, Attribute):
                own = node.part is None or node.part == alias
                self.want(stream, Attribute(None, node.name) if own else Attribute(node.part, node.name))

    def want_read(
        self, stream: str, alias: str | None, exprs: Iterable[Expr], partitioning: Partitioning
    ) -> None:
        """Ask `stream`, known as `alias`, for what some expressions read of its parts."""
        names = self.names(stream, alias)
        for expr in exprs:
            for node in self.leaves(expr):
                if parts_of(node) & names:
                    self.want_expression(stream, alias, node, partitioning)

    def names(self, stream: str, alias: str | None) -> set[str | None]:
        """Name the parts that are read of a stream."""
        return {*scope(self.graph, stream), *([] if alias is None else [alias])}

    def leaves(self, expr: Expr) -> Iterable[Expr]:
        """Yield the attributes, parts and aggregates that `expr` is made of."""
        if isinstance(expr, Attribute | PartRef) or (isinstance(expr, Call) and self.is_aggregate(expr)):
            yield expr
        elif isinstance(expr, Call) and expr.function in PLACE_RELATIONS:
            for argument in expr.arguments:
                if isinstance(argument, PartRef):
                    yield from (Attribute(argument.name, each) for each in PLACE)
        else:
            for child in children(expr):
                yield from self.leaves(child)

    def is_aggregate(self, call: Call) -> bool:
        """Tell whether a call takes many events to one value."""
        registered = self.functions.get(call.function)
        return call.function in KEPT or (registered is not None and registered.aggregate)

    def has_group(self, stream: str, name: str) -> bool:
        """Tell whether the rows of a composite stream know a value by the group they belong to."""
        operator = self.graph[stream]
        return operator.is_composite and any(key.name == name for key in operator.partitioning.keys)
