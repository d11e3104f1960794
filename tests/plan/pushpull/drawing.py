"""Random trees of links that come and go, and composite events in them."""

from __future__ import annotations

import random

from whimbrel.plan.contacts import PeriodicContacts
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent


def draw_tree(rng: random.Random, brokers: int, spread: int = 4) -> Network:
    """Draw a tree of brokers, v0 at its root; the parent of one is at most `spread` before it."""
    names = [f"v{n}" for n in range(brokers)]
    links = [
        Link(
            names[rng.randrange(max(0, n - spread), n)],
            names[n],
            cost=rng.choice([1.0, 2.0, 8.0]),
            contacts=PeriodicContacts(rng.choice([30, 150, 300]), 60),
        )
        for n in range(1, brokers)
    ]
    return Network(tuple(Broker(name) for name in names), tuple(links))


def draw_composite(rng: random.Random, network: Network, parts: int, name: str = "ce") -> Composite:
    """Draw a composite event that is wanted at v0."""
    places = [broker.name for broker in network.brokers[1:]]
    made = [
        PrimitiveEvent(f"p{n}", rng.choice(places), 0.02 / rng.randint(1, 40), rng.choice([50, 100, 400]))
        for n in range(parts)
    ]
    operator = rng.choice(["and", "and", "seq"])
    return Composite(name, operator, tuple(made), rng.choice([30, 120]), "v0", rng.choice([1800, 3600, 9000]))
