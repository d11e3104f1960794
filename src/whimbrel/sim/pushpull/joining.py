"""Partial and whole detections: events of different leaves within a window, in order or not."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Atom = tuple[float, str, str]
"""A primitive event: (time in seconds, leaf, id)."""
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, order=True)
class PartialMatch:
    """Some events that may become a detection, or are one, in order of time."""

    start: float
    end: float
    atoms: tuple[Atom, ...]

    def joined(self, other: PartialMatch) -> PartialMatch:
        """Give both together."""
        atoms = tuple(sorted(self.atoms + other.atoms))
        return PartialMatch(atoms[0][0], atoms[-1][0], atoms)


class Rule:
    """What makes a detection: the window, and the places of leaves in a sequence, if it is one."""

    def __init__(self, window_s: float, order: Sequence[str] | None) -> None:
        self.window_s = window_s
        self.place = None if order is None else {name: number for number, name in enumerate(order)}

    def fits(self, part: PartialMatch) -> bool:
        """Tell whether events can be part of one detection."""
        if part.end - part.start > self.window_s:
            return False
        if self.place is None:
            return True
        atoms = part.atoms
        return all(
            one[0] < other[0] and self.place[one[1]] < self.place[other[1]] for one, other in pairwise(atoms)
        )

    def around(self, part: PartialMatch, leaves: Collection[str] = ()) -> Interval:
        """Give when further events of a detection may happen: of any leaf, or of these."""
        low, high = part.end - self.window_s, part.start + self.window_s
        if self.place is None or not leaves:
            return low, high
        places = [self.place[name] for name in leaves]
        before = [time for time, name, _ in part.atoms if self.place[name] < min(places)]
        after = [time for time, name, _ in part.atoms if self.place[name] > max(places)]
        return max([low, *before]), min([high, *after])

    def between(self, part: PartialMatch, leaf: str) -> Interval:
        """Give when an event that must not occur would spoil a detection: strictly between these times."""
        if self.place is None:
            return part.start, part.end
        place = self.place[leaf]
        before = [time for time, name, _ in part.atoms if self.place[name] < place]
        after = [time for time, name, _ in part.atoms if self.place[name] > place]
        return max(before), min(after)


class MatchBuffer:
    """Matches of one kind, in order of their starts."""

    def __init__(self) -> None:
        self._parts: list[PartialMatch] = []
        self.most = 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: PartialMatch) -> None:
        """Keep a part."""
        insort(self._parts, part)
        self.most = max(self.most, len(self._parts))

    def within(self, low: float, high: float) -> list[PartialMatch]:
        """Give the parts that lie wholly in an interval, its ends included."""
        first = bisect_left(self._parts, low, key=lambda part: part.start)
        last = bisect_right(self._parts, high, key=lambda part: part.start)
        return [part for part in self._parts[first:last] if part.end <= high]

    def forget_before(self, time_s: float) -> None:
        """Drop what began before a time."""
        del self._parts[: bisect_left(self._parts, time_s, key=lambda part: part.start)]


def joins(rule: Rule, begun: PartialMatch, others: Sequence[MatchBuffer]) -> Iterator[PartialMatch]:
    """Give every way to join a part with one part of each of the others."""
    if not others:
        yield begun
        return
    for part in others[0].within(*rule.around(begun)):
        both = begun.joined(part)
        if rule.fits(both):
            yield from joins(rule, both, others[1:])


def all_detections(
    rule: Rule,
    events: Mapping[str, Sequence[Atom]],
    negated: Sequence[str] = (),
    spoiling: Callable[[PartialMatch, str], Interval] | None = None,
) -> set[tuple[Atom, ...]]:
    """Find all detections in all events: what plans are judged by.

    `spoiling` says when an event of a leaf that must not occur spoils something; by default, between others.
    """
    between = rule.between if spoiling is None else spoiling
    stores: dict[str, MatchBuffer] = {}
    for name, atoms in events.items():
        stores[name] = MatchBuffer()
        for atom in atoms:
            stores[name].add(PartialMatch(atom[0], atom[0], (atom,)))
    first, *others = [name for name in events if name not in negated]
    found = set()
    for atom in events[first]:
        for part in joins(rule, PartialMatch(atom[0], atom[0], (atom,)), [stores[name] for name in others]):
            spoiled = any(
                low < other.start < high
                for name in negated
                for low, high in [between(part, name)]
                for other in stores[name].within(low, high)
            )
            if not spoiled:
                found.add(part.atoms)
    return found


class Asked:
    """The times that a source has been asked for, so that nothing is asked for twice."""

    def __init__(self) -> None:
        self.intervals: list[Interval] = []
        """Apart from each other, in order."""

    def new(self, intervals: Iterable[Interval]) -> list[Interval]:
        """Put intervals together where they touch; give those with something new, and take note of them."""
        found = [each for each in merged(intervals) if not self._has(each)]
        for each in found:
            self._add(*each)
        return found

    def _has(self, interval: Interval) -> bool:
        low, high = interval
        place = bisect_right(self.intervals, (low, math.inf)) - 1
        return place >= 0 and high <= self.intervals[place][1]

    def _add(self, low: float, high: float) -> None:
        first = bisect_left(self.intervals, low, key=lambda each: each[1])
        last = bisect_right(self.intervals, high, key=lambda each: each[0])
        touching = self.intervals[first:last]
        if touching:
            low, high = min(low, touching[0][0]), max(high, touching[-1][1])
        self.intervals[first:last] = [(low, high)]

    def covers(self, part: PartialMatch) -> bool:
        """Tell whether a part lies in what has been asked for."""
        return self._has((part.start, part.end))


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Put intervals together where they touch."""
    found: list[Interval] = []
    for low, high in sorted(intervals):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


Candidate = tuple[Interval, ...]
"""For every leaf below a junction, when an event of it may complete what has come so far."""


class Candidates:
    """What a junction has been asked for: it has to fit one of them as a whole."""

    def __init__(self, window_s: float, leaves: Sequence[str]) -> None:
        self._longest_s = 2 * window_s
        self._place = {leaf: place for place, leaf in enumerate(leaves)}
        self._known: list[Candidate] = []

    def new(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Give those that no other one holds, and take note of them."""
        found = []
        for each in sorted(set(candidates), key=lambda one: sum(low - high for low, high in one)):
            low, high = each[0]
            if not any(_holds(other, each) for other in self._near(low, high)):
                insort(self._known, each)
                found.append(each)
        return found

    def covers(self, part: PartialMatch) -> bool:
        """Tell whether a part fits one of them."""
        return any(self.fits(part, each) for each in self._near(*self._of_first(part)))

    def fits(self, part: PartialMatch, candidate: Candidate) -> bool:
        """Tell whether a part fits a candidate."""
        for time, leaf, _ in part.atoms:
            low, high = candidate[self._place[leaf]]
            if not low <= time <= high:
                return False
        return True

    def _of_first(self, part: PartialMatch) -> Interval:
        time = next(time for time, leaf, _ in part.atoms if self._place[leaf] == 0)
        return time, time

    def _near(self, low: float, high: float) -> list[Candidate]:
        """Give the candidates whose first interval could hold another one."""
        first = bisect_left(self._known, high - self._longest_s, key=lambda each: each[0][0])
        last = bisect_right(self._known, low, key=lambda each: each[0][0])
        return self._known[first:last]


def _holds(one: Candidate, other: Candidate) -> bool:
    return all(
        low <= its_low and its_high <= high
        for (low, high), (its_low, its_high) in zip(one, other, strict=True)
    )
