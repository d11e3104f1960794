"""Sequences, conjunctions and absences: combinations of events, one for each part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from whimbrel.errors import UnboundedError
from whimbrel.graph.costs import SAME_KEY, Observed, passing
from whimbrel.graph.expressions import Attribute, Expr, format_expr
from whimbrel.graph.links import MEMBERS, StreamLink, stream
from whimbrel.graph.operators.base import ChangeConditions, Operator, SpatialReach
from whimbrel.graph.operators.join_distances import pattern_reach
from whimbrel.graph.operators.join_policy import orders_left, policy_of_pattern, window_names
from whimbrel.graph.policies import WHOLE, Consumption, Context, Key, Partitioning, Select, SelectionPolicy
from whimbrel.model.time import END_OF_TIME, SECOND, format_duration

if TYPE_CHECKING:
    from whimbrel.graph.required_columns import RequiredColumns


@dataclass(frozen=True, slots=True)
class PatternPart:
    """A part of a pattern that must occur. `alias` is None where `input` is a composite stream."""

    input: str = field(metadata=stream("part"))
    alias: str | None
    select: Select = Select.EACH


@dataclass(frozen=True, slots=True)
class Absent:
    """A part of a pattern that must not occur.

    It lies between the parts `after` and `before` (indices; None: open on that side). With
    `duration`, or when `before` is None, the pattern waits for time to pass: until `duration` after
    the end of part `after`, or, without a duration, until the pattern's `within` has passed since
    its start. An event blocks if it lies wholly inside: after.end < start, and end < before.start or
    end <= the deadline; with `after` None: end < before.start and inside `within`.
    """

    input: str = field(metadata=stream("absent"))
    alias: str | None
    after: int | None
    before: int | None
    duration: int | None = None
    conditions: tuple[Expr, ...] = ()
    """Conditions that read this part and perhaps others."""


@dataclass(frozen=True, slots=True)
class TimeOrder:
    """A temporal order between two parts, by index.

    With `gap` None: first.end < second.start. Else: `first` stands before `second` in the total order
    and second.end - first.end <= gap.
    """

    first: int
    second: int
    gap: int | None = None


@dataclass(frozen=True, slots=True)
class JoinPattern(Operator):
    """Combinations of events, one for each part, that satisfy orders, absences and conditions.

    Sequence: orders between neighbours. Conjunction: no orders. `within` bounds end - start of the
    whole. No event fills two parts of one combination.
    """

    word: ClassVar[str] = "match"
    is_composite: ClassVar[bool] = True
    may_be_merged: ClassVar[bool] = True

    parts: tuple[PatternPart, ...] = field(metadata=MEMBERS)
    within: int
    orders: tuple[TimeOrder, ...] = ()
    absent: tuple[Absent, ...] = field(default=(), metadata=MEMBERS)
    conditions: tuple[Expr, ...] = ()
    partitioning: Partitioning = WHOLE
    context: Context = Context.EACH
    consuming: tuple[int, ...] = ()
    """Parts whose events are used up by a detection."""
    joins: tuple[str, ...] = ()
    """Attributes that the conditions require to be equal in all parts; null never is."""
    continues: bool = False
    """Whether the first part is the beginning of this very pattern, found by another match: ids are then made
    of the parts of the beginning one by one, as if it had not been cut off."""

    def request(self, columns: RequiredColumns) -> None:
        absent = (condition for each in self.absent for condition in each.conditions)
        read = [*self.conditions, *absent, *columns.asked_of(self.name)]
        for link in self.links:
            columns.want_keys(link.stream, self.partitioning)
            for name in self.joins:
                columns.want(link.stream, Attribute(None, name))
            columns.want_read(link.stream, link.alias, read, self.partitioning)

    @property
    def constituents(self) -> tuple[StreamLink, ...]:
        return self.members

    @property
    def is_free(self) -> bool:
        """Whether every combination that holds is found, whatever becomes of the others."""
        each = all(part.select is Select.EACH for part in self.parts)
        return each and self.context is Context.EACH and not self.consuming

    @property
    def retention(self) -> int:
        # Without an order, what `first` prefers may have ended a whole span before the others began.
        first = any(part.select is Select.FIRST for part in self.parts) and not self.is_chain
        return self._span * (2 if first else 1) + self._wait

    @property
    def _wait(self) -> int:
        return max((absent.duration or 0 for absent in self.absent), default=0)

    @property
    def _span(self) -> int:
        return self.within if self.within < END_OF_TIME else self._sum_of_gaps()

    def _sum_of_gaps(self) -> int:
        """Add up the gaps that link all parts with each other."""
        reached, gaps = {0}, 0
        linked = [order for order in self.orders if order.gap is not None]
        while len(reached) < len(self.parts):
            step = next((o for o in linked if (o.first in reached) != (o.second in reached)), None)
            if step is None:
                raise UnboundedError(
                    f"the pattern {self.name!r} would have to remember events for ever",
                    hint="add `within 1 h` (or another time), or run it with a horizon",
                )
            reached |= {step.first, step.second}
            gaps += step.gap or 0
        return gaps

    @property
    def anchor(self) -> str | None:
        return None if self.consumption.kind == "none" else "uses events up"

    @property
    def is_chain(self) -> bool:
        """Whether each part ends before the next one begins."""
        ordered = {(order.first, order.second) for order in self.orders if order.gap is None}
        return ordered >= {(part, part + 1) for part in range(len(self.parts) - 1)}

    @property
    def ignores_ties(self) -> bool:
        return self.is_free and self.is_chain

    @property
    def together(self) -> tuple[Key, ...] | None:
        if len(self.parts) == 1 and not self.absent:
            return None  # it looks at one event at a time
        return (*self.partitioning.keys, *(Key("attribute", name) for name in self.joins))

    def spatial_reach(self, below: Callable[[str], SpatialReach | None]) -> SpatialReach | None:
        return pattern_reach(self, below)

    @property
    def is_monotone(self) -> bool:
        return self.is_free and not self.absent

    def rate(self, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
        return min(below[part.input] for part in self.parts)

    def likely_rate(self, below: Mapping[str, float], observed: Observed) -> float:
        """Estimate how many combinations a second hold, if events come by chance."""
        expected = 1.0
        seconds = min(self.within, END_OF_TIME) / SECOND
        keys = [key.name for key in self.partitioning.keys] + list(self.joins)
        for number, part in enumerate(self.parts):
            expected *= below[part.input]
            if number:
                expected *= seconds / (number if self.orders else 1.0)
                for key in keys:
                    expected *= observed.same.get(key, SAME_KEY)
        for condition in self.conditions:
            expected *= passing(condition)
        return expected

    @property
    def remembered_for(self) -> int:
        """For how long it keeps events; `END_OF_TIME` if it would have to do so for ever."""
        try:
            return self._span + self._wait
        except UnboundedError:
            return END_OF_TIME

    @property
    def exercise(self) -> str | None:
        if self.consuming or self.context is not Context.EACH:
            return "choice"
        if len(self.parts) > 1 and not self.is_free:
            return "choice"
        return "absence" if self.absent else "match"

    def with_conditions(self, change: ChangeConditions) -> Operator:
        if not self.conditions and not self.absent:
            return self
        absent = tuple(replace(each, conditions=change(each.conditions)) for each in self.absent)
        return replace(self, conditions=change(self.conditions), absent=absent)

    def finds_nothing_without(self, streams: Collection[str]) -> bool:
        return any(part.input in streams for part in self.parts)

    def without(self, streams: Collection[str]) -> Operator:
        kept = tuple(each for each in self.absent if each.before is None or each.input not in streams)
        return replace(self, absent=kept)

    @property
    def selection_policy(self) -> SelectionPolicy:
        return policy_of_pattern(self)

    @property
    def consumption(self) -> Consumption:
        if self.consuming:
            return Consumption("named")
        frees = self.context in (Context.EACH, Context.RECENT)
        return Consumption("none" if frees else "selected")

    @property
    def consumed(self) -> list[str]:
        if self.consumption.kind == "none":
            return []
        names, _ = window_names(self)
        return [names[part] for part in self.consuming or range(len(names))]

    def words(self) -> list[str]:
        names, absent_names = window_names(self)
        found = [format_expr(condition) for condition in self.conditions]
        found += [
            f"{names[order.first]}.end < {names[order.second]}.start"
            for order in orders_left(self)
            if order.gap is None
        ]
        found += [
            f"{names[order.second]}.end - {names[order.first]}.end <= {format_duration(order.gap)}"
            for order in self.orders
            if order.gap is not None
        ]
        if self.within < END_OF_TIME:
            found.append(f"end - start <= {format_duration(self.within)}")
        for name, absent in zip(absent_names, self.absent, strict=True):
            found += [f"{format_expr(condition)} (for {name})" for condition in absent.conditions]
        return found

    def remarks(self) -> Iterator[tuple[str, str]]:
        if self.joins:
            yield "joined on", ", ".join(self.joins)
        if self.continues:
            yield "goes on", f"from its beginning, {self.parts[0].input}"
        if self.context is not Context.EACH:
            yield "context", self.context.value
        yield "consumes", self.consumption.words(self.consumed)

    def document(self) -> dict[str, Any]:
        return {
            "joins": list(self.joins),
            "continues": self.parts[0].input if self.continues else None,
            "context": self.context.value,
        }
