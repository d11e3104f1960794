"""The contract that every kind of operator fulfils, and the graph that operators make up.

A kind of operator is one file in this folder: a frozen dataclass that declares what it reads and what it
means. Reach, partitioning, memory, rewrites, columns and explanations are read off these declarations, by
functions that do not know the kinds. What a kind does not declare has the value given here, which is the
careful one. docs/operators.md shows how one is added.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from whimbrel.errors import QueryError
from whimbrel.graph.costs import Observed, StateEstimate, events_over
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.graph.links import StreamLink, links, relinked, streams
from whimbrel.graph.policies import (
    WHOLE,
    Assign,
    Consumption,
    Key,
    Partitioning,
    ProcessWhen,
    RestrictionWindow,
    SelectionPolicy,
    SelectionWindow,
    Shift,
)
from whimbrel.model.schema import Coordinates, Type, common_type

if TYPE_CHECKING:
    from whimbrel.graph.columns import GraphColumns
    from whimbrel.graph.required_columns import RequiredColumns
    from whimbrel.graph.sharding import KeyTracer

ANY = "*"
"""Stands for every type of atomic events."""
EVERYTHING = Attribute(None, "*")
"""Stands for all attributes of an event."""
EVENT_BY_EVENT = Shift("events", 1)
ONE_INSTANT = RestrictionWindow(1, EVENT_BY_EVENT)
"""The least stretch of time: an event is looked at alone."""

Types = dict[str, Type | None]
"""Attributes by name; None is a type that is not known before any event is seen."""
ChangeConditions = Callable[[tuple[Expr, ...]], tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Columns:
    """The attributes of a stream's events."""

    types: Types = field(default_factory=dict)
    of: tuple[str, ...] = ()
    """Undeclared event types, whose attributes it has too, whatever they are."""

    @property
    def listed(self) -> list[str] | None:
        """All names, or None if the graph does not tell them."""
        return None if self.of else list(self.types)

    def joined(self, other: Columns) -> Columns:
        """Put two sets of attributes together; where both have one, it gets the type that holds both."""
        types = dict(self.types)
        for name, kind in other.types.items():
            types[name] = common_type((self.types.get(name), kind))
        return Columns(types, tuple(dict.fromkeys((*self.of, *other.of))))


@dataclass(frozen=True, slots=True)
class SpatialReach:
    """How far apart the events below one row can lie, and how far from them what decides on it, in metres."""

    apart: float
    total: float


def widest(reaches: Iterable[SpatialReach | None]) -> SpatialReach | None:
    """Give the reach of rows of any of several streams; None if one of them has no bound."""
    found = list(reaches)
    known = [reach for reach in found if reach is not None]
    if len(known) < len(found):
        return None
    return SpatialReach(max(reach.apart for reach in known), max(reach.total for reach in known))


@dataclass(frozen=True, slots=True)
class Operator(ABC):
    """Base of all operators: frozen data that says what is done, not how.

    Fields that name streams are marked (`whimbrel.graph.links`): inputs and rewiring follow from the marks,
    and fields that hold expressions are found by their type.
    """

    word: ClassVar[str]
    """What explanations call it."""
    brackets: ClassVar[tuple[str, str]] = ("[", "]")
    """The shape of its box in a flowchart."""
    is_composite: ClassVar[bool] = False
    """Whether its stream is read through the names of its parts."""
    repeats: ClassVar[bool] = False
    """Whether a part of what it makes may stand for many events."""
    looks_at_each: ClassVar[bool] = False
    """Whether it looks at each event alone and hands it on: nothing is compared, remembered or prevented."""
    is_bounded: ClassVar[bool] = False
    """Whether all that it finds follows from what lies within its retention, wherever a run began."""
    hands_on_groups: ClassVar[bool] = False
    """Whether its rows belong to the groups of what it reads."""
    depends_on_fields: ClassVar[bool] = True
    """Whether what it does depends on nothing but its fields and inputs: equal ones make equal streams."""
    may_be_merged: ClassVar[bool] = False
    """Whether rewrites may let one of two equal ones do the work of both."""
    may_be_relinked: ClassVar[bool] = True
    """Whether rewrites may let it read another stream with the same events."""

    name: str

    # -- what it reads -------------------------------------------------------------------------------------

    @property
    def links(self) -> tuple[StreamLink, ...]:
        """The streams that it reads, as often as it does."""
        return tuple(links(self))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the operators whose streams this one reads, each once."""
        return tuple(streams(self))

    def reading(self, names: Mapping[str, str]) -> Self:
        """Read other streams: for each the one that `names` has for it."""
        return relinked(self, names) if names else self

    def expressions(self) -> Iterator[Expr]:
        """Yield every condition and every assigned value."""
        for each in fields(self):
            yield from _expressions(getattr(self, each.name))

    def request(self, columns: RequiredColumns) -> None:
        """Ask the inputs for what it reads of them itself, and for what is asked of what it makes."""
        for name in self.inputs:
            columns.want(name, EVERYTHING)
            columns.want_keys(name, self.partitioning)

    @property
    def passes_on(self) -> str | None:
        """The stream whose events it hands on as they are, if it does nothing else."""
        return None

    # -- what it makes -------------------------------------------------------------------------------------

    @property
    def made_type(self) -> str | None:
        """The type of the events that it makes; None if they have none of their own."""
        return None

    @property
    def members(self) -> tuple[StreamLink, ...]:
        """What its composites are made of, and the part names that stand for it."""
        roles = ("input", "part", "branch") if self.is_composite else ()
        return tuple(link for link in links(self) if link.role in roles)

    @property
    def constituents(self) -> tuple[StreamLink, ...]:
        """The members of which every composite has exactly one."""
        return ()

    @property
    def own_parts(self) -> Mapping[str, Mapping[str, Type]]:
        """Parts that no event stands for: what the operator found out, and the types."""
        return {}

    @property
    def knows_groups(self) -> bool:
        """Whether its rows know the keys of the group they belong to."""
        return self.is_composite

    def columns(self, below: GraphColumns) -> Columns:
        """Say which attributes its rows have of their own; composites are read through their parts."""
        return Columns() if self.passes_on is None else below.of(self.passes_on)

    # -- time ----------------------------------------------------------------------------------------------

    @property
    def at(self) -> int | None:
        """When it happens, for a time point; None for all others."""
        return None

    @property
    def retention(self) -> int:
        """For how long an event can still become part of a result, counted from its end (microseconds).

        Raises
        ------
        UnboundedError
            If it would have to remember events for ever.
        """
        if self.looks_at_each or self.hands_on_groups:
            return 0
        raise TypeError(f"{type(self).__name__} does not say for how long it remembers events")

    @property
    def known_after(self) -> int:
        """How much later than its end a result may become known (microseconds), with inputs in time."""
        return 0

    @property
    def anchor(self) -> str | None:
        """Why what it finds depends on where the run began; None if it does not: it is *bounded*.

        A bounded operator that starts empty at t - `retention` finds from t on what it would have found had
        it always run. What `anchor` says completes the sentence "the operator ...".
        """
        free = self.looks_at_each or self.is_bounded
        return None if free else "does not say that a run may begin anywhere"

    @property
    def ignores_ties(self) -> bool:
        """Whether events of the same times may be processed in any order."""
        return self.looks_at_each and not self.is_composite

    # -- where ---------------------------------------------------------------------------------------------

    @property
    def partitioning(self) -> Partitioning:
        """The keys by which all its inputs are parted."""
        return WHOLE

    @property
    def together(self) -> tuple[Key, ...] | None:
        """Keys whose events belong together if all agree; (): all do; None: each is looked at alone."""
        return None if self.looks_at_each or self.hands_on_groups else self.partitioning.keys

    def why_together(self, shown: str) -> str:
        """Say why events cannot be parted by keys; `shown` is what the query calls the operator."""
        if not self.together:
            found = "compares events of all objects: it has no `group by`, and no distance that bounds it"
        else:
            keys = ", ".join(map(str, self.together))
            found = f"groups by {keys}, which is not a value that all its events share from the beginning"
        return f"{shown} {found}"

    def traced(self, name: str, tracer: KeyTracer) -> Iterable[Key | None]:
        """Say which values of the atomic events an attribute of its rows stands for; None: not always one."""
        return (None if self.passes_on is None else tracer.trace(self.passes_on, name),)

    def spatial_reach(self, below: Callable[[str], SpatialReach | None]) -> SpatialReach | None:
        """Say within which distances all lies that decides on a row; None if there is no bound."""
        return widest(map(below, self.inputs)) if self.looks_at_each else None

    @property
    def is_monotone(self) -> bool:
        """Whether it finds among more events whatever it finds among some: nothing can prevent it."""
        return self.looks_at_each

    # -- cost ----------------------------------------------------------------------------------------------

    def rate(self, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
        """Estimate the events a second it makes, from those of its inputs and those of event types."""
        coming = [below[name] for name in self.inputs]
        return sum(coming) if self.looks_at_each else min(coming, default=0.0)

    def likely_rate(self, below: Mapping[str, float], observed: Observed) -> float:
        """Estimate the same with how selective its conditions are likely to be."""
        return self.rate(below, observed.rates)

    @property
    def remembered_for(self) -> int:
        """For how long it keeps events, for the estimate of its memory."""
        return self.retention

    def state(self, rates: Mapping[str, float]) -> StateEstimate:
        """Estimate what it remembers; `rates` are those of all streams."""
        return events_over(self.remembered_for, sum(rates[name] for name in self.inputs))

    @property
    def exercise(self) -> str | None:
        """What compiles the kernels that run it (`whimbrel.warming`); None: what all queries need will do."""
        return None

    # -- rewrites ------------------------------------------------------------------------------------------

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """Conditions all of which hold for whatever it makes."""
        return ()

    def with_conditions(self, change: ChangeConditions) -> Operator:
        """Let a rewrite change conditions all of which have to hold."""
        return self

    def finds_nothing_without(self, streams: Collection[str]) -> bool:
        """Tell whether it surely finds nothing if some streams never have an event."""
        # A definition without cases has its events from elsewhere.
        return self.looks_at_each and bool(self.inputs) and all(name in streams for name in self.inputs)

    def without(self, streams: Collection[str]) -> Operator:
        """Leave out what streams that never have an event are asked for."""
        return self

    # -- in the terms of the operator model, and in words --------------------------------------------------

    @property
    def selection_policy(self) -> SelectionPolicy:
        """Which events it looks at together. Kernels do the same faster; explanations read it."""
        return event_by_event([(x.alias or x.stream, x.stream) for x in self.links], self.retention)

    @property
    def consumption(self) -> Consumption:
        """Which events a detection uses up."""
        return Consumption("none")

    @property
    def consumed(self) -> list[str]:
        """Names of the windows whose events a detection uses up."""
        return []

    @property
    def title(self) -> str:
        """The first line of its explanation."""
        return f"{self.word} {self.name}{' (one event at a time)' if self.looks_at_each else ''}"

    def words(self) -> list[str]:
        """Say what it asks for, condition by condition."""
        return []

    def remarks(self) -> Iterator[tuple[str, str]]:
        """Yield what else is to be said, with a label each."""
        yield from ()

    @property
    def assigned(self) -> list[tuple[str, tuple[Assign, ...]]]:
        """The assignments of each step, with a label each."""
        return []

    @property
    def having(self) -> Expr | None:
        """What its results have to fulfil."""
        return None

    def box(self, columns: Columns) -> list[str] | None:
        """Say what fits into a box of a flowchart; None: the same as everywhere."""
        return None

    def document(self) -> dict[str, Any]:
        """Say for programs what only operators of this kind have."""
        return {}


def event_by_event(
    inputs: Iterable[tuple[str, str]], retention: int = 0, *, process_all: bool | None = None
) -> SelectionPolicy:
    """Take one event at a time, of whichever input has one, given as name and stream."""
    listed = list(inputs)
    windows = tuple(
        SelectionWindow(name, stream, "counting", 1, EVENT_BY_EVENT)
        for name, (_, stream) in zip(distinct([name for name, _ in listed]), listed, strict=True)
    )
    return SelectionPolicy(
        windows,
        RestrictionWindow(max(retention, ONE_INSTANT.length), EVENT_BY_EVENT),
        (),
        tuple(ProcessWhen(window.name, "=", 1) for window in windows),
        process_all=len(windows) == 1 if process_all is None else process_all,
    )


def distinct(names: Iterable[str]) -> list[str]:
    """Give every name once, numbering those that come again."""
    made: list[str] = []
    for name in names:
        number, free = 2, name
        while free in made:
            number, free = number + 1, f"{name}.{number}"
        made.append(free)
    return made


def _expressions(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _expressions(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for item in fields(value):
            yield from _expressions(getattr(value, item.name))


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
        return frozenset(op.at for op in self.operators if op.at is not None)

    def __getitem__(self, name: str) -> Operator:
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise KeyError(name)
