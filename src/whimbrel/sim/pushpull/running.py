"""Nodes that push what happens, or keep it until they are asked, over links that come and go."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Network, unknown
from whimbrel.plan.routes import by_delay
from whimbrel.sim.clock import Clock
from whimbrel.sim.links import Links
from whimbrel.sim.messages import HEADER_B, message
from whimbrel.sim.pushpull.joining import Asked, Atom, Interval, Part, Parts, Rule, all_detections, joins
from whimbrel.sim.pushpull.plan import PUSH, Input, Junction, Leaf, PushPullPlan, leaves_of
from whimbrel.sim.traffic import Traffic

AFTER_ALL_S = 1e-6
"""Who waits for the longest delay waits a moment more, so that what takes just as long has come."""


@dataclass(frozen=True)
class PushPullOutcome:
    """What a plan found, what it cost, and how late it was."""

    found: frozenset[tuple[Atom, ...]]
    missed: frozenset[tuple[Atom, ...]]
    """What all events hold, and the plan did not find."""
    delays_s: np.ndarray
    """From the last event of a detection until the root had it."""
    minutes: float
    traffic: Traffic
    most_kept: int
    """The most parts that any node kept of one input."""

    @property
    def cost_a_minute(self) -> float:
        """Bytes times what they cost, a minute."""
        return self.traffic.whole.cost / self.minutes

    def summary(self) -> dict[str, Any]:
        """Give the figures as plain data."""
        delays = self.delays_s
        return {
            "cost a minute": self.cost_a_minute,
            "bytes": self.traffic.whole.bytes,
            "detections": len(self.found),
            "missed": len(self.missed),
            "mean delay s": float(delays.mean()) if len(delays) else None,
            "largest delay s": float(delays.max()) if len(delays) else None,
            "requests": self.traffic.by_kind["request"].messages,
            "most kept": self.most_kept,
        }


def poisson_events(
    rates_min: Mapping[str, float], until_s: float, random: np.random.Generator
) -> dict[str, list[Atom]]:
    """Draw events of every leaf at a mean rate a minute."""
    found: dict[str, list[Atom]] = {}
    for name, rate in rates_min.items():
        count = int(random.poisson(rate * until_s / 60))
        times = np.sort(random.uniform(0.0, until_s, count)).tolist()
        found[name] = [(time, name, f"{name}{number}") for number, time in enumerate(times)]
    return found


def run_plan(
    plan: PushPullPlan, network: Network, events: Mapping[str, Sequence[Atom]], *, seed: int = 0
) -> PushPullOutcome:
    """Carry a plan out for given events of its leaves."""
    return _Run(plan, network, events, seed).outcome()


class _Run:
    def __init__(
        self, plan: PushPullPlan, network: Network, events: Mapping[str, Sequence[Atom]], seed: int
    ) -> None:
        self.plan, self.events = plan, events
        self.rule = Rule(plan.window_s, plan.order)
        self.clock = Clock(seed)
        self.links = Links(network, self.clock, weight=by_delay, interval_s=60.0)
        for broker in network.brokers:
            self.links.receive[broker.name] = _handle
        self.found: dict[tuple[Atom, ...], float] = {}
        self.sizes = {leaf.name: leaf.size_b for leaf, _ in plan.leaves()}
        self.keep_s = self._keep_s() if plan.keep_s is None else plan.keep_s
        self.nodes: list[_Node] = []
        self.root = _Joint(self, plan.root, None)
        leaves = {node.leaf.name: node for node in self.nodes if isinstance(node, _Source)}
        for name, atoms in events.items():
            if name not in leaves:
                raise unknown("leaf", name, leaves, "events are given for it")
            for atom in atoms:
                self.clock.at(atom[0], partial(leaves[name].happen, atom))

    def outcome(self) -> PushPullOutcome:
        """Let everything happen; give what came of it."""
        self.clock.run()
        negated = [leaf.name for leaf, each in self.plan.leaves() if each.negated]
        by_leaf = {leaf.name: list(self.events.get(leaf.name, ())) for leaf, _ in self.plan.leaves()}
        truth = all_detections(self.rule, by_leaf, negated)
        last = max((atoms[-1][0] for atoms in self.events.values() if atoms), default=60.0)
        return PushPullOutcome(
            frozenset(self.found),
            frozenset(truth - self.found.keys()),
            np.array(list(self.found.values()), np.float64),
            last / 60,
            self.links.traffic,
            max(node.most_kept for node in self.nodes),
        )

    def delay_s(self, one: str, other: str) -> float:
        """Give the longest time that a message may take, if there is room for it."""
        network = self.links.network
        return float(self.links.routes.from_broker(one).delay_s[network.number[other]])

    def settled_s(self, node: Leaf | Junction) -> float:
        """Give how long after a time a node surely has all that happened up to then."""
        if isinstance(node, Leaf):
            return 0.0
        found, before = 0.0, 0.0
        for turn, group in enumerate(node.turns):
            ways = []
            for number in group:
                child = node.inputs[number].child
                way = self.delay_s(child.broker, node.broker)
                asking = self.delay_s(node.broker, child.broker) if turn else 0.0
                ways.append(max(before + asking, self.settled_s(child)) + way)
            before = max([before, *ways])
            found = max(found, before)
        return found + max((self.wait_s(node, each) for each in node.inputs if each.negated), default=0.0)

    def wait_s(self, junction: Junction, negated: Input) -> float:
        """Give how long a junction has to wait to be sure that an event did not occur."""
        there = self.delay_s(junction.broker, negated.child.broker)
        back = self.delay_s(negated.child.broker, junction.broker)
        return back if negated.turn == PUSH else there + back

    def _keep_s(self) -> float:
        longest = 0.0
        for junction in self.plan.junctions():
            for each in junction.inputs:
                one, other = junction.broker, each.child.broker
                longest += self.delay_s(one, other) + self.delay_s(other, one)
        if math.isinf(longest):
            raise NetworkError("a junction of the plan has no way to one of its inputs", "add links")
        return 2 * (self.plan.window_s + longest)


def _handle(_broker: str, content: Any, _message: Any) -> None:
    content()


class _Node:
    """What source and joint have in common: above them is a junction that they push to, or that asks them."""

    def __init__(self, run: _Run, broker: str, parent: _Joint | None, input_number: int, turn: int) -> None:
        self.run, self.broker, self.parent, self.input_number = run, broker, parent, input_number
        self.is_pushed = turn == PUSH
        self.kept = Parts()
        self.asked = Asked()
        self.sent: set[tuple[Atom, ...]] = set()
        self.passed_on: set[Atom] = set()
        run.nodes.append(self)

    @property
    def most_kept(self) -> int:
        """The most parts that it kept."""
        return self.kept.most

    def give(self, part: Part) -> None:
        """Push a part, or keep it and send it if it has been asked for."""
        if self.is_pushed:
            self._send([part], "data")
            return
        self.kept.add(part)
        self.kept.forget_before(self.run.clock.now - self.run.keep_s)
        if self.asked.covers(part):
            self._send([part], "reply")

    def ask(self, intervals: list[Interval]) -> None:
        """Be asked for what happened, or will happen, at some times."""
        for low, high in intervals:
            self.asked.new_parts(low, high)
        start, end = min(low for low, _ in intervals), max(high for _, high in intervals)
        # Parts that reach over the border of an interval become whole with what was asked for before.
        window = self.run.plan.window_s
        ready = [part for part in self.kept.within(start - window, end + window) if self.asked.covers(part)]
        self._send([part for part in ready if part.atoms not in self.sent], "reply")

    def _send(self, parts: list[Part], kind: str) -> None:
        if not parts or self.parent is None:
            return
        self.sent.update(part.atoms for part in parts)
        take = partial(self.parent.take, self.input_number, parts)
        # An event goes up once; what else it is part of only names it.
        new = {atom for part in parts for atom in part.atoms} - self.passed_on
        self.passed_on |= new
        size = HEADER_B + sum(self.run.sizes[leaf] for _, leaf, _ in new)
        self.run.links.send(message(self.broker, self.parent.broker, size, take, kind=kind))


class _Source(_Node):
    """A leaf at run time."""

    def __init__(self, run: _Run, leaf: Leaf, parent: _Joint, input_number: int, turn: int) -> None:
        super().__init__(run, leaf.broker, parent, input_number, turn)
        self.leaf = leaf

    def happen(self, atom: Atom) -> None:
        """Let an event happen."""
        self.give(Part(atom[0], atom[0], (atom,)))


class _Joint(_Node):
    """A junction at run time."""

    def __init__(
        self, run: _Run, junction: Junction, parent: _Joint | None, input_number: int = 0, turn: int = PUSH
    ) -> None:
        super().__init__(run, junction.broker, parent, input_number, turn)
        self.junction = junction
        self.turns = junction.turns
        self.stores = [Parts() for _ in junction.inputs]
        self.requested = [Asked() for _ in junction.inputs]
        self.leaves = [leaves_of(each.child) for each in junction.inputs]
        self.below: list[_Node] = []
        for number, each in enumerate(junction.inputs):
            child = each.child
            made = (
                _Joint(run, child, self, number, each.turn)
                if isinstance(child, Junction)
                else _Source(run, child, self, number, each.turn)
            )
            self.below.append(made)

    @property
    def most_kept(self) -> int:
        return max(self.kept.most, *(store.most for store in self.stores))

    def take(self, number: int, parts: Iterable[Part]) -> None:
        """Take parts of an input: find what they complete, and ask for what they now make possible."""
        for part in parts:
            self.stores[number].add(part)
            self.stores[number].forget_before(self.run.clock.now - self.run.keep_s)
            if not self.junction.inputs[number].negated:
                self._advance(number, part)

    def _advance(self, number: int, part: Part) -> None:
        turn = next(place for place, group in enumerate(self.turns) if number in group)
        for until in range(turn, len(self.turns)):
            known = [other for group in self.turns[: until + 1] for other in group if other != number]
            found = list(joins(self.run.rule, part, [self.stores[other] for other in known]))
            if not found:
                return
            if until + 1 == len(self.turns):
                for whole in found:
                    self._complete(whole)
            else:
                for other in self.turns[until + 1]:
                    leaves = self.leaves[other]
                    around = [self.run.rule.around(each, leaves) for each in found]
                    self._request(other, [(low, high) for low, high in around if low <= high])

    def ask(self, intervals: list[Interval]) -> None:
        """Be asked; a junction to which nothing is pushed looks for something only then."""
        super().ask(intervals)
        if not self.turns[0] and len(self.turns) > 1:
            for number in self.turns[1]:
                self._request(number, intervals)

    def _request(self, number: int, intervals: list[Interval]) -> None:
        wanted = [part for each in intervals for part in self.requested[number].new_parts(*each)]
        if wanted:
            child = self.below[number]
            size = HEADER_B + self.run.plan.request_b * len(wanted)
            ask = partial(child.ask, wanted)
            self.run.links.send(message(self.broker, child.broker, size, ask, kind="request"))

    def _complete(self, whole: Part) -> None:
        negated = [number for number, each in enumerate(self.junction.inputs) if each.negated]
        if not negated:
            self._found(whole)
            return
        wait = 0.0
        for number in negated:
            each = self.junction.inputs[number]
            wait = max(wait, self.run.wait_s(self.junction, each))
            if each.turn != PUSH:
                self._request(number, [(whole.start, whole.end)])
        self.run.clock.after(wait + AFTER_ALL_S, partial(self._if_not_spoiled, whole, negated))

    def _if_not_spoiled(self, whole: Part, negated: list[int]) -> None:
        for number in negated:
            leaf = self.junction.inputs[number].child
            low, high = self.run.rule.between(whole, leaf.name)
            if any(low < part.start < high for part in self.stores[number].within(low, high)):
                return
        self._found(whole)

    def _found(self, whole: Part) -> None:
        if self.parent is None:
            self.run.found.setdefault(whole.atoms, self.run.clock.now - whole.end)
        else:
            self.give(whole)
