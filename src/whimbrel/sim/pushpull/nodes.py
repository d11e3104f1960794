"""Nodes that push what happens, or keep it until they are asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from whimbrel.sim.pushpull.joining import (
    Asked,
    Atom,
    Candidate,
    Candidates,
    Interval,
    MatchBuffer,
    PartialMatch,
    joins,
)
from whimbrel.sim.pushpull.plan import PUSH, Input, Junction, Leaf, leaves_of

if TYPE_CHECKING:
    from whimbrel.sim.pushpull.running import Run

AFTER_ALL_S = 1e-6
"""Who waits for the longest delay waits a moment more, so that what takes just as long has come."""


class Node(ABC):
    """What source and joint have in common: above them is a junction that they push to, or that asks them."""

    def __init__(self, run: Run, parent: JunctionNode | None, number: int) -> None:
        self.run, self.parent, self.number = run, parent, number
        self.is_pushed = parent is None or parent.junction.inputs[number].turn == PUSH
        self.kept = MatchBuffer()
        self.sent: set[tuple[Atom, ...]] = set()
        run.nodes.append(self)

    @property
    def most_kept(self) -> int:
        """The most parts that it kept."""
        return self.kept.most

    def give(self, part: PartialMatch) -> None:
        """Push a part, or keep it and send it if it has been asked for."""
        if self.is_pushed:
            self.send([part], "data")
            return
        self.kept.add(part)
        self.kept.forget_before(self.run.clock.now - self.run.keep_s)
        if self.is_asked_for(part):
            self.send([part], "reply")

    @abstractmethod
    def is_asked_for(self, part: PartialMatch) -> bool:
        """Tell whether a part has been asked for."""

    def send(self, parts: Sequence[PartialMatch], kind: str) -> None:
        """Send the parts that have not been sent.

        Only events travel: who has all events of a part puts it together again, so that one whose events all
        went up before costs nothing.
        """
        new = [part for part in parts if part.atoms not in self.sent]
        if not new or self.parent is None:
            return
        self.sent.update(part.atoms for part in new)
        atoms = {atom for part in new for atom in part.atoms}
        take = partial(self.parent.take, self.number, new)
        self.run.world.carry(self.parent.paths[self.number], atoms, kind, take)


class SourceNode(Node):
    """A leaf at run time."""

    def __init__(self, run: Run, leaf: Leaf, parent: JunctionNode, number: int) -> None:
        super().__init__(run, parent, number)
        self.leaf = leaf
        self.asked = Asked()

    def is_asked_for(self, part: PartialMatch) -> bool:
        """Tell whether an event happened at a time that has been asked for."""
        return self.asked.covers(part)

    def happen(self, atom: Atom) -> None:
        """Let an event happen."""
        self.give(PartialMatch(atom[0], atom[0], (atom,)))

    def ask(self, intervals: Sequence[Interval]) -> None:
        """Be asked for what happened, or will happen, at some times."""
        self.asked.new(intervals)
        self.send([part for each in intervals for part in self.kept.within(*each)], "reply")


class JunctionNode(Node):
    """A junction at run time."""

    def __init__(self, run: Run, junction: Junction, parent: JunctionNode | None, number: int = 0) -> None:
        super().__init__(run, parent, number)
        self.junction = junction
        self.turns = junction.turns
        self.turn = {each: turn for turn, group in enumerate(self.turns) for each in group}
        self.stores = [MatchBuffer() for _ in junction.inputs]
        self.leaves = [leaves_of(each.child) for each in junction.inputs]
        self.paths = [run.path(junction, each) for each in junction.inputs]
        self.requested = [self._requests(each) for each in junction.inputs]
        self.candidates = Candidates(run.plan.window_s, leaves_of(junction))
        self.below: list[SourceNode | JunctionNode] = []
        for below, each in enumerate(junction.inputs):
            child = each.child
            made = JunctionNode if isinstance(child, Junction) else SourceNode
            self.below.append(made(run, child, self, below))  # type: ignore[arg-type]

    def _requests(self, each: Input) -> Asked | Candidates:
        if isinstance(each.child, Leaf):
            return Asked()
        return Candidates(self.run.plan.window_s, leaves_of(each.child))

    @property
    def most_kept(self) -> int:
        """The most parts that it kept of one input, or of its own."""
        return max(self.kept.most, *(store.most for store in self.stores))

    def take(self, number: int, parts: Sequence[PartialMatch]) -> None:
        """Take parts of an input: find what they complete, and ask for what they now make possible."""
        if self.parent is None:
            for part in parts:
                for atom in part.atoms:
                    self.run.arrived.setdefault(atom, self.run.clock.now)
        if self.run.plan.is_any:
            for part in parts:
                self._found(part)
            return
        for part in parts:
            self.stores[number].add(part)
        self.stores[number].forget_before(self.run.clock.now - self.run.keep_s)
        if not self.junction.inputs[number].negated:
            self._advance(number, parts)

    def _advance(self, number: int, parts: Sequence[PartialMatch]) -> None:
        for until in range(self.turn[number], len(self.turns)):
            known = [other for group in self.turns[: until + 1] for other in group if other != number]
            stores = [self.stores[other] for other in known]
            ways = {part: list(joins(self.run.rule, part, stores)) for part in parts}
            parts = [part for part, found in ways.items() if found]
            if not parts:
                return
            joined = [whole for found in ways.values() for whole in found]
            if until + 1 == len(self.turns):
                self._complete(joined)
            else:
                for other in self.turns[until + 1]:
                    self._request(other, [self._around(each, self.leaves[other]) for each in joined])

    def _around(self, part: PartialMatch, leaves: Sequence[str]) -> Candidate:
        """Give when an event of each leaf would go with a part."""
        rule = self.run.rule
        if rule.place is None:
            return (rule.around(part),) * len(leaves)
        return tuple(rule.around(part, (leaf,)) for leaf in leaves)

    def is_asked_for(self, part: PartialMatch) -> bool:
        """Tell whether a part goes with something that has been asked about."""
        return self.candidates.covers(part)

    def ask(self, candidates: Sequence[Candidate]) -> None:
        """Be asked what goes with some candidates, now and later.

        A junction to which nothing is pushed looks for something only then.
        """
        self.candidates.new(candidates)
        ready = []
        for each in candidates:
            low, high = min(low for low, _ in each), max(high for _, high in each)
            ready += [part for part in self.kept.within(low, high) if self.candidates.fits(part, each)]
        self.send(list(dict.fromkeys(ready)), "reply")
        if not self.turns[0] and len(self.turns) > 1:
            place = {leaf: place for place, leaf in enumerate(leaves_of(self.junction))}
            for number in self.turns[1]:
                places = [place[leaf] for leaf in self.leaves[number]]
                self._request(number, [tuple(each[at] for at in places) for each in candidates])

    def _request(self, number: int, candidates: Sequence[Candidate]) -> None:
        """Ask an input for what goes with candidates, unless it has been asked for."""
        possible = [each for each in candidates if all(low <= high for low, high in each)]
        child, requested = self.below[number], self.requested[number]
        if isinstance(child, SourceNode) and isinstance(requested, Asked):
            intervals = requested.new(interval for (interval,) in possible)
            count, ask = len(intervals), partial(child.ask, intervals)
        elif isinstance(child, JunctionNode) and isinstance(requested, Candidates):
            wanted = requested.new(possible)
            count, ask = len(wanted), partial(child.ask, wanted)
        if count:
            self.run.world.tell(self.paths[number][::-1], self.run.plan.request_b * count, ask)

    def _complete(self, wholes: Sequence[PartialMatch]) -> None:
        negated = [number for number, each in enumerate(self.junction.inputs) if each.negated]
        if not negated:
            for whole in wholes:
                self._found(whole)
            return
        wait = 0.0
        now = self.run.clock.now
        for number in negated:
            each = self.junction.inputs[number]
            wait = max(wait, self.run.wait_s(self.junction, each))
            if each.turn != PUSH:
                leaf = self.leaves[number][0]
                self._request(number, [(self.run.spoiling(whole, leaf),) for whole in wholes])
        for whole in wholes:
            self.run.settled.setdefault(whole.atoms, now + wait + AFTER_ALL_S)
            until = max(now + wait, *(self._waits_until(whole, number) for number in negated))
            self.run.clock.at(until + AFTER_ALL_S, partial(self._if_not_spoiled, whole, negated))

    def _waits_until(self, whole: PartialMatch, number: int) -> float:
        """Give when the last event that might spoil something, and may still occur, would be here."""
        _, last = self.run.spoiling(whole, self.leaves[number][0])
        return last + self.run.delay_s(self.junction, self.junction.inputs[number])

    def _if_not_spoiled(self, whole: PartialMatch, negated: Sequence[int]) -> None:
        for number in negated:
            low, high = self.run.spoiling(whole, self.leaves[number][0])
            if any(low < part.start < high for part in self.stores[number].within(low, high)):
                return
        self._found(whole)

    def _found(self, whole: PartialMatch) -> None:
        if self.parent is None:
            self.run.settled.setdefault(whole.atoms, self.run.clock.now)
            self.run.found.setdefault(whole.atoms, self.run.clock.now - whole.end)
        else:
            self.give(whole)
