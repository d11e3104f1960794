"""Ways in a network that is a tree: there is one way between two brokers, through what is above both."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.network import Link, Network


@dataclass(frozen=True, slots=True)
class PathMatrix:
    """Ways from some brokers (rows) to others (columns)."""

    delay_s: Floats
    """Infinite where there is no way."""
    narrowest_b_s: Floats
    """The smallest bandwidth on the way; infinite from a broker to itself, 0 where there is no way."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Each broker's link towards the root, in arrays in the order of the network's brokers."""

    above: Ints
    depth: Ints
    delay_s: Floats
    bandwidth_b_s: Floats
    links: tuple[Link | None, ...]
    """The link towards the root; None at the root."""
    levels: tuple[Ints, ...]
    """The brokers of each depth."""

    def upwards(self, number: int) -> list[int]:
        """Return a broker and all that are above it, up to the root."""
        path = [number]
        while self.above[path[-1]] >= 0:
            path.append(int(self.above[path[-1]]))
        return path

    def spread(self, start: int, values: Floats, add: np.ufunc = np.add, *, first: float = 0.0) -> Floats:
        """Add up values of links on the ways from one broker to all others, a level at a time.

        Ways go up from the broker, then down from those above it. The sums are those that walking along
        each way gives, in the same order.

        Parameters
        ----------
        values
            Of each broker's link towards the root.
        add
            How the value of a link is added to that of the way up to it.
        first
            What the broker itself has.
        """
        sums = np.full(len(self.above), math.nan)
        sums[start] = first
        for lower, upper in pairwise(self.upwards(start)):
            sums[upper] = add(sums[lower], values[lower])
        for level in self.levels[1:]:
            below = level[np.isnan(sums[level])]
            sums[below] = add(sums[self.above[below]], values[below])
        return sums

    def between(self, starts: Ints, ends: Ints) -> PathMatrix:
        """Walk up from both ends of all ways at once, until they meet."""
        a = np.repeat(starts, len(ends))
        b = np.tile(ends, len(starts))
        delay, narrowest = np.zeros(len(a)), np.full(len(a), math.inf)
        apart = np.flatnonzero(a != b)
        while len(apart):
            at, to = a[apart], b[apart]
            from_start = self.depth[at] >= self.depth[to]
            lower = np.where(from_start, at, to)
            delay[apart] += self.delay_s[lower]
            narrowest[apart] = np.minimum(narrowest[apart], self.bandwidth_b_s[lower])
            a[apart] = np.where(from_start, self.above[lower], at)
            b[apart] = np.where(from_start, to, self.above[lower])
            apart = apart[a[apart] != b[apart]]
        shape = (len(starts), len(ends))
        return PathMatrix(delay.reshape(shape), narrowest.reshape(shape))


def tree_of(network: Network) -> Tree | None:
    """Return the network as a tree with its first broker as the root, or None if it is no tree."""
    size = len(network.brokers)
    if len(network.links) != size - 1:
        return None
    above, depth = np.full(size, -1), np.zeros(size, np.int64)
    links: list[Link | None] = [None] * size
    seen = np.zeros(size, dtype=bool)
    seen[0] = True
    waiting = deque([0])
    while waiting:
        at = waiting.popleft()
        name = network.brokers[at].name
        for link in network.neighbours[name]:
            to = network.number[link.other(name)]
            if not seen[to]:
                seen[to] = True
                above[to], depth[to], links[to] = at, depth[at] + 1, link
                waiting.append(to)
    if not seen.all():
        return None
    order = np.argsort(depth, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)
    delay = np.array([link.delay_s if link else 0.0 for link in links])
    bandwidth = np.array([link.bandwidth_b_s if link else 0.0 for link in links])
    return Tree(above, depth, delay, bandwidth, tuple(links), tuple(levels))
