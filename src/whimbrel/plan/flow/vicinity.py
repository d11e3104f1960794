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

from whimbrel.plan.flow.baselines import ends
from whimbrel.plan.flow.tabu import search, search_widely
from whimbrel.plan.flow.volume import Flows, Ground, Value
from whimbrel.plan.network import Network
from whimbrel.plan.routes import Ints
from whimbrel.plan.workload import Delivery, Feed, Workload

HEADER_B, LOAD_B, NEIGHBOUR_B, TASK_B = 40, 16, 4, 8
"""Bytes of a packet: of its header, of what is left of capacity and bandwidth, of each neighbour with its
hops to where results go, and of each task in hand with its host and the next hop."""
STEPS = 64
"""Where nothing settles, the assignment after so many steps counts."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What brokers agreed on, and how they came there."""

    hosts: dict[str, str]
    value: Value
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


def settle(
    workload: Workload,
    network: Network,
    radius: int,
    *,
    start: Mapping[str, str] | None = None,
    patience: int = 8,
) -> Settled:
    """Let every broker plan with the knowledge of its vicinity until nothing changes."""
    ground = Ground(workload, network)
    hands = _Hands(_origins(ground) if start is None else [network.number[start[n]] for n in ground.tasks])
    near = [np.flatnonzero(ground.hops(broker) <= radius) for broker in range(len(network.brokers))]
    forwards = [flooded(ground, broker, radius) for broker in range(len(near))]
    everything = _Everything(ground)
    history: list[Flows] = []
    told = [
        (forwards[broker], forwards[broker] * _told_b(ground, hands, broker)) for broker in range(len(near))
    ]
    seen: set[tuple[int, ...]] = set()
    moves: list[dict[int, int]] = []
    while len(history) < STEPS:
        moves = [
            _moves(ground, hands, broker, near[broker], patience, everything) for broker in range(len(near))
        ]
        for broker, some in enumerate(moves):
            for task, onward in some.items():
                hands.at[task], hands.given_by[task] = onward, broker
        told += [
            (forwards[broker], forwards[broker] * _told_b(ground, hands, broker))
            for broker, some in enumerate(moves)
            if some
        ]
        names = [network.brokers[at].name for at in hands.at]
        history.append(Flows(ground, dict(zip(ground.tasks, names, strict=True))))
        if not any(moves) or tuple(hands.at) in seen:
            break
        seen.add(tuple(hands.at))
    # Who comes back to where it was goes round for ever: what is best on the way counts then.
    best = history[-1] if not any(moves) else min(history, key=Flows.value)
    volumes = tuple(flows.value().volume_b_s for flows in history)
    packets, sizes = zip(*told, strict=True)
    return Settled(best.hosts, best.value(), volumes, sum(packets), sum(sizes))


def flooded(ground: Ground, broker: int, radius: int) -> int:
    """Count the packets that carry what one broker says to all within a radius.

    It sends one, and so does everybody who hears of it with hops left: a radio reaches all neighbours.
    """
    return int(np.count_nonzero(ground.hops(broker) < radius))


def _told_b(ground: Ground, hands: _Hands, broker: int) -> float:
    name = ground.network.brokers[broker].name
    neighbours = len(ground.network.neighbours[name])
    return float(HEADER_B + LOAD_B + NEIGHBOUR_B * neighbours + TASK_B * hands.at.count(broker))


class _Everything:
    """The plan of those who see everything: it is the same for all, and does not depend on hands."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    @cached_property
    def hosts(self) -> dict[str, str]:
        """The hosts of the plan."""
        return search_widely(self._ground, np.arange(len(self._ground.capacity)))[0]


def _origins(ground: Ground) -> list[int]:
    """Put each task into the hands of the broker that its heaviest content comes from."""
    made_at = dict(ground.origin)
    for task in ground.workload.tasks:
        heaviest = max(task.inputs, key=lambda name: ground.bytes_s[name])
        made_at[task.name] = made_at[heaviest]
    return [made_at[name] for name in ground.tasks]


def _moves(
    ground: Ground, hands: _Hands, broker: int, near: Ints, patience: int, everything: _Everything
) -> dict[int, int]:
    """Let one broker plan for the tasks that it sees; give those it hands on, each with the neighbour."""
    mine = [task for task, at in enumerate(hands.at) if at == broker]
    if not mine:
        return {}
    names, around = ground.network.brokers, set(near.tolist())
    if len(around) == len(names):
        wanted = everything.hosts
    else:
        seen = [task for task, at in enumerate(hands.at) if at in around]
        known = _known(ground, hands, broker, seen, around)
        now = {ground.tasks[task]: names[hands.at[task]].name for task in seen}
        wanted, _ = search(known, now, near, patience)
    found = {}
    for task in mine:
        target = ground.network.number[wanted[ground.tasks[task]]]
        if target != broker:
            onward = ground.network.number[ground.routes.path(names[broker].name, names[target].name)[1]]
            if hands.given_by.get(task) != onward:
                found[task] = onward
    return found


def _known(ground: Ground, hands: _Hands, broker: int, seen: list[int], near: set[int]) -> Ground:
    """Give the problem as one broker sees it.

    Contents from beyond the vicinity come in at the broker itself, whatever way they took. Results that are
    read beyond it go to where they end up, which everybody knows the hops to.
    """
    names, inside = ground.network.brokers, {ground.tasks[task] for task in seen}
    made_at = {**ground.origin, **dict(zip(ground.tasks, hands.at, strict=True))}
    tasks = [ground.workload.tasks[task] for task in seen]
    feeds = {
        name: Feed(
            name, 1.0, ground.bytes_s[name], names[made_at[name] if made_at[name] in near else broker].name
        )
        for task in tasks
        for name in task.inputs
        if name not in inside
    }
    deliveries = {
        Delivery(task.name, names[to].name)
        for task in tasks
        for to in _readers(ground, task.name, inside, made_at, near)
    }
    local = Workload(tuple(feeds.values()), tuple(tasks), tuple(sorted(deliveries, key=str)))
    known = Ground(local, ground.network, ground.routes)
    everything = Flows(ground, {name: names[made_at[name]].name for name in ground.tasks})
    own = Flows(known, {name: names[made_at[name]].name for name in inside})
    known.capacity = ground.capacity - (everything.work - own.work)
    known.bandwidth = ground.bandwidth - np.maximum(everything.load - own.load, 0.0)
    return known


def _readers(
    ground: Ground, stream: str, inside: set[str], made_at: Mapping[str, int], near: set[int]
) -> set[int]:
    found = set(ground.targets[stream])
    for reader in ground.readers[stream]:
        name = ground.tasks[reader]
        if name not in inside:
            found |= {made_at[name]} if made_at[name] in near else ends(ground, name)
    return found
