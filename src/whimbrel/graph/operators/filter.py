"""Selections of single events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from whimbrel.graph.costs import Observed, passing
from whimbrel.graph.expressions import TRUE, Binary, Expr, format_expr
from whimbrel.graph.links import stream
from whimbrel.graph.operators.base import ChangeConditions, Columns, Operator
from whimbrel.graph.policies import WHOLE

if TYPE_CHECKING:
    from whimbrel.graph.required_columns import RequiredColumns


@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """The events of `input` for which `condition` is true. The condition reads one event only."""

    word: ClassVar[str] = "filter"
    brackets: ClassVar[tuple[str, str]] = ("{{", "}}")
    looks_at_each: ClassVar[bool] = True
    may_be_merged: ClassVar[bool] = True

    input: str = field(metadata=stream())
    condition: Expr

    def request(self, columns: RequiredColumns) -> None:
        columns.want_expression(self.input, None, self.condition, WHOLE)

    @property
    def passes_on(self) -> str | None:
        return self.input

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

    def words(self) -> list[str]:
        return [format_expr(self.condition)]

    def box(self, columns: Columns) -> list[str] | None:
        return self.words()
