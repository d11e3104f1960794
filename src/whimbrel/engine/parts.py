"""Combinations of rows, one a part, as expressions see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from whimbrel.engine.streams import ExecutionContext, RowsFrame
from whimbrel.engine.values import Column
from whimbrel.graph.expressions import GROUP, Expr, parts_of


@dataclass(frozen=True, slots=True)
class PartsFrame:
    """One frame a part, all of the same length; `owner` tells which part a name belongs to."""

    context: ExecutionContext
    frames: tuple[RowsFrame, ...]
    owner: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.frames[0])

    def column(self, part: str | None, name: str) -> Column:
        """Give the column that `part.name` stands for."""
        return self._frame(part).column(part, name)

    def attributes(self, part: str | None) -> dict[str, Column]:
        """Give all attributes of a part."""
        return self._frame(part).attributes(part)

    def known(self, expr: Expr) -> Column:
        """Give an aggregate over a repeated part."""
        (part,) = parts_of(expr)
        return self._frame(part).known(expr)

    def _frame(self, part: str | None) -> RowsFrame:
        if part is None or part == GROUP:
            return self.frames[0]
        return self.frames[self.owner[part]]
