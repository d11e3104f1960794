"""Random networks and workloads, drawn from a seed."""

from __future__ import annotations

import math
import random

from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


def draw_network(rng: random.Random, brokers: int, *, capacity: bool = True) -> Network:
    """Draw a connected network: a tree, and some links more."""
    names = [f"b{n}" for n in range(brokers)]
    nodes = [
        Broker(name, capacity=rng.choice([1.0, 2.0, 4.0, math.inf]) if capacity else math.inf)
        for name in names
    ]
    pairs = {(names[rng.randrange(n)], names[n]) for n in range(1, brokers)}
    for _ in range(brokers // 2):
        a, b = sorted(rng.sample(range(brokers), 2))
        pairs.add((names[a], names[b]))
    return Network(tuple(nodes), tuple(Link(a, b) for a, b in sorted(pairs)))


def draw_workload(rng: random.Random, network: Network, tasks: int) -> Workload:
    """Draw feeds, tasks that read up to three streams, and who wants what comes out."""
    places = [broker.name for broker in network.brokers]
    feeds = [
        Feed(f"f{n}", rng.choice([0.1, 1, 10]), rng.choice([10, 100, 1000]), rng.choice(places))
        for n in range(max(2, tasks // 2))
    ]
    streams: list[Feed | Task] = list(feeds)
    made: list[Task] = []
    for n in range(tasks):
        inputs = rng.sample(streams, min(len(streams), rng.choice([1, 1, 2, 2, 3])))
        size = sum(stream.bytes_s for stream in inputs) * rng.choice([0.01, 0.1, 0.5, 1.2])
        names = tuple(stream.name for stream in inputs)
        made.append(Task(f"t{n}", names, 1.0, size, work=rng.choice([0.2, 0.5, 1.0])))
        streams.append(made[-1])
    read = {name for task in made for name in task.inputs}
    wanted = [task for task in made if task.name not in read or rng.random() < 0.2]
    return Workload(
        tuple(feeds), tuple(made), tuple(Delivery(task.name, rng.choice(places)) for task in wanted)
    )


def draw(
    seed: int, brokers: tuple[int, int] = (3, 8), tasks: tuple[int, int] = (3, 8)
) -> tuple[Workload, Network]:
    """Draw a network and a workload for it."""
    rng = random.Random(seed)
    network = draw_network(rng, rng.randint(*brokers))
    return draw_workload(rng, network, rng.randint(*tasks)), network
