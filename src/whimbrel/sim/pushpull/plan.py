"""What a push and pull plan says: a tree, and for every input whether it is pushed, or when it is asked for.

Planners may have plans of their own; this is all that the simulator has to know of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from whimbrel.errors import NetworkError

PUSH = 0
"""The turn of inputs that come by themselves."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A source of primitive events."""

    name: str
    broker: str
    size_b: float = 100.0


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a junction: pushed (turn 0), or pulled in a turn; those of one turn are pulled together.

    A turn comes only when what has come by then can still be part of a detection.
    """

    child: Leaf | Junction
    turn: int = PUSH
    negated: bool = False
    """Whether it must not occur; a leaf, which is looked at last."""
    path: tuple[str, ...] = ()
    """The brokers on the way up, both ends included; none: the quickest way."""
    delay_s: float | None = None
    """The longest time that the way takes; None: as long as its links wait and take."""


@dataclass(frozen=True, slots=True)
class Junction:
    """A node that joins what comes from below it."""

    name: str
    broker: str
    inputs: tuple[Input, ...]

    @property
    def turns(self) -> tuple[tuple[int, ...], ...]:
        """The inputs by turn, those that are pushed first; negated ones are left out."""
        wanted = [(each.turn, number) for number, each in enumerate(self.inputs) if not each.negated]
        turns = sorted({PUSH, *(turn for turn, _ in wanted)})
        return tuple(tuple(number for its, number in wanted if its == turn) for turn in turns)


@dataclass(frozen=True)
class PushPullPlan:
    """A tree of junctions over leaves; what is to be found: all leaves within a window, in order or not."""

    root: Junction
    window_s: float
    order: tuple[str, ...] | None = None
    """`seq`: the names of the leaves in the order in which they have to happen; None: `and`, in any order."""
    is_any: bool = False
    """`or`: every event is a detection."""
    request_b: float = 56.0
    """Bytes of a request: for one interval, or for what fits with one candidate."""
    is_amid: bool = True
    """Whether leaves that must not occur are looked for between the others; else in all of the window."""
    keep_s: float | None = None
    """How long nodes keep what they may be asked for; None: long enough for the longest delays."""

    def __post_init__(self) -> None:
        names = [leaf.name for leaf, _ in self.leaves()]
        if len(set(names)) < len(names):
            raise NetworkError("two leaves of the plan have the same name")
        if self.order is not None and sorted(self.order) != sorted(names):
            raise NetworkError("the order of a sequence names every leaf once", f"name {', '.join(names)}")
        if self.is_any and any(
            each.turn != PUSH for junction in self.junctions() for each in junction.inputs
        ):
            raise NetworkError("alternatives are never asked for", "push them all")
        for junction in _pushing(self.root):
            if not junction.turns[0]:
                raise NetworkError(
                    f"nothing is pushed to {junction.name!r}, so it never finds anything to push itself",
                    "push one of its inputs, or pull from it",
                )
        for leaf, each in self.leaves():
            if each.negated and each not in self.root.inputs:
                raise NetworkError(
                    f"{leaf.name!r} must not occur, which only the root can tell",
                    "make it an input of the root",
                )
            if each.negated and self.order is not None and leaf.name in (self.order[0], self.order[-1]):
                raise NetworkError(f"{leaf.name!r} must not occur, and so cannot be first or last")

    def leaves(self) -> Iterator[tuple[Leaf, Input]]:
        """Give every leaf, with the input that it is."""
        yield from _leaves(self.root)

    def junctions(self) -> Iterator[Junction]:
        """Give every junction, from the root down."""
        yield from _junctions(self.root)


def leaves_of(node: Leaf | Junction) -> tuple[str, ...]:
    """Name the leaves below a node, or itself."""
    return (node.name,) if isinstance(node, Leaf) else tuple(leaf.name for leaf, _ in _leaves(node))


def _leaves(junction: Junction) -> Iterator[tuple[Leaf, Input]]:
    for each in junction.inputs:
        if isinstance(each.child, Junction):
            yield from _leaves(each.child)
        else:
            yield each.child, each


def _pushing(junction: Junction) -> Iterator[Junction]:
    """Give the root, and every junction that pushes what it finds."""
    yield junction
    for each in junction.inputs:
        if isinstance(each.child, Junction):
            yield from (
                below for below in _pushing(each.child) if below is not each.child or each.turn == PUSH
            )


def _junctions(junction: Junction) -> Iterator[Junction]:
    yield junction
    for each in junction.inputs:
        if isinstance(each.child, Junction):
            yield from _junctions(each.child)
