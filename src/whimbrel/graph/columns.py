"""The attributes that the streams of a graph have, as far as they are known before any event is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from whimbrel.graph.expressions import GROUP, Attribute, Expr
from whimbrel.graph.operators.base import Columns, Graph, Types
from whimbrel.graph.policies import Assign, Key, Partitioning
from whimbrel.graph.scope import scope
from whimbrel.model.schema import BUILT_IN_ATTRIBUTES, TYPE_NAMES, Type, common_type

Infer = Callable[[Expr, Callable[[Attribute], Type | None]], Type | None]
"""Works out the type of an expression from those of the attributes that it reads."""


@dataclass
class GraphColumns:
    """The columns of every stream of a graph, worked out where they are asked for.

    `events` are the attributes of events of types that are not declared.
    """

    graph: Graph
    events: Types = field(default_factory=dict)
    infer: Infer = lambda expr, read: None
    _known: dict[str, Columns] = field(default_factory=dict)

    def of(self, stream: str) -> Columns:
        """Give the columns that the rows of a stream have of their own."""
        if stream not in self._known:
            self._known[stream] = self.graph[stream].columns(self)
        return self._known[stream]

    def of_part(self, stream: str, part: str) -> Columns:
        """Give the columns of the events behind a part name of a composite."""
        operator = self.graph[stream]
        if part in operator.own_parts:
            return Columns(dict(operator.own_parts[part]))
        found = Columns()
        for member in operator.members:
            if member.alias == part:
                found = found.joined(self.of(member.stream))
            elif self.has_part(member.stream, part):
                found = found.joined(self.of_part(member.stream, part))
        return found

    def has_part(self, stream: str, part: str) -> bool:
        """Tell whether a stream has a part of this name."""
        return part in scope(self.graph, stream)

    def key(self, stream: str, key: Key) -> Type | None:
        """Give the type of a value by which a stream is parted."""
        if key.kind != "attribute":
            return Type.STRING
        operator = self.graph[stream]
        if not operator.is_composite:
            return self._own(stream, key.name)
        read = dict.fromkeys(link.stream for link in operator.links if link.role != "until")
        return common_type(self.key(each, key) for each in read)

    def read(
        self, stream: str, alias: str | None, partitioning: Partitioning, attribute: Attribute
    ) -> Type | None:
        """Give the type of what an expression reads of a stream."""
        name, part = attribute.name, attribute.part
        if part == GROUP and alias != GROUP:
            key = next((key for key in partitioning.keys if key.name == name), None)
            return None if key is None else self.key(stream, key)
        if part is None or part == alias:
            return self._own(stream, name)
        return self.of_part(stream, part).types.get(name, BUILT_IN_ATTRIBUTES.get(name))

    def assigned(self, assign: Assign, read: Callable[[Attribute], Type | None]) -> Type | None:
        """Give the type of an assigned value."""
        return TYPE_NAMES[assign.type.lower()] if assign.type is not None else self.infer(assign.value, read)

    def _own(self, stream: str, name: str) -> Type | None:
        found = self.of(stream).types.get(name)
        return found if found is not None else BUILT_IN_ATTRIBUTES.get(name)
