"""Sequences step by step: what may lie between the events, how often a step is taken, what a match uses up.

The other way of saying *this, then that*: a `Match` combines events that stand in some order, a `StepPattern`
walks along the events of a partition one by one, as row pattern matching and Flink CEP do. Its words mean
what they mean there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar
from typing import Literal as OneOf

from whimbrel.errors import Span
from whimbrel.graph.expressions import (
    PLACE,
    PLACE_RELATIONS,
    Attribute,
    Call,
    Expr,
    PartRef,
    format_expr,
    walk,
)
from whimbrel.graph.links import MEMBERS, StreamLink, stream
from whimbrel.graph.operators.base import Operator, event_by_event
from whimbrel.graph.policies import WHOLE, Partitioning, SelectionPolicy
from whimbrel.model.time import END_OF_TIME, format_duration

if TYPE_CHECKING:
    from whimbrel.graph.required_columns import RequiredColumns

RUNS = 100_000
"""How many matches in the making a partition may have, unless the query says otherwise."""


class Contiguity(StrEnum):
    """What may lie between an event and the one taken before it."""

    NEXT = "next"
    """Nothing: it is the very next event of the partition."""
    FOLLOWED_BY = "followedBy"
    """Events that do not fit: the next that fits is taken."""
    FOLLOWED_BY_ANY = "followedByAny"
    """Anything: each that fits is taken, in a match of its own."""
    NOT_NEXT = "notNext"
    """The very next event must not fit."""
    NOT_FOLLOWED_BY = "notFollowedBy"
    """No event that fits may come before the next step is taken; at the end, before time runs out."""

    @property
    def is_negative(self) -> bool:
        """Whether the step must not occur."""
        return self in (Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED_BY)


class Inner(StrEnum):
    """What may lie between the events that one step takes."""

    RELAXED = "relaxed"
    CONSECUTIVE = "consecutive"
    COMBINATIONS = "combinations"


@dataclass(frozen=True, slots=True)
class StepTest:
    """What an event has to fulfil: to be in `input`, and `condition`, which reads what was taken before."""

    input: str = field(metadata=stream())
    condition: Expr | None = None


@dataclass(frozen=True, slots=True)
class Quantifier:
    """How often a step or a group is taken. `at_most` None: any number."""

    at_least: int = 1
    at_most: int | None = 1
    optional: bool = False
    greedy: bool = False
    inner: Inner = Inner.RELAXED
    until: StepTest | None = field(default=None, metadata=MEMBERS)
    """What ends the loop; the event itself is not taken."""
    window: int | None = None
    """Less than how long after the one before each further event is taken; None: for ever."""

    @property
    def is_loop(self) -> bool:
        """Whether there is no upper bound."""
        return self.at_most is None

    @property
    def repeats(self) -> bool:
        """Whether more than one event may be taken."""
        return self.at_most is None or self.at_most > 1


ONCE = Quantifier()


@dataclass(frozen=True, slots=True)
class PatternStep:
    """One step: a name for the events it takes, and what they have to fulfil."""

    name: str
    test: StepTest = field(metadata=MEMBERS)
    contiguity: Contiguity | None = None
    """Towards the step before; None for the first of all."""
    quantifier: Quantifier = field(default=ONCE, metadata=MEMBERS)
    within_previous: int | None = None
    """At most so long after the event taken before, end excluded."""
    at: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class StepGroup:
    """Steps that are repeated or left out together; with several branches, one of them is taken."""

    branches: tuple[tuple[PatternStep | StepGroup, ...], ...] = field(metadata=MEMBERS)
    contiguity: Contiguity | None = None
    quantifier: Quantifier = field(default=ONCE, metadata=MEMBERS)
    at: Span | None = field(default=None, compare=False)


Element = PatternStep | StepGroup
Strategy = OneOf["no_skip", "skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last"]
Dropped = OneOf["oldest", "newest"]


@dataclass(frozen=True, slots=True)
class SkipPolicy:
    """Where matching goes on after a match."""

    strategy: Strategy = "no_skip"
    step: str | None = None
    """The step that is skipped to."""
    throw_on_miss: bool = False
    """Whether a match without that step, or one that begins with it, is an error."""


NO_SKIP = SkipPolicy()


@dataclass(frozen=True, slots=True)
class StepBound:
    """How many matches in the making a partition may have, and which go when there are more."""

    runs: int = RUNS
    drop: Dropped = "oldest"


@dataclass(frozen=True, slots=True)
class StepPattern(Operator):
    """Matches of a pattern of steps, found by walking along the events of each partition.

    `streams` are the events that are walked along; those of the steps are among them. Events stand in the
    order of their times; where these are the same, in the order of arrival.
    """

    word: ClassVar[str] = "sequence"
    is_composite: ClassVar[bool] = True
    repeats: ClassVar[bool] = True
    depends_on_fields: ClassVar[bool] = False
    may_be_relinked: ClassVar[bool] = False

    streams: tuple[str, ...] = field(metadata=stream())
    steps: tuple[Element, ...] = field(metadata=MEMBERS)
    within: int | None = None
    """From the first event to the last, end excluded; None: for ever."""
    gap: int | None = None
    """From each event to the next that is taken, end excluded; None: for ever."""
    skip: SkipPolicy = NO_SKIP
    partitioning: Partitioning = WHOLE
    bound: StepBound = StepBound()
    counted: bool = False
    """Whether matches are counted and summed up where they end instead of being listed one by one."""

    def tests(self) -> Iterator[StepTest]:
        """Give everything that an event is tested for."""
        for element in every(self.steps):
            if isinstance(element, PatternStep):
                yield element.test
            if element.quantifier.until is not None:
                yield element.quantifier.until

    def taken(self) -> tuple[PatternStep, ...]:
        """Give the steps that take events, in the order in which they are written."""
        return tuple(
            each
            for each in every(self.steps)
            if isinstance(each, PatternStep) and not (each.contiguity and each.contiguity.is_negative)
        )

    @property
    def waits(self) -> bool:
        """Whether it ends with an absence, which is certain only when time has passed."""
        return self.steps[-1].contiguity is Contiguity.NOT_FOLLOWED_BY

    def request(self, columns: RequiredColumns) -> None:
        names = {step.name: step.test.input for step in self.taken()}
        for stream_name in self.inputs:
            columns.want_keys(stream_name, self.partitioning)
        conditions = [test.condition for test in self.tests() if test.condition is not None]
        for read in _attributes_read([*conditions, *columns.asked_of(self.name)]):
            if read.part in names:
                columns.want(names[str(read.part)], Attribute(None, read.name))
            elif read.part is None:
                for test in self.tests():
                    columns.want(test.input, Attribute(None, read.name))

    @property
    def members(self) -> tuple[StreamLink, ...]:
        return tuple(StreamLink(step.test.input, "part", step.name) for step in self.taken())

    @property
    def retention(self) -> int:
        return END_OF_TIME if self.within is None else self.within

    @property
    def anchor(self) -> str | None:
        if self.skip != NO_SKIP:
            return "skips what an earlier match has taken"
        return "may have to give up matches in the making" if self.bound.runs < RUNS else None

    @property
    def exercise(self) -> str | None:
        return "steps" if self.skip.strategy == "no_skip" else "skipping"

    @property
    def selection_policy(self) -> SelectionPolicy:
        return event_by_event([(name, name) for name in self.streams], self.retention)

    def words(self) -> list[str]:
        return list(sequence_lines(self))


@dataclass(frozen=True, slots=True)
class TimedOut(Operator):
    """The matches in the making of a `StepPattern` that ran out of time."""

    word: ClassVar[str] = "timedout"
    is_composite: ClassVar[bool] = True
    is_bounded: ClassVar[bool] = True
    hands_on_groups: ClassVar[bool] = True
    depends_on_fields: ClassVar[bool] = False
    may_be_relinked: ClassVar[bool] = False

    input: str = field(metadata=stream(alias=""))

    def request(self, columns: RequiredColumns) -> None:
        for need in columns.asked_of(self.name):
            columns.want(self.input, need)


def _attributes_read(exprs: Iterable[Expr]) -> Iterator[Attribute]:
    """Yield the attributes that expressions read, those that make up a place among them."""
    for node in (node for expr in exprs for node in walk(expr)):
        if isinstance(node, Attribute):
            yield node
        elif isinstance(node, Call) and node.function in PLACE_RELATIONS:
            parts = (part for part in node.arguments if isinstance(part, PartRef))
            yield from (Attribute(part.name, each) for part in parts for each in PLACE)


def walks(operators: Iterable[Operator]) -> bool:
    """Tell whether any operator walks along events, so that their order of arrival counts."""
    return any(isinstance(operator, StepPattern) for operator in operators)


def every(elements: tuple[Element, ...]) -> Iterator[Element]:
    """Give all steps and groups, outer ones first."""
    for element in elements:
        yield element
        if isinstance(element, StepGroup):
            for branch in element.branches:
                yield from every(branch)


def is_absent(element: Element, how: Contiguity | None = None) -> bool:
    """Tell whether a step must not occur (in a certain way)."""
    contiguity = element.contiguity
    return contiguity is not None and contiguity.is_negative and how in (None, contiguity)


# -- in words ----------------------------------------------------------------------------------------------


def sequence_lines(op: StepPattern) -> Iterator[str]:
    """Say what a sequence asks for, line by line."""
    yield from _element_lines(op.steps, "")
    if op.within is not None:
        yield f"last - first < {format_duration(op.within)}"
    if op.gap is not None:
        yield f"each - the one before < {format_duration(op.gap)}"
    if op.skip != NO_SKIP:
        step = f" {op.skip.step}" if op.skip.step else ""
        yield f"{op.skip.strategy}{step}{' or fail' if op.skip.throw_on_miss else ''}"
    if op.counted:
        yield "matches are counted, not listed"
    yield f"at most {op.bound.runs:,} matches in the making a partition, then the {op.bound.drop} go"


def _element_lines(elements: tuple[Element, ...], indent: str) -> Iterator[str]:
    for element in elements:
        how = f"{element.contiguity.value} " if element.contiguity else ""
        often = quantifier_words(element.quantifier)
        if isinstance(element, PatternStep):
            gap = element.within_previous
            since = "" if gap is None else f", less than {format_duration(gap)} after the one before"
            yield f"{indent}{how}{element.name}{often}: {_test_text(element.test)}{since}"
            continue
        for number, branch in enumerate(element.branches):
            yield f"{indent}{'or ' if number else how}group{'' if number else often}:"
            yield from _element_lines(branch, f"{indent}  ")


def _test_text(test: StepTest) -> str:
    condition = "" if test.condition is None else f" and {format_expr(test.condition)}"
    return f"{test.input}{condition}"


def quantifier_words(quantifier: Quantifier) -> str:
    """Say how often a step is taken; nothing for once."""
    words = []
    if quantifier.repeats:
        most = "" if quantifier.at_most is None else quantifier.at_most
        words.append(f"{{{quantifier.at_least},{most}}}")
    words += [word for word in ("optional", "greedy") if getattr(quantifier, word)]
    words += [] if quantifier.inner is Inner.RELAXED else [quantifier.inner.value]
    words += [] if quantifier.until is None else [f"until {_test_text(quantifier.until)}"]
    if quantifier.window is not None:
        words.append(f"each less than {format_duration(quantifier.window)} after the one before")
    return "".join(f" {word}" for word in words)
