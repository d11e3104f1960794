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

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from whimbrel.plan.arrays import Ints
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


@dataclass(slots=True)
class _Hands:
    """Which broker has each task in its hands, and from whom."""

    at: list[int]
    given_by: dict[int, int] = field(default_factory=dict)


def plan_by_neighbourhoods(
    workload: Workload,
    network: Network,
    radius: int,
    *,
    start: Mapping[str, str] | None = None,
    patience: int = 8,
) -> NeighbourhoodResult:
    """Let every broker plan with the knowledge of its vicinity until nothing changes."""
    model = FlowModel(workload, network)
    hands = _Hands(_origins(model) if start is None else [network.number[start[n]] for n in model.tasks])
    near = [np.flatnonzero(model.hops(broker) <= radius) for broker in range(len(network.brokers))]
    forwards = [flooded(model, broker, radius) for broker in range(len(near))]
    everything = _Everything(model)
    history: list[FlowAssignment] = []
    packets_sent = [
        (forwards[broker], forwards[broker] * _told_b(model, hands, broker)) for broker in range(len(near))
    ]
    seen: set[tuple[int, ...]] = set()
    moves: list[dict[int, int]] = []
    while len(history) < STEPS:
        moves = [
            _moves(model, hands, broker, near[broker], patience, everything) for broker in range(len(near))
        ]
        for broker, some in enumerate(moves):
            for task, onward in some.items():
                hands.at[task], hands.given_by[task] = onward, broker
        packets_sent += [
            (forwards[broker], forwards[broker] * _told_b(model, hands, broker))
            for broker, some in enumerate(moves)
            if some
        ]
        names = [network.brokers[at].name for at in hands.at]
        history.append(FlowAssignment(model, dict(zip(model.tasks, names, strict=True))))
        if not any(moves) or tuple(hands.at) in seen:
            break
        seen.add(tuple(hands.at))
    # Who comes back to where it was goes round for ever: what is best on the way counts then.
    best = history[-1] if not any(moves) else min(history, key=FlowAssignment.value)
    volumes = tuple(flows.value().volume_b_s for flows in history)
    packets, sizes = zip(*packets_sent, strict=True)
    return NeighbourhoodResult(best.hosts, best.value(), volumes, sum(packets), sum(sizes))


def flooded(model: FlowModel, broker: int, radius: int) -> int:
    """Count the packets that carry what one broker says to all within a radius.

    It sends one, and so does everybody who hears of it with hops left: a radio reaches all neighbours.
    """
    return int(np.count_nonzero(model.hops(broker) < radius))


def _told_b(model: FlowModel, hands: _Hands, broker: int) -> float:
    name = model.network.brokers[broker].name
    neighbours = len(model.network.neighbours[name])
    return float(HEADER_B + LOAD_B + NEIGHBOUR_B * neighbours + TASK_B * hands.at.count(broker))


class _Everything:
    """The plan of those who see everything: it is the same for all, and does not depend on hands."""

    def __init__(self, model: FlowModel) -> None:
        self._model = model

    @cached_property
    def hosts(self) -> dict[str, str]:
        """The hosts of the plan."""
        return search_widely(self._model, np.arange(len(self._model.capacity)))[0]


def _origins(model: FlowModel) -> list[int]:
    """Put each task into the hands of the broker that its heaviest content comes from."""
    made_at = dict(model.origin)
    for task in model.workload.tasks:
        heaviest = max(task.inputs, key=lambda name: model.bytes_s[name])
        made_at[task.name] = made_at[heaviest]
    return [made_at[name] for name in model.tasks]


def _moves(
    model: FlowModel, hands: _Hands, broker: int, near: Ints, patience: int, everything: _Everything
) -> dict[int, int]:
    """Let one broker plan for the tasks that it sees; give those it hands on, each with the neighbour."""
    mine = [task for task, at in enumerate(hands.at) if at == broker]
    if not mine:
        return {}
    names, around = model.network.brokers, set(near.tolist())
    if len(around) == len(names):
        wanted = everything.hosts
    else:
        seen = [task for task, at in enumerate(hands.at) if at in around]
        known = _known(model, hands, broker, seen, around)
        now = {model.tasks[task]: names[hands.at[task]].name for task in seen}
        wanted, _ = search(known, now, near, patience)
    moves = {}
    for task in mine:
        target = model.network.number[wanted[model.tasks[task]]]
        if target != broker:
            onward = model.network.number[model.routes.path(names[broker].name, names[target].name)[1]]
            if hands.given_by.get(task) != onward:
                moves[task] = onward
    return moves


def _known(model: FlowModel, hands: _Hands, broker: int, seen: list[int], near: set[int]) -> FlowModel:
    """Return the problem as one broker sees it.

    Contents from beyond the vicinity come in at the broker itself, whatever way they took. Results that are
    read beyond it go to where they end up, which everybody knows the hops to.
    """
    names, inside = model.network.brokers, {model.tasks[task] for task in seen}
    made_at = {**model.origin, **dict(zip(model.tasks, hands.at, strict=True))}
    tasks = [model.workload.tasks[task] for task in seen]
    feeds = {
        name: Feed(
            name, 1.0, model.bytes_s[name], names[made_at[name] if made_at[name] in near else broker].name
        )
        for task in tasks
        for name in task.inputs
        if name not in inside
    }
    deliveries = {
        Delivery(task.name, names[to].name)
        for task in tasks
        for to in _readers(model, task.name, inside, made_at, near)
    }
    local = Workload(tuple(feeds.values()), tuple(tasks), tuple(sorted(deliveries, key=str)))
    known = FlowModel(local, model.network, model.routes)
    everything = FlowAssignment(model, {name: names[made_at[name]].name for name in model.tasks})
    own = FlowAssignment(known, {name: names[made_at[name]].name for name in inside})
    known.capacity = model.capacity - (everything.work - own.work)
    known.bandwidth = model.bandwidth - np.maximum(everything.load - own.load, 0.0)
    return known


def _readers(
    model: FlowModel, stream: str, inside: set[str], made_at: Mapping[str, int], near: set[int]
) -> set[int]:
    brokers = set(model.targets[stream])
    for reader in model.readers[stream]:
        name = model.tasks[reader]
        if name not in inside:
            brokers |= {made_at[name]} if made_at[name] in near else ends(model, name)
    return brokers
