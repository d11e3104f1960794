"""A workload on a network, ready for trying out fixed hosts: what each stream costs for where its ends are.

Planners ask for the same costs again and again, so ways are kept, and tasks are tried on all candidates at
once. Where movers are among the ends, costs are averages over the time, and loads and delays those of each
stream's own worst moment, which is at least what `whimbrel.plan.cost.evaluate` finds for all of them
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whimbrel.errors import NoPlanError
from whimbrel.plan.arrays import Floats, Ints
from whimbrel.plan.cost import Objective, arrival_s, crossed, is_more, ready_times, room
from whimbrel.plan.network import Link, Network
from whimbrel.plan.routes import Routes, by_delay
from whimbrel.plan.timeline import Timeline, at_time
from whimbrel.plan.workload import Feed, Task, Workload

FixedHosts = Mapping[str, str]
"""For every task the broker that runs it."""


@dataclass(frozen=True, slots=True)
class Situation:
    """For a share of the time: where a feed is (None for tasks), and where a stream is delivered to."""

    share: float
    origin: str | None
    ends: frozenset[str]


class PlacementModel:
    """Tries out fixed hosts.

    Parameters
    ----------
    candidates
        The brokers that may run tasks; None: all that can be reached.
    routes
        The ways by the objective, if they are there already.

    Raises
    ------
    NoPlanError
        If parts of the network that have to work together are not connected.
    """

    def __init__(
        self,
        workload: Workload,
        network: Network,
        objective: Objective = Objective.BDP,
        candidates: Sequence[str] | None = None,
        routes: Routes | None = None,
    ) -> None:
        self.workload, self.network, self.objective = workload, network, objective
        self.routes = routes or Routes(network, objective.weight)
        self._allowed = candidates
        self.line = Timeline(workload, network, {})
        self.streams: dict[str, Feed | Task] = {**workload.feed, **workload.task}
        self._crossed: dict[tuple[str, frozenset[str]], tuple[Link, ...]] = {}
        self._asked: Counter[str] = Counter()
        self._check_connected()

    def _check_connected(self) -> None:
        places = {broker for situation in self.situations.values() for s in situation for broker in _ends(s)}
        for start, *others in [sorted(places)] if places else []:
            ways = self.routes.from_broker(start)
            for other in others:
                if ways.hops[self.network.number[other]] < 0:
                    raise NoPlanError(
                        f"no way leads from {start!r} to {other!r}, and the plan needs both: "
                        "add links that connect them"
                    )

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The brokers that may run tasks, and can reach those where feeds and deliveries are."""
        if self._allowed is not None:
            return tuple(self._allowed)
        places = sorted(
            {broker for situation in self.situations.values() for s in situation for broker in _ends(s)}
        )
        if not places:
            return tuple(self.network.number)
        ways = self.routes.from_broker(places[0])
        return tuple(name for name, n in self.network.number.items() if ways.hops[n] >= 0)

    @property
    def is_whole(self) -> bool:
        """Whether all brokers that can be reached are candidates."""
        return self._allowed is None

    @cached_property
    def _numbers(self) -> Ints:
        return np.array([self.network.number[name] for name in self.candidates], np.int64)

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each candidate among them."""
        return {name: number for number, name in enumerate(self.candidates)}

    @cached_property
    def situations(self) -> dict[str, tuple[Situation, ...]]:
        """What is fixed about the ends of each stream, whatever the hosts are."""
        return {name: self._situations(name) for name in self.streams}

    def _situations(self, name: str) -> tuple[Situation, ...]:
        stream = self.streams[name]
        origin = self.line.place(stream.at) if isinstance(stream, Feed) else None
        wanted = [delivery.at for delivery in self.workload.deliveries if delivery.stream == name]
        ends = [self.line.place(at) for at in wanted]
        shares: dict[tuple[str | None, frozenset[str]], float] = {}
        for start, end in self.line.spans([*([origin] if origin else []), *ends]):
            key = (
                at_time(origin, start) if origin else None,
                frozenset(at_time(place, start) for place in ends),
            )
            share = (end - start) / self.line.until_s if self.line.until_s else 1.0
            shares[key] = shares.get(key, 0.0) + share
        return tuple(Situation(share, *key) for key, share in shares.items())

    def places(self, at: str) -> tuple[str, ...]:
        """Return the brokers that a broker (itself) or a mover is at, at any time."""
        return tuple(dict.fromkeys(broker for _, broker in self.line.place(at)))

    # -- costs -----------------------------------------------------------------------------------------------

    def distance(self, origin: str, end: str) -> float:
        """Return what a byte a second adds on the way between two brokers, either way.

        Ways are found from one broker to all others, which takes long in large networks. A task that is tried
        on every broker is always tried against the same few others: those who are asked for the most.
        """
        if origin == end:
            return 0.0
        self._asked[origin] += 1
        self._asked[end] += 1
        start, other = (origin, end) if self._asked[origin] >= self._asked[end] else (end, origin)
        return float(self.routes.from_broker(start).weight[self.network.number[other]])

    def crossed(self, origin: str, ends: frozenset[str]) -> tuple[Link, ...]:
        """Return the links that a stream crosses from one broker to several, once for each way."""
        key = (origin, ends)
        if key not in self._crossed:
            self._crossed[key] = crossed(self.routes, origin, ends)
        return self._crossed[key]

    def stream_cost(self, name: str, hosts: FixedHosts) -> float:
        """Return what a stream costs; readers without a host are left out."""
        readers = frozenset(hosts[task.name] for task in self.workload.readers[name] if task.name in hosts)
        cost = 0.0
        for situation in self.situations[name]:
            origin = situation.origin or hosts[name]
            cost += situation.share * sum(
                self.distance(origin, end) for end in sorted(readers | situation.ends)
            )
        return cost * self.streams[name].bytes_s

    def cost_around(self, task: Task, hosts: FixedHosts) -> float:
        """Return what the streams cost that depend on where a task is: those it reads, and its own."""
        return sum(self.stream_cost(name, hosts) for name in dict.fromkeys((*task.inputs, task.name)))

    def cost(self, hosts: FixedHosts) -> float:
        """Return what all streams cost together; those of tasks without a host are left out."""
        return sum(
            self.stream_cost(name, hosts)
            for name in self.streams
            if name in self.workload.feed or name in hosts
        )

    # -- costs for all candidates at once --------------------------------------------------------------------

    def distances(self, end: str) -> Floats:
        """Return what a byte a second adds on the way between each candidate and a broker."""
        return self.routes.from_broker(end).weight[self._numbers]

    def costs_around(self, tasks: Sequence[Task], hosts: FixedHosts) -> Floats:
        """Return what the streams around tasks cost, if all of these tasks ran on one candidate: for each."""
        moved = {task.name for task in tasks}
        stay = {name: host for name, host in hosts.items() if name not in moved}
        touched = dict.fromkeys(name for task in tasks for name in (*task.inputs, task.name))
        costs = np.zeros(len(self.candidates))
        for name in touched:
            costs += self._stream_costs(name, moved, stay)
        return costs

    def _stream_costs(self, name: str, moved: Set[str], stay: FixedHosts) -> Floats:
        """Cost a stream for each candidate that makes it or reads it, in place of those moved."""
        readers = [task.name for task in self.workload.readers[name]]
        fixed = frozenset(stay[reader] for reader in readers if reader in stay)
        is_read = not moved.isdisjoint(readers)
        costs = np.zeros(len(self.candidates))
        for situation in self.situations[name]:
            ends = fixed | situation.ends
            if name in moved:
                # Where it is made, its readers among the moved ones are, too.
                for end in sorted(ends):
                    costs += situation.share * self.distances(end)
                continue
            origin = situation.origin or stay[name]
            costs += situation.share * sum(self.distance(origin, end) for end in sorted(ends))
            if is_read:
                way = situation.share * self.distances(origin)
                way[[self.place[end] for end in ends if end in self.place]] = 0.0
                costs += way
        return costs * self.streams[name].bytes_s

    # -- limits ----------------------------------------------------------------------------------------------

    @cached_property
    def has_limited_brokers(self) -> bool:
        """Whether any candidate can have too much to do, or to remember."""
        brokers = (self.network[name] for name in self.candidates)
        return any(min(broker.capacity, broker.storage_b) < float("inf") for broker in brokers)

    @cached_property
    def has_narrow_links(self) -> bool:
        """Whether any link can be too narrow: if everything crossed it, on the way to each who wants it."""
        most = sum(
            stream.bytes_s
            * (len(self.workload.readers[name]) + max(len(s.ends) for s in self.situations[name]))
            for name, stream in self.streams.items()
        )
        return any(is_more(most, room(link)) for link in self.network.links)

    @cached_property
    def has_deadlines(self) -> bool:
        """Whether any delivery can be late."""
        return any(delivery.latency_s < float("inf") for delivery in self.workload.deliveries)

    def excess(self, hosts: FixedHosts) -> float:
        """Return by how much hosts ask too much: what is over each limit, as a share of it, in all."""
        excess = self.broker_excess(hosts)
        if self.has_narrow_links:
            excess += sum(_over(load, room(link)) for link, load in self.loads(hosts).items())
        if self.has_deadlines:
            delays = self.delays(hosts)
            excess += sum(
                _over(delays[number], delivery.planned_s)
                for number, delivery in enumerate(self.workload.deliveries)
            )
        return excess

    @cached_property
    def is_hopeless(self) -> bool:
        """Whether a delivery is late wherever tasks run: the quickest way from a feed takes too long."""
        if not self.has_deadlines:
            return False
        quickest = Routes(self.network, by_delay)
        number = self.network.number
        return any(
            _over(float(quickest.from_broker(end).delay_s[number[origin]]), delivery.latency_s)
            for delivery in self.workload.deliveries
            for end in self.places(delivery.at)
            for name in self.workload.made_from(delivery.stream) & self.workload.feed.keys()
            for origin in self.places(self.workload.feed[name].at)
        )

    def broker_excess(self, hosts: FixedHosts) -> float:
        """Return by how much hosts ask too much of brokers: what is over each limit, as a share of it."""
        work: dict[str, float] = {}
        state: dict[str, float] = {}
        for name, host in hosts.items():
            task = self.workload.task[name]
            work[host] = work.get(host, 0.0) + task.work
            state[host] = state.get(host, 0.0) + task.fixed_b + task.window_b
        return sum(
            _over(work[host], self.network[host].capacity) + _over(state[host], self.network[host].storage_b)
            for host in work
        )

    def loads(self, hosts: FixedHosts) -> dict[Link, float]:
        """Return the bytes a second on each link, with every stream at its worst."""
        loads: dict[Link, float] = {}
        for name, stream in self.streams.items():
            if name not in self.workload.feed and name not in hosts:
                continue
            readers = frozenset(hosts[t.name] for t in self.workload.readers[name] if t.name in hosts)
            worst: Counter[Link] = Counter()
            for situation in self.situations[name]:
                worst |= Counter(self.crossed(situation.origin or hosts[name], readers | situation.ends))
            for link, times in worst.items():
                loads[link] = loads.get(link, 0.0) + times * stream.bytes_s
        return loads

    def delays(self, hosts: FixedHosts) -> list[float]:
        """Bound the delay of each delivery, with movers where it is worst; 0 for what has no host."""
        at = {**self._feed_places, **{name: (host,) for name, host in hosts.items()}}
        ready = ready_times(self.workload, self.network, self.routes, at)
        return [
            arrival_s(self.workload, self.routes, at, ready, delivery.stream, self.places(delivery.at))
            for delivery in self.workload.deliveries
        ]

    @cached_property
    def _feed_places(self) -> dict[str, tuple[str, ...]]:
        return {feed.name: self.places(feed.at) for feed in self.workload.feeds}


def _ends(situation: Situation) -> set[str]:
    return {*situation.ends, *((situation.origin,) if situation.origin else ())}


def _over(load: float, limit: float) -> float:
    if load <= limit * (1 + 1e-9):
        return 0.0
    return load / limit - 1 if limit else load + 1
