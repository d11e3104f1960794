"""Run a query on a network by its definitions, without a plan: sources send each task what it can use.

Each definition is a task, with the patterns, windows and conditions below it. Products carry out plans
(`whimbrel.sim.placement_run`), in which conditions are tasks of their own; published experiments place
definitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.derived_batch import DerivedBatch
from whimbrel.engine.fragment_session import FragmentSession
from whimbrel.engine.row_filter import rows_passing_filter
from whimbrel.errors import NetworkError
from whimbrel.graph.fragments import Fragment, condition_at_source, cut
from whimbrel.graph.operators import ANY
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.plan.areas import Areas, attachments
from whimbrel.plan.network import Consumer, EventSource, Mover, Network
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.packets import Packet
from whimbrel.sim.placement_run import first_broker, outcome_of
from whimbrel.sim.receivers import Receiver
from whimbrel.sim.recordings import ARRIVAL, Ints, Recording, normalised, sender_numbers
from whimbrel.sim.senders import EventSender
from whimbrel.sim.settings import Settings
from whimbrel.sim.tasks import RunningTask
from whimbrel.sim.work import EngineWork, StreamOutput, events_in
from whimbrel.sim.world import World

DETECTIONS = "detections of "
"""Names the stream in which a consumer gets a type, apart from that in which another task does."""
Move = tuple[float, str, str]
"""(time in seconds, task, broker)."""
_Usable = tuple[npt.NDArray[np.bool_], set[str] | None]
"""Which events a reader can use, and which columns of them; None: all."""
_ALWAYS_SENT = {"id", "type", "source", "start", "end", "x", "y", "geometry", ARRIVAL}


@dataclass
class DefinitionWork(EngineWork):
    """Runs a definition; tasks and consumers read streams of their own, each event comes by one stream."""

    event_work_s: float = 0.0
    """What an event that it reads takes of a capacity of 1."""

    def _due(self, complete: int) -> tuple[list[pa.RecordBatch], dict[str, list[DerivedBatch]]]:  # noqa: ARG002
        """Part with all that came."""
        events, carried = self._events, self._carried
        self._events, self._carried = [], {}
        return events, carried

    def _outputs(
        self, detections: pa.Table, carried: Mapping[str, list[DerivedBatch]], complete: Mapping[str, int]
    ) -> Iterable[StreamOutput]:
        for name, until in complete.items():
            events = carried.get(name, [])
            rows = sum(len(each) for each in events)
            yield StreamOutput(name, events or None, self._size(name, rows, events), until, self._born_s)
        for name in self.piece.reports:
            kind = getattr(self.piece.query.graph[name], "event_type", name)
            found = detections
            if len(self.piece.reports) > 1 and detections.num_rows:
                found = detections.filter(pc.equal(detections.column("type"), kind))
            content = found if found.num_rows else None
            size = self._size(name, found.num_rows, content)
            yield StreamOutput(DETECTIONS + name, content, size, complete[name], self._born_s)

    def cost(self, packets: list[Packet]) -> float:
        """Add up the work that packets make."""
        return self.event_work_s * events_in(packets) if self.event_work_s else 0.0


@dataclass(frozen=True)
class QuerySettings(Settings):
    """How a query is run, with what a plan would say of its tasks."""

    filters_at_source: bool = True
    """Whether sources send readers only the events and columns that these can use."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of an event of a type or definition; those that are not named are measured."""
    fixed_b: Mapping[str, float] = field(default_factory=dict)
    """State of each task that does not change."""
    work: Mapping[str, float] = field(default_factory=dict)
    """What each event that a task reads takes of a capacity of 1, in seconds; nothing unless it is named."""


def run_query(
    query: Query | Compilable,
    events: Any,
    network: Network,
    placement: Mapping[str, str],
    *,
    moves: Iterable[Move] = (),
    tasks: Iterable[Collection[str]] | None = None,
    settings: QuerySettings = QuerySettings(),  # noqa: B008 (frozen)
) -> Outcome:
    """Run a query on brokers, each task where `placement` says; give what came to whom, and what it took.

    Parameters
    ----------
    events
        All events. Those of a type go to the broker or mover of the network's source
        of that type; those of other types to the leaf that serves their place.
    placement
        The broker of each task: a definition, or several that stay together, named after the last.
    moves
        When a task moves to another broker: (seconds, task, broker).
    tasks
        Which definitions stay together.
    """
    query = compiled(query)
    given = normalised(query, events)
    pieces = cut(query, tasks)
    world = World(network, settings)
    for piece in pieces:
        if piece.name not in placement:
            raise NetworkError(f"the task {piece.name!r} has no broker", "name one in the placement")
        fixed = settings.fixed_b.get(piece.name, 0.0)
        work_s = settings.work.get(piece.name, 0.0)
        work = DefinitionWork(piece, given.coordinates, fixed, settings.sizes, event_work_s=work_s)
        world.add(RunningTask(world, piece.name, placement[piece.name], work))
    feeds = _add_feeds(world, pieces, given, settings)
    receivers = _add_receivers(world, pieces, given)
    for piece in pieces:
        for name in piece.takes:
            world.connect(next(p.name for p in pieces if name in p.gives), name, piece.name)
    for time_s, task, broker in moves:
        world.move_at(time_s, task, broker)
    for feed in feeds:
        feed.start()
    world.clock.run()
    return outcome_of(world, receivers, given)


def _add_feeds(
    world: World, pieces: Iterable[Fragment], given: Recording, settings: QuerySettings
) -> list[EventSender]:
    feeds: list[EventSender] = []
    readers: dict[str, list[Fragment]] = {}
    for piece in pieces:
        for kind in (ANY,) if ANY in piece.reads else piece.reads:
            readers.setdefault(kind, []).append(piece)
    sizes = {source.event_type: source.size_b for source in world.network.sources}
    for kind, reading in readers.items():
        events = given.events if kind == ANY else of_types(given.events, (kind,))
        usable = _shared({piece.name: _usable(events, piece, kind, given, settings) for piece in reading})
        brokers = first_brokers(world.network, events, given.since_us)
        for number in np.unique(brokers).tolist() or [first_place(world.network, kind)]:
            broker = world.network.brokers[number].name
            here = {
                names: _projected(events.filter(pa.array(mask & (brokers == number))), columns)
                for names, (mask, columns) in usable.items()
            }
            size = settings.sizes.get(kind, sizes.get(kind))
            feed = EventSender(
                world,
                f"{kind} at {broker}",
                broker,
                kind,
                here,
                since_us=given.since_us,
                until_us=given.until_us,
                step_us=round(settings.step_s * 1e6),
                size_b=size,
            )
            world.add(feed)
            for names in here:
                for name in names:
                    world.connect(feed.name, kind, name)
            feeds.append(feed)
    return feeds


def _usable(
    events: pa.RecordBatch, piece: Fragment, kind: str, given: Recording, settings: QuerySettings
) -> _Usable:
    """Mark the events of a type that a task can use; name the columns that it reads."""
    everything = np.ones(events.num_rows, np.bool_)
    if not settings.filters_at_source or kind == ANY:
        return everything, None
    columns = FragmentSession(piece, coordinates=given.coordinates).session.columns_read
    found, condition = condition_at_source(piece, kind)
    if not found or condition is None:
        return everything, columns
    return rows_passing_filter(events, condition, piece.query.functions, given.coordinates), columns


def _shared(usable: Mapping[str, _Usable]) -> dict[tuple[str, ...], _Usable]:
    """Put readers together that can use the same events and columns."""
    groups: dict[tuple[bytes, frozenset[str] | None], list[str]] = {}
    for name, (mask, columns) in usable.items():
        key = (mask.tobytes(), None if columns is None else frozenset(columns))
        groups.setdefault(key, []).append(name)
    return {tuple(names): usable[names[0]] for names in groups.values()}


def _projected(events: pa.RecordBatch, columns: set[str] | None) -> pa.RecordBatch:
    if columns is None:
        return events
    names = [name for name in events.schema.names if name in _ALWAYS_SENT or name in columns]
    if not events.num_rows:
        return events.select(names)
    return events.select([name for name in names if events.column(name).null_count < events.num_rows])


# -- consumers --------------------------------------------------------------------------------------------


def _add_receivers(world: World, pieces: Iterable[Fragment], given: Recording) -> list[Receiver]:
    network = world.network
    consumers = network.consumers or (Consumer("consumer", network.brokers[0].name),)
    found = []
    for consumer in consumers:
        receiver = Receiver(world, consumer.name, first_broker(world, consumer), since_us=given.since_us)
        world.add(receiver)
        for piece in pieces:
            for name in piece.reports:
                if not consumer.wants or name in consumer.wants:
                    world.connect(piece.name, DETECTIONS + name, consumer.name)
        found.append(receiver)
    return found


def first_brokers(network: Network, events: pa.RecordBatch, since_us: int) -> Ints:
    """Return the number of the broker that each event reaches first: that of its source, or of its place."""
    senders = sender_numbers(events, network.sources)
    found = np.zeros(events.num_rows, np.int64)
    for number in np.unique(senders).tolist():
        at = np.flatnonzero(senders == number)
        source = network.sources[number] if number >= 0 else None
        found[at] = _brokers_of(network, source, events.take(pa.array(at)), since_us)
    return found


def _brokers_of(network: Network, source: EventSource | None, events: pa.RecordBatch, since_us: int) -> Ints:
    if source is not None and source.at in network.number:
        return np.full(events.num_rows, network.number[source.at])
    if source is not None:
        return _followed(network, network.mover[source.at], events, since_us)
    if "x" not in events.schema.names:
        raise NetworkError(
            "events have neither a source in the network nor a place",
            "name a source of their type, or give them x and y and brokers areas",
        )
    x, y = (events.column(axis).to_numpy(zero_copy_only=False) for axis in "xy")
    return Areas(network).serving(x, y)


def first_place(network: Network, kind: str) -> int:
    """Return the broker that tells of the end of a type which has no events."""
    places = (source.at for source in network.sources if source.event_type == kind)
    return next((network.number[at] for at in places if at in network.number), 0)


def _followed(network: Network, mover: Mover, events: pa.RecordBatch, since_us: int) -> Ints:
    connected = attachments(mover, network)
    times = np.array([each.time_s for each in connected])
    hosts = np.array([network.number[each.broker] for each in connected])
    seconds = (events.column("end").to_numpy(zero_copy_only=False) - since_us) / 1e6
    return hosts[np.maximum(np.searchsorted(times, seconds, side="right") - 1, 0)]


def of_types(events: pa.RecordBatch, kinds: Iterable[str]) -> pa.RecordBatch:
    """Return the events of some types."""
    types = events.column("type")
    types = types.cast(pa.string()) if pa.types.is_dictionary(types.type) else types
    return events.filter(pa.compute.is_in(types, pa.array(list(kinds), pa.string())))
