"""In which order the parts of a pattern are bound, once the event that completes it is there.

Every order finds the same combinations. What differs is the work: a rare part bound early, or one that a
selective condition ties to what is bound already, leaves little for the others to be tried with.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

IN_ORDER = 0.5
"""The share of pairs of events that stand in a given order."""
MOST_PARTS = 8
"""Patterns with more parts are bound as they are written: all orders are looked at."""
WORTH_IT = 0.5
"""Another order is taken if it costs at most this share of the usual one."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A test that needs several parts, and the share of their combinations that passes it."""

    parts: frozenset[int]
    passing: float


def usual_order(trigger: int, before: Sequence[int]) -> list[int]:
    """Bind what stands before a bound part first, then from the last part to the first.

    `before` has for each part the one that must end before it begins, or -1.
    """
    bound = [trigger]
    while len(bound) < len(before):
        later = next((b for b in bound if before[b] >= 0 and before[b] not in bound), None)
        bound.append(max(n for n in range(len(before)) if n not in bound) if later is None else before[later])
    return bound


def binding_order(
    trigger: int, before: Sequence[int], expected: Sequence[float], ties: Collection[Tie]
) -> list[int]:
    """Give the order in which the fewest events have to be looked at.

    Parameters
    ----------
    trigger
        The part that is bound first: its event completes the pattern.
    before
        For each part the one that must end before it begins, or -1. From a bound part, the walk to the one
        before it begins at the right place.
    expected
        For each part how many events are there to be tried, on average.
    ties
        The tests between parts.

    Examples
    --------
    >>> binding_order(2, [-1, 0, 1], [0.01, 500.0, 1.0], [])  # `A then B then C`, where there is hardly an A
    [2, 0, 1]
    """
    usual = usual_order(trigger, before)
    if not 2 < len(before) <= MOST_PARTS:
        return usual
    work = _Work(before, expected, tuple(ties))
    best = {frozenset((trigger,)): (0.0, [trigger])}
    for _ in range(len(before) - 1):
        best = work.one_more(best)
    cost, order = best[frozenset(range(len(before)))]
    return order if cost <= WORTH_IT * work.of(usual) else usual


@dataclass(frozen=True, slots=True)
class _Work:
    before: Sequence[int]
    expected: Sequence[float]
    ties: tuple[Tie, ...]

    def one_more(
        self, best: dict[frozenset[int], tuple[float, list[int]]]
    ) -> dict[frozenset[int], tuple[float, list[int]]]:
        """From the best way to bind each set of parts to the best way to bind each set with one part more."""
        grown: dict[frozenset[int], tuple[float, list[int]]] = {}
        for bound, (cost, order) in best.items():
            for part in range(len(self.before)):
                if part in bound:
                    continue
                total = cost + self._tried(bound, part)
                key = bound | {part}
                if key not in grown or total < grown[key][0]:
                    grown[key] = (total, [*order, part])
        return grown

    def of(self, order: Sequence[int]) -> float:
        """Add up how many events are looked at in one order."""
        return sum(self._tried(frozenset(order[:n]), order[n]) for n in range(1, len(order)))

    def _tried(self, bound: frozenset[int], part: int) -> float:
        """Estimate how often an event is tried for `part`: once for each combination of what is bound."""
        linked = any(self.before[later] == part for later in bound)
        combinations = 1.0
        for each in bound:
            combinations *= self.expected[each]
        for tie in self.ties:
            combinations *= tie.passing if tie.parts <= bound else 1.0
        return combinations * self.expected[part] * (IN_ORDER if linked else 1.0)
