"""The operators of the graph: frozen data, a name each, inputs by name.

Every operator makes one stream, named as the operator is. Streams of `Source`, `Filter` and
`Derive` carry events with attributes of their own. Streams of `Merge`, `Repeat` and `JoinPattern` carry
composite events whose attributes are read through the names of their parts (`a.speed`); `Derive`
turns a composite into an event of a named type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Expr
from whimbrel.graph.policies import (
    WHOLE,
    Assign,
    Consumption,
    Context,
    Partitioning,
    Select,
    SelectionPolicy,
    Window,
)
from whimbrel.model.schema import Coordinates, EventSchema
from whimbrel.model.time import TIME_POINT, instant, time_point, written_time_point

ANY = "*"
"""Stands for every type of atomic events."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Base of all operators."""

    word: ClassVar[str]
    """What explanations call it."""

    name: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the operators whose streams this one reads, each once."""
        return ()


@dataclass(frozen=True, slots=True)
class Source(Operator):
    """All events of one type (or of `ANY`) as they come in; `schema` is None for an undeclared type."""

    word: ClassVar[str] = "source"

    event_type: str
    schema: EventSchema | None = None


@dataclass(frozen=True, slots=True)
class TimePoints(Source):
    """One event that nobody sends: a time point, which the engine makes when time passes it."""

    word: ClassVar[str] = "clock"

    @property
    def at(self) -> int:
        """When it happens."""
        return instant(self.event_type.removeprefix(TIME_POINT))


def clock(at: int) -> TimePoints:
    """Make the stream of one time point; it has neither attributes nor a place."""
    event_type = time_point(at)
    return TimePoints(written_time_point(event_type), event_type, EventSchema(event_type, {}))


@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """The events of `input` for which `condition` is true. The condition reads one event only."""

    word: ClassVar[str] = "filter"

    input: str
    condition: Expr

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)


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
        return _unique(branch.input for branch in self.branches)


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
        return _unique(name for name in (self.input, self.until) if name is not None)


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
        return _unique(names)


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
        return _unique(part.input for part in self.parts)


@dataclass(frozen=True, slots=True)
class Custom(Operator):
    """A correlation function in Python, run by the execution environment with its policies.

    `function` names it in the registry; `parameters` are handed to its constructor.
    """

    word: ClassVar[str] = "custom"

    streams: tuple[str, ...]
    function: str
    policy: SelectionPolicy
    consumption: Consumption = Consumption("none")
    partitioning: Partitioning = WHOLE
    parameters: Mapping[str, Any] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        return _unique(self.streams)


@dataclass(frozen=True, slots=True)
class Derive(Operator):
    """Events of type `event_type` made from the events of `inputs`: the cases of one definition.

    Each case has its own input stream and assignments. Without assignments, the new event has the
    attributes of its only part, or none. Without any case, the events come from another session, which runs
    the part of the query that makes them (`whimbrel.graph.fragments`).
    """

    word: ClassVar[str] = "derive"

    event_type: str
    cases: tuple[DeriveCase, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return _unique(case.input for case in self.cases)


@dataclass(frozen=True, slots=True)
class DeriveCase:
    """One way of detecting a definition. `alias` is the part name where `input` carries plain events."""

    input: str
    alias: str | None
    assign: tuple[Assign, ...] = ()
    partitioning: Partitioning = WHOLE
    label: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Operators in an order in which each comes after its inputs, and the streams that are reported."""

    operators: tuple[Operator, ...]
    outputs: tuple[str, ...]
    coordinates: Coordinates | None = None

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for operator in self.operators:
            for name in operator.inputs:
                if name not in seen:
                    raise QueryError(
                        f"operator {operator.name!r} reads {name!r}, which does not come before it"
                    )
            if operator.name in seen:
                raise QueryError(f"two operators are named {operator.name!r}")
            seen.add(operator.name)
        for name in self.outputs:
            if name not in seen:
                raise QueryError(f"the output {name!r} is no operator of the graph")

    @property
    def time_points(self) -> frozenset[int]:
        """The time points that it waits for."""
        return frozenset(operator.at for operator in self.operators if isinstance(operator, TimePoints))

    def __getitem__(self, name: str) -> Operator:
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise KeyError(name)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
