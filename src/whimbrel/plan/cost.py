"""What a plan costs: traffic on links, load of brokers, delays of deliveries, and what is too much.

A stream goes once from where it is made to each broker where it is read, on the shortest ways: by mean delay
for the bandwidth-delay product, by hops for flow, by cost for cost. Delays are those of an idle network: the
latency of links, the longest time that a message may wait for one that is down, and the time to send an
event and to work on it. Bounds add what is in the way when links and brokers are busy
(`whimbrel.plan.network_calculus`). Where movers or tasks change brokers, costs are averages over the time,
loads, delays and bounds the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from whimbrel.plan.network import Link, Network
from whimbrel.plan.network_calculus import Sending, bounds
from whimbrel.plan.routes import Routes, Weight, by_cost, by_hops, by_mean_delay
from whimbrel.plan.timeline import Hosts, Steps, Timeline, at_time
from whimbrel.plan.units import in_bytes, in_seconds
from whimbrel.plan.workload import Delivery, Feed, Task, Workload


class Objective(Enum):
    """What a plan is to keep small."""

    BDP = "bdp"
    """The bandwidth-delay product: bytes that are on their way, or wait."""
    FLOW = "flow"
    """Bytes a second, times the links they cross."""
    COST = "cost"
    """What the bytes of a second cost on the links they cross."""

    @property
    def weight(self) -> Weight:
        """What a link adds for each byte a second that crosses it."""
        return _WEIGHTS[self]

    @property
    def words(self) -> str:
        """Name it."""
        return _WORDS[self]


_WEIGHTS = {Objective.BDP: by_mean_delay, Objective.FLOW: by_hops, Objective.COST: by_cost}
_WORDS = {
    Objective.BDP: "bandwidth-delay product",
    Objective.FLOW: "flow",
    Objective.COST: "cost",
}


@dataclass(frozen=True, slots=True)
class Totals:
    """What traffic adds up to, by each measure."""

    bdp_b: float = 0.0
    flow_b_s: float = 0.0
    cost_s: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.bdp_b + other.bdp_b, self.flow_b_s + other.flow_b_s, self.cost_s + other.cost_s)

    def of(self, objective: Objective) -> float:
        """Return one of them."""
        measures = {Objective.BDP: self.bdp_b, Objective.FLOW: self.flow_b_s, Objective.COST: self.cost_s}
        return measures[objective]


def carried(links: Iterable[Link], bytes_s: float) -> Totals:
    """Return what so many bytes a second on these links add up to."""
    total = Totals()
    for link in links:
        total += Totals(bytes_s * link.mean_delay_s, bytes_s, bytes_s * link.cost)
    return total


@dataclass(frozen=True)
class Costs:
    """What a plan costs. Loads and delays are the largest over the time."""

    running: Totals
    moving: Totals
    """The state of tasks that change brokers, as an average over the time."""
    work: Mapping[str, float]
    """By broker."""
    storage_b: Mapping[str, float]
    """By broker."""
    traffic_b_s: Mapping[Link, float]
    """By link; links without traffic are left out."""
    delays_s: tuple[float, ...]
    """In an idle network; in the order of the deliveries."""
    bounds_s: tuple[float, ...]
    """When links and brokers are as busy as they may be; infinite if that has no end."""

    @property
    def total(self) -> Totals:
        """Everything together."""
        return self.running + self.moving


def crossed(routes: Routes, origin: str, ends: Iterable[str]) -> tuple[Link, ...]:
    """Return the links that a stream crosses from one broker to several, once for each way it takes them."""
    return tuple(link for end in sorted(ends) for link in routes.links(origin, end))


def evaluate(
    workload: Workload,
    network: Network,
    hosts: Hosts,
    objective: Objective = Objective.BDP,
    *,
    until_s: float | None = None,
    sending: Sending = Sending(),  # noqa: B008 (frozen)
) -> Costs:
    """Work out what a plan costs.

    Parameters
    ----------
    hosts
        For every task its broker, or (time, broker) for each change.
    objective
        What ways are chosen by.
    until_s
        When the time ends; None: with the last position or change.
    sending
        How streams are sent, for the bounds: headers, and whether tasks wait for all of their inputs.

    Examples
    --------
    >>> from whimbrel.plan.network import Broker
    >>> from whimbrel.plan.workload import Task
    >>> network = Network((Broker("edge"), Broker("cloud")), (Link("edge", "cloud", latency_s=0.02),))
    >>> workload = Workload(
    ...     (Feed("camera", 10, 1000, "edge"),),
    ...     (Task("Face", ("camera",), 1, 100),),
    ...     (Delivery("Face", "cloud"),),
    ... )
    >>> evaluate(workload, network, {"Face": "cloud"}).total.bdp_b
    200.0
    >>> evaluate(workload, network, {"Face": "edge"}).total.bdp_b
    2.0
    """
    line = Timeline(workload, network, hosts, until_s)
    routes = Routes(network, objective.weight)
    running, traffic = _traffic(line, routes)
    tasks = [(line.host(task.name), task) for task in workload.tasks]
    delays = tuple(_delay(line, routes, delivery) for delivery in workload.deliveries)
    return Costs(
        running,
        _moving(line, routes),
        _largest(line, [(steps, task.work) for steps, task in tasks]),
        _largest(line, [(steps, task.state_b) for steps, task in tasks]),
        traffic,
        delays,
        # A stream without events is never in the way; if one came all the same, it would take as long.
        tuple(map(max, bounds(line, routes, sending), delays)),
    )


def _traffic(line: Timeline, routes: Routes) -> tuple[Totals, dict[Link, float]]:
    running = Totals()
    changes: dict[Link, list[tuple[float, float]]] = {}
    streams: tuple[Feed | Task, ...] = (*line.workload.feeds, *line.workload.tasks)
    for stream in streams:
        for start, end, origin, ends in line.situations(stream.name):
            links = crossed(routes, origin, ends)
            share = (end - start) / line.until_s if line.until_s else 1.0
            running += carried(links, stream.bytes_s * share)
            for link in links:
                changes.setdefault(link, []).extend([(start, stream.bytes_s), (end, -stream.bytes_s)])
    used = [link for link in line.network.links if link in changes]
    return running, {link: _peak(changes[link], line.until_s) for link in used}


def _peak(changes: list[tuple[float, float]], until_s: float) -> float:
    """Return the largest sum that changes lead to; at one time, what ends makes room for what begins."""
    if not until_s:
        return math.fsum(change for _, change in changes if change > 0)
    largest = now = 0.0
    for _, change in sorted(changes):
        now += change
        largest = max(largest, now)
    return largest


def _largest(line: Timeline, needs: list[tuple[Steps, float]]) -> dict[str, float]:
    """Return the largest sum of needs at each broker."""
    changes: dict[str, list[tuple[float, float]]] = {}
    for steps, need in needs:
        for start, end in line.spans([steps]):
            changes.setdefault(at_time(steps, start), []).extend([(start, need), (end, -need)])
    return {broker: _peak(changed, line.until_s) for broker, changed in changes.items()}


def _moving(line: Timeline, routes: Routes) -> Totals:
    moved = Totals()
    for task in line.workload.tasks:
        steps = line.host(task.name)
        for (_, before), (time, after) in pairwise(steps):
            if 0 <= time <= line.until_s and line.until_s:
                moved += carried(routes.links(before, after), task.state_b / line.until_s)
    return moved


def _delay(line: Timeline, routes: Routes, delivery: Delivery) -> float:
    """Return the longest delay from a feed to a delivery, at any time."""
    end, needed = line.place(delivery.at), line.workload.made_from(delivery.stream)
    origins = {name: line.origin(name) for name in needed}
    delays = []
    for time_s, _ in line.spans([end, *origins.values()]):
        at = {name: (at_time(steps, time_s),) for name, steps in origins.items()}
        ready = ready_times(line.workload, line.network, routes, at)
        ends = (at_time(end, time_s),)
        delays.append(arrival_s(line.workload, routes, at, ready, delivery.stream, ends))
    return max(delays)


Places = Mapping[str, Sequence[str]]
"""For each stream the brokers at which it may be made; streams that are not made yet are left out."""


def ready_times(workload: Workload, network: Network, routes: Routes, at: Places) -> dict[str, float]:
    """Return how long after its events each stream is made in an idle network, at the most.

    Each way is looked at once: O(streams x readers), if each is made at one place.
    """
    ready = {name: 0.0 for name in workload.feed if name in at}
    for task in workload.tasks:
        if task.name in at:
            ready[task.name] = max(
                (
                    arrival_s(workload, routes, at, ready, name, at[task.name])
                    + network[at[task.name][0]].takes_s(workload.work_on(task, name))
                    for name in task.inputs
                ),
                default=0.0,
            )
    return ready


def arrival_s(
    workload: Workload,
    routes: Routes,
    at: Places,
    ready: Mapping[str, float],
    stream: str,
    ends: Sequence[str],
) -> float:
    """Return how long after its events a stream has come to all of some brokers; 0 if it is not made yet."""
    if stream not in at:
        return 0.0
    size = workload.stream(stream).size_b
    return ready[stream] + max(routes.time_s(origin, end, size) for origin in at[stream] for end in ends)


# -- what is too much ---------------------------------------------------------------------------------------

SLACK = 1e-9
"""Sums of floats are not exact: a load is too much if it is so by more than this share."""


def violations(workload: Workload, network: Network, costs: Costs) -> tuple[str, ...]:
    """Say what a plan asks too much of: brokers, links, and the patience of those it delivers to."""
    works = ((broker, costs.work.get(broker.name, 0.0)) for broker in network.brokers)
    states = ((broker, costs.storage_b.get(broker.name, 0.0)) for broker in network.brokers)
    return (
        *(
            f"{broker.name} would have to do {load:.3g} of work a second, and can do {broker.capacity:.3g}"
            for broker, load in works
            if is_more(load, broker.capacity)
        ),
        *(
            f"{broker.name} would have to remember {in_bytes(load)}, "
            f"and has room for {in_bytes(broker.storage_b)}"
            for broker, load in states
            if is_more(load, broker.storage_b)
        ),
        *_jams(costs.traffic_b_s),
        *_late(workload, costs),
    )


def room(link: Link) -> float:
    """Return how many bytes a second a link can carry, with the times in which it is down."""
    share = link.contacts.share
    return link.bandwidth_b_s * share if share else 0.0


def is_more(load: float, limit: float) -> bool:
    """Tell whether a load is more than a limit."""
    return load > limit * (1 + SLACK) + 1e-300


def _jams(traffic: Mapping[Link, float]) -> list[str]:
    return [
        f"the link {link.a} - {link.b} would have to carry {in_bytes(load)}/s, and can carry "
        f"{in_bytes(room(link))}/s"
        for link, load in traffic.items()
        if is_more(load, room(link))
    ]


def _late(workload: Workload, costs: Costs) -> list[str]:
    return [
        f"{delivery.stream} would reach {delivery.at} after {_late_words(delay, bound)}, and has to after "
        f"{in_seconds(delivery.latency_s)}"
        for delivery, delay, bound in zip(workload.deliveries, costs.delays_s, costs.bounds_s, strict=True)
        if is_more(bound, delivery.latency_s)
    ]


def _late_words(delay_s: float, bound_s: float) -> str:
    idle, busy = in_seconds(delay_s), in_seconds(bound_s)
    return idle if idle == busy else f"{idle}, or {busy} when links and brokers are busy"
