"""Iteration: runs of successive events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whimbrel.graph.operators.base import Operator, unique
from whimbrel.graph.policies import WHOLE, Partitioning


@dataclass(frozen=True, slots=True)
class Repeat(Operator):
    """Runs of successive events of `input` in one partition (iteration).

    Every run of at least `at_least` and at most `at_most` (None: any number) successive events is
    one composite, as long as it spans at most `within` and no event of `until` lies between its
    first and its last in the total order. Runs do not skip an event that fits.
    """

    word: ClassVar[str] = "repeat"

    input: str
    alias: str | None
    at_least: int
    at_most: int | None
    within: int
    until: str | None = None
    partitioning: Partitioning = WHOLE

    @property
    def inputs(self) -> tuple[str, ...]:
        return unique(name for name in (self.input, self.until) if name is not None)
