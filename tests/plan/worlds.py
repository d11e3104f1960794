"""Random networks and workloads for property tests."""

from __future__ import annotations

import random

from whimbrel.plan.contacts import ALWAYS, PeriodicContacts
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


def random_network(
    rng: random.Random, brokers: int, *, movers: int = 0, capacity: bool = False, narrow: bool = False
) -> Network:
    """A connected network; leaves lie in a row of squares, so that movers find them."""
    made = tuple(
        Broker(f"b{n}", area=(n, 0, n + 1, 1), capacity=rng.choice([1, 2, 3]) if capacity else float("inf"))
        for n in range(brokers)
    )
    pairs = [(n, rng.randrange(n)) for n in range(1, brokers)]
    pairs += [tuple(rng.sample(range(brokers), 2)) for _ in range(rng.randrange(3))] if brokers > 1 else []
    turns = [ALWAYS, ALWAYS, PeriodicContacts(2, 1)]
    links = tuple(
        Link(
            f"b{a}",
            f"b{b}",
            rng.choice([100, 1000, float("inf")]) if narrow else float("inf"),
            rng.randrange(4),
            rng.randrange(1, 4),
            rng.choice(turns) if narrow else ALWAYS,
        )
        for a, b in pairs
    )
    tracks = [
        Mover(f"m{n}", tuple((10.0 * k, rng.uniform(0, brokers), 0.5) for k in range(rng.randrange(1, 4))))
        for n in range(movers)
    ]
    return Network(made, links, movers=tuple(tracks))


def random_workload(rng: random.Random, network: Network, tasks: int) -> Workload:
    """Feeds at brokers and movers, and tasks that read any of what is before them."""
    places = [*network.number, *network.mover]
    feeds = tuple(
        Feed(f"f{n}", rng.randrange(1, 5), rng.randrange(1, 20), rng.choice(places)) for n in range(2)
    )
    names = [feed.name for feed in feeds]
    made: list[Task] = []
    for n in range(tasks):
        inputs = tuple(rng.sample(names, rng.randrange(1, min(3, len(names)) + 1)))
        made.append(
            Task(f"t{n}", inputs, rng.randrange(4), rng.randrange(1, 20), work=1, fixed_b=n, window_b=5)
        )
        names.append(f"t{n}")
    wanted = [each.name for each in made if not any(each.name in other.inputs for other in made)]
    deliveries = [Delivery(name, rng.choice(places)) for name in wanted]
    deliveries.append(Delivery(rng.choice(names), rng.choice(places)))
    return Workload(feeds, tuple(made), tuple(deliveries))
