"""The volume of all flows for given hosts, kept up to date as tasks move from broker to broker."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.arrays import Floats
from whimbrel.plan.network import Network, unknown
from whimbrel.plan.routes import Routes, by_hops
from whimbrel.plan.workload import Workload

Hosts = Mapping[str, str]
"""The broker of each task."""
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, order=True)
class FlowScore:
    """How good an assignment is: what does not overload anything is better, then what flows least."""

    overload: float
    """The sum, over brokers and links, of the work or flow above capacity as a share of it."""
    volume_b_s: float
    """Bytes a second, counted once a hop."""

    @property
    def is_valid(self) -> bool:
        """Tell whether no broker and no link is overloaded."""
        return self.overload <= ROUNDING

    def beats(self, other: FlowScore) -> bool:
        """Tell whether it is better by more than sums of the same numbers in another order differ."""
        if abs(self.overload - other.overload) > ROUNDING:
            return self.overload < other.overload
        return self.volume_b_s < other.volume_b_s - ROUNDING * (1.0 + other.volume_b_s)


class FlowModel:
    """What does not change while hosts do: streams, brokers and ways as numbers."""

    def __init__(self, workload: Workload, network: Network, routes: Routes | None = None) -> None:
        self.workload, self.network = workload, network
        self.routes = routes or Routes(network, by_hops)
        self.tasks = [task.name for task in workload.tasks]
        self.task = {name: n for n, name in enumerate(self.tasks)}
        self.bytes_s = {name: workload.stream(name).bytes_s for name in (*workload.feed, *workload.task)}
        self.origin = {feed.name: self._broker(feed.at, feed.name) for feed in workload.feeds}
        self.targets: dict[str, list[int]] = {name: [] for name in self.bytes_s}
        for delivery in workload.deliveries:
            self.targets[delivery.stream].append(self._broker(delivery.at, delivery.stream))
        self.readers = {
            name: [self.task[task.name] for task in readers] for name, readers in workload.readers.items()
        }
        self.capacity = np.array([broker.capacity for broker in network.brokers])
        self.bandwidth = np.array([link.bandwidth_b_s for link in network.links])
        self._link_number = {id(link): n for n, link in enumerate(network.links)}
        self._ways: dict[tuple[int, int], tuple[int, ...]] = {}
        self._narrow: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
        self._hops: dict[int, Floats] = {}

    def _broker(self, name: str, stream: str) -> int:
        if name not in self.network.number:
            raise unknown("broker", name, self.network.number, f"{stream!r} is at it; place what moves first")
        return self.network.number[name]

    def way(self, start: int, end: int) -> tuple[int, ...]:
        """Return the numbers of the links on the way between two brokers."""
        if (start, end) not in self._ways:
            names = self.network.brokers
            links = self.routes.links(names[start].name, names[end].name)
            self._ways[start, end] = tuple(self._link_number[id(link)] for link in links)
        return self._ways[start, end]

    def ways(self, start: int, end: int) -> tuple[int, tuple[int, ...]]:
        """Count the links on the way between two brokers, and list those that have a limit."""
        if (start, end) not in self._narrow:
            way = self.way(start, end)
            self._narrow[start, end] = (len(way), tuple(n for n in way if math.isfinite(self.bandwidth[n])))
        return self._narrow[start, end]

    def hops(self, start: int) -> Floats:
        """Count the links on the ways from one broker to all; infinite where there is no way."""
        if start not in self._hops:
            counts = self.routes.from_number(start).hops
            self._hops[start] = np.where(counts < 0, math.inf, counts)
        return self._hops[start]


class FlowAssignment:
    """Hosts of all tasks, and what flows because of them. A stream goes once to each broker that reads it.

    A move changes sums and lists of plain numbers: a search tries thousands, each of a few streams.
    """

    def __init__(self, model: FlowModel, hosts: Hosts) -> None:
        self.model = model
        self._hosts = [self._host(hosts, name) for name in model.tasks]
        self._sent: Counter[tuple[str, int, int]] = Counter()
        self._volume = 0.0
        self._over = 0.0
        self._capacity: list[float] = model.capacity.tolist()
        self._bandwidth: list[float] = model.bandwidth.tolist()
        self._work = [0.0] * len(self._capacity)
        self._load = [0.0] * len(self._bandwidth)
        for capacity in (*self._capacity, *self._bandwidth):
            self._over += _excess(0.0, capacity)  # what a broker knows to be left may be below nothing
        for number, task in enumerate(model.workload.tasks):
            self._use(self._work, self._capacity, self._hosts[number], task.work)
            for stream in task.inputs:
                self._send(stream, self._made_at(stream), self._hosts[number], 1)
        for stream, targets in model.targets.items():
            for target in targets:
                self._send(stream, self._made_at(stream), target, 1)

    def _host(self, hosts: Hosts, name: str) -> int:
        if name not in hosts:
            raise NetworkError(f"no broker is given for the task {name!r}", "give one for every task")
        return self.model.network.number[hosts[name]]

    @property
    def work(self) -> Floats:
        """What each broker has to do."""
        return np.array(self._work)

    @property
    def load(self) -> Floats:
        """Bytes a second on each link that has a limit; those of others are not counted."""
        return np.array(self._load)

    @property
    def hosts(self) -> dict[str, str]:
        """The broker of each task."""
        brokers = self.model.network.brokers
        return {name: brokers[self._hosts[n]].name for n, name in enumerate(self.model.tasks)}

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of the broker of each task."""
        return tuple(self._hosts)

    def at(self, task: int) -> int:
        """Return the number of the broker of a task."""
        return self._hosts[task]

    def value(self) -> FlowScore:
        """Tell how good these hosts are."""
        return FlowScore(self._over if self._over > ROUNDING else 0.0, self._volume)

    def packets_s(self, packet_b: float) -> float:
        """Count packets a second, once a hop: an event takes as many as it fills, the last one partly."""
        total = 0.0
        for (name, start, end), readers in self._sent.items():
            if readers > 0:
                stream = self.model.workload.stream(name)
                total += stream.rate_hz * math.ceil(stream.size_b / packet_b) * self.model.ways(start, end)[0]
        return total

    def move(self, task: int, broker: int) -> None:
        """Let another broker run a task."""
        before = self._hosts[task]
        if before == broker:
            return
        given = self.model.workload.tasks[task]
        self._use(self._work, self._capacity, before, -given.work)
        self._use(self._work, self._capacity, broker, given.work)
        for stream in given.inputs:
            origin = self._made_at(stream)
            self._send(stream, origin, before, -1)
            self._send(stream, origin, broker, 1)
        self._hosts[task] = broker
        readers = [self._hosts[reader] for reader in self.model.readers[given.name]]
        for end in (*readers, *self.model.targets[given.name]):
            self._send(given.name, before, end, -1)
            self._send(given.name, broker, end, 1)

    def pull(self, group: Collection[int]) -> Floats:
        """Estimate the volume of what comes into and goes out of a group, for each broker that may run it."""
        model, volume = self.model, np.zeros(len(self.model.capacity))
        for task in group:
            given = model.workload.tasks[task]
            for stream in given.inputs:
                if model.task.get(stream) not in group:
                    volume += model.bytes_s[stream] * model.hops(self._made_at(stream))
            outside = {self._hosts[reader] for reader in model.readers[given.name] if reader not in group}
            for to in outside.union(model.targets[given.name]):
                volume += model.bytes_s[given.name] * model.hops(to)
        return volume

    def _made_at(self, stream: str) -> int:
        model = self.model
        return model.origin[stream] if stream in model.origin else self._hosts[model.task[stream]]

    def _send(self, stream: str, start: int, end: int, readers: int) -> None:
        """Count readers of a stream at a broker; the first and the last one change the flow."""
        if start == end:
            return
        key = (stream, start, end)
        had = self._sent[key]
        self._sent[key] = had + readers
        if (had > 0) == (had + readers > 0):
            return
        change = math.copysign(self.model.bytes_s[stream], readers)
        way, narrow = self.model.ways(start, end)
        self._volume += change * way
        for link in narrow:
            self._use(self._load, self._bandwidth, link, change)

    def _use(self, used: list[float], capacities: list[float], at: int, change: float) -> None:
        """Use more or less of a capacity; keep the sum of what is too much."""
        before, capacity = used[at], capacities[at]
        used[at] = before + change
        if before > capacity or used[at] > capacity:
            self._over += _excess(used[at], capacity) - _excess(before, capacity)


def _excess(used: float, capacity: float) -> float:
    """Tell how far what is used goes beyond a capacity, as a share of it."""
    return (used - capacity) / max(capacity, ROUNDING) if used > capacity else 0.0
