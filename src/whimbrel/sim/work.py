"""What a task does with what it gets: run the engine, or act as a workload says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.carried import Carried
from whimbrel.engine.relay import Relay
from whimbrel.graph.cutting import Piece
from whimbrel.model.schema import Coordinates
from whimbrel.plan.workload import Task as PlannedTask
from whimbrel.sim.packets import Packet, bytes_of

DETECTIONS = "detections of "
"""Names the stream in which a consumer gets a type, apart from that in which another task does."""


@dataclass(slots=True)
class Output:
    """What is to be sent to the readers of a stream."""

    stream: str
    content: Any
    size_b: float
    complete: int
    born_s: float


class Work(Protocol):
    """What a task does; it can be stopped at one broker and go on at another."""

    @property
    def fixed_b(self) -> float:
        """The size of the state that does not change."""
        ...

    def take(self, packets: list[Packet], complete: int) -> list[Output]:
        """Process packets, knowing that everything up to a time has come."""
        ...

    def save(self) -> tuple[Any, float]:
        """Give the state that changes, and its size in bytes."""
        ...

    def moved(self, state: Any) -> Work:
        """Give the same work at another broker, which knows what was saved."""
        ...


@dataclass
class EngineWork:
    """Runs a piece of a query: the real engine on real events."""

    piece: Piece
    coordinates: Coordinates | None = None
    fixed_b: float = 0.0
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of an event of a type, where they are not to be measured."""
    relay: Relay = field(init=False)
    _events: list[pa.RecordBatch] = field(default_factory=list)
    _carried: dict[str, list[Carried]] = field(default_factory=dict)
    _born_s: float = 0.0

    def __post_init__(self) -> None:
        self.relay = Relay(self.piece, coordinates=self.coordinates)

    def take(self, packets: list[Packet], complete: int) -> list[Output]:
        """Process packets; the engine runs when time moves on."""
        for packet in packets:
            if isinstance(packet.content, pa.RecordBatch):
                self._events.append(packet.content)
            elif packet.content is not None:
                self._carried.setdefault(packet.stream, []).extend(packet.content)
            if packet.content is not None:
                self._born_s = max(self._born_s, packet.born_s)
        if complete <= self.relay.watermark:
            return []
        given = self.relay.take(self._events, self._carried, complete)
        self._events, self._carried = [], {}
        return list(self._outputs(given.detections, given.carried, given.complete))

    def _outputs(
        self, detections: pa.Table, carried: Mapping[str, list[Carried]], complete: Mapping[str, int]
    ) -> Iterable[Output]:
        for name, until in complete.items():
            events = carried.get(name, [])
            rows = sum(len(each) for each in events)
            yield Output(name, events or None, self._size(name, rows, events), until, self._born_s)
        for name in self.piece.reports:
            kind = getattr(self.piece.query.graph[name], "event_type", name)
            found = detections
            if len(self.piece.reports) > 1 and detections.num_rows:
                found = detections.filter(pc.equal(detections.column("type"), kind))
            content = found if found.num_rows else None
            size = self._size(name, found.num_rows, content)
            yield Output(DETECTIONS + name, content, size, complete[name], self._born_s)

    def _size(self, name: str, rows: int, content: Any) -> float:
        if not rows:
            return 0.0
        return self.sizes[name] * rows if name in self.sizes else bytes_of(content)

    def save(self) -> tuple[Any, float]:
        """Give the snapshot of the session, and what came since time last moved on."""
        snapshot = self.relay.snapshot()
        waiting = bytes_of(self._events) + sum(bytes_of(each) for each in self._carried.values())
        return (snapshot, self._events, self._carried, self._born_s), len(snapshot) + waiting

    def moved(self, state: Any) -> EngineWork:
        """Restore what was saved in a session of its own."""
        made = EngineWork(self.piece, self.coordinates, self.fixed_b, self.sizes)
        snapshot, made._events, made._carried, made._born_s = state
        made.relay.restore(snapshot)
        return made


@dataclass
class RateWork:
    """Acts as a workload says: for every byte that comes, the share of a byte that the task gives."""

    task: PlannedTask
    share: float
    """Bytes out for a byte in."""

    @property
    def fixed_b(self) -> float:
        return self.task.fixed_b

    def take(self, packets: list[Packet], complete: int) -> list[Output]:
        """Pass on a share of every packet."""
        return [
            Output(self.task.name, "bytes", packet.size_b * self.share, complete, packet.born_s)
            for packet in packets
        ]

    def save(self) -> tuple[Any, float]:
        """Give nothing, of the size of the window."""
        return None, self.task.window_b

    def moved(self, state: Any) -> RateWork:  # noqa: ARG002 (as the other kind of work)
        """Go on elsewhere."""
        return RateWork(self.task, self.share)
