"""Change detection: an attribute that has another value than before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from whimbrel.errors import UnboundedError
from whimbrel.graph.costs import Observed, passing
from whimbrel.graph.expressions import Attribute, Binary, Expr, Literal, format_expr
from whimbrel.graph.links import StreamLink, stream
from whimbrel.graph.operators.base import ChangeConditions, Operator
from whimbrel.graph.policies import WHOLE, Partitioning
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME

if TYPE_CHECKING:
    from whimbrel.graph.required_columns import RequiredColumns

PREVIOUS = "previous"
"""The part name under which the event before the change is read, as in `previous.status`."""
CHANGING = 0.1
"""The share of events that change an attribute, where nobody has counted."""


@dataclass(frozen=True, slots=True)
class Change(Operator):
    """Pairs of successive events of a partition between which `attribute` changes.

    Events whose attribute is null are passed over. The previous event counts if it ended at most `within`
    before; both stand in the total order. `conditions` read the two events, `previous` and `alias`.
    """

    word: ClassVar[str] = "change"
    is_composite: ClassVar[bool] = True
    is_bounded: ClassVar[bool] = True
    may_be_merged: ClassVar[bool] = True

    input: str = field(metadata=stream())
    alias: str
    attribute: str
    within: int
    conditions: tuple[Expr, ...] = ()
    partitioning: Partitioning = WHOLE

    @property
    def members(self) -> tuple[StreamLink, ...]:
        return StreamLink(self.input, "part", PREVIOUS), StreamLink(self.input, "part", self.alias)

    @property
    def constituents(self) -> tuple[StreamLink, ...]:
        return self.members

    @property
    def changed(self) -> Expr:
        """That the attribute has another value than before."""
        return Binary("!=", Attribute(PREVIOUS, self.attribute), Attribute(self.alias, self.attribute))

    @property
    def in_time(self) -> Expr:
        """That the event before is not too long ago."""
        took = Binary("-", Attribute(self.alias, "end"), Attribute(PREVIOUS, "end"))
        return Binary("<=", took, Literal(self.within, Type.DURATION))

    def request(self, columns: RequiredColumns) -> None:
        columns.want_keys(self.input, self.partitioning)
        read = [self.changed, *self.conditions, *columns.asked_of(self.name)]
        for member in self.members:
            columns.want_read(self.input, member.alias, read, self.partitioning)

    @property
    def retention(self) -> int:
        if self.within >= END_OF_TIME:
            raise UnboundedError(
                f"{self.name!r} would have to remember for ever what {self.attribute!r} was",
                hint="add `within 1 h` (or another time), or run it with a horizon",
            )
        return self.within

    def likely_rate(self, below: Mapping[str, float], observed: Observed) -> float:
        expected = below[self.input] * CHANGING
        for condition in self.conditions:
            expected *= passing(condition)
        return expected

    def with_conditions(self, change: ChangeConditions) -> Operator:
        return replace(self, conditions=change(self.conditions)) if self.conditions else self

    def finds_nothing_without(self, streams: Collection[str]) -> bool:
        return self.input in streams

    def words(self) -> list[str]:
        return list(map(format_expr, (self.changed, *self.conditions, self.in_time)))
