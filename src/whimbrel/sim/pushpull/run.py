"""Carry out push and pull plans, one or several at once, over links that come and go."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Link, Network, unknown
from whimbrel.plan.pushpull.plan import PushPullPlan
from whimbrel.plan.pushpull.tree import h_value
from whimbrel.plan.routes import Weight
from whimbrel.sim.clock import Action, Progress
from whimbrel.sim.pushpull.matching import Atom, MatchRule
from whimbrel.sim.pushpull.nodes import JunctionNode, Node, SourceNode
from whimbrel.sim.settings import Settings
from whimbrel.sim.world import World


def run_plans(
    plans: Mapping[str, PushPullPlan],
    network: Network,
    events: Mapping[str, Sequence[Atom]],
    *,
    settings: Settings | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, PlanRun]:
    """Carry out several plans at once: an event that several of them need crosses a link once.

    Leaves of the same name are the same source.

    Parameters
    ----------
    events
        The events of each leaf, in order of time.
    settings
        Seed, failures, queues. Ways between neighbours are the links between them, whatever is set.
    progress
        Called with the number of steps that are done and of those that there are.
    """
    settings = Settings(interval_s=60.0) if settings is None else settings
    channel = Channel(World(network, replace(settings, weight=_direct(network))))
    runs = {name: PlanRun(plan, channel) for name, plan in plans.items()}
    clock = channel.world.clock
    leaves: dict[str, list[SourceNode]] = defaultdict(list)
    for node in (node for run in runs.values() for node in run.nodes):
        if isinstance(node, SourceNode):
            leaves[node.leaf.part.name].append(node)
            channel.sizes[node.leaf.part.name] = node.leaf.part.size_b
    for name, atoms in events.items():
        if name not in leaves:
            raise unknown("leaf", name, leaves, "events are given for it")
        for atom in atoms:
            for source in leaves[name]:
                clock.at(atom[0], partial(source.happen, atom))
    last = max((atoms[-1][0] for atoms in events.values() if atoms), default=0.0)
    clock.run_in_steps(last, progress)
    return runs


def _direct(network: Network) -> Weight:
    """Weigh links so that neighbours are reached by the link between them; the better one, if several."""
    weigh = h_value(network)

    def weight(link: Link) -> float:
        return 1.0 + weigh(link) / 100

    return weight


class Channel:
    """Carries events and requests along the paths of plans; an event crosses a hop once, whoever needs it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sizes: dict[str, float] = {}
        """Bytes of an event of each leaf."""
        self._crossed: dict[tuple[str, str], set[Atom]] = defaultdict(set)

    def send_events(self, path: Sequence[str], atoms: Collection[Atom], kind: str, then: Action) -> None:
        """Bring events to the end of a path, hop by hop; what crossed a hop before is there already."""
        size_b = 0.0
        if len(path) > 1:
            crossed = self._crossed[path[0], path[1]]
            new = set(atoms) - crossed
            crossed |= new
            size_b = sum(self.sizes[leaf] for _, leaf, _ in new)
        self._hop(path, size_b, kind, then, partial(self.send_events, path[1:], atoms, kind, then))

    def send_request(self, path: Sequence[str], size_b: float, then: Action) -> None:
        """Bring a request to the end of a path."""
        self._hop(path, size_b, "request", then, partial(self.send_request, path[1:], size_b, then))

    def _hop(self, path: Sequence[str], size_b: float, kind: str, then: Action, onward: Action) -> None:
        if len(path) < 2:
            self.world.clock.after(0.0, partial(self.world.work_at, path[0], then))
        else:
            self.world.post_action(path[0], path[1], onward if len(path) > 2 else then, size_b, kind)


class InFlight:
    """What is under way, by the earliest time that it is about: messages, and what brokers have yet to do."""

    def __init__(self) -> None:
        self._begun: list[tuple[float, int]] = []
        """A heap; what is done leaves it when it comes to the top."""
        self._done: set[int] = set()
        self._count = 0

    def until_run(self, time_s: float, action: Action) -> Action:
        """Count an action that is about a time as under way until it has run, which is once."""
        self._count += 1
        heappush(self._begun, (time_s, self._count))
        return partial(self._run, self._count, action)

    def _run(self, number: int, action: Action) -> None:
        action()
        self._done.add(number)

    @property
    def earliest_s(self) -> float:
        """The earliest time that anything under way is about; infinite if nothing is."""
        while self._begun and self._begun[0][1] in self._done:
            self._done.remove(heappop(self._begun)[1])
        return self._begun[0][0] if self._begun else math.inf


class PlanRun:
    """One plan that is carried out."""

    def __init__(self, plan: PushPullPlan, channel: Channel) -> None:
        plan.check()
        self.plan, self.composite, self.channel = plan, plan.composite, channel
        self.clock = channel.world.clock
        self.rule = MatchRule(plan.composite)
        self.found: dict[tuple[Atom, ...], float] = {}
        """How late each detection was known."""
        self.settled: dict[tuple[Atom, ...], float] = {}
        """When the root knew of events that all go together, negated or not, and had waited for what might
        have negated them by then."""
        self.arrived: dict[Atom, float] = {}
        """When an event came to the root."""
        self.keep_s = self._keep_s()
        self.in_flight = InFlight()
        self.nodes: list[Node] = []
        self.root = JunctionNode(self, plan.root)

    def came(self) -> Iterator[str]:
        """Name the events that came to where the composite event is wanted."""
        return (id_ for _, _, id_ in self.arrived)

    @property
    def needed_from_s(self) -> float:
        """The time before which nothing is needed any more.

        Failures, and links with more to send than the plan expects, hold things up for longer than its bound.
        So what may still go with something under way is kept, too. Where something was lost, the bound alone
        counts: it will never come.
        """
        after_bound_s = self.clock.now - self.keep_s
        world = self.channel.world
        if not world.settings.recovers or world.links.traffic.drops:
            return after_bound_s
        return min(after_bound_s, self.in_flight.earliest_s - self.composite.window_s)

    def _keep_s(self) -> float:
        """Say how long nodes keep all they may be asked for: twice the window and all delays together."""
        longest = sum(
            2 * each.delay_s for planned in self.plan.root.all() for each in planned.junction.inputs
        )
        if math.isinf(longest):
            raise NetworkError("a junction of the plan has no way to one of its inputs", "add links")
        return 2 * (self.composite.window_s + longest)
