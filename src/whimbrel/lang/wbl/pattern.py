"""A pattern with its names bound: what stands where, before it becomes operators.

The nodes mirror the operators (`Occurring` a filtered source, `Joined` a match, `Repeated`,
`Alternatives`), but their conditions are still open lists: `conditions.py` fills them, `emit.py` reads
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from whimbrel.errors import Span
from whimbrel.graph.expressions import Expr
from whimbrel.graph.policies import Select
from whimbrel.lang.wbl.tree import Occurrence, TimesNode
from whimbrel.model.schema import Type


@dataclass(slots=True)
class TypeInfo:
    """What is known of an event type. `is_open`: it may have attributes that are not listed."""

    name: str
    attributes: dict[str, Type | None] = field(default_factory=dict)
    is_open: bool = True


@dataclass(eq=False, slots=True)
class Occurring:
    """One occurrence of an event type. The conditions read it by its name, and nothing else."""

    occurrence: Occurrence
    name: str
    info: TypeInfo
    scope: Scope
    conditions: list[Expr] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Repeated:
    """A repeated node. `name` is set where plain events repeat."""

    body: Node
    name: str | None
    times: TimesNode
    until: Occurring | None
    at: Span | None
    within: int | None = None


@dataclass(eq=False, slots=True)
class Alternatives:
    """Alternatives. `name` is set where one name stands for whichever came."""

    branches: list[Node]
    name: str | None
    at: Span | None


@dataclass(eq=False, slots=True)
class RequiredPart:
    """A part of a `Joined` that must occur."""

    node: Node
    select: Select = Select.EACH
    outer: bool = False


@dataclass(eq=False, slots=True)
class AbsentSlot:
    """A part of a `Joined` that must not occur, between the slots `after` and `before`."""

    node: Node
    after: int | None
    before: int | None
    duration: int | None
    at: Span | None
    conditions: list[Expr] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Joined:
    """Parts that must all occur; in their order, if it is a sequence."""

    scope: Scope
    is_sequence: bool
    at: Span | None
    within: int | None = None
    slots: list[RequiredPart] = field(default_factory=list)
    absent: list[AbsentSlot] = field(default_factory=list)
    gaps: list[tuple[int, int, int]] = field(default_factory=list)
    """(first slot, second slot, microseconds)."""
    conditions: list[Expr] = field(default_factory=list)


Node = Occurring | Repeated | Alternatives | Joined


@dataclass(eq=False, slots=True)
class Barrier:
    """A border that conditions cannot be moved across: a repetition, a branch of an `or`, an absent part."""

    kind: str
    absent: AbsentSlot | None = None
    owner: Joined | None = None
    """The `Joined` that an absent part belongs to."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where in a pattern something stands: the matches and the barriers around it, outermost first."""

    joined: tuple[Joined, ...] = ()
    barriers: tuple[Barrier, ...] = ()

    def inside(self, barrier: Barrier) -> Scope:
        """Step over a barrier."""
        return Scope(self.joined, (*self.barriers, barrier))

    def within(self, joined: Joined) -> Scope:
        """Step into a match."""
        return Scope((*self.joined, joined), self.barriers)

    def sees(self, other: Scope) -> bool:
        """Tell whether this scope lies inside all barriers of `other`."""
        return _is_prefix(other.barriers, self.barriers)

    def hidden_by(self, other: Scope) -> tuple[Barrier, ...]:
        """List the barriers of `other` that this scope would have to look through."""
        shared = 0
        for mine, theirs in zip(self.barriers, other.barriers, strict=False):
            if mine is not theirs:
                break
            shared += 1
        return other.barriers[shared:]


def _is_prefix(short: tuple[Barrier, ...], long: tuple[Barrier, ...]) -> bool:
    return len(short) <= len(long) and all(a is b for a, b in zip(short, long, strict=False))


@dataclass(eq=False, slots=True)
class PartName:
    """A name that expressions may use for a part of the pattern."""

    name: str
    info: TypeInfo
    scope: Scope
    """Where the part stands; inside its own repetition, if it is a repeated one."""
    leaves: list[Occurring]
    """Every leaf that binds the name; more than one for `(A or B) as x`."""
    at: Span | None

    def barrier_seen_from(self, viewpoint: Scope, kind: str) -> Barrier | None:
        """Find a barrier of a kind between `viewpoint` and this part."""
        for barrier in viewpoint.hidden_by(self.scope):
            if barrier.kind == kind:
                return barrier
        return None


@dataclass(eq=False, slots=True)
class BoundPattern:
    """A pattern and all names it binds."""

    root: Node
    parts: dict[str, PartName]
    leaves: list[Occurring]
    """All leaves, `until` ones included."""
