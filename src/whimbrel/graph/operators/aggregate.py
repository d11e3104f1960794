"""Values over the events of a window."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from whimbrel.errors import UnboundedError
from whimbrel.graph.costs import StateEstimate, events_over
from whimbrel.graph.expressions import GROUP, Attribute, Call, Expr, PartRef, parts_of
from whimbrel.graph.links import MEMBERS, stream
from whimbrel.graph.operators.base import ONE_INSTANT, Columns, Operator, Types, distinct
from whimbrel.graph.policies import (
    WHOLE,
    Assign,
    Key,
    Partitioning,
    ProcessWhen,
    RestrictionWindow,
    SelectionPolicy,
    SelectionWindow,
    Shift,
    Window,
)
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME, SECOND, format_duration

if TYPE_CHECKING:
    from whimbrel.graph.columns import GraphColumns
    from whimbrel.graph.required_columns import RequiredColumns
    from whimbrel.graph.sharding import KeyTracer


@dataclass(frozen=True, slots=True)
class AggregateInput:
    """A stream that is aggregated. `outer`: groups count even if this stream has no event in them."""

    input: str = field(metadata=stream())
    alias: str | None
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate(Operator):
    """Values over the events of a window, for each group and window that has any.

    A group counts if every input that is not `outer` has an event in the window. `assign` is computed
    from the events; `post`, where present, from the partial results of `assign` (one here, several
    where the work is spread); `having` reads the results and keeps those for which it is true.
    """

    word: ClassVar[str] = "aggregate"
    may_be_merged: ClassVar[bool] = True

    parts: tuple[AggregateInput, ...] = field(metadata=MEMBERS)
    window: Window
    assign: tuple[Assign, ...]
    post: tuple[Assign, ...] = ()
    having: Expr | None = None
    partitioning: Partitioning = WHOLE

    def request(self, columns: RequiredColumns) -> None:
        for part in self.parts:
            columns.want_keys(part.input, self.partitioning)
            leaves = (leaf for assign in self.assign for leaf in columns.leaves(assign.value))
            for call in (leaf for leaf in leaves if isinstance(leaf, Call)):
                for argument in call.arguments:
                    # An attribute without a part is of any of them.
                    named = parts_of(argument) & {*columns.names(part.input, None), part.alias}
                    if named and not isinstance(argument, PartRef):
                        columns.want_expression(part.input, part.alias, argument, self.partitioning)

    def columns(self, below: GraphColumns) -> Columns:
        made: Types = {}

        def read(attribute: Attribute) -> Type | None:
            if attribute.part is None and attribute.name in made:
                return made[attribute.name]
            found = (self._read(part, attribute, below) for part in self.parts)
            return next((kind for kind in found if kind is not None), None)

        for assign in (*self.assign, *self.post):
            made[assign.name] = below.assigned(assign, read)
        return Columns({assign.name: made[assign.name] for assign in self.post or self.assign})

    def _read(self, part: AggregateInput, attribute: Attribute, below: GraphColumns) -> Type | None:
        own = attribute.part in (None, GROUP, part.alias)
        if own or below.has_part(part.input, attribute.part or ""):
            return below.read(part.input, part.alias, self.partitioning, attribute)
        return None

    @property
    def retention(self) -> int:
        if self.window.kind == "temporal":
            return self.window.length + (self.window.every or 0)
        if self.window.within is None:
            raise UnboundedError(
                f"the window of {self.name!r} counts events and would have to remember them for ever",
                hint=f"write `over {self.window.length} events within 1 h`, or run it with a horizon",
            )
        return self.window.within

    @property
    def known_after(self) -> int:
        # A result ends with its last event, and is known when the window has passed.
        return self.window.length if self.window.kind == "temporal" and self.window.every is not None else 0

    @property
    def anchor(self) -> str | None:
        counts = self.window.kind == "counting" and self.window.every is not None
        return f"counts events in steps of {self.window.every}, from the first on" if counts else None

    def traced(self, name: str, tracer: KeyTracer) -> Iterable[Key | None]:
        assigned = next((a for a in (*self.assign, *self.post) if a.name == name), None)
        if assigned is not None and not self.post and assigned.type is None:
            value = assigned.value
            if isinstance(value, Attribute) and value.part == GROUP:
                return (tracer.trace_group(self.name, value.name),)
        return (None,)

    def rate(self, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
        coming = sum(below[name] for name in self.inputs)
        if self.window.every is None:
            return coming
        return (SECOND if self.window.kind == "temporal" else coming) / self.window.every

    def state(self, rates: Mapping[str, float]) -> StateEstimate:
        length = self.window.length
        if self.window.kind == "counting":
            return StateEstimate(float(length), f"the last {length:,} of each group")
        return events_over(length, sum(rates[name] for name in self.inputs))

    @property
    def exercise(self) -> str | None:
        return "aggregate"

    def finds_nothing_without(self, streams: Collection[str]) -> bool:
        needed = any(part.input in streams for part in self.parts if not part.outer)
        return needed or all(part.input in streams for part in self.parts)

    @property
    def selection_policy(self) -> SelectionPolicy:
        """Take the events of the window, which moves by time or by events."""
        window = self.window
        is_timed = window.kind == "temporal" and window.every is not None
        shift = Shift("time", window.every or 0) if is_timed else Shift("events", window.every or 1)
        names = distinct([part.alias or part.input for part in self.parts])
        windows = tuple(
            SelectionWindow(name, part.input, window.kind, max(window.length, 1), shift)
            for name, part in zip(names, self.parts, strict=True)
        )
        needed = [name for name, part in zip(names, self.parts, strict=True) if not part.outer]
        predicates = tuple(ProcessWhen(name, ">=", 1) for name in needed or names)
        length = window.length if window.kind == "temporal" else window.within
        reached = END_OF_TIME if length is None else max(length, ONE_INSTANT.length)
        return SelectionPolicy(
            windows, RestrictionWindow(reached, shift), (), predicates, process_all=bool(needed)
        )

    def words(self) -> list[str]:
        within = self.window.within
        return [] if within is None else [f"at most {format_duration(within)} old"]

    @property
    def assigned(self) -> list[tuple[str, tuple[Assign, ...]]]:
        return [("assigns", self.assign), ("combines", self.post)]
