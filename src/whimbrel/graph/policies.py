"""How an operator selects, consumes and partitions events: the operator model of mobile CEP.

A correlation step works on a *selection*: the events inside the operator's selection windows.
Between steps the windows shift, within a *restriction window* that bounds how far back any result
can reach. *Kappa dependencies* order window bounds, *processing predicates* say when a selection is
worth processing, a *consumption policy* takes events away, a *partitioning* gives every source,
region or attribute value windows of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from operator import eq, ge, gt, le, lt, ne
from typing import Literal as OneOf

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Expr
from whimbrel.graph.links import MEMBERS, stream

_RELATIONS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}

INFINITE = None
"""A window length without an end: the operator's own logic ends the selection."""


class Select(StrEnum):
    """Which of several events that fit a part are taken."""

    EACH = "each"
    """Every one: every combination that holds is a detection."""
    FIRST = "first"
    """Among combinations that agree in all other parts, the one with the earliest event."""
    LAST = "last"
    """Among combinations that agree in all other parts when they complete, the one with the latest."""


class Context(StrEnum):
    """What happens to events that took part in a detection."""

    EACH = "each"
    RECENT = "recent"
    CHRONICLE = "chronicle"
    FIRST_MATCHING = "first-matching"
    CONTINUOUS = "continuous"
    CUMULATIVE = "cumulative"


@dataclass(frozen=True, slots=True)
class Shift:
    """How a window bound moves between two correlation steps; the other bound follows at the window's length.

    Windows that shift by time are cells of a grid and half open; all others include both bounds.
    """

    by: OneOf["events", "time", "newest", "oldest", "none"]
    amount: int = 1
    """Events or microseconds; negative shifts into history."""
    bound: OneOf["start", "end"] = "start"
    """The bound that is moved."""

    def __post_init__(self) -> None:
        if self.by in ("events", "time") and self.amount == 0:
            raise QueryError(f"a shift by 0 {self.by} never moves; write Shift('none')")


@dataclass(frozen=True, slots=True)
class SelectionWindow:
    """A window over one input: which events are in the current selection."""

    name: str
    input: str = field(metadata=stream())
    kind: OneOf["counting", "temporal"]
    length: int | None
    """Events or microseconds; `INFINITE` selects everything from its start on."""
    shift: Shift = Shift("events", 1)
    initial: OneOf["oldest", "newest"] = "oldest"
    """At which end of a new restriction window it is put."""

    def __post_init__(self) -> None:
        if self.length is not INFINITE and self.length <= 0:
            raise QueryError(f"window {self.name!r} needs a length of more than nothing, not {self.length}")

    @property
    def goes_back(self) -> bool:
        """Whether a later selection may hold older events than an earlier one."""
        return self.shift.amount < 0 or (self.shift.by == "oldest" and self.initial == "newest")


@dataclass(frozen=True, slots=True)
class RestrictionWindow:
    """The stretch of event time that selections may reach: `length` microseconds.

    By events (`oldest` is by one event), the bound that shifts lies on an event; by time, the window
    ends at multiples of the shift since 1970-01-01.
    """

    length: int
    shift: Shift = Shift("events", 1)
    input: str | None = field(default=None, metadata=stream())
    """The input whose events count for a shift by events; None: those of any input."""

    def __post_init__(self) -> None:
        if self.length <= 0:
            raise QueryError(f"the restriction window needs a length of more than nothing, not {self.length}")
        if self.shift.by in ("newest", "none") or self.shift.amount < 0:
            raise QueryError(
                "the restriction window must shift to the future: by events, by time or to the oldest event"
            )


@dataclass(frozen=True, slots=True)
class Kappa:
    """A temporal dependency between window bounds, e.g. end(a) < start(b).

    The first window gives way: if a shift breaks the relation, the first window's bound is moved.
    """

    window: str
    bound: OneOf["start", "end"]
    relation: OneOf["<", "<=", ">", ">="]
    other: str
    other_bound: OneOf["start", "end"]

    def __str__(self) -> str:
        return f"{self.bound}({self.window}) {self.relation} {self.other_bound}({self.other})"


@dataclass(frozen=True, slots=True)
class ProcessWhen:
    """A processing predicate: `|window| relation count`.

    `= all` holds once the window has all events that it will ever have, `= none` always.
    """

    window: str
    relation: OneOf["=", "!=", "<", "<=", ">", ">="]
    count: int | OneOf["all", "none"]

    def __post_init__(self) -> None:
        if isinstance(self.count, str) and self.relation != "=":
            raise QueryError(f"the predicate {self} means nothing; write |{self.window}| = {self.count}")

    def __str__(self) -> str:
        return f"|{self.window}| {self.relation} {self.count}"

    def holds(self, count: int, is_complete: bool) -> bool:
        """Tell whether a window with `count` events fulfils it."""
        if isinstance(self.count, str):
            return is_complete or self.count == "none"
        found: bool = _RELATIONS[self.relation](count, self.count)
        return found

    @property
    def wants_absence(self) -> bool:
        """Whether it holds of an empty window and of no other."""
        return not isinstance(self.count, str) and self.holds(0, True) and not self.holds(1, True)


@dataclass(frozen=True, slots=True)
class Consumption:
    """Which events leave the buffers after a correlation step."""

    kind: OneOf["none", "selected", "first", "last", "before", "named"]
    """`first`/`last`: `count` of the selected events; `before`: all that end before the time the operator
    returns from `close`; `named`: the events it returns."""
    count: int = 0

    def __post_init__(self) -> None:
        if self.kind in ("first", "last") and self.count <= 0:
            raise QueryError(f"to consume the {self.kind} events, say how many, not {self.count}")

    def words(self, names: Iterable[str]) -> str:
        """Say what it takes away; `names` are the windows whose events it does, where they are known."""
        match self.kind:
            case "none":
                return "nothing"
            case "first" | "last":
                return f"the {self.kind} {self.count:,} of the selected events"
            case "before":
                return "what ends before the time it gives"
        listed = ", ".join(names)
        return listed or ("the selected events" if self.kind == "selected" else "the events it names")


@dataclass(frozen=True, slots=True)
class SelectionPolicy:
    """The whole selection policy of an operator."""

    windows: tuple[SelectionWindow, ...] = field(metadata=MEMBERS)
    restriction: RestrictionWindow = field(metadata=MEMBERS)
    dependencies: tuple[Kappa, ...] = ()
    process_when: tuple[ProcessWhen, ...] = ()
    process_all: bool = True
    """Whether all predicates must hold (`and`) or one is enough (`or`)."""

    def __post_init__(self) -> None:
        names = [window.name for window in self.windows]
        if len(set(names)) != len(names):
            raise QueryError(f"selection windows need different names, not {', '.join(names)}")
        if not names:
            raise QueryError("a selection policy needs at least one selection window")
        self._check_dependencies(names)
        self._check_lengths()
        for predicate in self.process_when:
            if predicate.window not in names:
                raise QueryError(f"predicate {predicate} names no window; windows: {', '.join(names)}")

    def _check_lengths(self) -> None:
        for window in self.windows:
            if window.kind == "temporal" and (window.length or 0) > self.restriction.length:
                raise QueryError(
                    f"window {window.name!r} is longer than the restriction window that it has to lie in",
                    hint="make the restriction window at least as long",
                )

    def _check_dependencies(self, names: list[str]) -> None:
        depends: dict[str, set[str]] = {}
        infinite = {window.name for window in self.windows if window.length is INFINITE}
        for kappa in self.dependencies:
            for name in (kappa.window, kappa.other):
                if name not in names:
                    raise QueryError(
                        f"dependency {kappa} names no window {name!r}; windows: {', '.join(names)}"
                    )
            if kappa.other in infinite:
                raise QueryError(
                    f"dependency {kappa}: nothing can depend on {kappa.other!r}, which has no length"
                )
            depends.setdefault(kappa.window, set()).add(kappa.other)
        for name, others in depends.items():
            if len(others) > 1 and name not in infinite:
                raise QueryError(f"window {name!r} may depend on one other window, not on {len(others)}")
            _refuse_cycle(name, depends)


def _refuse_cycle(start: str, depends: dict[str, set[str]]) -> None:
    seen: set[str] = set()
    todo = list(depends.get(start, ()))
    while todo:
        name = todo.pop()
        if name == start:
            raise QueryError(f"the dependencies of window {start!r} form a cycle")
        if name not in seen:
            seen.add(name)
            todo.extend(depends.get(name, ()))


@dataclass(frozen=True, slots=True)
class Key:
    """One value that parts a stream: an attribute, the source, or the grid cell of the location."""

    kind: OneOf["attribute", "source", "cell"]
    name: str
    """How `group.NAME` reads it."""
    cell_m: float = 0.0

    def __str__(self) -> str:
        return {"attribute": self.name, "source": "source", "cell": f"cell({self.cell_m:g} m)"}[self.kind]


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Keys by which all inputs of an operator are parted; none: one partition.

    Null is a key of its own, as in SQL's `group by`.
    """

    keys: tuple[Key, ...] = ()


WHOLE = Partitioning()
"""No partitioning: all events belong together."""


@dataclass(frozen=True, slots=True)
class Window:
    """Over which events an aggregate is computed, and when.

    `length` and `every` are microseconds or counts of events, by `kind`. Without `every` the
    aggregate is computed at each event over the `length` that ends with it. Temporal windows with
    `every` end at multiples of `every` since 1970-01-01 and are half open, [end - length, end).
    """

    kind: OneOf["temporal", "counting"]
    length: int
    every: int | None = None
    within: int | None = None
    """Counting windows only: events older than this at the time do not count; None: for ever."""


@dataclass(frozen=True, slots=True)
class Assign:
    """`name = expression` of a definition; the declared type, if any, is what the value is cast to."""

    name: str
    value: Expr
    type: str | None = None
