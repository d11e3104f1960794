"""The network that detection runs on: brokers, links, areas, and who sends and receives.

Units are those of the names: seconds, bytes, bytes a second, events a second. What a link costs is what one
byte costs; work and capacity are in units that the user chooses: seconds of one core where nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

from whimbrel.errors import NetworkError
from whimbrel.plan.contacts import ALWAYS, Contacts

Box = tuple[float, float, float, float]
"""Smallest x and y, largest x and y. A border belongs to the area whose smallest x or y it is."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A node that can run operators: a device, an access point, a server, a data centre."""

    name: str
    capacity: float = math.inf
    """Work that it can do in a second."""
    storage_b: float = math.inf
    parent: str | None = None
    """The broker above it, in a hierarchy."""
    area: Box | None = None
    """What it serves: movers there connect to it. Areas of leaves do not overlap."""
    x: float | None = None
    y: float | None = None

    def takes_s(self, work: float) -> float:
        """Return how long some work takes."""
        if not work or math.isinf(self.capacity):
            return 0.0
        return work / self.capacity if self.capacity else math.inf


@dataclass(frozen=True, slots=True)
class Link:
    """A connection between two brokers, in both directions."""

    a: str
    b: str
    bandwidth_b_s: float = math.inf
    latency_s: float = 0.0
    cost: float = 1.0
    """What a byte costs on this link."""
    contacts: Contacts = ALWAYS
    loss: float = 0.0
    """The share of messages that are lost."""

    @property
    def delay_s(self) -> float:
        """The longest time until a message has arrived, if there is room for it: the wait and the way."""
        return self.contacts.longest_wait_s + self.latency_s

    @property
    def mean_delay_s(self) -> float:
        """The time until a message has arrived, on average, if there is room for it: the wait and the way."""
        return self.contacts.mean_wait_s + self.latency_s

    def other(self, end: str) -> str:
        """Return the other end."""
        return self.b if end == self.a else self.a


@dataclass(frozen=True, slots=True)
class EventSource:
    """What sends events of one type into the network: from a fixed broker, or from wherever a mover is."""

    name: str
    event_type: str
    at: str
    """A broker or a mover."""
    rate_hz: float | None = None
    """Events a second; None: as the statistics of the events say."""
    size_b: float | None = None
    """Bytes of an event; None: as the statistics say."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """Who wants detections: at a broker, or wherever a mover is."""

    name: str
    at: str
    wants: tuple[str, ...] = ()
    """Types of detections; none named: all of them."""
    latency_s: float = math.inf
    """How long a detection may be on its way from the last event to here."""


@dataclass(frozen=True, slots=True)
class Mover:
    """What moves through the areas of brokers: where it was when, in order of time."""

    name: str
    track: tuple[tuple[float, float, float], ...]
    """(time in seconds, x, y)."""


@dataclass(frozen=True)
class Network:
    """Brokers and links, and who sends, receives and moves. Names are unique within each kind."""

    brokers: tuple[Broker, ...]
    links: tuple[Link, ...] = ()
    sources: tuple[EventSource, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    movers: tuple[Mover, ...] = ()
    name: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.brokers:
            raise NetworkError("a network without brokers", "name at least one under 'brokers'")
        _check_unique("broker", [broker.name for broker in self.brokers])
        _check_unique("source", [source.name for source in self.sources])
        _check_unique("consumer", [consumer.name for consumer in self.consumers])
        _check_unique("place", [*self.number, *(mover.name for mover in self.movers)])
        for broker in self.brokers:
            _check_broker(broker, self.number)
        for link in self.links:
            _check_link(link, self.number)
        places = {*self.number, *(mover.name for mover in self.movers)}
        ends: tuple[EventSource | Consumer, ...] = (*self.sources, *self.consumers)
        for item in ends:
            if item.at not in places:
                raise unknown("broker or mover", item.at, places, f"{item.name!r} is at it")

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each broker, in the order in which they are given."""
        return {broker.name: n for n, broker in enumerate(self.brokers)}

    @cached_property
    def neighbours(self) -> dict[str, tuple[Link, ...]]:
        """The links of each broker."""
        by_broker: dict[str, list[Link]] = {broker.name: [] for broker in self.brokers}
        for link in self.links:
            by_broker[link.a].append(link)
            by_broker[link.b].append(link)
        return {name: tuple(links) for name, links in by_broker.items()}

    @cached_property
    def mover(self) -> dict[str, Mover]:
        """The movers by name."""
        return {mover.name: mover for mover in self.movers}

    def ancestors(self, number: int) -> list[int]:
        """Return the brokers above one in the hierarchy that the network names, the nearest first."""
        above: list[int] = []
        parent = self.brokers[number].parent
        while parent is not None and self.number[parent] not in (number, *above):
            above.append(self.number[parent])
            parent = self.brokers[above[-1]].parent
        return above

    def __getitem__(self, name: str) -> Broker:
        """Return the broker of a name."""
        try:
            return self.brokers[self.number[name]]
        except KeyError:
            raise unknown("broker", name, self.number) from None


def unknown(what: str, name: str, known: Iterable[str], why: str = "") -> NetworkError:
    """Make the error for a name that nothing has."""
    near = get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known)[:10]) or 'none'}"
    return NetworkError(f"no {what} is named {name!r}" + (f" ({why})" if why else ""), hint)


def _check_unique(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise NetworkError(f"two {what}s are named {name!r}" if name else f"a {what} without a name")
        seen.add(name)


def _check_broker(broker: Broker, known: Mapping[str, int]) -> None:
    if broker.parent is not None and broker.parent not in known:
        raise unknown("broker", broker.parent, known, f"the parent of {broker.name!r}")
    if not (broker.capacity >= 0 and broker.storage_b >= 0):
        raise NetworkError(f"broker {broker.name!r} has a capacity or storage below 0")
    if broker.area is not None:
        x0, y0, x1, y1 = broker.area
        if not (x0 < x1 and y0 < y1):
            raise NetworkError(
                f"the area of broker {broker.name!r} is empty: {broker.area}",
                "give [smallest x, smallest y, largest x, largest y]",
            )


def _check_link(link: Link, known: Mapping[str, int]) -> None:
    for end in (link.a, link.b):
        if end not in known:
            raise unknown("broker", end, known, f"an end of the link {link.a}-{link.b}")
    if link.a == link.b:
        raise NetworkError(f"the link {link.a}-{link.b} leads to where it begins")
    for what, value, least in (
        ("bandwidth", link.bandwidth_b_s, math.ulp(0.0)),
        ("latency", link.latency_s, 0.0),
        ("cost", link.cost, 0.0),
        ("loss", link.loss, 0.0),
    ):
        if not value >= least:
            raise NetworkError(f"the link {link.a}-{link.b} has a {what} of {value}", "give a number above 0")
    if not link.loss < 1:
        raise NetworkError(f"the link {link.a}-{link.b} loses everything", "give a loss below 1")
