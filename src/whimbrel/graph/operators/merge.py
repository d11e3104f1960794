"""Disjunction: the events of several streams as one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from whimbrel.graph.expressions import GROUP, Attribute
from whimbrel.graph.links import MEMBERS, stream
from whimbrel.graph.operators.base import Operator
from whimbrel.graph.policies import WHOLE

if TYPE_CHECKING:
    from whimbrel.graph.required_columns import RequiredColumns


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative of a `Merge`: a stream, and the part name it binds (None for composites)."""

    input: str = field(metadata=stream("branch"))
    alias: str | None


@dataclass(frozen=True, slots=True)
class Merge(Operator):
    """Every event of any branch, each event once (disjunction). Parts of other branches are null."""

    word: ClassVar[str] = "merge"
    is_composite: ClassVar[bool] = True
    looks_at_each: ClassVar[bool] = True
    hands_on_groups: ClassVar[bool] = True
    may_be_merged: ClassVar[bool] = True

    branches: tuple[Branch, ...] = field(metadata=MEMBERS)

    def request(self, columns: RequiredColumns) -> None:
        for need in columns.asked_of(self.name):
            for branch in self.branches:
                if not isinstance(need, Attribute):
                    columns.want(branch.input, need)
                elif need.part is None:
                    grouped = columns.has_group(branch.input, need.name)
                    columns.want(branch.input, Attribute(GROUP, need.name) if grouped else need)
                elif need.part in columns.names(branch.input, branch.alias):
                    columns.want_expression(branch.input, branch.alias, need, WHOLE)

    @property
    def knows_groups(self) -> bool:
        return False
