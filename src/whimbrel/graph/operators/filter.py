"""Selections of single events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from whimbrel.graph.costs import Observed, passing
from whimbrel.graph.expressions import TRUE, Binary, Expr, format_expr
from whimbrel.graph.links import stream
from whimbrel.graph.operators.base import (
    ChangeConditions,
    ColumnReader,
    ColumnRequests,
    Columns,
    KeyTracer,
    Operator,
    SpatialReach,
)
from whimbrel.graph.policies import WHOLE, Key


@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """The events of `input` for which `condition` is true. The condition reads one event only."""

    word: ClassVar[str] = "filter"
    brackets: ClassVar[tuple[str, str]] = ("{{", "}}")
    looks_at_each: ClassVar[bool] = True
    may_be_merged: ClassVar[bool] = True

    input: str = field(metadata=stream())
    condition: Expr

    def request(self, columns: ColumnRequests) -> None:
        columns.want_expression(self.input, None, self.condition, WHOLE)

    @property
    def passes_on(self) -> str | None:
        return self.input

    def columns(self, below: ColumnReader) -> Columns:
        return below.of(self.input)

    @property
    def together(self) -> tuple[Key, ...] | None:
        return None

    def traced(self, name: str, tracer: KeyTracer) -> Iterable[Key | None]:
        return (tracer.trace(self.input, name),)

    def spatial_reach(self, below: Callable[[str], SpatialReach | None]) -> SpatialReach | None:
        return below(self.input)

    @property
    def is_monotone(self) -> bool:
        return True

    def rate(self, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
        return below[self.input]

    def likely_rate(self, below: Mapping[str, float], observed: Observed) -> float:
        return below[self.input] * passing(self.condition)

    @property
    def conditions(self) -> tuple[Expr, ...]:
        return (self.condition,)

    def with_conditions(self, change: ChangeConditions) -> Operator:
        first, *others = change(self.conditions) or (TRUE,)
        if first is self.condition and not others:
            return self
        for other in others:
            first = Binary("and", first, other, at=self.condition.at)
        return replace(self, condition=first)

    def finds_nothing_without(self, streams: Collection[str]) -> bool:
        return self.input in streams

    def words(self) -> list[str]:
        return [format_expr(self.condition)]

    def box(self, columns: Columns) -> list[str] | None:
        return self.words()
