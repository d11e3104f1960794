"""What serves messages, first come first served: directions of links, and brokers that work on events."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from whimbrel.plan.arrival_curves import ArrivalCurve, bytes_within, corners
from whimbrel.plan.network import Link

RARELY = 1e-6
"""How rarely a message that a link loses may have to be sent more often than is counted."""


@dataclass(slots=True, eq=False)
class Flow:
    """What comes to a server of one stream, for one reader or several at one place."""

    buckets: ArrivalCurve
    late_s: float = 0.0
    soon_s: float = math.inf
    stays: list[tuple[float, float, int]] = field(default_factory=list)
    """From when to when it may come, and how often each message does."""

    @property
    def rate(self) -> float:
        """What comes a second, in the long run."""
        return self.buckets[0][0]

    @property
    def jitter_s(self) -> float:
        """How much later what comes may have come than it could have."""
        return max(self.late_s - self.soon_s, 0.0)

    @property
    def worst(self) -> float:
        """The burst that has become of it."""
        rate, burst = self.buckets[0]
        return burst + rate * self.jitter_s if rate else burst


@dataclass(slots=True, eq=False)
class Server:
    """A direction of a link, or a broker that works."""

    rate: float
    lag_s: float = 0.0
    latency_s: float = 0.0
    tries: float = 1.0
    """How often a message may have to be sent."""
    more: float = 1.0
    """By how much all that is sent exceeds all that has to be, in the long run."""
    flows: dict[object, Flow] = field(default_factory=dict)
    states: list[tuple[float, float]] = field(default_factory=list)
    """When state is sent, and how much."""
    delay_s: float = 0.0
    together: list[list[tuple[Flow, int]]] = field(default_factory=list)
    """Flows that may come at the same time, and how often each of their messages does."""

    def flow(self, key: object, buckets: ArrivalCurve) -> Flow:
        """Return the flow of a key."""
        if key not in self.flows:
            self.flows[key] = Flow(buckets)
        return self.flows[key]

    def settle(self) -> None:
        """Find what may come together, once all flows are known."""
        moments = {start for flow in self.flows.values() for start, _, _ in flow.stays}
        combinations = {
            tuple(
                (key, most)
                for key, flow in self.flows.items()
                if (most := max((n for a, b, n in flow.stays if a <= moment <= b), default=0))
            )
            for moment in moments
        }
        self.together = [
            [(self.flows[key], most) for key, most in combination] for combination in combinations
        ]

    @property
    def blocked(self) -> float:
        """What may be under way, and cannot be interrupted, when something more important comes."""
        return max((size for _, size in self.states), default=0.0)

    @property
    def busy_s(self) -> float:
        """For how long it may have to work without a pause."""
        return max(
            (self._over(flows, self.blocked, self._rate(flows)) for flows in self.together), default=0.0
        )

    def longest_s(self) -> float:
        """Return how long it may take until something has been served."""
        return max((self._longest(flows) for flows in self.together), default=0.0)

    def _longest(self, flows: list[tuple[Flow, int]]) -> float:
        """Return how far what has come may be ahead of what could be served, at most."""
        plainly = self._over(flows, self.blocked, 0.0)
        if self.tries > 1 or not 0 < self.rate < math.inf or math.isinf(plainly):
            return plainly
        amount = slope = 0.0
        bends: list[tuple[float, float]] = []
        for flow, count in flows:
            jitter = flow.jitter_s
            amount += count * (bytes_within(flow.buckets, jitter) if math.isfinite(jitter) else flow.worst)
            slope += count * flow.rate
            for time, less in corners(flow.buckets):
                if time > jitter:
                    bends.append((time - jitter, count * less))
                    slope += count * less
        # As long as more comes than can be served, more and more waits.
        now = 0.0
        for time, less in sorted(bends):
            if slope <= self.rate:
                break
            amount, now = amount + (slope - self.rate) * (time - now), time
            slope -= less
        return self.lag_s + (self.blocked + amount) / self.rate

    def state_s(self, slack_s: float) -> float:
        """Return how long it may take until state has been served, after all else."""
        most = max(
            (
                sum(size for other, size in self.states if abs(other - time) <= 2 * slack_s)
                for time, _ in self.states
            ),
            default=0.0,
        )
        everything = self.together or [[]]
        return max(self._over(flows, most, self._rate(flows)) for flows in everything)

    def _rate(self, flows: Iterable[tuple[Flow, int]]) -> float:
        return self.more * sum(count * flow.rate for flow, count in flows)

    def _over(self, flows: list[tuple[Flow, int]], more: float, kept: float) -> float:
        """Return the time for bursts and more at the rate that is left when some of it is kept."""
        if self._rate(flows) > self.rate * (1 + 1e-9):
            return math.inf
        amount = self.tries * (more + sum(count * flow.worst for flow, count in flows))
        if math.isinf(self.rate):
            return self.lag_s if math.isfinite(amount) else math.inf
        left = self.rate - kept
        return (
            self.lag_s * (self.rate / left if left > 0 else math.inf) + amount / left
            if left > 0
            else math.inf
        )


Hops = list[tuple[Server, Flow]]
"""What is passed one after the other, and as which flow."""


def direction_of(link: Link) -> Server:
    """Return what serves one direction of a link."""
    share = link.contacts.share
    tries = math.ceil(math.log(RARELY) / math.log(link.loss)) if link.loss > 0 else 1
    return Server(
        rate=link.bandwidth_b_s * share if share else 0.0,
        lag_s=link.contacts.longest_wait_s if math.isinf(link.bandwidth_b_s) else link.contacts.lag_s,
        latency_s=link.latency_s,
        tries=tries,
        more=1 / (1 - link.loss),
    )
