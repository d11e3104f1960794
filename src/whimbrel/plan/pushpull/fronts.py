"""The best plans of a tree: for every junction, what can be had for which delay.

A junction's inputs go through stages: some pushed, then sets pulled. What a stage costs depends only on which
inputs came before it, and when it ends on when the one before it ended, so the best plans for every set of
inputs that are known follow from those for smaller sets: exact, in O(3^inputs) steps for a junction. What
matters of a junction above is cost and delay, so of the plans with a higher cost and a longer delay than
another nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.plans import Planned, Stages, crossing
from whimbrel.plan.pushpull.tree import Junction


@dataclass(frozen=True, slots=True)
class Point:
    """A plan of a junction: its cost, when it is through, its stages and the points of those below it."""

    cost_s: float
    delay_s: float
    stages: Stages = ()
    below: tuple[tuple[int, Point], ...] = ()


NOTHING = Point(0.0, 0.0)


class Fronts:
    """The plans of junctions that no other beats in both cost and delay, each worked out once.

    `most` keeps only so many for each junction: no longer exact, but quick for large trees.
    """

    def __init__(self, composite: Composite, most: int | None = None) -> None:
        self._composite = composite
        self._most = most
        self._known: dict[int, tuple[Junction, list[Point]]] = {}

    def of(self, junction: Junction) -> list[Point]:
        """Give the plans of a junction, the cheapest first."""
        # The junction is kept beside its plans, so that no other one can get its identity.
        if id(junction) not in self._known:
            self._known[id(junction)] = (junction, self._worked_out(junction))
        return self._known[id(junction)][1]

    def _worked_out(self, junction: Junction) -> list[Point]:
        coming = self._coming(junction)
        every = (1 << len(junction.inputs)) - 1
        found: dict[int, list[Point]] = {}
        for have in range(1, every + 1):
            found[have] = self._best(
                each
                for stage in _subsets(have)
                for each in self._longer(
                    junction, found.get(have & ~stage), have & ~stage, stage, coming[stage]
                )
            )
        return found[every]

    def _coming(self, junction: Junction) -> dict[int, list[Point]]:
        """Give, for every set of inputs, the choices of plans below, with when all would have been pushed."""
        found: dict[int, list[Point]] = {0: [NOTHING]}
        for stage in range(1, 1 << len(junction.inputs)):
            number = stage.bit_length() - 1
            each = junction.inputs[number]
            points = self.of(each) if isinstance(each, Junction) else [NOTHING]
            found[stage] = self._best(
                (
                    other.cost_s + point.cost_s,
                    max(other.delay_s, point.delay_s + each.delay_s),
                    other,
                    ((number, point),) if isinstance(each, Junction) else (),
                    (),
                )
                for other in found[stage & ~(1 << number)]
                for point in points
            )
        return found

    def _longer(
        self, junction: Junction, shorter: list[Point] | None, have: int, stage: int, coming: list[Point]
    ) -> Iterator[_Draft]:
        """Add a stage to plans that have come so far."""
        numbers = _members(stage)
        known = {name for number in _members(have) for name in junction.inputs[number].parts}
        cost = sum(
            junction.inputs[n].cost
            * crossing(self._composite, junction.inputs[n], known, is_pulled=shorter is not None)
            for n in numbers
        )
        if shorter is None:
            for each in coming:
                yield cost + each.cost_s, each.delay_s, NOTHING, each.below, (numbers,)
            return
        there_and_back = 2 * max(junction.inputs[number].delay_s for number in numbers)
        for point in shorter:
            for each in coming:
                delay = max(point.delay_s + there_and_back, each.delay_s)
                yield cost + point.cost_s + each.cost_s, delay, point, each.below, (numbers,)

    def _best(self, drafts: Iterable[_Draft]) -> list[Point]:
        """Keep what nothing else beats, and make points of it."""
        kept: list[_Draft] = []
        for draft in sorted(drafts, key=_cost_and_delay):
            if not kept or draft[1] < kept[-1][1]:
                kept.append(draft)
        if self._most is not None and len(kept) > self._most:
            step = (len(kept) - 1) / (self._most - 1)
            kept = [kept[round(place * step)] for place in range(self._most)]
        return [
            Point(cost, delay, (*before.stages, *stages), (*before.below, *below))
            for cost, delay, before, below, stages in kept
        ]


_Draft = tuple[float, float, Point, tuple[tuple[int, Point], ...], Stages]
"""Cost, delay, the plan that is made longer, and what is added: points below, and stages."""


def _cost_and_delay(draft: _Draft) -> tuple[float, float]:
    return draft[0], draft[1]


def _members(bits: int) -> tuple[int, ...]:
    return tuple(number for number in range(bits.bit_length()) if bits >> number & 1)


def _subsets(bits: int) -> Iterator[int]:
    """Give the sets within a set, all but the empty one."""
    some = bits
    while some:
        yield some
        some = (some - 1) & bits


def planned(junction: Junction, point: Point) -> Planned:
    """Make a plan of a point."""
    below = {}
    for number, under in point.below:
        each = junction.inputs[number]
        assert isinstance(each, Junction)
        below[number] = planned(each, under)
    return Planned(junction, point.stages, below)
