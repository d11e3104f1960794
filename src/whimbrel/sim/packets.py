"""What tasks, feeds and consumers say to each other, and how large it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from whimbrel.engine.derived_batch import DerivedBatch

Key = tuple[str, str]
"""A stream as a reader sees it: (who sends it, its name)."""


@dataclass(slots=True)
class Packet:
    """Some events of a stream for one of its readers, numbered, so that each is taken once and in order."""

    to: str
    sender: str
    stream: str
    number: int
    content: Any
    """Arrow record batches or tables, events of definitions, or nothing."""
    complete: int
    """Up to which event time (microseconds) all of the stream has been sent."""
    born_s: float
    """When the last event in it happened."""
    origin: str = ""
    """The broker that sent it."""
    size_b: float = 0.0

    @property
    def key(self) -> Key:
        """The stream as the reader sees it."""
        return self.sender, self.stream


@dataclass(slots=True)
class Redirect:
    """Asks a sender to send a stream to another broker from now on, and to tell where it begins."""

    to: str
    stream: str
    reader: str
    broker: str
    answer_at: str | None
    """The broker that wants to know; None: nobody."""
    asked_s: float
    """When it was asked for: of two that overtake each other on the way, the later one counts."""


@dataclass(slots=True)
class Marker:
    """Tells the old host of a task that a stream goes on elsewhere, from a number on."""

    to: str
    key: Key
    number: int


@dataclass(slots=True)
class FixedState:
    """The state of a task that does not change, sent ahead."""

    to: str
    answer_at: str


@dataclass(slots=True)
class FixedStateArrived:
    """Tells the old host of a task that the fixed state has arrived."""

    to: str


@dataclass(slots=True)
class TaskState:
    """All that a task knows."""

    to: str
    work: Any
    inlets: dict[Key, Any] = field(default_factory=dict)
    outlets: dict[Key, Any] = field(default_factory=dict)


def bytes_of(content: Any) -> float:
    """Measure the bytes that Arrow needs for record batches on the wire; the schema is known at both ends."""
    if content is None:
        return 0.0
    if isinstance(content, DerivedBatch):
        return bytes_of(content.events) + bytes_of(content.atoms)
    if isinstance(content, pa.Table):
        return float(sum(bytes_of(batch) for batch in content.combine_chunks().to_batches()))
    if isinstance(content, list):
        return float(sum(bytes_of(each) for each in content))
    return float(pa.ipc.get_record_batch_size(content))
