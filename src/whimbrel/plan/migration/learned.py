"""Uncertain plans of movers from what other movers did: learned connection patterns (MigCEP, section 4.2).

A graph holds, for each broker and the broker before it, where movers went on to, how often, and how long they
had stayed on average (the thesis, figure 4.6).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.plan import NOWHERE, Ints
from whimbrel.plan.migration.predict import route_of
from whimbrel.plan.migration.uncertain import Course, UncertainPlan, from_courses


@dataclass(slots=True)
class _Edge:
    count: int = 0
    stayed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NextBroker:
    """Where movers go on to."""

    broker: int
    chance: float
    stay_s: float
    """How long they stay before that, on average."""


@dataclass(slots=True)
class LearnedMoves:
    """What movers did, by the broker they were at and the one before it."""

    _edges: dict[tuple[int, int], dict[int, _Edge]] = field(default_factory=dict)

    def learn(self, ways: Iterable[Ints], horizon: Horizon) -> None:
        """Add the leaf brokers that movers were attached to in each step."""
        for hosts in ways:
            route, enters = route_of(hosts, horizon)
            before = NOWHERE
            for at, following, start, end in zip(route, route[1:], enters, enters[1:], strict=False):
                if at != NOWHERE:
                    # The pattern without a broker before serves movers whose past is not known.
                    for past in {before, NOWHERE}:
                        edge = self._edges.setdefault((past, at), {}).setdefault(following, _Edge())
                        edge.count, edge.stayed_s = edge.count + 1, edge.stayed_s + end - start
                before = at

    def after(self, before: int, at: int) -> list[NextBroker]:
        """Tell where movers went on to, most often first; nothing, if none was seen here."""
        edges = self._edges.get((before, at))
        if edges is None:
            # Nobody went on from here on this way: do as those from elsewhere, but do not turn round.
            others = self._edges.get((NOWHERE, at), {})
            edges = {broker: edge for broker, edge in others.items() if broker != before}
        total = sum(edge.count for edge in edges.values())
        found = [NextBroker(b, edge.count / total, edge.stayed_s / edge.count) for b, edge in edges.items()]
        return sorted(found, key=lambda item: (-item.chance, item.broker))

    def plan(
        self,
        name: str,
        horizon: Horizon,
        at: int,
        before: int = NOWHERE,
        since_s: float | None = None,
        least_chance: float = 0.02,
        most: int = 64,
        bytes_s: float = 0.0,
    ) -> UncertainPlan:
        """Follow the graph from the present broker.

        Parameters
        ----------
        name
            The mover.
        horizon
            The time steps.
        at, before
            The broker that it is attached to, and the one before.
        since_s
            Since when it has been there; since the first step, if nothing is said.
        least_chance
            Ways that are less probable are left out.
        most
            At most so many ways are followed, the most probable ones.
        bytes_s
            What the mover sends.
        """
        entered = horizon.start_s if since_s is None else since_s
        done: list[Course] = []
        waiting = [(1.0, before, at, entered, np.full(horizon.steps, at, np.int64))]
        while waiting:
            chance, past, here, since, hosts = waiting.pop()
            ahead = [
                item
                for item in self.after(past, here)
                if chance * item.chance >= least_chance or item.chance == 1
            ]
            ahead = ahead[: max(1, most - len(done) - len(waiting))]
            total = sum(item.chance for item in ahead)
            if not ahead:
                done.append(Course(hosts, chance))
            for item in ahead:
                leaves = max(since, horizon.start_s) + _rest_s(item.stay_s, horizon.start_s - since)
                share = chance * item.chance / total
                if leaves >= horizon.end_s:
                    done.append(Course(hosts, share))
                    continue
                onwards = hosts.copy()
                onwards[horizon.times_s >= leaves - 1e-9] = item.broker
                waiting.append((share, here, item.broker, leaves, onwards))
        return from_courses(name, horizon, done, bytes_s)


def _rest_s(mean_s: float, stayed_s: float) -> float:
    """Give how long a mover is expected to stay on, if stays of up to twice the mean are all as probable.

    Who has stayed longer than that does not leave at once, either.
    """
    return max(mean_s - max(stayed_s, 0.0) / 2, mean_s / 4)
