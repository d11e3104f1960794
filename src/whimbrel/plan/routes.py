"""The shortest ways through a network, from one broker to all others, found when they are first asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Link, Network
from whimbrel.plan.trees import Between, Tree, tree_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Weight = Callable[[Link], float]


def by_latency(link: Link) -> float:
    """Weigh a link by its latency."""
    return link.latency_s


def by_delay(link: Link) -> float:
    """Weigh a link by its longest delay, waiting included."""
    return link.delay_s


def by_mean_delay(link: Link) -> float:
    """Weigh a link by its delay on average, waiting included."""
    return link.mean_delay_s


def by_cost(link: Link) -> float:
    """Weigh a link by what a byte costs on it."""
    return link.cost


def by_hops(link: Link) -> float:  # noqa: ARG001 (a weight like the others)
    """Weigh all links alike."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Ways:
    """The shortest ways from one broker to all others. Arrays are in the order of the network's brokers."""

    weight: Floats
    """The sum of what the ways are chosen by; infinite where there is no way."""
    latency_s: Floats
    delay_s: Floats
    cost: Floats
    hops: Ints
    narrowest_b_s: Floats
    """The smallest bandwidth on the way."""
    before: Ints
    """The broker before the last on the way; -1 at its beginning, and where there is no way."""


class Routes:
    """Shortest ways in a network. Equal ones go by fewer hops, then by the order of the brokers."""

    def __init__(self, network: Network, weight: Weight = by_latency) -> None:
        self.network = network
        self.weigh = weight
        self._ways: dict[int, Ways] = {}
        self._times: dict[tuple[str, str], tuple[float, float]] = {}

    def from_broker(self, name: str) -> Ways:
        """Give the shortest ways from one broker to all others."""
        return self.from_number(self.network.number[name])

    def from_number(self, number: int) -> Ways:
        """Give the shortest ways from the broker of a number."""
        if number not in self._ways:
            self._ways[number] = self._search(number)
        return self._ways[number]

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """Give the brokers on the way from one to another, both included.

        Raises
        ------
        NetworkError
            If there is no way.
        """
        ways, names = self.from_broker(start), self.network.brokers
        at = self.network.number[end]
        if math.isinf(ways.weight[at]):
            raise NetworkError(f"no way leads from {start!r} to {end!r}", "add links that connect them")
        found = [at]
        while ways.before[found[-1]] >= 0:
            found.append(int(ways.before[found[-1]]))
        return tuple(names[n].name for n in reversed(found))

    def links(self, start: str, end: str) -> tuple[Link, ...]:
        """Give the links on the way from one broker to another."""
        path = self.path(start, end)
        return tuple(self._best[a, b] for a, b in pairwise(path))

    def time_s(self, start: str, end: str, size_b: float) -> float:
        """Give how long a message of a size takes from one broker to another at the most, if all is idle."""
        if (start, end) not in self._times:
            links = self.links(start, end)
            self._times[start, end] = (
                sum(link.delay_s for link in links),
                sum(1 / link.bandwidth_b_s for link in links),
            )
        delay, per_byte = self._times[start, end]
        return delay + size_b * per_byte

    def between(self, starts: Ints, ends: Ints) -> Between:
        """Give delay and bandwidth of the ways from some brokers to others, all by number.

        In a tree this costs what is asked for, however large the network is.
        """
        if self._tree is not None:
            return self._tree.between(starts, ends)
        ways = [self.from_number(int(start)) for start in starts]
        delay = np.array([way.delay_s[ends] for way in ways]).reshape(len(starts), len(ends))
        narrowest = np.array([way.narrowest_b_s[ends] for way in ways]).reshape(len(starts), len(ends))
        return Between(delay, narrowest)

    @cached_property
    def _tree(self) -> Tree | None:
        return tree_of(self.network)

    @cached_property
    def _best(self) -> dict[tuple[str, str], Link]:
        """The link to take between two neighbours, where there are several."""
        best: dict[tuple[str, str], Link] = {}
        for link in self.network.links:
            for pair in ((link.a, link.b), (link.b, link.a)):
                if pair not in best or self.weigh(link) < self.weigh(best[pair]):
                    best[pair] = link
        return best

    def _search(self, start: int) -> Ways:
        network, size = self.network, len(self.network.brokers)
        ways = _no_ways(size)
        for values in (ways.weight, ways.latency_s, ways.delay_s, ways.cost):
            values[start] = 0.0
        ways.hops[start], ways.narrowest_b_s[start] = 0, math.inf
        done = np.zeros(size, dtype=bool)
        waiting = [(0.0, 0, start)]
        while waiting:
            weight, hops, at = heappop(waiting)
            if done[at]:
                continue
            done[at] = True
            for link in network.neighbours[network.brokers[at].name]:
                to = network.number[link.other(network.brokers[at].name)]
                there = (weight + self.weigh(link), hops + 1)
                if done[to] or there >= (ways.weight[to], _or_endless(ways.hops[to])):
                    continue
                ways.weight[to], ways.hops[to], ways.before[to] = *there, at
                ways.latency_s[to] = ways.latency_s[at] + link.latency_s
                ways.delay_s[to] = ways.delay_s[at] + link.delay_s
                ways.cost[to] = ways.cost[at] + link.cost
                ways.narrowest_b_s[to] = min(ways.narrowest_b_s[at], link.bandwidth_b_s)
                heappush(waiting, (*there, to))
        return ways


def _no_ways(size: int) -> Ways:
    return Ways(
        weight=np.full(size, math.inf),
        latency_s=np.full(size, math.inf),
        delay_s=np.full(size, math.inf),
        cost=np.full(size, math.inf),
        hops=np.full(size, -1),
        narrowest_b_s=np.zeros(size),
        before=np.full(size, -1),
    )


def _or_endless(hops: np.int64) -> float:
    return math.inf if hops < 0 else float(hops)
