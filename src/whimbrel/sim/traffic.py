"""What was sent: bytes, messages, cost and bandwidth-delay product, by link, by kind and over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from whimbrel.plan.network import Link
from whimbrel.sim.messages import Message


@dataclass(slots=True)
class LinkUse:
    """What went over one link, or over all."""

    bytes: float = 0.0
    messages: int = 0
    cost: float = 0.0
    bdp: float = 0.0
    """Bytes times the latency of the links they crossed: the bandwidth-delay product, summed over time."""
    held: float = 0.0
    """Bytes times the seconds that they really took, with waiting for turns and contacts."""
    repeated: int = 0
    """Messages that were lost on the link and sent again."""

    def add(self, size_b: float, link: Link) -> None:
        """Count bytes that went over a link."""
        self.bytes += size_b
        self.cost += size_b * link.cost
        self.bdp += size_b * link.latency_s

    def join(self, other: LinkUse) -> None:
        """Add what went over another link."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True)
class Drop:
    """A message that did not arrive, and why."""

    time_s: float
    at: str
    reason: str
    message: Message


@dataclass
class Traffic:
    """All that was counted. `interval_s` is the step of the series over time."""

    interval_s: float = 1.0
    parts: dict[tuple[tuple[str, str], str], LinkUse] = field(default_factory=lambda: defaultdict(LinkUse))
    """By ((from, to), kind)."""
    by_interval: dict[int, LinkUse] = field(default_factory=lambda: defaultdict(LinkUse))
    drops: list[Drop] = field(default_factory=list)
    sent: int = 0
    arrived: int = 0
    """Messages that reached the broker they were meant for: sent = arrived + dropped + on their way. A
    message to several brokers counts once for each."""

    def count(
        self, time_s: float, ends: tuple[str, str], link: Link, message: Message, size_b: float
    ) -> None:
        """Count bytes that begin to go over a link."""
        self.parts[ends, message.kind].add(size_b, link)
        self.by_interval[int(time_s // self.interval_s)].add(size_b, link)

    def count_message(
        self, time_s: float, ends: tuple[str, str], message: Message, took_s: float, *, again: bool
    ) -> None:
        """Count a message that has gone over a link, or has to go again."""
        for used in (self.parts[ends, message.kind], self.by_interval[int(time_s // self.interval_s)]):
            used.messages += 1
            used.repeated += again
            used.held += 0.0 if again else message.size_b * took_s

    @property
    def whole(self) -> LinkUse:
        """What went over all links."""
        return self.of()

    @property
    def by_link(self) -> dict[tuple[str, str], LinkUse]:
        """What went over each link, by (from, to)."""
        return self._grouped(lambda ends, _: ends)

    @property
    def by_kind(self) -> dict[str, LinkUse]:
        """What was sent of each kind."""
        return self._grouped(lambda _, kind: kind)

    def of(self, *kinds: str) -> LinkUse:
        """Say what was sent of some kinds on all links; of all kinds if none is named."""
        found = LinkUse()
        for (_, kind), used in self.parts.items():
            if not kinds or kind in kinds:
                found.join(used)
        return found

    def _grouped(self, key: Callable[[tuple[str, str], str], Any]) -> dict[Any, LinkUse]:
        found: dict[Any, LinkUse] = defaultdict(LinkUse)
        for (ends, kind), used in self.parts.items():
            found[key(ends, kind)].join(used)
        return found

    @property
    def on_their_way(self) -> int:
        """Messages that have neither arrived nor been dropped."""
        return self.sent - self.arrived - sum(len(drop.message.contents) for drop in self.drops)

    def series(self, what: str = "bdp") -> list[tuple[float, float]]:
        """Return a count over time: (start of the interval in seconds, amount)."""
        last = max(self.by_interval, default=-1)
        return [(n * self.interval_s, float(getattr(self.by_interval[n], what))) for n in range(last + 1)]
