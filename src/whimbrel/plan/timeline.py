"""Who is where when: sources, tasks and consumers of a workload, for hosts that may change over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from whimbrel.errors import NetworkError
from whimbrel.plan.areas import Areas, attachments
from whimbrel.plan.network import Network, unknown
from whimbrel.plan.workload import Delivery, Feed, Workload

Steps = tuple[tuple[float, str], ...]
"""Brokers in order of the time (seconds) from which on each holds; the first holds before, too."""
Hosts = Mapping[str, str | Sequence[tuple[float, str]]]
"""For every task the broker that runs it, or (time, broker) for each change."""


@dataclass(frozen=True, slots=True)
class BrokerInterval:
    """Someone is at a broker, from a time to a time."""

    start_s: float
    end_s: float
    broker: str


class Timeline:
    """Who is where when: sources, tasks and consumers of a workload, for given hosts.

    `hosts` may leave tasks out: then only what is known of the others can be asked.
    """

    def __init__(
        self, workload: Workload, network: Network, hosts: Hosts, until_s: float | None = None
    ) -> None:
        self.workload, self.network = workload, network
        self._areas: Areas | None = None
        self._movers: dict[str, Steps] = {}
        self.hosts = {name: steps_of(host) for name, host in hosts.items()}
        for name, steps in self.hosts.items():
            if name not in workload.task:
                raise unknown("task", name, workload.task, "a host is given for it")
            for _, broker in steps:
                if broker not in network.number:
                    raise unknown("broker", broker, network.number, f"the host of {name!r}")
        self.until_s = self._end() if until_s is None else until_s

    def _end(self) -> float:
        tracks = [mover.track[-1][0] for mover in self.network.movers if mover.track]
        changes = [steps[-1][0] for steps in self.hosts.values()]
        return max([0.0, *tracks, *changes])

    def place(self, at: str) -> Steps:
        """Return the brokers of a broker (itself) or a mover."""
        if at in self.network.number:
            return ((0.0, at),)
        if at not in self._movers:
            self._areas = self._areas or Areas(self.network)
            changes = attachments(self.network.mover[at], self._areas)
            self._movers[at] = tuple((change.time_s, change.broker) for change in changes)
        return self._movers[at]

    def origin(self, stream: str) -> Steps:
        """Return where a stream is made."""
        source = self.workload.stream(stream)
        return self.place(source.at) if isinstance(source, Feed) else self.host(stream)

    def host(self, task: str) -> Steps:
        """Return where a task runs."""
        try:
            return self.hosts[task]
        except KeyError:
            raise NetworkError(f"the plan has no host for the task {task!r}", "give one for each") from None

    @cached_property
    def _deliveries(self) -> dict[str, list[Delivery]]:
        by_stream: dict[str, list[Delivery]] = {}
        for delivery in self.workload.deliveries:
            by_stream.setdefault(delivery.stream, []).append(delivery)
        return by_stream

    def ends(self, stream: str) -> list[Steps]:
        """Return where a stream is wanted: by tasks, and by those it is delivered to."""
        readers = [self.host(task.name) for task in self.workload.readers[stream]]
        return readers + [self.place(delivery.at) for delivery in self._deliveries.get(stream, ())]

    def spans(self, steps: Iterable[Steps]) -> list[tuple[float, float]]:
        """Cut the time where any of these changes: (start, end); one without length if there is no time."""
        inner = {time for changes in steps for time, _ in changes if 0 < time < self.until_s}
        times = sorted({0.0, self.until_s, *inner})
        return list(pairwise(times)) or [(0.0, 0.0)]

    def situations(self, stream: str) -> list[tuple[float, float, str, frozenset[str]]]:
        """Return (start, end, where it is made, where it is wanted), cut where that changes."""
        origin, ends = self.origin(stream), self.ends(stream)
        return [
            (start, end, at_time(origin, start), frozenset(at_time(steps, start) for steps in ends))
            for start, end in self.spans([origin, *ends])
        ]


def steps_of(host: str | Sequence[tuple[float, str]]) -> Steps:
    """Return the brokers of a host over time: one step if it stays."""
    return ((0.0, host),) if isinstance(host, str) else tuple(sorted(host))


def at_time(steps: Steps, time_s: float) -> str:
    """Return what holds at a time."""
    broker = steps[0][1]
    for time, value in steps:
        if time > time_s:
            break
        broker = value
    return broker
