"""The best plans of a tree: for every junction, what can be had for which delay.

A junction's inputs go through stages: some pushed, then sets pulled. What a stage costs depends only on which
inputs came before it, and when it ends on when the one before it ended, so the best plans for every set of
inputs that are known follow from those for smaller sets: exact, in O(3^inputs) steps for a junction. What
matters of a junction above is cost and delay, so of the plans with a higher cost and a longer delay than
another nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.plan import JunctionPlan, Stages, crossing, waiting_for
from whimbrel.plan.pushpull.tree import Junction, is_negated


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A plan of a junction: its cost, when it is through, its stages and the points of those below it."""

    cost_s: float
    delay_s: float
    stages: Stages = ()
    below: tuple[tuple[int, ParetoPoint], ...] = ()


NOTHING = ParetoPoint(0.0, 0.0)


class ParetoFronts:
    """The plans of junctions that no other beats in both cost and delay, each worked out once.

    `most` keeps only so many for each junction, and of junctions with more than `widest` inputs only plans
    that take them in one of two orders are tried: no longer exact, but quick for large trees.
    """

    def __init__(self, composite: Composite, most: int | None = None, widest: int | None = None) -> None:
        self._composite = composite
        self._most = most
        self._widest = widest
        self._known: dict[int, tuple[Junction, list[ParetoPoint]]] = {}

    def of(self, junction: Junction) -> list[ParetoPoint]:
        """Return the plans of a junction, the cheapest first."""
        # The junction is kept beside its plans, so that no other one can get its identity.
        if id(junction) not in self._known:
            self._known[id(junction)] = (junction, self._worked_out(junction))
        return self._known[id(junction)][1]

    def _worked_out(self, junction: Junction) -> list[ParetoPoint]:
        wanted = tuple(n for n, each in enumerate(junction.inputs) if not is_negated(each))
        if self._widest is not None and len(wanted) > self._widest:
            points = self._in_good_orders(junction, wanted)
        else:
            points = self._in_any_order(junction, wanted)
        if len(wanted) < len(junction.inputs):
            points = self._best(_unless(self._composite, junction, points))
        return points

    def _in_any_order(self, junction: Junction, wanted: tuple[int, ...]) -> list[ParetoPoint]:
        costs = _Costs(self._composite, junction)
        coming = self._coming(junction, wanted)
        found: dict[int, list[ParetoPoint]] = {}
        for have in _growing(wanted):
            found[have] = self._best(
                each
                for stage in _subsets(have)
                for each in _longer(
                    found.get(have & ~stage), *costs.of_stage(stage, have & ~stage), coming[stage]
                )
            )
        return found[_bits(wanted)]

    def _in_good_orders(self, junction: Junction, wanted: tuple[int, ...]) -> list[ParetoPoint]:
        """Return the plans in which inputs come in the order of their rates, or of what a push costs."""
        costs = _Costs(self._composite, junction)
        rate = {number: self._composite.rate_hz(junction.inputs[number].parts) for number in wanted}
        by_rate = sorted(wanted, key=lambda number: rate[number])
        by_cost = sorted(wanted, key=lambda number: (costs.of(number, 0), rate[number]))
        found = [*self._in_order(costs, by_rate), *self._in_order(costs, by_cost)]
        return self._best((each.cost_s, each.delay_s, each, (), ()) for each in found)

    def _in_order(self, costs: _Costs, ordered: list[int]) -> list[ParetoPoint]:
        """Return the plans in which each stage has what comes next in an order."""
        junction = costs.junction
        drafts: list[list[_Draft]] = [[] for _ in range(len(ordered) + 1)]
        found: list[ParetoPoint] | None = None
        for start in range(len(ordered)):
            have, coming, cost, longest = _bits(ordered[:start]), [NOTHING], 0.0, 0.0
            for end in range(start + 1, len(ordered) + 1):
                number = ordered[end - 1]
                coming = self._with(junction, number, coming)
                cost += costs.of(number, have)
                longest = max(longest, junction.inputs[number].delay_s)
                drafts[end] += _longer(found, tuple(ordered[start:end]), cost, longest, coming)
            found = self._best(drafts[start + 1])
        return found or []

    def _coming(self, junction: Junction, wanted: tuple[int, ...]) -> dict[int, list[ParetoPoint]]:
        """Give, for every set of inputs, the choices of plans below, with when all would have been pushed."""
        found: dict[int, list[ParetoPoint]] = {0: [NOTHING]}
        for stage in _growing(wanted):
            number = stage.bit_length() - 1
            found[stage] = self._with(junction, number, found[stage & ~(1 << number)])
        return found

    def _with(self, junction: Junction, number: int, others: list[ParetoPoint]) -> list[ParetoPoint]:
        """Add an input to choices of plans below."""
        each = junction.inputs[number]
        points = self.of(each) if isinstance(each, Junction) else [NOTHING]
        return self._best(
            (
                other.cost_s + point.cost_s,
                max(other.delay_s, point.delay_s + each.delay_s),
                other,
                ((number, point),) if isinstance(each, Junction) else (),
                (),
            )
            for other in others
            for point in points
        )

    def _best(self, drafts: Iterable[_Draft]) -> list[ParetoPoint]:
        """Keep what nothing else beats, and make points of it."""
        kept: list[_Draft] = []
        for draft in sorted(drafts, key=_cost_and_delay):
            if not kept or draft[1] < kept[-1][1]:
                kept.append(draft)
        if self._most is not None:
            # What is late already only gets later; one is kept to tell how late.
            kept = [draft for draft in kept if draft[1] <= self._composite.tolerance_s] or kept[-1:]
        if self._most is not None and len(kept) > self._most:
            step = (len(kept) - 1) / (self._most - 1)
            kept = [kept[round(place * step)] for place in range(self._most)]
        return [
            ParetoPoint(cost, delay, (*before.stages, *stages), (*before.below, *below))
            for cost, delay, before, below, stages in kept
        ]


class _Costs:
    """What each input of a junction costs when some of the others have come, each worked out once."""

    def __init__(self, composite: Composite, junction: Junction) -> None:
        self._composite, self.junction = composite, junction
        self._known: dict[tuple[int, int], float] = {}
        self._parts: dict[int, frozenset[str]] = {}

    def of(self, number: int, have: int) -> float:
        """Say what an input costs, a second: pushed if nothing has come before, else pulled."""
        if (number, have) not in self._known:
            each = self.junction.inputs[number]
            way = crossing(self._composite, each, self._parts_of(have), is_pulled=have > 0)
            self._known[number, have] = each.cost * way
        return self._known[number, have]

    def _parts_of(self, have: int) -> frozenset[str]:
        if have not in self._parts:
            inputs = self.junction.inputs
            self._parts[have] = frozenset().union(*(inputs[number].parts for number in _members(have)))
        return self._parts[have]

    def of_stage(self, stage: int, have: int) -> tuple[tuple[int, ...], float, float]:
        """Return the inputs of a stage, what they cost together, and how long the longest way takes."""
        numbers = _members(stage)
        cost = sum(self.of(number, have) for number in numbers)
        return numbers, cost, max(self.junction.inputs[number].delay_s for number in numbers)


def _longer(
    shorter: list[ParetoPoint] | None,
    numbers: tuple[int, ...],
    cost: float,
    delay_s: float,
    coming: list[ParetoPoint],
) -> Iterator[_Draft]:
    """Add a stage to plans that have come so far; if there are none, it is the one that is pushed."""
    if shorter is None:
        for each in coming:
            yield cost + each.cost_s, each.delay_s, NOTHING, each.below, (numbers,)
        return
    for point in shorter:
        for each in coming:
            delay = max(point.delay_s + 2 * delay_s, each.delay_s)
            yield cost + point.cost_s + each.cost_s, delay, point, each.below, (numbers,)


def _unless(composite: Composite, junction: Junction, points: list[ParetoPoint]) -> Iterator[_Draft]:
    """Add parts that must not occur to plans: pushed, or asked for when all others have come."""
    names = frozenset(part.name for part in composite.wanted)
    negated = [number for number, each in enumerate(junction.inputs) if is_negated(each)]
    for choice in product((False, True), repeat=len(negated)):
        cost = wait = 0.0
        for number, is_pulled in zip(negated, choice, strict=True):
            each = junction.inputs[number]
            cost += each.cost * crossing(composite, each, names, is_pulled=is_pulled)
            wait = max(wait, waiting_for(each, is_pulled=is_pulled))
        pulled = tuple(number for number, is_pulled in zip(negated, choice, strict=True) if is_pulled)
        pushed = tuple(number for number in negated if number not in pulled)
        for point in points:
            stages = ((*point.stages[0], *pushed), *point.stages[1:], *([pulled] if pulled else []))
            before = replace(point, stages=())
            yield point.cost_s + cost, point.delay_s + wait, before, (), stages


_Draft = tuple[float, float, ParetoPoint, tuple[tuple[int, ParetoPoint], ...], Stages]
"""Cost, delay, the plan that is made longer, and what is added: points below, and stages."""


def _cost_and_delay(draft: _Draft) -> tuple[float, float]:
    return draft[0], draft[1]


def _members(bits: int) -> tuple[int, ...]:
    return tuple(number for number in range(bits.bit_length()) if bits >> number & 1)


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _growing(numbers: tuple[int, ...]) -> Iterator[int]:
    """Iterate over all sets of some numbers but the empty one, each after the sets within it."""
    for chosen in range(1, 1 << len(numbers)):
        yield _bits(numbers[place] for place in _members(chosen))


def _subsets(bits: int) -> Iterator[int]:
    """Iterate over the sets within a set, all but the empty one."""
    some = bits
    while some:
        yield some
        some = (some - 1) & bits


def planned(junction: Junction, point: ParetoPoint) -> JunctionPlan:
    """Make a plan of a point."""
    below = {}
    for number, under in point.below:
        each = junction.inputs[number]
        assert isinstance(each, Junction)
        below[number] = planned(each, under)
    return JunctionPlan(junction, point.stages, below)
