"""Selections of single events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whimbrel.graph.expressions import Expr
from whimbrel.graph.operators.base import Operator


@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """The events of `input` for which `condition` is true. The condition reads one event only."""

    word: ClassVar[str] = "filter"

    input: str
    condition: Expr

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)
