"""Which tasks belong together on a broker: the merged forest of all requests, and the alternatives it leaves.

Section 5 of the paper. What is made from an event is its child. A broker that processes a task must have all
that the task is made of, and, so that shared events are there for everybody, the other things that are made
of those in one step: its ancestors. What is left over is handed on in groups that must stay together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from whimbrel.plan.workload import Workload

Names = frozenset[str]


@dataclass(frozen=True)
class Forest:
    """What is made of what: for each event, the events it is made of."""

    parents: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, workload: Workload) -> Forest:
        """Merge the requests of a workload."""
        feeds: dict[str, tuple[str, ...]] = {feed.name: () for feed in workload.feeds}
        return cls({**feeds, **{task.name: task.inputs for task in workload.tasks}})

    @cached_property
    def children(self) -> dict[str, Names]:
        """What is made of each event in one step."""
        return {
            name: frozenset(child for child, made_of in self.parents.items() if name in made_of)
            for name in self.parents
        }

    @property
    def roots(self) -> Names:
        """The events that are not made of others."""
        return frozenset(name for name, made_of in self.parents.items() if not made_of)

    def made_of(self, name: str) -> Names:
        """Return all that an event is made of, in any number of steps."""
        found: set[str] = set()
        waiting = list(self.parents[name])
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting += self.parents[at]
        return frozenset(found)

    def ancestors(self, name: str) -> Names:
        """Return what must be processed where an event is: what it is made of, and their other children.

        Those children need all that they are made of, in turn.
        """
        below = self.made_of(name)
        beside = {child for event in below for child in self.children[event]} - {name}
        beside = {child for child in beside if name not in self.made_of(child)}
        return frozenset(below.union(beside, *(self.made_of(child) for child in beside)) - {name})

    def descendants(self, name: str) -> tuple[Names, ...]:
        """Give, for each child of an event, what has to be handed on together with it."""
        kept = self.ancestors(name) | {name}
        groups = [
            frozenset({child, *self._made_from(child), *self.ancestors(child)}) - kept
            for child in sorted(self.children[name])
        ]
        return tuple(_joined(group for group in groups if group))

    def _made_from(self, name: str) -> Names:
        return frozenset(other for other in self.parents if name in self.made_of(other))

    def alternatives(self, longest: int = 2) -> tuple[Names, ...]:
        """Return the sets of events that a broker may process: one event with its ancestors, or several.

        Several go together if they share nothing that they are made of; events that are not made of others
        may be kept along. What holds only such events is one alternative: nothing is processed there.
        """
        single = [frozenset({name}) | self.ancestors(name) for name in self.parents if self.parents[name]]
        found: dict[Names, None] = {self.roots: None}
        found.update(dict.fromkeys(single))
        for count in range(2, longest + 1):
            for several in combinations(self.parents, count):
                if not self.roots.issuperset(several) and self._are_apart(several):
                    sets = (frozenset({name}) | self.ancestors(name) for name in several)
                    found[frozenset().union(*sets)] = None
        return tuple(found)

    def _are_apart(self, several: Collection[str]) -> bool:
        seen: set[str] = set()
        for name in several:
            below = self.made_of(name) | {name}
            if below & seen:
                return False
            seen |= below
        return True

    def left_over(self, kept: Collection[str]) -> tuple[Names, ...]:
        """Return what is not processed, in groups that must go to one broker: those that share an input."""
        rest = [name for name in self.parents if name not in kept]
        return tuple(_joined(frozenset({name, *(set(self.parents[name]) & set(rest))}) for name in rest))


def _joined(groups: Iterable[Names]) -> Iterator[Names]:
    """Join groups that overlap."""
    found: list[set[str]] = []
    for group in groups:
        together = [other for other in found if other & group]
        found = [other for other in found if not other & group]
        found.append(set(group).union(*together))
    return (frozenset(group) for group in sorted(found, key=sorted))
