"""Choose the brokers that a plan looks at in a large network: those on the ways, those above, those nearby.

In a tree without limits nothing is lost by that: the best hosts are on the ways between those who send and
those who want something, since moving every task to the nearest broker on these ways makes no way longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

import numpy as np

from whimbrel.plan.network import Network
from whimbrel.plan.routes import Routes, ShortestPaths
from whimbrel.plan.timeline import Timeline
from whimbrel.plan.workload import Workload

SMALL = 200
"""In a network of at most so many brokers all of them are looked at."""
MORE = 100
"""How many brokers that could run a task are looked at besides those on the ways and above them."""
SEARCHES = 32
"""Ways between more places than this are looked for from some of them only."""


def candidate_brokers(
    workload: Workload,
    routes: Routes,
    *,
    more: int = MORE,
    small: int = SMALL,
    also: Iterable[str] = (),
) -> tuple[str, ...] | None:
    """Return the brokers on the ways between feeds and deliveries, those above them, and the nearest others.

    None stands for all: the network is small, or what is to be connected is not.

    Parameters
    ----------
    routes
        Ways through the network, by what the plan keeps small.
    more
        How many others there are, not counted those that could run none of the tasks.
    also
        Brokers to take with the ways.
    """
    network = routes.network
    if len(network.brokers) <= max(small, more):
        return None
    line = Timeline(workload, network, {})
    ends = [*(feed.at for feed in workload.feeds), *(delivery.at for delivery in workload.deliveries)]
    named = [*(broker for at in ends for _, broker in line.place(at)), *also]
    places = list(dict.fromkeys(network.number[name] for name in named))
    if not places:
        return None
    first = routes.from_number(places[0])
    if any(first.hops[end] < 0 for end in places):
        return None
    chosen = {end for start in _starts(routes, places) for end in _on_ways(start, places)}
    above = {number for end in chosen for number in network.ancestors(end) if first.hops[number] >= 0}
    chosen |= set(_on_ways(first, sorted(above)))
    chosen |= _nearest(routes, chosen, more, _can_host(workload, network))
    return tuple(network.brokers[number].name for number in sorted(chosen))


def _starts(routes: Routes, places: list[int]) -> list[ShortestPaths]:
    """Return the ways from the places; from one if there is but one way between any two."""
    if routes.is_tree:
        return [routes.from_number(places[0])]
    step = -(-len(places) // SEARCHES)
    # What is wanted somewhere comes last, and everything goes there.
    return [routes.from_number(end) for end in places[::-step]]


def _on_ways(ways: ShortestPaths, places: Iterable[int]) -> set[int]:
    passed: set[int] = set()
    for end in places:
        at = end
        while at >= 0 and at not in passed:
            passed.add(at)
            at = int(ways.before[at])
    return passed


def _can_host(workload: Workload, network: Network) -> list[bool]:
    """Tell of each broker whether it could run any of the tasks, if it were alone there."""
    needs = [(task.work, task.state_b) for task in workload.tasks] or [(0.0, 0.0)]
    capacity = np.array([broker.capacity for broker in network.brokers])
    storage = np.array([broker.storage_b for broker in network.brokers])
    fits = np.zeros(len(capacity), np.bool_)
    for work, state in dict.fromkeys(needs):
        fits |= (capacity >= work) & (storage >= state)
    return [bool(able) for able in fits]


def _nearest(routes: Routes, inside: set[int], more: int, can_host: list[bool]) -> set[int]:
    """Return the brokers that are nearest to some: as many that could run a task, and those on the ways."""
    nearest: set[int] = set()
    waiting = [(0.0, 0, number) for number in inside]
    heapify(waiting)
    count, done = 0, set()
    while waiting and count < more:
        weight, hops, at = heappop(waiting)
        if at in done:
            continue
        done.add(at)
        if at not in inside:
            nearest.add(at)
            count += can_host[at]
        for to, added in routes.steps(at):
            if to not in done:
                heappush(waiting, (weight + added, hops + 1, to))
    return nearest
