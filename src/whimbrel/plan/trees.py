"""Ways in a network that is a tree: there is one way between two brokers, through what is above both."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whimbrel.plan.network import Network

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Between:
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

    def between(self, starts: Ints, ends: Ints) -> Between:
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
        return Between(delay.reshape(shape), narrowest.reshape(shape))


def tree_of(network: Network) -> Tree | None:
    """Give the network as a tree with its first broker as the root, or None if it is no tree."""
    size = len(network.brokers)
    if len(network.links) != size - 1:
        return None
    tree = Tree(np.full(size, -1), np.zeros(size, np.int64), np.zeros(size), np.zeros(size))
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
                tree.above[to], tree.depth[to] = at, tree.depth[at] + 1
                tree.delay_s[to], tree.bandwidth_b_s[to] = link.delay_s, link.bandwidth_b_s
                waiting.append(to)
    return tree if seen.all() else None
