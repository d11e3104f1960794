"""Disjunction: the events of several streams as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from whimbrel.graph.expressions import GROUP, Attribute
from whimbrel.graph.links import MEMBERS, stream
from whimbrel.graph.operators.base import ColumnRequests, Operator, SpatialReach, widest
from whimbrel.graph.policies import WHOLE, Key


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

    def request(self, columns: ColumnRequests) -> None:
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

    @property
    def together(self) -> tuple[Key, ...] | None:
        return None

    def spatial_reach(self, below: Callable[[str], SpatialReach | None]) -> SpatialReach | None:
        return widest(map(below, self.inputs))

    @property
    def is_monotone(self) -> bool:
        return True

    def rate(self, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
        return sum(below[name] for name in self.inputs)

    def finds_nothing_without(self, streams: Collection[str]) -> bool:
        return all(name in streams for name in self.inputs)
