"""Random small problems, to judge planners by."""

from __future__ import annotations

import math

import numpy as np

from whimbrel.plan.migration.attachments import attached
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.problem import MigrationProblem
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


def random_problem(
    seed: int,
    brokers: int = 4,
    steps: int = 8,
    tasks: int = 3,
    *,
    limited: bool = False,
    late: bool = False,
) -> MigrationProblem:
    """Draw a problem: brokers in a tree or with one link more, an operator graph, movers that jump about.

    Parameters
    ----------
    seed
        The same seed draws the same problem.
    brokers, steps, tasks
        How large it is.
    limited
        Brokers have room for one to three tasks; together for all of them.
    late
        Deliveries have latency restrictions, some of which cannot be kept.
    """
    draw = np.random.default_rng(seed)
    network = _network(draw, brokers, tasks, limited=limited)
    workload = _workload(draw, tasks, late=late)
    horizon = Horizon(steps)
    names = [mover.name for mover in network.movers]
    attachments = {name: attached(name, horizon, _jumps(draw, brokers, steps)) for name in names}
    return MigrationProblem(network, workload, horizon, attachments, _start(draw, network, workload))


def _network(draw: np.random.Generator, size: int, tasks: int, *, limited: bool) -> Network:
    room = draw.integers(1, 4, size) if limited else np.full(size, math.inf)
    while room.sum() < tasks:
        room[draw.integers(size)] += 1
    pairs = [(n, int(draw.integers(n))) for n in range(1, size)]
    if draw.random() < 0.5:
        pairs.append((0, size - 1))
    links = [
        Link(f"b{a}", f"b{b}", float(draw.uniform(100, 400)), float(draw.uniform(0.1, 1.0)))
        for a, b in dict.fromkeys(tuple(sorted(pair)) for pair in pairs)
        if a != b
    ]
    named = tuple(Broker(f"b{n}", capacity=float(room[n])) for n in range(size))
    return Network(named, tuple(links), movers=tuple(Mover(name, ()) for name in ("east", "west", "user")))


def _workload(draw: np.random.Generator, tasks: int, *, late: bool) -> Workload:
    feeds = tuple(Feed(f"from {at}", 1.0, float(draw.uniform(10, 100)), at) for at in ("east", "west"))
    names = [feed.name for feed in feeds]
    made = []
    for n in range(tasks):
        inputs = draw.choice(names, size=int(draw.integers(1, 3)), replace=False)
        fixed, window = float(draw.choice([0, 20, 60, 150])), float(draw.choice([0, 10, 50]))
        size = float(draw.uniform(5, 100))
        made.append(Task(f"t{n}", tuple(str(i) for i in inputs), 1.0, size, 1.0, fixed, window))
        names.append(f"t{n}")
    read = {name for task in made for name in task.inputs}
    ends = [task.name for task in made if task.name not in read]
    bounds = [float(draw.uniform(1, 3)) if late else math.inf for _ in ends]
    wanted = tuple(Delivery(name, "user", bound) for name, bound in zip(ends, bounds, strict=True))
    return Workload(feeds, tuple(made), wanted)


def _jumps(draw: np.random.Generator, brokers: int, steps: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    jumps = np.concatenate([[True], draw.random(steps - 1) < 0.3])
    return draw.integers(brokers, size=steps)[np.maximum.accumulate(np.where(jumps, np.arange(steps), 0))]


def _start(draw: np.random.Generator, network: Network, workload: Workload) -> dict[str, str]:
    room = {broker.name: broker.capacity for broker in network.brokers}
    start = {}
    for task in workload.tasks:
        free = [name for name, left in room.items() if left >= task.work]
        start[task.name] = str(draw.choice(free))
        room[start[task.name]] -= task.work
    return start
