"""Values over the events of a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whimbrel.graph.expressions import Expr
from whimbrel.graph.operators.base import Operator, unique
from whimbrel.graph.policies import WHOLE, Assign, Partitioning, Window


@dataclass(frozen=True, slots=True)
class AggregateInput:
    """A stream that is aggregated. `outer`: groups count even if this stream has no event in them."""

    input: str
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

    parts: tuple[AggregateInput, ...]
    window: Window
    assign: tuple[Assign, ...]
    post: tuple[Assign, ...] = ()
    having: Expr | None = None
    partitioning: Partitioning = WHOLE

    @property
    def inputs(self) -> tuple[str, ...]:
        return unique(part.input for part in self.parts)
