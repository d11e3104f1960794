"""What a task does with what it gets: run the engine, or act as a workload says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from whimbrel.engine.derived_batch import DerivedBatch
from whimbrel.engine.fragment_session import FragmentSession
from whimbrel.engine.row_filter import rows_passing_filter
from whimbrel.graph.expressions import Expr
from whimbrel.graph.fragments import Fragment
from whimbrel.graph.functions import Function
from whimbrel.model.schema import Coordinates
from whimbrel.sim.packets import Packet, bytes_of

NUMBER = "@number"
"""The column that tells events of a definition apart where they travel by several streams."""


@dataclass(slots=True)
class StreamOutput:
    """What is to be sent to the readers of a stream."""

    stream: str
    content: Any
    size_b: float
    complete: int
    born_s: float


@dataclass(slots=True)
class DefinitionOutput:
    """Events of a definition: for tasks with what they were made of, for consumers as detections."""

    carried: list[DerivedBatch]
    detections: pa.Table | None


class Work(Protocol):
    """What a task does; it can be stopped at one broker and go on at another."""

    @property
    def fixed_b(self) -> float:
        """The size of the state that does not change."""
        ...

    def take(self, packets: list[Packet], complete: int) -> list[StreamOutput]:
        """Process packets, knowing that everything up to a time has come."""
        ...

    def save(self) -> tuple[Any, float]:
        """Return the state that changes, and its size in bytes."""
        ...

    def moved(self, state: Any) -> Work:
        """Return the same work at another broker, which knows what was saved."""
        ...

    def cost(self, packets: list[Packet]) -> float:
        """Add up the work that packets make, in units of capacity times seconds."""
        ...

    def anew(self) -> Work:
        """Return the same work with nothing done."""
        ...


@dataclass
class EngineWork:
    """Runs a piece of a query: the real engine on real events."""

    piece: Fragment
    coordinates: Coordinates | None = None
    fixed_b: float = 0.0
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of an event of a type, where they are not to be measured."""
    takes: Mapping[str, str] = field(default_factory=dict)
    """The definition whose events a stream has, where it is named otherwise."""
    keeps_numbers: bool = False
    """Whether it only selects among events of a definition, which keep their numbers."""
    work_s: Mapping[str, float] = field(default_factory=dict)
    """What an event that it reads takes of a capacity of 1, by stream."""
    state_b: float | None = None
    """Bytes of what it remembers when it moves; None: as large as the snapshot is."""
    fragment: FragmentSession = field(init=False)
    _events: list[pa.RecordBatch] = field(default_factory=list)
    _carried: dict[str, list[DerivedBatch]] = field(default_factory=dict)
    _born_s: float = 0.0
    _made: int = 0

    def __post_init__(self) -> None:
        self.fragment = FragmentSession(self.piece, coordinates=self.coordinates)

    def take(self, packets: list[Packet], complete: int) -> list[StreamOutput]:
        """Process packets; the engine runs when time moves on."""
        for packet in packets:
            if isinstance(packet.content, pa.RecordBatch):
                self._events.append(packet.content)
            elif packet.content is not None:
                content = (
                    packet.content.carried if isinstance(packet.content, DefinitionOutput) else packet.content
                )
                name = self.takes.get(packet.stream, packet.stream)
                self._carried.setdefault(name, []).extend(content)
            if packet.content is not None:
                self._born_s = max(self._born_s, packet.born_s)
        if complete <= self.fragment.session.watermark:
            return []
        events, carried = self._due(complete)
        given = self.fragment.take(events, carried, complete)
        return list(self._outputs(given.detections, given.derived, given.complete))

    def _due(self, complete: int) -> tuple[list[pa.RecordBatch], dict[str, list[DerivedBatch]]]:
        """Part with what the time has reached; each event once, whichever streams brought it."""
        ready, self._events = _split(self._events, complete)
        seen: set[str] = set()
        events = [_once(batch, batch.column("id").to_pylist(), seen) for batch in ready]
        carried = {}
        for name, several in self._carried.items():
            waiting: list[DerivedBatch] = []
            numbers: set[int] = set()
            carried[name] = [self._unseen(each, complete, numbers, waiting) for each in several]
            self._carried[name] = waiting
        return events, carried

    def _unseen(
        self, each: DerivedBatch, complete: int, seen: set[int], waiting: list[DerivedBatch]
    ) -> DerivedBatch:
        is_ready = each.end <= complete
        if not is_ready.all():
            waiting.append(each.taken(np.flatnonzero(~is_ready)))
            each = each.taken(np.flatnonzero(is_ready))
        numbers = each.events.column(NUMBER).to_pylist()
        events = _once(each.events, numbers, seen)
        return DerivedBatch(events if self.keeps_numbers else events.drop_columns([NUMBER]), each.atoms)

    def _outputs(
        self, detections: pa.Table, carried: Mapping[str, list[DerivedBatch]], complete: Mapping[str, int]
    ) -> Iterable[StreamOutput]:
        """Iterate over one stream for each definition, for tasks and consumers alike."""
        for name, until in complete.items():
            events = [self._numbered(each) for each in carried.get(name, [])]
            rows = sum(len(each) for each in events)
            found = detections if name in self.piece.reports else None
            content = DefinitionOutput(events, found) if rows else None
            yield StreamOutput(name, content, self._size(name, rows, events), until, self._born_s)

    def _numbered(self, carried: DerivedBatch) -> DerivedBatch:
        """Give events numbers, so that a task that gets one by two streams can tell."""
        if NUMBER in carried.events.schema.names:
            return carried
        numbers = pa.array(range(self._made, self._made + len(carried)), pa.int64())
        self._made += len(carried)
        schema = carried.events.schema.append(pa.field(NUMBER, pa.int64()))
        return DerivedBatch(
            pa.RecordBatch.from_arrays([*carried.events.columns, numbers], schema=schema), carried.atoms
        )

    def _size(self, name: str, rows: int, content: Any) -> float:
        if not rows:
            return 0.0
        return self.sizes[name] * rows if name in self.sizes else bytes_of(content)

    def save(self) -> tuple[Any, float]:
        """Return the snapshot of the session, and what came since time last moved on."""
        snapshot = self.fragment.session.snapshot()
        waiting = bytes_of(self._events) + sum(bytes_of(each) for each in self._carried.values())
        # Copies: this task may go on, and be brought back to this point later.
        carried = {name: list(each) for name, each in self._carried.items()}
        state = (snapshot, list(self._events), carried, self._born_s, self._made)
        return state, len(snapshot) + waiting if self.state_b is None else self.state_b

    def cost(self, packets: list[Packet]) -> float:
        """Add up the work that packets make."""
        return sum(self.work_s.get(packet.stream, 0.0) * events_in([packet]) for packet in packets)

    def anew(self) -> EngineWork:
        """Return the same work with nothing done."""
        return replace(self, _events=[], _carried={}, _born_s=0.0, _made=0)

    def moved(self, state: Any) -> EngineWork:
        """Restore what was saved in a session of its own."""
        snapshot, events, carried, born_s, made_before = state
        copied = {name: list(each) for name, each in carried.items()}
        made = replace(self, _events=list(events), _carried=copied, _born_s=born_s, _made=made_before)
        made.fragment.session.restore(snapshot)
        return made


def _split(parts: list[pa.RecordBatch], complete: int) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Part events that end up to a time from those that end later."""
    ready, waiting = [], []
    for batch in parts:
        is_ready = batch.column("end").to_numpy(zero_copy_only=False) <= complete
        if is_ready.any():
            ready.append(batch if is_ready.all() else batch.filter(pa.array(is_ready)))
        if not is_ready.all():
            waiting.append(batch.filter(pa.array(~is_ready)))
    return ready, waiting


def _once(batch: pa.RecordBatch, keys: list[Any], seen: set[Any]) -> pa.RecordBatch:
    """Return the rows whose keys have not been seen, and take note of them."""
    is_new = [key not in seen for key in keys]
    seen.update(keys)
    return batch if all(is_new) else batch.filter(pa.array(is_new, pa.bool_()))


@dataclass
class SelectWork:
    """Tests a condition on single events as they come in: what passes goes on, whole."""

    name: str
    condition: Expr
    functions: Mapping[str, Function]
    coordinates: Coordinates | None
    size_b: float | None
    """Bytes of an event; None: as Arrow needs."""
    fixed_b: float = 0.0
    work_s: float = 0.0
    """What an event takes of a capacity of 1."""

    def take(self, packets: list[Packet], complete: int) -> list[StreamOutput]:  # noqa: ARG002 (packets know)
        """Pass on the events that fulfil the condition."""
        found = []
        for packet in packets:
            batch = packet.content
            if batch is not None:
                keeps = rows_passing_filter(batch, self.condition, self.functions, self.coordinates)
                batch = batch.filter(pa.array(keeps)) if keeps.any() else None
            size = 0.0
            if batch is not None:
                size = bytes_of(batch) if self.size_b is None else self.size_b * batch.num_rows
            found.append(StreamOutput(self.name, batch, size, packet.complete, packet.born_s))
        return found

    def cost(self, packets: list[Packet]) -> float:
        """Add up the work that packets make."""
        return self.work_s * events_in(packets)

    def save(self) -> tuple[Any, float]:
        """Return nothing: it remembers nothing."""
        return None, 0.0

    def moved(self, state: Any) -> SelectWork:  # noqa: ARG002 (as the other kinds of work)
        """Go on elsewhere."""
        return self

    def anew(self) -> SelectWork:
        """Begin again."""
        return self


def events_in(packets: list[Packet]) -> int:
    """Count the events in packets."""
    found = 0
    for packet in packets:
        content = packet.content.carried if isinstance(packet.content, DefinitionOutput) else packet.content
        if isinstance(content, pa.RecordBatch):
            found += content.num_rows
        elif isinstance(content, list):
            found += sum(len(each) for each in content)
        elif content is not None:
            found += 1
    return found
