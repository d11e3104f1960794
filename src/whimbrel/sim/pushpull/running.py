"""Push and pull plans, carried out one by one or several at once over links that come and go."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Link, Network, unknown
from whimbrel.plan.pushpull.tree import h_value
from whimbrel.plan.routes import Routes, by_delay
from whimbrel.sim.clock import Action, Clock
from whimbrel.sim.links import Links
from whimbrel.sim.messages import message
from whimbrel.sim.pushpull.joining import Atom, Interval, PartialMatch, Rule, all_detections
from whimbrel.sim.pushpull.nodes import JunctionNode, Node, SourceNode
from whimbrel.sim.pushpull.plan import PUSH, Input, Junction, PushPullPlan
from whimbrel.sim.traffic import Traffic


@dataclass(frozen=True)
class PushPullOutcome:
    """What a plan found, what it cost, and how late it was."""

    found: frozenset[tuple[Atom, ...]]
    missed: frozenset[tuple[Atom, ...]]
    """What all events hold, and the plan did not find."""
    invented: frozenset[tuple[Atom, ...]]
    """What the plan found, and the events do not hold."""
    delays_s: np.ndarray
    """From the last event of a detection until the root had it."""
    minutes: float
    traffic: Traffic
    """What all plans sent that were carried out together."""
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
    return run_plans({"": plan}, network, events, seed=seed)[""]


def run_plans(
    plans: Mapping[str, PushPullPlan],
    network: Network,
    events: Mapping[str, Sequence[Atom]],
    *,
    seed: int = 0,
) -> dict[str, PushPullOutcome]:
    """Carry several plans out at once: an event that several of them need crosses a link once.

    Leaves of the same name are the same source.
    """
    runs = carry_out_plans(plans, network, events, seed=seed)
    last = max((atoms[-1][0] for atoms in events.values() if atoms), default=60.0)
    return {name: run.outcome(events, last / 60) for name, run in runs.items()}


def carry_out_plans(
    plans: Mapping[str, PushPullPlan],
    network: Network,
    events: Mapping[str, Sequence[Atom]],
    *,
    seed: int = 0,
    progress: Callable[[int, int | None], None] = lambda done, total: None,
) -> dict[str, Run]:
    """Carry several plans out, and give what each has got by then, for others to judge.

    `progress` is called with the number of steps that are done and of those that there are.
    """
    world = World(network, seed)
    runs = {name: Run(plan, world) for name, plan in plans.items()}
    leaves: dict[str, list[SourceNode]] = defaultdict(list)
    for run in runs.values():
        for node in run.nodes:
            if isinstance(node, SourceNode):
                leaves[node.leaf.name].append(node)
                world.sizes[node.leaf.name] = node.leaf.size_b
    for name, atoms in events.items():
        if name not in leaves:
            raise unknown("leaf", name, leaves, "events are given for it")
        for atom in atoms:
            for source in leaves[name]:
                world.clock.at(atom[0], partial(source.happen, atom))
    last = max((atoms[-1][0] for atoms in events.values() if atoms), default=0.0)
    for done in range(1, _STEPS + 1):
        world.clock.run(last * done / _STEPS)
        progress(done, _STEPS + 1)
    world.clock.run()
    return runs


_STEPS = 50
"""How often a run tells how far it is."""


class World:
    """What plans have in common: time, links, and which events have crossed which of them."""

    def __init__(self, network: Network, seed: int) -> None:
        self.network = network
        self.clock = Clock(seed)
        self.links = Links(network, self.clock, weight=_straight(network), interval_s=60.0)
        for broker in network.brokers:
            self.links.receive[broker.name] = _handle
        self.quickest = Routes(network, by_delay)
        self.sizes: dict[str, float] = {}
        self._crossed: dict[tuple[str, str], set[Atom]] = defaultdict(set)

    def carry(self, path: Sequence[str], atoms: Collection[Atom], kind: str, then: Action) -> None:
        """Bring events to the end of a way, hop by hop; those that crossed a hop before are there already."""
        if len(path) < 2:
            self.clock.after(0.0, then)
            return
        crossed = self._crossed[path[0], path[1]]
        new = set(atoms) - crossed
        crossed |= new
        size = sum(self.sizes[leaf] for _, leaf, _ in new)
        onward: Action = then
        if len(path) > 2:
            onward = partial(self.carry, path[1:], atoms, kind, then)
        self.links.send(message(path[0], path[1], size, onward, kind=kind))

    def tell(self, path: Sequence[str], size: float, then: Action) -> None:
        """Bring a request to the end of a way."""
        if len(path) < 2:
            self.clock.after(0.0, then)
            return
        onward: Action = then
        if len(path) > 2:
            onward = partial(self.tell, path[1:], size, then)
        self.links.send(message(path[0], path[1], size, onward, kind="request"))


def _straight(network: Network) -> Any:
    """Weigh links so that neighbours are reached by the link between them; the better one, if several."""
    weigh = h_value(network)

    def weight(link: Link) -> float:
        return 1.0 + weigh(link) / 100

    return weight


def _handle(_broker: str, content: Any, _message: Any) -> None:
    content()


class Run:
    """One plan that is carried out."""

    def __init__(self, plan: PushPullPlan, world: World) -> None:
        self.plan, self.world, self.clock = plan, world, world.clock
        self.rule = Rule(plan.window_s, plan.order)
        self.found: dict[tuple[Atom, ...], float] = {}
        """How late each detection was known."""
        self.settled: dict[tuple[Atom, ...], float] = {}
        """When the root knew of events that all go together, spoiled or not, and had waited for what might
        have spoiled them by then."""
        self.arrived: dict[Atom, float] = {}
        """When an event came to the root."""
        self.keep_s = self._keep_s() if plan.keep_s is None else plan.keep_s
        self.nodes: list[Node] = []
        self.root = JunctionNode(self, plan.root, None)

    def outcome(self, events: Mapping[str, Sequence[Atom]], minutes: float) -> PushPullOutcome:
        """Give what came of it."""
        negated = [leaf.name for leaf, each in self.plan.leaves() if each.negated]
        by_leaf = {leaf.name: list(events.get(leaf.name, ())) for leaf, _ in self.plan.leaves()}
        truth: set[tuple[Atom, ...]]
        if self.plan.is_any:
            truth = {(atom,) for atoms in by_leaf.values() for atom in atoms}
        else:
            truth = all_detections(self.rule, by_leaf, negated, self.spoiling)
        return PushPullOutcome(
            frozenset(self.found),
            frozenset(truth - self.found.keys()),
            frozenset(self.found.keys() - truth),
            np.array(list(self.found.values()), np.float64),
            minutes,
            self.world.links.traffic,
            max(node.most_kept for node in self.nodes),
        )

    def path(self, junction: Junction, each: Input) -> tuple[str, ...]:
        """Give the way from an input up to a junction."""
        return each.path or self.world.quickest.path(each.child.broker, junction.broker)

    def delay_s(self, junction: Junction, each: Input) -> float:
        """Give the longest time that a message may take from an input, if there is room for it."""
        if each.delay_s is not None:
            return each.delay_s
        links = self.world.links.routes
        return sum(links.links(*hop)[0].delay_s for hop in pairwise(self.path(junction, each)))

    def spoiling(self, whole: PartialMatch, leaf: str) -> Interval:
        """Give when an event that must not occur may spoil a detection."""
        return self.rule.between(whole, leaf) if self.plan.is_amid else self.rule.around(whole)

    def wait_s(self, junction: Junction, negated: Input) -> float:
        """Give how long a junction has to wait to be sure that an event did not occur."""
        return (1 if negated.turn == PUSH else 2) * self.delay_s(junction, negated)

    def _keep_s(self) -> float:
        longest = sum(
            2 * self.delay_s(junction, each) for junction in self.plan.junctions() for each in junction.inputs
        )
        if math.isinf(longest):
            raise NetworkError("a junction of the plan has no way to one of its inputs", "add links")
        return 2 * (self.plan.window_s + longest)
