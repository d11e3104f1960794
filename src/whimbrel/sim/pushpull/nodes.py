"""Nodes of a push and pull plan at run time: they push what happens, or keep it until they are asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from whimbrel.plan.pushpull.plan import JunctionPlan
from whimbrel.plan.pushpull.tree import Input, Leaf, is_negated, leaves_of
from whimbrel.sim.pushpull.matching import (
    Atom,
    Candidate,
    Candidates,
    Interval,
    MatchBuffer,
    PartialMatch,
    RequestedTimes,
    joins,
)

if TYPE_CHECKING:
    from whimbrel.sim.pushpull.run import PlanRun

AFTER_ALL_S = 1e-6
"""Who waits for the longest delay waits a moment more, so that what takes just as long has come."""


class Node(ABC):
    """A node at a broker: the junction above it is pushed what it has, or asks for it."""

    def __init__(self, run: PlanRun, at: str, parent: JunctionNode | None, number: int) -> None:
        self.run, self.at, self.parent, self.number = run, at, parent, number
        self.is_pushed = parent is None or number in parent.planned.stages[0]
        self.kept = MatchBuffer()
        self.sent: set[tuple[Atom, ...]] = set()
        run.nodes.append(self)
        run.channel.world.add_volatile(at, self.forget)

    @property
    def most_kept(self) -> int:
        """The most partial matches that it kept."""
        return self.kept.most

    def forget(self) -> None:
        """Lose what it keeps, as its broker fails without recovery."""
        self.kept.clear()

    def offer(self, match: PartialMatch) -> None:
        """Push a partial match, or keep it and send it if it has been asked for."""
        if self.is_pushed:
            self.send([match], "data")
            return
        self.kept.add(match)
        self.kept.forget_before(self.run.needed_from_s)
        if self.is_requested(match):
            self.send([match], "reply")

    @abstractmethod
    def is_requested(self, match: PartialMatch) -> bool:
        """Tell whether a partial match has been asked for."""

    def send(self, matches: Sequence[PartialMatch], kind: str) -> None:
        """Send the partial matches that have not been sent.

        Only events travel: who has all events of a match puts it together again, so that one whose events all
        went up before costs nothing.
        """
        new = [match for match in matches if match.atoms not in self.sent]
        if not new or self.parent is None:
            return
        self.sent.update(match.atoms for match in new)
        atoms = {atom for match in new for atom in match.atoms}
        earliest_s = min(match.start for match in new)
        take = self.run.in_flight.until_run(earliest_s, partial(self.parent.take, self.number, new))
        self.run.channel.send_events(self.parent.inputs[self.number].path, atoms, kind, take)


class SourceNode(Node):
    """A leaf at run time."""

    def __init__(self, run: PlanRun, leaf: Leaf, parent: JunctionNode, number: int) -> None:
        super().__init__(run, leaf.part.at, parent, number)
        self.leaf = leaf
        self.requested = RequestedTimes()

    def is_requested(self, match: PartialMatch) -> bool:
        """Tell whether an event happened at a time that has been asked for."""
        return self.requested.covers(match)

    def happen(self, atom: Atom) -> None:
        """Let an event happen."""
        self.offer(PartialMatch(atom[0], atom[0], (atom,)))

    def ask(self, intervals: Sequence[Interval]) -> None:
        """Be asked for what happened, or will happen, at some times."""
        self.requested.new(intervals)
        self.send([match for each in intervals for match in self.kept.within(*each)], "reply")


class JunctionNode(Node):
    """A junction at run time: it joins what comes, stage by stage, and asks for what may complete it."""

    def __init__(
        self, run: PlanRun, planned: JunctionPlan, parent: JunctionNode | None = None, number: int = 0
    ) -> None:
        self.planned, self.inputs = planned, planned.junction.inputs
        super().__init__(run, planned.junction.at, parent, number)
        window_s = run.composite.window_s
        self.negated = [n for n, each in enumerate(self.inputs) if is_negated(each)]
        pushed, *pulled = (
            tuple(n for n in sorted(stage) if n not in self.negated) for stage in planned.stages
        )
        self.stages = (pushed, *(stage for stage in pulled if stage))
        self.stage_of = {n: place for place, stage in enumerate(self.stages) for n in stage}
        self.buffers = [MatchBuffer() for _ in self.inputs]
        self.leaves = [_names(each) for each in self.inputs]
        self.requested = [
            RequestedTimes() if isinstance(each, Leaf) else Candidates(window_s, names)
            for each, names in zip(self.inputs, self.leaves, strict=True)
        ]
        self.candidates = Candidates(window_s, _names(planned.junction))
        self.below: list[SourceNode | JunctionNode] = [
            SourceNode(run, each, self, n)
            if isinstance(each, Leaf)
            else JunctionNode(run, planned.below[n], self, n)
            for n, each in enumerate(self.inputs)
        ]

    @property
    def most_kept(self) -> int:
        """The most partial matches that it kept of one input, or of its own."""
        return max(self.kept.most, *(buffer.most for buffer in self.buffers))

    def forget(self) -> None:
        """Lose what it keeps, as its broker fails without recovery."""
        super().forget()
        for buffer in self.buffers:
            buffer.clear()

    def take(self, number: int, matches: Sequence[PartialMatch]) -> None:
        """Take what came of an input: find what it completes, and ask for what it now makes possible."""
        if self.parent is None:
            for match in matches:
                for atom in match.atoms:
                    self.run.arrived.setdefault(atom, self.run.clock.now)
        if self.run.composite.operator == "or":
            for match in matches:
                self._found(match)
            return
        for match in matches:
            self.buffers[number].add(match)
        self.buffers[number].forget_before(self.run.needed_from_s)
        if number not in self.negated:
            self._advance(number, matches)

    def _advance(self, number: int, matches: Sequence[PartialMatch]) -> None:
        for until in range(self.stage_of[number], len(self.stages)):
            known = [other for stage in self.stages[: until + 1] for other in stage if other != number]
            buffers = [self.buffers[other] for other in known]
            ways = {match: list(joins(self.run.rule, match, buffers)) for match in matches}
            matches = [match for match, found in ways.items() if found]
            if not matches:
                return
            joined = [whole for found in ways.values() for whole in found]
            if until + 1 == len(self.stages):
                self._complete(joined)
            else:
                for other in self.stages[until + 1]:
                    self._request(other, [self._candidate(each, self.leaves[other]) for each in joined])

    def _candidate(self, match: PartialMatch, leaves: Sequence[str]) -> Candidate:
        """Say when an event of each leaf would go with a partial match."""
        rule = self.run.rule
        if rule.place is None:
            return (rule.reach(match),) * len(leaves)
        return tuple(rule.reach(match, (leaf,)) for leaf in leaves)

    def is_requested(self, match: PartialMatch) -> bool:
        """Tell whether a partial match goes with something that has been asked about."""
        return self.candidates.covers(match)

    def ask(self, candidates: Sequence[Candidate]) -> None:
        """Be asked what goes with some candidates, now and later.

        A junction to which nothing is pushed looks for something only then.
        """
        self.candidates.new(candidates)
        ready = []
        for each in candidates:
            low, high = min(low for low, _ in each), max(high for _, high in each)
            ready += [match for match in self.kept.within(low, high) if self.candidates.fits(match, each)]
        self.send(list(dict.fromkeys(ready)), "reply")
        if not self.stages[0] and len(self.stages) > 1:
            place = {leaf: place for place, leaf in enumerate(_names(self.planned.junction))}
            for number in self.stages[1]:
                places = [place[leaf] for leaf in self.leaves[number]]
                self._request(number, [tuple(each[at] for at in places) for each in candidates])

    def _request(self, number: int, candidates: Sequence[Candidate]) -> None:
        """Ask an input for what goes with candidates, unless it has been asked for."""
        possible = [each for each in candidates if all(low <= high for low, high in each)]
        child, requested = self.below[number], self.requested[number]
        if isinstance(child, SourceNode) and isinstance(requested, RequestedTimes):
            intervals = requested.new(interval for (interval,) in possible)
            asked, lows = partial(child.ask, intervals), [low for low, _ in intervals]
        elif isinstance(child, JunctionNode) and isinstance(requested, Candidates):
            wanted = requested.new(possible)
            asked, lows = partial(child.ask, wanted), [min(each)[0] for each in wanted]
        if lows:
            size_b = self.run.composite.request_b * len(lows)
            ask = self.run.in_flight.until_run(min(lows), asked)
            self.run.channel.send_request(self.inputs[number].path[::-1], size_b, ask)

    def _complete(self, wholes: Sequence[PartialMatch]) -> None:
        if not self.negated:
            for whole in wholes:
                self._found(whole)
            return
        now, wait_s = self.run.clock.now, 0.0
        for number in self.negated:
            is_pulled = number not in self.planned.stages[0]
            wait_s = max(wait_s, (2 if is_pulled else 1) * self.inputs[number].delay_s)
            if is_pulled:
                leaf = self.leaves[number][0]
                self._request(number, [(self.run.rule.forbidden(whole, leaf),) for whole in wholes])
        for whole in wholes:
            self.run.settled.setdefault(whole.atoms, now + wait_s + AFTER_ALL_S)
            until = max(now + wait_s, *(self._waits_until(whole, number) for number in self.negated))
            decide = self.run.in_flight.until_run(whole.start, partial(self._unless_negated, whole))
            world = self.run.channel.world
            self.run.clock.at(until + AFTER_ALL_S, partial(world.work_at, self.at, decide))

    def _waits_until(self, whole: PartialMatch, number: int) -> float:
        """Say when the last negated event that may still occur would be here."""
        _, last = self.run.rule.forbidden(whole, self.leaves[number][0])
        return last + self.inputs[number].delay_s

    def _unless_negated(self, whole: PartialMatch) -> None:
        for number in self.negated:
            low, high = self.run.rule.forbidden(whole, self.leaves[number][0])
            if any(low < match.start < high for match in self.buffers[number].within(low, high)):
                return
        self._found(whole)

    def _found(self, whole: PartialMatch) -> None:
        if self.parent is None:
            self.run.settled.setdefault(whole.atoms, self.run.clock.now)
            self.run.found.setdefault(whole.atoms, self.run.clock.now - whole.end)
        else:
            self.offer(whole)


def _names(each: Input) -> tuple[str, ...]:
    return tuple(leaf.part.name for leaf in leaves_of(each))
