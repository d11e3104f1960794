"""Definitions: events of a named type made from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from whimbrel.graph.expressions import GROUP, Attribute
from whimbrel.graph.links import MEMBERS, stream
from whimbrel.graph.operators.base import EVERYTHING, Columns, Operator
from whimbrel.graph.operators.source import SOURCE
from whimbrel.graph.policies import WHOLE, Assign, Key, Partitioning
from whimbrel.graph.scope import only_part
from whimbrel.model.schema import Type

if TYPE_CHECKING:
    from whimbrel.graph.columns import GraphColumns
    from whimbrel.graph.required_columns import RequiredColumns
    from whimbrel.graph.sharding import KeyTracer


@dataclass(frozen=True, slots=True)
class DeriveCase:
    """One way of detecting a definition. `alias` is the part name where `input` carries plain events."""

    input: str = field(metadata=stream("case"))
    alias: str | None
    assign: tuple[Assign, ...] = ()
    partitioning: Partitioning = WHOLE
    label: str = ""

    def columns(self, below: GraphColumns) -> Columns:
        """Say which attributes it gives: those assigned, or those of its only part, or its groups."""
        if self.assign:
            return Columns({each.name: below.assigned(each, self._reader(below)) for each in self.assign})
        if not below.graph[self.input].is_composite or self.alias is not None:
            return below.of(self.input)
        part = only_part(below.graph, self.input)
        if part is not None:
            return below.of_part(self.input, part)
        return Columns({key.name: below.key(self.input, key) for key in self.partitioning.keys})

    def request(self, columns: RequiredColumns) -> None:
        """Ask for what is assigned, or for all that it takes over."""
        for assign in self.assign:
            columns.want_expression(self.input, self.alias, assign.value, self.partitioning)
        if self.assign:
            return
        part = None if self.alias is not None else only_part(columns.graph, self.input)
        if part is not None:
            columns.want(self.input, Attribute(part, "*"))
        elif columns.graph[self.input].is_composite and self.alias is None:
            columns.want_keys(self.input, self.partitioning)
        else:
            columns.want(self.input, EVERYTHING)

    def _reader(self, below: GraphColumns) -> Callable[[Attribute], Type | None]:
        return lambda attribute: below.read(self.input, self.alias, self.partitioning, attribute)

    def traced(self, name: str, tracer: KeyTracer) -> Key | None:
        """Say which value of the atomic events an attribute of its events stands for."""
        assigned = next((assign for assign in self.assign if assign.name == name), None)
        if assigned is not None:
            if assigned.type is None and isinstance(assigned.value, Attribute):
                return self._traced_value(assigned.value, tracer)
            return None
        if name == "source":
            # The source of a derived event is the one that all its events share.
            return SOURCE if tracer.separates(self.input, SOURCE) else None
        return None if self.assign else tracer.trace_only_part(self.input, name)

    def _traced_value(self, value: Attribute, tracer: KeyTracer) -> Key | None:
        if value.part == GROUP:
            key = next((key for key in self.partitioning.keys if key.name == value.name), None)
            return None if key is None else tracer.trace_key(self.input, key)
        if value.part is None or value.part == self.alias:
            return tracer.trace(self.input, value.name)
        return tracer.trace_part(self.input, value.part, value.name)


@dataclass(frozen=True, slots=True)
class Derive(Operator):
    """Events of type `event_type` made from the events of `inputs`: the cases of one definition.

    Each case has its own input stream and assignments. Without assignments, the new event has the
    attributes of its only part, or none. Without any case, the events come from another session, which runs
    the part of the query that makes them (`whimbrel.graph.fragments`).
    """

    word: ClassVar[str] = "derive"
    brackets: ClassVar[tuple[str, str]] = ("[[", "]]")
    looks_at_each: ClassVar[bool] = True

    event_type: str
    cases: tuple[DeriveCase, ...] = field(metadata=MEMBERS)

    @property
    def made_type(self) -> str | None:
        return self.event_type

    def request(self, columns: RequiredColumns) -> None:
        for case in self.cases:
            case.request(columns)

    def columns(self, below: GraphColumns) -> Columns:
        found = Columns()
        for case in self.cases:
            found = found.joined(case.columns(below))
        return found

    def traced(self, name: str, tracer: KeyTracer) -> Iterable[Key | None]:
        return [case.traced(name, tracer) for case in self.cases]

    @property
    def assigned(self) -> list[tuple[str, tuple[Assign, ...]]]:
        if len(self.cases) == 1:
            return [("assigns", self.cases[0].assign)]
        return [(f"case {case.label}".strip(), case.assign) for case in self.cases]

    def box(self, columns: Columns) -> list[str] | None:
        return [self.event_type, *([", ".join(columns.types)] if columns.types else [])]
