"""The shortest way through a time graph: one pass over its steps."""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel


@kernel
def shortest_path(placement, allowed, migration, spans, initial):
    """Find the cheapest sequence of hosts.

    `placement[i, b]` is the cost of step i at b; `allowed[i, b]` whether that vertex exists; `migration[b,
    a]` and `spans[b, a]` are the cost and the steps of a migration from a to b; `initial[b]` is the cost to
    be at b in step 0.

    Returns the hosts, the cost, and for each step whether its vertex had to be added, because no vertex of
    the step could be reached (algorithm 4.2 of the thesis, line 20).
    """
    steps, size = placement.shape
    cost = np.full((steps + 1, size), np.inf)
    before = np.full((steps + 1, size), -1)
    paid = np.zeros((steps + 1, size))
    run = np.zeros(size, np.int64)
    exists = allowed.copy()
    for b in range(size):
        cost[0, b] = initial[b]
        exists[0, b] = allowed[0, b] or initial[b] < np.inf
    for i in range(1, steps + 1):
        for b in range(size):
            run[b] = run[b] + 1 if exists[i - 1, b] else 0
            paid[i, b] = paid[i - 1, b] + placement[i - 1, b]
        reached = False
        for b in range(size):
            if i < steps and not exists[i, b]:
                continue
            best, via = cost[i - 1, b] + placement[i - 1, b], b
            if i < steps:
                for a in range(size):
                    span = spans[b, a]
                    # The operator goes on at a while it migrates: all vertices of a on the way have to exist.
                    if span <= run[a]:
                        there = cost[i - span, a] + (paid[i, a] - paid[i - span, a]) + migration[b, a]
                        if there < best:
                            best, via = there, a
            if best < np.inf:
                cost[i, b], before[i, b] = best, via
                reached = True
        if not reached:
            for b in range(size):
                if cost[i - 1, b] < np.inf:
                    cost[i, b], before[i, b] = cost[i - 1, b] + placement[i - 1, b], b
                    exists[i, b] = True
    hosts = np.empty(steps, np.int64)
    added = np.zeros(steps, np.bool_)
    at, i = np.argmin(cost[steps]), steps
    best = cost[steps, at]
    while i > 0:
        via = before[i, at]
        span = 1 if via == at else spans[at, via]
        for j in range(i - span, i):
            hosts[j] = via
            added[j] = not allowed[j, via]
        at, i = via, i - span
    return hosts, best, added
