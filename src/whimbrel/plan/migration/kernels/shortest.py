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


@kernel
def shortest_paths(placement, allowed, migration, spans, initial, k):
    """Find the k cheapest sequences of hosts, cheapest first; arguments as for `shortest_path`.

    Each vertex keeps the k cheapest ways to it. Returns the hosts of each way and their costs; an infinite
    cost means that there are fewer ways.
    """
    steps, size = placement.shape
    cost = np.full((steps + 1, size, k), np.inf)
    before = np.full((steps + 1, size, k), -1)
    rank = np.zeros((steps + 1, size, k), np.int64)
    paid = np.zeros((steps + 1, size))
    run = np.zeros(size, np.int64)
    exists = allowed.copy()
    for b in range(size):
        cost[0, b, 0] = initial[b]
        exists[0, b] = allowed[0, b] or initial[b] < np.inf
    for i in range(1, steps + 1):
        for b in range(size):
            run[b] = run[b] + 1 if exists[i - 1, b] else 0
            paid[i, b] = paid[i - 1, b] + placement[i - 1, b]
        for b in range(size):
            if i < steps and not exists[i, b]:
                continue
            for a in range(size):
                if a == b:
                    span, price = 1, 0.0
                elif i < steps:
                    span, price = spans[b, a], migration[b, a]
                else:
                    continue
                if span > run[a]:
                    continue
                spent = paid[i, a] - paid[i - span, a] + price
                for r in range(k):
                    there = cost[i - span, a, r] + spent
                    if not there < cost[i, b, k - 1]:
                        break
                    place = k - 1
                    while place > 0 and there < cost[i, b, place - 1]:
                        cost[i, b, place] = cost[i, b, place - 1]
                        before[i, b, place] = before[i, b, place - 1]
                        rank[i, b, place] = rank[i, b, place - 1]
                        place -= 1
                    cost[i, b, place], before[i, b, place], rank[i, b, place] = there, a, r
    order = np.argsort(cost[steps].ravel())[:k]
    hosts = np.full((len(order), steps), -1)
    costs = np.empty(len(order))
    for n in range(len(order)):
        at, r, i = order[n] // k, order[n] % k, steps
        costs[n] = cost[steps, at, r]
        if costs[n] == np.inf:
            continue
        while i > 0:
            via = before[i, at, r]
            span = 1 if via == at else spans[at, via]
            for j in range(i - span, i):
                hosts[n, j] = via
            at, r, i = via, rank[i, at, r], i - span
    return hosts, costs
