"""How long deliveries take at the most, when links and brokers are busy: deterministic network calculus.

- **Streams** are token buckets: in any t seconds a feed sends at most burst + rate t bytes. What is known of
  bursts at higher rates counts, too (`whimbrel.plan.arrival_curves`). A task gives its
  share of every byte that it reads, so that its bucket is that share of those of its inputs, and at least an
  event.
- **Delay makes bursts.** If all of a stream reaches a place between `soon` and `late` seconds after it
  happened, what comes there in t seconds happened within t + late - soon: its burst has grown by
  rate (late - soon). It counts once, whichever ways it takes in the course of time.
- **Servers.** A direction of a link sends whole messages, first come first served, at its bandwidth times
  the share of its contacts, and may be behind that by the lag of its contacts. So nothing takes longer than
  lag + (all bursts) / rate, as long as the rates together are below its own; or, with several buckets, than
  lag + the most by which all that may have come in a time exceeds what is served in it. Orders go first,
  state last, but a message under way is not interrupted: the largest message of state counts, too. A broker
  of finite capacity works on one event after the other, likewise.
- **All together.** What waits for a link comes later to the next: delays make bursts, and bursts make delays,
  also in circles. From no delays at all, both are worked out until nothing changes. What bounds everything
  up to a moment then bounds it at the next one, too, so it always does. Where rates are too high, or nothing
  comes to rest, the bound is infinite.
- **Changes.** Who moves sends and is sent to on other ways (`whimbrel.plan.handover`). On every server, all
  count together that may be there at one time: as long after a change as anything may be under way.
- **Lost messages** are sent again. A message counts as often as it may have to be sent but for one in a
  million.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from whimbrel.plan.arrival_curves import ArrivalCurve, arrival_curve
from whimbrel.plan.handover import MessagePath, Participant, forwarded_to, message_paths, participant
from whimbrel.plan.routes import Routes
from whimbrel.plan.servers import Flow, Hops, Server, direction_of
from whimbrel.plan.timeline import Timeline
from whimbrel.plan.workload import Delivery, Feed, Task

ORDER_B = 40.0
"""Bytes of a message that asks someone to send elsewhere, or tells that time goes on."""
ROUNDS = 2_000
"""Rounds after which what still grows is taken to be infinite."""
WIDENINGS = 6
"""How often it is tried to find a time after which changes are over; then they count at all times."""
_JUST = 1e-9
"""The share that is added in the end, so that what was cut off in rounds is covered."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How streams are sent, besides what the workload says of them."""

    header_b: float = 0.0
    """Bytes of a message besides its content."""
    heartbeat_s: float = 0.0
    """How often it is told that time goes on. 0: tasks work on each event as it comes. Else they wait until
    they know that nothing earlier can come on any input, as the engine does."""


def bounds(
    line: Timeline,
    routes: Routes,
    sending: Sending = Sending(),  # noqa: B008 (frozen)
) -> tuple[float, ...]:
    """Return the longest delay of every delivery: nothing takes longer, however streams come together."""
    slack = 0.0
    for attempt in range(WIDENINGS):
        system = _System(line, routes, sending, slack)
        system.solve()
        needed = system.needed_s()
        if needed <= slack or not system.has_changes:
            break
        # In the end nothing is ever over: that is always right, if not near the truth.
        slack = needed * 1.1 if attempt < WIDENINGS - 2 else math.inf
    return system.delays_s()


@dataclass(slots=True, eq=False)
class _Leg:
    """A stream on its way to those who read it at one place."""

    message_paths: list[tuple[MessagePath, Hops, list[tuple[str, Server, Flow]]]]
    """Each way, what is passed on it, and at its end the work of tasks."""
    tasks: list[str]
    deliveries: list[int]
    late_s: float = 0.0
    soon_s: float = math.inf


@dataclass(frozen=True, slots=True)
class _Bucket:
    """A stream as it happens: bytes and messages, a second and at once."""

    rate_b_s: float
    burst_b: float
    rate_hz: float
    burst: float
    peaks: ArrivalCurve = ()
    """Further buckets of bytes."""

    def on_wire(self, header_b: float, header_hz: float, headers: float) -> ArrivalCurve:
        """Return what may be sent, with so many headers besides those of messages."""
        more_b_s, more_b = header_b * (self.rate_hz + header_hz), header_b * (self.burst + headers)
        lines = ((self.rate_b_s, self.burst_b), *self.peaks)
        return arrival_curve((rate + more_b_s, burst + more_b) for rate, burst in lines)


def _peaks(stream: Feed | Task) -> ArrivalCurve:
    return tuple((rate, max(burst, stream.size_b)) for rate, burst in stream.peaks)


class _System:
    """All that is served where, for one guess of how long after a change all is as it will be."""

    def __init__(self, line: Timeline, routes: Routes, sending: Sending, slack_s: float) -> None:
        self.line, self.routes, self.sending, self.slack_s = line, routes, sending, slack_s
        self.workload, self.network = line.workload, line.network
        self.links: dict[tuple[int, str], Server] = {}
        self._ways: dict[tuple[str, str], list[Server]] = {}
        self.brokers: dict[str, Server] = {}
        self.buckets = {feed.name: self._bucket(feed) for feed in self.workload.feeds}
        for task in self.workload.tasks:
            self.buckets[task.name] = self._bucket(task)
        self.hosts = {
            task.name: self._participant(line.host(task.name), is_task=True) for task in self.workload.tasks
        }
        self.legs = {name: self._legs(name) for name in self.buckets}
        self.ready_s = dict.fromkeys(self.buckets, 0.0)
        self.soon_s = dict.fromkeys(self.buckets, 0.0)
        self.moving_s: dict[str, float] = {}
        self.orders: list[list[tuple[str, ...]]] = []
        self._add_news()
        for server in self._servers:
            server.settle()

    # -- streams ---------------------------------------------------------------------------------------------

    def _bucket(self, stream: Feed | Task) -> _Bucket:
        """Return the bucket of a stream whose inputs have theirs."""
        if isinstance(stream, Feed):
            burst = max(stream.burst_b, stream.size_b)
            count = burst / stream.size_b if stream.size_b else 1.0
            return _Bucket(stream.bytes_s, burst, stream.rate_hz, count, _peaks(stream))
        read = [self.buckets[name] for name in stream.inputs]
        comes = sum(name.rate_b_s for name in read)
        share = stream.bytes_s / comes if comes else 0.0
        burst, messages = (
            max(share * sum(name.burst_b for name in read), stream.size_b if share else 0.0),
            1.0,
        )
        if stream.burst_b is not None:
            burst = max(stream.burst_b, stream.size_b)
            messages = burst / stream.size_b if stream.size_b else 1.0
        return _Bucket(
            stream.bytes_s,
            burst,
            max(stream.rate_hz, sum(name.rate_hz for name in read)),
            max(sum(name.burst for name in read), messages),
            _peaks(stream),
        )

    def _participant(self, steps: tuple[tuple[float, str], ...], *, is_task: bool = False) -> Participant:
        end = participant(steps, self.line.until_s, is_task=is_task)
        return end if len(end.stays) > 1 else Participant(end.stays)

    def _sender(self, name: str) -> Participant:
        return self.hosts[name] if name in self.hosts else self._participant(self.line.origin(name))

    def _legs(self, name: str) -> list[_Leg]:
        """Return a leg for each place where a stream is read, with all the ways to it."""
        is_told = self.sending.heartbeat_s > 0
        readers: dict[tuple[Participant, bool], _Leg] = {}
        for task in self.workload.readers[name]:
            readers.setdefault((self.hosts[task.name], False), _Leg([], [], [])).tasks.append(task.name)
        for number, delivery in enumerate(self.workload.deliveries):
            if delivery.stream == name:
                # The engine sends detections apart from what other tasks read of the same definition.
                key = (self._participant(self.line.place(delivery.at)), is_told)
                readers.setdefault(key, _Leg([], [], [])).deliveries.append(number)
        bucket, sender = self.buckets[name], self._sender(name)
        for key, leg in readers.items():
            # What is sent on to a mover has the headers of all to whom it was sent together.
            others = readers.values() if len(key[0].stays) > 1 else [leg]
            heard = sum(len(other.tasks) + len(other.deliveries) for other in others)
            buckets = self._on_wire(bucket, heard)
            for path in message_paths(sender, key[0], self.slack_s):
                hops = self._hops((name, key), path, buckets)
                leg.message_paths.append((path, hops, self._works(name, leg.tasks, path)))
        return list(readers.values())

    def _on_wire(self, bucket: _Bucket, readers: int) -> ArrivalCurve:
        """Return bytes a second and at once, with headers and what tells that time goes on."""
        header = self.sending.header_b * readers
        if not self.sending.heartbeat_s:
            return bucket.on_wire(header, 0.0, 0.0)
        return bucket.on_wire(max(header, ORDER_B * readers), 1 / self.sending.heartbeat_s, 1.0)

    def _hops(self, key: object, path: MessagePath, buckets: ArrivalCurve) -> Hops:
        servers = [server for a, b in pairwise(path.places) for server in self._way(a, b)]
        hops = [(server, server.flow(key, buckets)) for server in servers]
        for server, flow in dict.fromkeys(hops):
            flow.stays.append((path.start_s, path.end_s + self.slack_s, servers.count(server)))
        return hops

    def _works(self, name: str, tasks: list[str], path: MessagePath) -> list[tuple[str, Server, Flow]]:
        """Let tasks at the end of a way work on what comes, where that takes time."""
        broker = self.network[path.places[-1]]
        if math.isinf(broker.capacity):
            return []
        server = self.brokers.setdefault(broker.name, Server(broker.capacity))
        works = []
        for reader in tasks:
            task = self.workload.task[reader]
            comes = sum(self.buckets[other].rate_b_s for other in task.inputs)
            work = task.work / comes if comes else 0.0
            bucket = self.buckets[name]
            lines = bucket.on_wire(0.0, 0.0, 0.0)
            flow = server.flow((reader, name), tuple((work * rate, work * burst) for rate, burst in lines))
            flow.stays.append((path.start_s, path.end_s + self.slack_s, 1))
            works.append((reader, server, flow))
        return works

    # -- servers ---------------------------------------------------------------------------------------------

    @property
    def _servers(self) -> list[Server]:
        return [*self.links.values(), *self.brokers.values()]

    def _way(self, start: str, end: str) -> list[Server]:
        """Return the directions of links from one broker to another."""
        key = (start, end)
        if key not in self._ways:
            self._ways[key] = []
            for link in self.routes.links(start, end):
                server = self.links.setdefault((id(link), start), direction_of(link))
                self._ways[key].append(server)
                start = link.other(start)
        return self._ways[key]

    def _way_s(self, places: Iterable[str]) -> float:
        """Return how long a message takes from one broker to others, one after the other."""
        return sum(
            server.delay_s + server.latency_s for a, b in pairwise(places) for server in self._way(a, b)
        )

    # -- changes of brokers ----------------------------------------------------------------------------------

    @property
    def has_changes(self) -> bool:
        """Whether anyone changes brokers."""
        return any(
            len(end.stays) > 1
            for name in self.buckets
            for end in (
                self._sender(name),
                *(self._participant(self.line.place(d.at)) for d in self._wanted(name)),
            )
        )

    def _wanted(self, name: str) -> list[Delivery]:
        return [delivery for delivery in self.workload.deliveries if delivery.stream == name]

    def _add_news(self) -> None:
        """Count what is sent because someone changes brokers: orders to senders, and the state of tasks."""
        for name in self.buckets:
            sender = self._sender(name)
            for delivery in self._wanted(name):
                for time, _, after in self._participant(self.line.place(delivery.at)).changes:
                    self._order(time, [(after, *there) for there in self._around(sender, time)])
            for task in self.workload.readers[name]:
                for time, before, _ in self.hosts[task.name].changes:
                    self._order(time, [(before, *there) for there in self._around(sender, time)])
                    self._order(time, [(there[0], before) for there in self._around(sender, time)])
        for task in self.workload.tasks:
            for time, before, after in self.hosts[task.name].changes:
                self._order(time, [(after, before)])
                for server in self._way(before, after):
                    header = self.sending.header_b
                    server.states += [(time, task.fixed_b + header), (time, task.window_b + header)]

    def _around(self, sender: Participant, time_s: float) -> list[tuple[str, ...]]:
        """Return where a sender may be asked at about a time, and where the order is sent on to."""
        slack = self.slack_s
        return [
            (stay.broker, *forwarded_to(sender, number, time_s + 2 * slack))
            for number, stay in enumerate(sender.stays)
            if stay.start_s - slack <= time_s + slack and stay.end_s + slack >= time_s - slack
        ]

    def _order(self, time_s: float, ways: list[tuple[str, ...]]) -> None:
        """Count an order that takes one of several ways."""
        self.orders.append(ways)
        for places in ways:
            path = MessagePath(time_s - self.slack_s, time_s + self.slack_s, places)
            self._hops(len(self.orders), path, ((0.0, ORDER_B),))

    def _orders_s(self, ways: Iterable[tuple[str, ...]]) -> float:
        return max((self._way_s(places) for places in ways), default=0.0)

    def _move_s(self, task: str) -> float:
        """Return how long what comes for a task may have to wait while it moves.

        Its senders are told, and tell where what they sent to the old broker ends; the old broker works until
        it has all of that, and then its state follows.
        """
        longest = 0.0
        for time, before, after in self.hosts[task].changes:
            told = max(
                (
                    self._orders_s((before, *there) for there in self._around(self._sender(name), time))
                    + self._orders_s((there[0], before) for there in self._around(self._sender(name), time))
                    for name in self.workload.task[task].inputs
                ),
                default=0.0,
            )
            longest = max(longest, told + self._work_s(before) + self._state_s(before, after))
        return longest

    def _work_s(self, broker: str) -> float:
        return self.brokers[broker].delay_s if broker in self.brokers else 0.0

    def _state_s(self, start: str, end: str) -> float:
        return sum(server.state_s(self.slack_s) + server.latency_s for server in self._way(start, end))

    # -- delays ----------------------------------------------------------------------------------------------

    def solve(self) -> None:
        """Work out delays and bursts, from none, until they come to rest; what does not is infinite."""
        for number in range(ROUNDS):
            growing = self._round()
            if not growing and self._is_proven():
                return
            if number >= ROUNDS // 2:
                # Half of the rounds are left for what depends on it to become infinite, too.
                for server in growing:
                    server.delay_s = math.inf

    def _round(self) -> list[Server]:
        """Work delays out from bursts, and bursts from delays; give what took longer than before."""
        self._walk()
        growing = []
        for server in self._servers:
            longest = server.longest_s()
            if longest > server.delay_s * (1 + 1e-12):
                growing.append(server)
            server.delay_s = max(longest, server.delay_s)
        return growing

    def _is_proven(self) -> bool:
        """Tell whether delays that are longer by a little make bursts that need no more than these."""
        for server in self._servers:
            server.delay_s *= 1 + _JUST
        self._walk()
        return all(server.longest_s() <= server.delay_s for server in self._servers)

    def _walk(self) -> None:
        """Let every stream take its ways, each after what it is made from."""
        for server in self._servers:
            for flow in server.flows.values():
                flow.late_s, flow.soon_s = 0.0, math.inf
        self.moving_s = {task.name: self._move_s(task.name) for task in self.workload.tasks}
        for name, legs in self.legs.items():
            if name in self.workload.task:
                self._make(name)
            for leg in legs:
                self._go(name, leg)

    def _go(self, name: str, leg: _Leg) -> None:
        leg.late_s, leg.soon_s = 0.0, math.inf
        for path, hops, works in leg.message_paths:
            late, soon = self.ready_s[name], self.soon_s[name]
            for server, flow in hops:
                flow.late_s, flow.soon_s = max(flow.late_s, late), min(flow.soon_s, soon)
                late += server.delay_s + server.latency_s
                soon += server.latency_s
            for task, _, flow in works:
                # What came while a task moved is worked on together when it has arrived.
                flow.late_s = max(flow.late_s, late + self.moving_s[task])
                flow.soon_s = min(flow.soon_s, soon)
            leg.late_s = max(leg.late_s, late + (self._work_s(path.places[-1]) if works else 0.0))
            leg.soon_s = min(leg.soon_s, soon)

    def _make(self, name: str) -> None:
        """Return when a task has made what it makes, from when its inputs came."""
        late, soon = 0.0, math.inf
        for stream in self.workload.task[name].inputs:
            leg = next(leg for leg in self.legs[stream] if name in leg.tasks)
            # That nothing earlier comes is told as late as an event would be, and a heartbeat later at most.
            late = max(late, leg.late_s + self.sending.heartbeat_s)
            soon = min(soon, leg.soon_s)
        self.ready_s[name] = late + self.moving_s[name]
        self.soon_s[name] = 0.0 if math.isinf(soon) else soon

    def delays_s(self) -> tuple[float, ...]:
        """Return the longest delay of every delivery."""
        delays = {
            number: leg.late_s for legs in self.legs.values() for leg in legs for number in leg.deliveries
        }
        return tuple(delays[number] for number in range(len(self.workload.deliveries)))

    def needed_s(self) -> float:
        """Return how long after a change something may still be as it was before."""
        under_way = max((leg.late_s for legs in self.legs.values() for leg in legs), default=0.0)
        busy = max((server.busy_s for server in self._servers), default=0.0)
        news = max((self._orders_s(ways) for ways in self.orders), default=0.0)
        moves = [
            self._state_s(before, after) + self._way_s((after, before)) + self._move_s(task.name)
            for task in self.workload.tasks
            for _, before, after in self.hosts[task.name].changes
        ]
        return under_way + busy + news + max(moves, default=0.0)
