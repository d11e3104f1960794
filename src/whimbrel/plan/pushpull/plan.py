"""Plans: at each junction, what is pushed to it and what it pulls, in which order. What that costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from whimbrel.errors import NetworkError
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.tree import Input, Junction, is_negated

Stages = tuple[tuple[int, ...], ...]
"""Numbers of inputs: first those that are pushed, then sets of those that are pulled together."""


@dataclass(frozen=True, slots=True)
class JunctionPlan:
    """A junction with its stages, and the plans of the junctions below it, by the numbers of their inputs."""

    junction: Junction
    stages: Stages
    below: dict[int, JunctionPlan]

    def all(self) -> Iterator[JunctionPlan]:
        """Iterate over the plans of all junctions, the lowest first."""
        for each in self.below.values():
            yield from each.all()
        yield self


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan is expected to cost and to take."""

    cost_s: float
    """What all links cost, a second."""
    delay_s: float
    """The longest time from the last part to the detection."""


@dataclass(frozen=True, slots=True)
class PushPullPlan:
    """A plan for one composite event."""

    composite: Composite
    root: JunctionPlan
    estimate: Estimate

    @property
    def keeps_tolerance(self) -> bool:
        """Tell whether the composite event is known in time."""
        return self.estimate.delay_s <= self.composite.tolerance_s * (1 + 1e-12)

    def words(self) -> str:
        """Say what every junction does."""
        told = self.estimate
        lines = [f"{self.composite.name}: {told.cost_s * 60:.6g} a minute, known within {told.delay_s:.6g} s"]
        for planned in reversed(list(self.root.all())):
            names = [_named(each) for each in planned.junction.inputs]
            stages = [" and ".join(names[n] for n in stage) for stage in planned.stages]
            pulls = "".join(f", then pulls {stage}" for stage in stages[1:])
            lines.append(f"  {planned.junction.at} gets {stages[0]}{pulls}")
        return "\n".join(lines)

    def check(self) -> None:
        """Refuse a plan that could not be carried out, because something would wait for ever.

        Raises
        ------
        NetworkError
            If alternatives are pulled, a junction that pushes is pushed nothing, or a junction below the
            uppermost one is to tell that something did not occur.
        """
        if self.composite.operator == "or" and any(len(each.stages) > 1 for each in self.root.all()):
            raise NetworkError("alternatives are never asked for", "push them all")
        if any(is_negated(each) for below in self.root.junction.below() for each in below.inputs):
            raise NetworkError(
                f"only {self.root.junction.at!r} can tell what must not occur",
                "make negated parts inputs of the uppermost junction",
            )
        _check_pushes(self.root, is_pushed=True)


def _check_pushes(planned: JunctionPlan, *, is_pushed: bool) -> None:
    """Refuse a junction that is to push what it finds, and is pushed nothing to begin with."""
    junction, pushed = planned.junction, planned.stages[0]
    if is_pushed and all(is_negated(junction.inputs[number]) for number in pushed):
        raise NetworkError(
            f"nothing is pushed to {junction.at!r}, so it never finds anything to push itself",
            "push one of its inputs, or pull from it",
        )
    for number, below in planned.below.items():
        _check_pushes(below, is_pushed=number in pushed)


def _named(each: Input) -> str:
    return f"what {each.at} found" if isinstance(each, Junction) else each.part.name


def all_pushed(tree: Junction) -> JunctionPlan:
    """Let everything be pushed to every junction of a tree."""
    below = {n: all_pushed(each) for n, each in enumerate(tree.inputs) if isinstance(each, Junction)}
    return JunctionPlan(tree, (tuple(range(len(tree.inputs))),), below)


def make_plan(composite: Composite, root: JunctionPlan) -> PushPullPlan:
    """Make a plan, with its estimate."""
    return PushPullPlan(composite, root, estimate(composite, root))


def estimate(composite: Composite, planned: JunctionPlan) -> Estimate:
    """Estimate what a plan costs and takes, from the leaves up in O(inputs) (Comet, section IV-B).

    What crosses a way are the events that still can complete the composite event: those of a junction below
    are filtered by each other, those that are pulled by all that was got before. A pull takes the way there
    and back, and waits until what it asks for is known below. Last of all, one waits for what must not occur.
    """
    cost = time = wait = 0.0
    known: frozenset[str] = frozenset()
    ready: dict[int, float] = {}
    for number, plan in planned.below.items():
        under = estimate(composite, plan)
        cost += under.cost_s
        ready[number] = under.delay_s
    for place, stage in enumerate(planned.stages):
        arrivals = [time]
        for number in stage:
            each = planned.junction.inputs[number]
            cost += each.cost * crossing(composite, each, known, is_pulled=place > 0)
            if is_negated(each):
                wait = max(wait, waiting_for(each, is_pulled=place > 0))
                continue
            asked = time + each.delay_s if place else 0.0
            arrivals.append(max(asked, ready.get(number, 0.0)) + each.delay_s)
        time = max(arrivals)
        known = known.union(*(planned.junction.inputs[number].parts for number in stage))
    return Estimate(cost, time + wait)


def crossing(composite: Composite, each: Input, known: frozenset[str], *, is_pulled: bool) -> float:
    """Estimate the bytes a second on the way of an input, requests included."""
    if is_negated(each):
        whole = sum(composite.part[name].bytes_s for name in each.parts)
        events = whole * composite.negation_share if is_pulled else whole
    else:
        events = composite.bytes_s(each.parts | known, each.parts)
    return events + (composite.request_b * composite.rate_hz(known) if is_pulled else 0.0)


def waiting_for(each: Input, *, is_pulled: bool) -> float:
    """Say how long one has to wait to be sure that an event did not occur: for it, or for an answer."""
    return (2 if is_pulled else 1) * each.delay_s


def in_order(junction: Junction, stages: Stages) -> Stages:
    """Return stages in which parts that must not occur are pushed, or asked for together after all others."""
    last = tuple(n for stage in stages[1:] for n in stage if is_negated(junction.inputs[n]))
    rest = (stages[0], *(tuple(n for n in stage if n not in last) for stage in stages[1:]))
    return tuple(stage for stage in (*rest, last) if stage)
