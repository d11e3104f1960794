"""Senders and readers of streams: who takes every packet once and in order, wherever both ends are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whimbrel.model.time import BEGINNING_OF_TIME
from whimbrel.sim.packets import Key, Marker, Packet, Redirect

if TYPE_CHECKING:
    from whimbrel.sim.world import World


@dataclass(slots=True)
class Inlet:
    """One end of a stream: what has been taken, and what came before its turn."""

    origin: str
    """The broker that the sender was at when it last sent."""
    number: int = 0
    """The packet that comes next."""
    complete: int = BEGINNING_OF_TIME
    early: dict[int, Packet] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    """Packets that will not come."""

    def put(self, packet: Packet) -> list[Packet]:
        """Take a packet in; give those whose turn it is."""
        if packet.number == self.number and not self.early and not self.gone:  # as it nearly always is
            self.number += 1
            self.complete, self.origin = packet.complete, packet.origin
            return [packet]
        self.early[packet.number] = packet
        return self.ready()

    def ready(self) -> list[Packet]:
        """Return the packets whose turn it is, past those that will not come."""
        found = []
        while True:
            if self.number in self.early:
                found.append(self.early.pop(self.number))
            elif self.number in self.gone:
                self.gone.discard(self.number)
            else:
                break
            self.number += 1
        if found:
            self.complete, self.origin = found[-1].complete, found[-1].origin
        return found


@dataclass(slots=True)
class Outlet:
    """The other end: where the reader is, and how many packets it has been sent."""

    broker: str
    number: int = 0
    asked_s: float = 0.0
    """When the reader last asked for another broker."""


class Endpoint:
    """What sends and reads streams at a broker."""

    def __init__(self, world: World, name: str, broker: str) -> None:
        self.world = world
        self.name = name
        self.broker = broker
        self.inlets: dict[Key, Inlet] = {}
        self.outlets: dict[Key, Outlet] = {}
        """By (stream, reader)."""

    def handle(self, content: Any) -> None:
        """Do what a message asks for."""
        if isinstance(content, Packet):
            taken = self.inlets[content.key].put(content)
            if taken:
                self.take(taken)
        elif isinstance(content, Redirect):
            self._redirect(content)

    def pass_over(self, key: Key) -> None:
        """Go on with what came after packets that will not come."""
        taken = self.inlets[key].ready()
        if taken:
            self.take(taken)

    def take(self, packets: list[Packet]) -> None:
        """Process packets whose turn it is."""

    def send(
        self,
        stream: str,
        readers: Iterable[str],
        content: Any,
        size_b: float,
        *,
        complete: int,
        born_s: float,
    ) -> None:
        """Send the same to some readers of a stream: once to each broker at which there are any."""
        by_broker: dict[str, list[Packet]] = {}
        for reader in readers:
            outlet = self.outlets[stream, reader]
            packet = Packet(
                reader, self.name, stream, outlet.number, content, complete, born_s, self.broker, size_b
            )
            outlet.number += 1
            by_broker.setdefault(outlet.broker, []).append(packet)
        kind = "heartbeat" if content is None and not size_b else "data"
        for broker, packets in by_broker.items():
            self.world.post(self.broker, broker, packets, size_b, kind)

    def readers(self, stream: str) -> list[str]:
        """Name the readers of a stream."""
        return [reader for name, reader in self.outlets if name == stream]

    @property
    def complete(self) -> int:
        """Up to which event time everything has come."""
        return min((inlet.complete for inlet in self.inlets.values()), default=BEGINNING_OF_TIME)

    def _redirect(self, order: Redirect) -> None:
        outlet = self.outlets[order.stream, order.reader]
        if order.asked_s >= outlet.asked_s:
            outlet.broker, outlet.asked_s = order.broker, order.asked_s
        if order.answer_at is not None:
            marker = Marker(order.reader, (self.name, order.stream), outlet.number)
            self.world.post(self.broker, order.answer_at, [marker], 0.0, "control")
