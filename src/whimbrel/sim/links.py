"""Messages over links: they queue, wait for contacts, take time, get lost, and are counted.

A link carries both directions at its full bandwidth each. Brokers store and forward: a message goes on when
it has arrived whole. While a link is down, messages wait in the order of their priority, then of their
coming. A message that does not fit the rest of a contact is cut: what fits goes now, the rest with the next
contact. A message that a link loses is sent again at once, and counted again, unless it is marked as not
reliable.

Links and brokers may fail. After a while that is known, and messages go round them where there is a way;
where there is none they wait. With recovery, brokers keep what they have to send on stable storage until the
next one has it, so that only what is on a link is lost, and sent again; without, a broker that fails loses
all that waits at it and all that reaches it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from whimbrel.plan.network import Link, Network
from whimbrel.plan.routes import Routes
from whimbrel.sim.clock import Action, Clock
from whimbrel.sim.messages import Message
from whimbrel.sim.outages import Failure, Outages
from whimbrel.sim.settings import Settings
from whimbrel.sim.traffic import Drop, Traffic

Receive = Callable[[str, Any, Message], None]
"""Takes what came to a broker, with the message that brought it."""
_JUST = 1e-9
"""Seconds by which sums of times may be off."""


class Direction:
    """One direction of a link: what waits for it, and what is on it."""

    def __init__(self, links: Links, link: Link, start: str, end: str) -> None:
        self.links = links
        self.link = link
        self.ends = (start, end)
        self.outages: list[tuple[float, float]] = []
        self.waiting: list[tuple[int, int, float, Message]] = []
        """Priority, number, bytes still to send, message."""
        self.since: dict[int, float] = {}
        """When each message, by its number, came here."""
        self.waiting_b = 0.0
        self.busy = False
        self._number = 0
        self._woken_at = -math.inf
        self._random = links.clock.generator(f"loss {start} {end}")

    def put(self, message: Message) -> None:
        """Let a message wait for its turn."""
        heappush(self.waiting, (message.priority, self._number, message.size_b, message))
        self.since[self._number] = self.links.clock.now
        self._number += 1
        self.waiting_b += message.size_b
        if not self.busy:
            self._next()

    def drop_worst(self) -> Message:
        """Part with the message that would go last."""
        place = max(range(len(self.waiting)), key=lambda number: self.waiting[number][:2])
        _, number, left, message = self.waiting.pop(place)
        del self.since[number]
        heapify(self.waiting)
        self.waiting_b -= left
        return message

    def take(self, which: Callable[[Message], bool]) -> list[Message]:
        """Part with some of what waits."""
        taken = sorted((entry for entry in self.waiting if which(entry[3])), key=lambda entry: entry[:2])
        gone = {entry[1] for entry in taken}
        self.waiting = [entry for entry in self.waiting if entry[1] not in gone]
        heapify(self.waiting)
        for _, number, left, _ in taken:
            del self.since[number]
            self.waiting_b -= left
        return [entry[3] for entry in taken]

    def contact(self, time_s: float) -> tuple[float, float] | None:
        """Return the time in which the link works, from a time on; None: never again."""
        while True:
            found = self.link.contacts.after(time_s)
            if found is None:
                return None
            start, end = max(found[0], time_s), found[1]
            over = [outage for outage in self.outages if outage[0] <= start < outage[1]]
            if not over:
                return start, min([end, *(begin for begin, _ in self.outages if begin > start)])
            time_s = max(until for _, until in over)
            if math.isinf(time_s):
                return None

    def _next(self) -> None:
        """Begin to send what stands first, or wait until that is possible."""
        if self.busy or not self.waiting:
            return
        now = self.links.clock.now
        contact = self.contact(now)
        if contact is None:
            return  # it stays here, and is counted as on its way
        if contact[0] > now:
            self._wake_at(contact[0])
            return
        priority, number, left, message = heappop(self.waiting)
        room = (contact[1] - now) * self.link.bandwidth_b_s
        size = left if math.isinf(self.link.bandwidth_b_s) else min(left, room)
        self.waiting_b -= left
        self.busy = True
        self.links.traffic.count(now, self.ends, self.link, message, size)
        lasts = 0.0 if math.isinf(self.link.bandwidth_b_s) else size / self.link.bandwidth_b_s
        rest = 0.0 if left - size <= _JUST * left else left - size
        self.links.clock.after(lasts, partial(self._sent, priority, number, rest, message))

    def _wake_at(self, time_s: float) -> None:
        if self._woken_at != time_s:
            self._woken_at = time_s
            self.links.clock.at(time_s, self._next)

    def _sent(self, priority: int, number: int, rest: float, message: Message) -> None:
        self.busy = False
        now = self.links.clock.now
        if rest > 0.0:
            self._back(priority, number, rest, message)
        else:
            is_lost = self.link.loss > 0 and self._random.random() < self.link.loss
            again = is_lost and message.reliable
            took = now + self.link.latency_s - self.since[number]
            self.links.traffic.count_message(now, self.ends, message, took, again=again)
            if again:
                self._back(priority, number, message.size_b, message)
            else:
                del self.since[number]
            if not is_lost:
                self.links.clock.after(self.link.latency_s, self._arrival(message))
            elif not again:
                self.links.drop(message, self.ends[0], "lost on a link")
        self._next()

    def _arrival(self, message: Message) -> Action:
        if self.links.outages.failures:
            return partial(self._arrive, message)
        return partial(self.links.reach, message, self.ends[1])

    def _arrive(self, message: Message) -> None:
        if self.links.recovers and self.links.is_down(self.ends[1]):
            self.links.traffic.parts[self.ends, message.kind].repeated += 1
            self.links.forward(message, self.ends[0])  # its sender still has it
        else:
            self.links.reach(message, self.ends[1])

    def _back(self, priority: int, number: int, left: float, message: Message) -> None:
        """Put a message back to where it stood, with what is left of it."""
        if not self.links.recovers and self.links.is_down(self.ends[0]):
            del self.since[number]
            self.links.drop(message, self.ends[0], "broker failed")
            return
        if self.links.leads_elsewhere(message, self):
            del self.since[number]
            self.links.forward(message, self.ends[0])
            return
        heappush(self.waiting, (priority, number, left, message))
        self.waiting_b += left


class Links:
    """All links of a network under a clock."""

    def __init__(self, network: Network, clock: Clock, settings: Settings = Settings()) -> None:  # noqa: B008 (frozen)
        self.network, self.clock, self.settings = network, clock, settings
        self.routes = Routes(network, settings.weight)
        self.recovers = settings.recovers
        self.traffic = Traffic(settings.interval_s)
        self.receive: dict[str, Receive] = {}
        """Who takes the messages that are meant for each broker."""
        self._next_hop: dict[tuple[str, str], Direction] = {}
        self._directions: dict[tuple[int, str], Direction] = {}
        self._at: dict[str, list[Direction]] = defaultdict(list)
        self.outages = Outages(network, settings.failures)
        self.on_change: Callable[[str, bool], None] = lambda broker, is_down: None
        """Called when a broker fails, and when it is back."""
        self.on_drop: Callable[[Message], None] = lambda message: None
        self._down: set[str] = set()
        self._held: dict[str, list[Message]] = defaultdict(list)
        """What brokers that are down have for themselves."""
        self._known: list[Failure] = []
        self._left = self.routes
        """The ways without what is known to fail."""
        for time_s in self.outages.times():
            clock.at(time_s, self._change)
            clock.at(time_s, self._reroute)
        if 0 < settings.notice_s < math.inf:
            for failure in self.outages.failures:
                clock.at(failure.start_s + settings.notice_s, self._reroute)

    def send(self, message: Message) -> None:
        """Send a message on its way."""
        self.traffic.sent += len(message.contents)
        if message.target == message.origin:
            self.clock.after(0.0, partial(self.reach, message, message.origin))
        else:
            self.forward(message, message.origin)

    def reach(self, message: Message, broker: str) -> None:
        """Let a message arrive at a broker, which takes it or sends it on."""
        if broker in self._down:
            if self.recovers:
                self._held[broker].append(message)
            else:
                self.drop(message, broker, "broker failed")
            return
        if message.target != broker:
            self.forward(message, broker)
            return
        for content in message.contents:
            self.traffic.arrived += 1
            if broker in self.receive:
                self.receive[broker](broker, content, message)

    def is_down(self, broker: str) -> bool:
        """Tell whether a broker has failed."""
        return broker in self._down

    def drop(self, message: Message, at: str, reason: str) -> None:
        """Count a message that does not arrive."""
        self.traffic.drops.append(Drop(self.clock.now, at, reason, message))
        self.on_drop(message)

    def forward(self, message: Message, broker: str) -> None:
        """Send a message on from a broker."""
        if broker in self._down and not self.recovers:
            self.drop(message, broker, "broker failed")
            return
        direction = self._towards(broker, message.target)
        direction.put(message)
        while direction.waiting and direction.waiting_b > self.settings.queue_b:
            self.drop(direction.drop_worst(), broker, "queue full")
        storage = self.network[broker].storage_b
        while storage < math.inf and sum(each.waiting_b for each in self._at[broker]) > storage:
            fullest = max(self._at[broker], key=lambda each: each.waiting_b)
            self.drop(fullest.drop_worst(), broker, "storage full")

    def _towards(self, broker: str, target: str) -> Direction:
        """Return the direction in which a message leaves a broker."""
        if (broker, target) not in self._next_hop:
            way = self._left.from_broker(broker).weight[self.network.number[target]]
            # Where no way is left, messages wait for the one that there was.
            link = (self._left if math.isfinite(way) else self.routes).links(broker, target)[0]
            self._next_hop[broker, target] = self._direction(link, broker)
        return self._next_hop[broker, target]

    def _direction(self, link: Link, start: str) -> Direction:
        key = (id(link), start)
        if key not in self._directions:
            made = Direction(self, link, start, link.other(start))
            made.outages = self.outages.of(link, with_brokers=self.recovers)
            self._directions[key] = made
            self._at[start].append(made)
        return self._directions[key]

    # -- failures ----------------------------------------------------------------------------------------

    def _change(self) -> None:
        """Let brokers fail, and come back."""
        before, self._down = self._down, self.outages.down_at(self.clock.now)
        for broker in sorted(self._down - before):
            self.on_change(broker, True)
            for direction in () if self.recovers else self._at[broker]:
                for message in direction.take(lambda _: True):
                    self.drop(message, broker, "broker failed")
        for broker in sorted(before - self._down):
            self.on_change(broker, False)
            for message in self._held.pop(broker, []):
                self.reach(message, broker)

    def _reroute(self) -> None:
        """Choose ways anew, without what is known to fail; also for what waits."""
        known = self.outages.known_at(self.clock.now, self.settings.notice_s)
        if known == self._known:
            return
        self._known = known
        self._left = Routes(self.outages.without(known), self.routes.weigh) if known else self.routes
        self._next_hop.clear()
        for direction in [each for several in self._at.values() for each in several]:
            start = direction.ends[0]
            if start not in self._down:
                for message in direction.take(partial(self._has_another_way, direction)):
                    self.forward(message, start)

    def _has_another_way(self, direction: Direction, message: Message) -> bool:
        return self._towards(direction.ends[0], message.target) is not direction

    def leads_elsewhere(self, message: Message, direction: Direction) -> bool:
        """Tell whether a message that waits for a direction should go another way, as something fails."""
        return bool(self._known) and self._has_another_way(direction, message)
