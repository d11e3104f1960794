"""Partial and whole detections: events of different leaves within a window, in order or not."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from whimbrel.plan.pushpull.composite import Composite

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
        """Put both together."""
        atoms = tuple(sorted(self.atoms + other.atoms))
        return PartialMatch(atoms[0][0], atoms[-1][0], atoms)


class MatchRule:
    """What makes a detection: the window, and the places of leaves in a sequence, if it is one."""

    def __init__(self, composite: Composite) -> None:
        self.window_s, self.is_amid = composite.window_s, composite.is_amid
        names = {part.name: number for number, part in enumerate(composite.parts)}
        self.place = names if composite.operator == "seq" else None

    def fits(self, match: PartialMatch) -> bool:
        """Tell whether events can be match of one detection."""
        if match.end - match.start > self.window_s:
            return False
        if self.place is None:
            return True
        atoms = match.atoms
        return all(
            one[0] < other[0] and self.place[one[1]] < self.place[other[1]] for one, other in pairwise(atoms)
        )

    def reach(self, match: PartialMatch, leaves: Collection[str] = ()) -> Interval:
        """Say when further events of a detection may happen: of any leaf, or of these."""
        low, high = match.end - self.window_s, match.start + self.window_s
        if self.place is None or not leaves:
            return low, high
        places = [self.place[name] for name in leaves]
        before = [time for time, name, _ in match.atoms if self.place[name] < min(places)]
        after = [time for time, name, _ in match.atoms if self.place[name] > max(places)]
        return max([low, *before]), min([high, *after])

    def forbidden(self, match: PartialMatch, leaf: str) -> Interval:
        """Say when a negated event would prevent a detection: strictly between these times."""
        if not self.is_amid:
            return self.reach(match)
        if self.place is None:
            return match.start, match.end
        place = self.place[leaf]
        before = [time for time, name, _ in match.atoms if self.place[name] < place]
        after = [time for time, name, _ in match.atoms if self.place[name] > place]
        return max(before), min(after)


class MatchBuffer:
    """Matches of one kind, in order of their starts."""

    def __init__(self) -> None:
        self._matches: list[PartialMatch] = []
        self.most = 0

    def __len__(self) -> int:
        return len(self._matches)

    def add(self, match: PartialMatch) -> None:
        """Keep a match."""
        insort(self._matches, match)
        self.most = max(self.most, len(self._matches))

    def within(self, low: float, high: float) -> list[PartialMatch]:
        """Find the matches that lie wholly in an interval, its ends included."""
        first = bisect_left(self._matches, low, key=lambda match: match.start)
        last = bisect_right(self._matches, high, key=lambda match: match.start)
        return [match for match in self._matches[first:last] if match.end <= high]

    def clear(self) -> None:
        """Drop everything."""
        self._matches.clear()

    def forget_before(self, time_s: float) -> None:
        """Drop what began before a time."""
        del self._matches[: bisect_left(self._matches, time_s, key=lambda match: match.start)]


def joins(rule: MatchRule, begun: PartialMatch, others: Sequence[MatchBuffer]) -> Iterator[PartialMatch]:
    """Iterate over the ways to join a partial match with one of each of the others."""
    if not others:
        yield begun
        return
    for match in others[0].within(*rule.reach(begun)):
        both = begun.joined(match)
        if rule.fits(both):
            yield from joins(rule, both, others[1:])


class RequestedTimes:
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

    def covers(self, match: PartialMatch) -> bool:
        """Tell whether a match lies in what has been asked for."""
        return self._has((match.start, match.end))


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
        """Return those that no other one holds, and take note of them."""
        found = []
        for each in sorted(set(candidates), key=lambda one: sum(low - high for low, high in one)):
            low, high = each[0]
            if not any(_holds(other, each) for other in self._near(low, high)):
                insort(self._known, each)
                found.append(each)
        return found

    def covers(self, match: PartialMatch) -> bool:
        """Tell whether a match fits one of them."""
        return any(self.fits(match, each) for each in self._near(*self._of_first(match)))

    def fits(self, match: PartialMatch, candidate: Candidate) -> bool:
        """Tell whether a match fits a candidate."""
        for time, leaf, _ in match.atoms:
            low, high = candidate[self._place[leaf]]
            if not low <= time <= high:
                return False
        return True

    def _of_first(self, match: PartialMatch) -> Interval:
        time = next(time for time, leaf, _ in match.atoms if self._place[leaf] == 0)
        return time, time

    def _near(self, low: float, high: float) -> list[Candidate]:
        """Return the candidates whose first interval could hold another one."""
        first = bisect_left(self._known, high - self._longest_s, key=lambda each: each[0][0])
        last = bisect_right(self._known, low, key=lambda each: each[0][0])
        return self._known[first:last]


def _holds(one: Candidate, other: Candidate) -> bool:
    return all(
        low <= its_low and its_high <= high
        for (low, high), (its_low, its_high) in zip(one, other, strict=True)
    )
