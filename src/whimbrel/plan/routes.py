"""The shortest ways through a network, from one broker to all others, found when they are first asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.network import Link, Network
from whimbrel.plan.trees import PathMatrix, Tree, tree_of

Weight = Callable[[Link], float]
MOST_LEVELS = 100
"""Ways in a tree of at most so many levels are found a level at a time; in deeper ones by search."""


by_latency: Weight = attrgetter("latency_s")
by_delay: Weight = attrgetter("delay_s")
"""The longest delay of a link, waiting included."""
by_mean_delay: Weight = attrgetter("mean_delay_s")
"""The delay of a link on average, waiting included."""
by_cost: Weight = attrgetter("cost")
"""What a byte costs on a link."""


def by_hops(link: Link) -> float:  # noqa: ARG001 (a weight like the others)
    """Weigh all links alike."""
    return 1.0


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """The shortest ways from one broker to all others. Arrays are in the order of the network's brokers."""

    weight: Floats
    """The sum of what the ways are chosen by; infinite where there is no way."""
    latency_s: Floats
    delay_s: Floats
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
        self._ways: dict[int, ShortestPaths] = {}
        self._times: dict[tuple[str, str], tuple[float, float]] = {}

    def from_broker(self, name: str) -> ShortestPaths:
        """Return the shortest ways from one broker to all others."""
        return self.from_number(self.network.number[name])

    def from_number(self, number: int) -> ShortestPaths:
        """Return the shortest ways from the broker of a number."""
        if number not in self._ways:
            self._ways[number] = self._search(number)
        return self._ways[number]

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """Return the brokers on the way from one to another, both included.

        Raises
        ------
        NetworkError
            If there is no way.
        """
        ways, names = self.from_broker(start), self.network.brokers
        at = self.network.number[end]
        if math.isinf(ways.weight[at]):
            raise NetworkError(f"no way leads from {start!r} to {end!r}", "add links that connect them")
        path = [at]
        while ways.before[path[-1]] >= 0:
            path.append(int(ways.before[path[-1]]))
        return tuple(names[n].name for n in reversed(path))

    def links(self, start: str, end: str) -> tuple[Link, ...]:
        """Return the links on the way from one broker to another."""
        path = self.path(start, end)
        return tuple(self._best[a, b] for a, b in pairwise(path))

    def time_s(self, start: str, end: str, size_b: float) -> float:
        """Time a message of a size from one broker to another at the most, if all is idle."""
        if (start, end) not in self._times:
            links = self.links(start, end)
            self._times[start, end] = (
                sum(link.delay_s for link in links),
                sum(1 / link.bandwidth_b_s for link in links),
            )
        delay, per_byte = self._times[start, end]
        return delay + size_b * per_byte

    def between(self, starts: Ints, ends: Ints) -> PathMatrix:
        """Return delay and bandwidth of the ways from some brokers to others, all by number.

        In a tree this costs what is asked for, however large the network is.
        """
        if self._tree is not None:
            return self._tree.between(starts, ends)
        ways = [self.from_number(int(start)) for start in starts]
        delay = np.array([way.delay_s[ends] for way in ways]).reshape(len(starts), len(ends))
        narrowest = np.array([way.narrowest_b_s[ends] for way in ways]).reshape(len(starts), len(ends))
        return PathMatrix(delay, narrowest)

    @property
    def is_tree(self) -> bool:
        """Whether there is one way between any two brokers."""
        return self._tree is not None

    def steps(self, number: int) -> list[tuple[int, float]]:
        """Return the neighbours of a broker, by number, and what the links to them weigh."""
        return [(edge.to, edge.weight) for edge in self._edges[number]]

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

    def _search(self, start: int) -> ShortestPaths:
        tree = self._tree
        if tree is not None and len(tree.levels) <= MOST_LEVELS:
            return self._in_tree(tree, start)
        size = len(self.network.brokers)
        # Lists, as single numbers of arrays are slow to get at.
        weight, hops, before = [math.inf] * size, [-1] * size, [-1] * size
        by: list[_Edge | None] = [None] * size
        weight[start], hops[start] = 0.0, 0
        done, order = [False] * size, []
        waiting = [(0.0, 0, start)]
        while waiting:
            so_far, count, at = heappop(waiting)
            if done[at]:
                continue
            done[at] = True
            order.append(at)
            for edge in self._edges[at]:
                to, there = edge.to, so_far + edge.weight
                is_new = hops[to] < 0
                if done[to] or not (is_new or (there, count + 1) < (weight[to], hops[to])):
                    continue
                weight[to], hops[to], before[to], by[to] = there, count + 1, at, edge
                heappush(waiting, (there, count + 1, to))
        return self._along(order, by, (weight, hops, before))

    def _along(
        self, order: list[int], by: list[_Edge | None], found: tuple[list[float], list[int], list[int]]
    ) -> ShortestPaths:
        """Add up the measures of links along ways; brokers come in the order in which they are reached."""
        weight, hops, before = found
        size = len(weight)
        latency, delay = [math.inf] * size, [math.inf] * size
        narrowest = [0.0] * size
        for at in order:
            edge = by[at]
            if edge is None:
                latency[at] = delay[at] = 0.0
                narrowest[at] = math.inf
                continue
            last = before[at]
            latency[at] = latency[last] + edge.link.latency_s
            delay[at] = delay[last] + edge.delay_s
            narrowest[at] = min(narrowest[last], edge.link.bandwidth_b_s)
        return ShortestPaths(
            weight=np.array(weight, np.float64),
            latency_s=np.array(latency, np.float64),
            delay_s=np.array(delay, np.float64),
            hops=np.array(hops),
            narrowest_b_s=np.array(narrowest, np.float64),
            before=np.array(before),
        )

    @cached_property
    def _edges(self) -> list[list[_Edge]]:
        """The links of each broker, by number, with what is asked of them again and again."""
        number = self.network.number
        known = {id(link): (self.weigh(link), link.delay_s) for link in self.network.links}
        return [
            [_Edge(number[link.other(name)], *known[id(link)], link) for link in links]
            for name, links in self.network.neighbours.items()
        ]

    def _in_tree(self, tree: Tree, start: int) -> ShortestPaths:
        weight, latency = self._tree_values
        before = tree.above.copy()
        up = tree.upwards(start)
        before[up[0]], before[up[1:]] = -1, up[:-1]
        return ShortestPaths(
            weight=tree.spread(start, weight),
            latency_s=tree.spread(start, latency),
            delay_s=tree.spread(start, tree.delay_s),
            hops=tree.spread(start, np.ones(len(before))).astype(np.int64),
            narrowest_b_s=tree.spread(start, tree.bandwidth_b_s, np.minimum, first=math.inf),
            before=before,
        )

    @cached_property
    def _tree_values(self) -> tuple[Floats, Floats]:
        """For each broker of a tree, weight and latency of its link towards the root."""
        assert self._tree is not None
        links = self._tree.links
        return (
            np.array([self.weigh(link) if link else 0.0 for link in links]),
            np.array([link.latency_s if link else 0.0 for link in links]),
        )


@dataclass(frozen=True, slots=True)
class _Edge:
    """A link as one of its ends sees it."""

    to: int
    weight: float
    delay_s: float
    link: Link
