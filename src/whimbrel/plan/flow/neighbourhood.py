"""Assign tasks with what each broker knows of those near it, step by step (problem definition 2).

Each task is in the hands of one broker, at first that of its heaviest content. In every step each broker
plans, knowing only the brokers within `radius` hops: what they have left of capacity and bandwidth, which
tasks they have in their hands, and how many hops each is from where results go. It plans for all tasks that
it sees, and acts on its own: it runs a task itself, or hands it to the neighbour on the way to the broker
that it thinks best, which decides again in the next step. What it is handed it may not hand back at once, so
that nothing is passed round in a loop. Where all see everything, all make the plan of definition 1.

What brokers know of each other is flooded: each tells its neighbours, who pass it on until it is `radius`
hops away, once at the beginning and again after every step in which it handed tasks on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whimbrel.plan.flow.baselines import ends
from whimbrel.plan.flow.model import FlowAssignment, FlowModel, FlowScore
from whimbrel.plan.flow.tabu import search, search_widely
from whimbrel.plan.network import Network
from whimbrel.plan.workload import Delivery, Feed, Workload

HEADER_B, LOAD_B, NEIGHBOUR_B, TASK_B = 40, 16, 4, 8
"""Bytes of a packet: of its header, of what is left of capacity and bandwidth, of each neighbour with its
hops to where results go, and of each task in hand with its host and the next hop."""
STEPS = 64
"""Where nothing settles, the assignment after so many steps counts."""


@dataclass(frozen=True, slots=True)
class NeighbourhoodResult:
    """What brokers agreed on, and how they came there."""

    hosts: dict[str, str]
    value: FlowScore
    history: tuple[float, ...]
    """The volume of all flows after each step, in bytes a second."""
    messages: int
    """Packets that told of plans and loads, each counted whenever a broker sent it or passed it on."""
    bytes: float
    """The sizes of these packets."""


def plan_by_neighbourhoods(
    workload: Workload,
    network: Network,
    radius: int,
    *,
    start: Mapping[str, str] | None = None,
    patience: int = 8,
) -> NeighbourhoodResult:
    """Let every broker plan with the knowledge of its vicinity until nothing changes.

    In each step every broker with a task in hand searches as `tabu.search` does, among brokers within the
    radius.
    """
    model = FlowModel(workload, network)
    at = _origins(model) if start is None else [network.number[start[name]] for name in model.tasks]
    brokers = _Brokers(model, at, radius, patience)
    history: list[FlowAssignment] = []
    seen: set[tuple[int, ...]] = set()
    has_moved = True
    while has_moved and len(history) < STEPS:
        has_moved = brokers.step()
        names = [network.brokers[broker].name for broker in brokers.at]
        history.append(FlowAssignment(model, dict(zip(model.tasks, names, strict=True))))
        if tuple(brokers.at) in seen:
            break
        seen.add(tuple(brokers.at))
    # Who comes back to where it was goes round for ever: what is best on the way counts then.
    best = min(history, key=FlowAssignment.value) if has_moved else history[-1]
    volumes = tuple(flows.value().volume_b_s for flows in history)
    return NeighbourhoodResult(best.hosts, best.value(), volumes, brokers.packets, brokers.bytes)


def flooded(model: FlowModel, broker: int, radius: int) -> int:
    """Count the packets that carry what one broker says to all within a radius.

    It sends one, and so does everybody who hears of it with hops left: a radio reaches all neighbours.
    """
    return int(np.count_nonzero(model.hops(broker) < radius))


def _origins(model: FlowModel) -> list[int]:
    """Put each task into the hands of the broker that its heaviest content comes from."""
    made_at = dict(model.origin)
    for task in model.workload.tasks:
        heaviest = max(task.inputs, key=lambda name: model.bytes_s[name])
        made_at[task.name] = made_at[heaviest]
    return [made_at[name] for name in model.tasks]


class _Brokers:
    """Brokers that know those near them, and which of them has each task in its hands."""

    def __init__(self, model: FlowModel, at: list[int], radius: int, patience: int) -> None:
        self.model, self.at, self.radius, self.patience = model, at, radius, patience
        self.packets, self.bytes = 0, 0.0
        self._given_by: dict[int, int] = {}
        self._names = model.network.brokers
        self._near = [np.flatnonzero(model.hops(broker) <= radius) for broker in range(len(self._names))]
        self._tell(range(len(self._names)))

    def step(self) -> bool:
        """Let each broker plan, and hand tasks on; tell whether any did."""
        moves = [self._moves(broker) for broker in range(len(self._names))]
        for broker, handed_on in enumerate(moves):
            for task, onward in handed_on.items():
                self.at[task], self._given_by[task] = onward, broker
        self._tell(broker for broker, handed_on in enumerate(moves) if handed_on)
        return any(moves)

    def _tell(self, brokers: Iterable[int]) -> None:
        """Count what brokers flood about themselves."""
        for broker in brokers:
            forwards = flooded(self.model, broker, self.radius)
            neighbours = len(self.model.network.neighbours[self._names[broker].name])
            packet_b = HEADER_B + LOAD_B + NEIGHBOUR_B * neighbours + TASK_B * self.at.count(broker)
            self.packets += forwards
            self.bytes += forwards * float(packet_b)

    @cached_property
    def _plan_of_all(self) -> dict[str, str]:
        """The plan of those who see everything: it is the same for all, whoever has which task in hand."""
        return search_widely(self.model, np.arange(len(self._names)))[0]

    def _moves(self, broker: int) -> dict[int, int]:
        """Let one broker plan for the tasks that it sees; name those it hands on, each with the neighbour."""
        mine = [task for task, at in enumerate(self.at) if at == broker]
        if not mine:
            return {}
        model, names, near = self.model, self._names, set(self._near[broker].tolist())
        if len(near) == len(names):
            wanted = self._plan_of_all
        else:
            seen = [task for task, at in enumerate(self.at) if at in near]
            now = {model.tasks[task]: names[self.at[task]].name for task in seen}
            wanted, _ = search(self._known(broker, seen, near), now, self._near[broker], self.patience)
        moves = {}
        for task in mine:
            target = model.network.number[wanted[model.tasks[task]]]
            if target != broker:
                path = model.routes.path(names[broker].name, names[target].name)
                onward = model.network.number[path[1]]
                if self._given_by.get(task) != onward:
                    moves[task] = onward
        return moves

    def _known(self, broker: int, seen: list[int], near: set[int]) -> FlowModel:
        """Return the problem as one broker sees it.

        Contents from beyond the vicinity come in at the broker itself, whatever way they took. Results that
        are read beyond it go to where they end up, which everybody knows the hops to.
        """
        model, names, inside = self.model, self._names, {self.model.tasks[task] for task in seen}
        made_at = {**model.origin, **dict(zip(model.tasks, self.at, strict=True))}
        tasks = [model.workload.tasks[task] for task in seen]
        outside = dict.fromkeys(name for task in tasks for name in task.inputs if name not in inside)
        feeds = [
            Feed(
                name, 1.0, model.bytes_s[name], names[made_at[name] if made_at[name] in near else broker].name
            )
            for name in outside
        ]
        deliveries = {
            Delivery(task.name, names[to].name)
            for task in tasks
            for to in self._readers(task.name, inside, made_at, near)
        }
        local = Workload(tuple(feeds), tuple(tasks), tuple(sorted(deliveries, key=str)))
        known = FlowModel(local, model.network, model.routes)
        everything = FlowAssignment(model, {name: names[made_at[name]].name for name in model.tasks})
        own = FlowAssignment(known, {name: names[made_at[name]].name for name in inside})
        known.capacity = model.capacity - (everything.work - own.work)
        known.bandwidth = model.bandwidth - np.maximum(everything.load - own.load, 0.0)
        return known

    def _readers(self, stream: str, inside: set[str], made_at: Mapping[str, int], near: set[int]) -> set[int]:
        brokers = set(self.model.targets[stream])
        for reader in self.model.readers[stream]:
            name = self.model.tasks[reader]
            if name not in inside:
                brokers |= {made_at[name]} if made_at[name] in near else ends(self.model, name)
        return brokers
