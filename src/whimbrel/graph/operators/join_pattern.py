"""Sequences, conjunctions and absences: combinations of events, one for each part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whimbrel.graph.expressions import Expr
from whimbrel.graph.operators.base import Operator, unique
from whimbrel.graph.policies import WHOLE, Context, Partitioning, Select


@dataclass(frozen=True, slots=True)
class PatternPart:
    """A part of a pattern that must occur. `alias` is None where `input` is a composite stream."""

    input: str
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

    input: str
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

    parts: tuple[PatternPart, ...]
    within: int
    orders: tuple[TimeOrder, ...] = ()
    absent: tuple[Absent, ...] = ()
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

    @property
    def inputs(self) -> tuple[str, ...]:
        names = [part.input for part in self.parts] + [absent.input for absent in self.absent]
        return unique(names)
