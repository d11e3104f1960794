"""Disjunction: the events of several streams as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whimbrel.graph.operators.base import Operator, unique


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative of a `Merge`: a stream, and the part name it binds (None for composites)."""

    input: str
    alias: str | None


@dataclass(frozen=True, slots=True)
class Merge(Operator):
    """Every event of any branch, each event once (disjunction). Parts of other branches are null."""

    word: ClassVar[str] = "merge"

    branches: tuple[Branch, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return unique(branch.input for branch in self.branches)
