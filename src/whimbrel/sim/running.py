"""Run a query on the brokers of a network, with real events, or a workload with bytes at rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.engine.passing import passing
from whimbrel.engine.relay import Relay
from whimbrel.engine.report import together
from whimbrel.engine.session import Session
from whimbrel.errors import DataError, NetworkError
from whimbrel.graph.cutting import Piece, condition_at_source, cut
from whimbrel.graph.operators import ANY
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.model.frames import batches
from whimbrel.model.schema import Coordinates
from whimbrel.plan.areas import Areas, attachments
from whimbrel.plan.network import Consumer, Mover, Network, Source
from whimbrel.plan.routes import Weight, by_latency
from whimbrel.plan.workload import Workload
from whimbrel.sim.consumers import Receiver
from whimbrel.sim.feeds import EventFeed, RateFeed
from whimbrel.sim.links import Failure
from whimbrel.sim.messages import HEADER_B
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.tasks import Task
from whimbrel.sim.work import DETECTIONS, EngineWork, RateWork
from whimbrel.sim.world import World

Ints = npt.NDArray[np.int64]
Move = tuple[float, str, str]
"""(time in seconds, task, broker)."""
ARRIVAL = "@arrival"
_Usable = tuple[npt.NDArray[np.bool_], set[str] | None]
"""Which events a reader can use, and which columns of them; None: all."""
_ALWAYS_SENT = {"id", "type", "source", "start", "end", "x", "y", "geometry", ARRIVAL}


@dataclass(frozen=True)
class Settings:
    """How a run is done; nothing of it changes what is detected."""

    seed: int = 0
    step_s: float = 0.0
    """Events of a feed are sent together for so long; 0: each as it happens."""
    heartbeat_s: float = 1.0
    """How often feeds and tasks tell that time goes on while nothing happens."""
    filters_at_source: bool = True
    """Whether feeds send readers only the events and columns that these can use."""
    weight: Weight = by_latency
    """What the ways of messages are chosen by."""
    failures: tuple[Failure, ...] = ()
    interval_s: float = 1.0
    """The step of series over time."""
    queue_b: float = math.inf
    """What may wait for one direction of a link."""
    shares_links: bool = False
    """Whether a stream crosses a link once for all brokers beyond it that read it; else once for each."""
    header_b: float = HEADER_B
    """Bytes that every packet has besides its content; orders and heartbeats always have them."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of an event of a type or definition; those that are not named are measured."""
    fixed_b: Mapping[str, float] = field(default_factory=dict)
    """State of each task that does not change."""
    factors: Mapping[str, Callable[[float], float]] = field(default_factory=dict)
    """For a feed of a workload, by what its bytes are multiplied at a time: by 1, if nothing is said."""


def run_query(
    query: Query | Compilable,
    events: Any,
    network: Network,
    placement: Mapping[str, str],
    *,
    moves: Iterable[Move] = (),
    tasks: Iterable[Collection[str]] | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
) -> Outcome:
    """Run a query on brokers, each task where `placement` says; give what came to whom, and what it took.

    Parameters
    ----------
    events
        All events, with ids of their own. Those of a type go to the broker or mover of the network's source
        of that type; those of other types to the leaf that serves their place.
    placement
        The broker of each task: a definition, or several that stay together, named after the last.
    moves
        When a task moves to another broker: (seconds, task, broker).
    tasks
        Which definitions stay together.
    """
    query = compiled(query)
    given = _conformed(query, events)
    pieces = cut(query, tasks)
    world = _world(network, settings)
    for piece in pieces:
        if piece.name not in placement:
            raise NetworkError(f"the task {piece.name!r} has no broker", "name one in the placement")
        fixed = settings.fixed_b.get(piece.name, 0.0)
        work = EngineWork(piece, given.coordinates, fixed, settings.sizes)
        world.add(Task(world, piece.name, placement[piece.name], work))
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
    return _outcome(world, receivers, pieces, given)


# -- events -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Given:
    events: pa.RecordBatch
    coordinates: Coordinates | None
    since_us: int
    until_us: int
    rejected: int


def _world(network: Network, settings: Settings) -> World:
    return World(
        network,
        seed=settings.seed,
        heartbeat_s=settings.heartbeat_s,
        weight=settings.weight,
        failures=settings.failures,
        interval_s=settings.interval_s,
        queue_b=settings.queue_b,
        shares_links=settings.shares_links,
        header_b=settings.header_b,
    )


def _conformed(query: Query, events: Any) -> _Given:
    """Bring all events into the common form, in order of their ends, numbered by their arrival."""
    session = Session(query, lateness=None)
    parts = [session.conform(batch).events for batch in batches(events, rows=1_000_000)]
    if not parts or not sum(part.num_rows for part in parts):
        raise DataError("there are no events to run the query on")
    whole = pa.concat_tables([pa.Table.from_batches([part]) for part in parts], promote_options="permissive")
    batch = whole.combine_chunks().to_batches()[0]
    names = batch.schema.names
    ids = batch.column("id") if "id" in names else None
    if ids is None or ids.null_count or len(ids.unique()) < len(ids):
        raise DataError(
            "events that are sent through a network need ids of their own, each once; add a column `id`"
        )
    batch = batch.append_column(ARRIVAL, pa.array(np.arange(batch.num_rows)))
    ends = batch.column("end").to_numpy(zero_copy_only=False)
    batch = batch.take(pa.array(np.argsort(ends, kind="stable")))
    starts = batch.column("start").to_numpy(zero_copy_only=False)
    return _Given(batch, session.coordinates, int(starts.min()), int(ends.max()) + 1, session.counts.rejected)


def _brokers_of_types(
    network: Network, sources: Mapping[str, Source], events: pa.RecordBatch, since_us: int
) -> Ints:
    """Give the number of the broker that each event reaches first, by the sources of their types."""
    types = events.column("type").dictionary_encode()
    codes = types.indices.to_numpy(zero_copy_only=False)
    found = np.zeros(events.num_rows, np.int64)
    for code, kind in enumerate(types.dictionary.cast(pa.string()).to_pylist()):
        at = np.flatnonzero(codes == code)
        if len(at):
            found[at] = _brokers_of(network, sources.get(kind), events.take(pa.array(at)), since_us)
    return found


def _brokers_of(network: Network, source: Source | None, events: pa.RecordBatch, since_us: int) -> Ints:
    """Give the number of the broker that each event of a type reaches first."""
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


def _first_place(network: Network, source: Source | None) -> int:
    """Give the broker that tells of the end of a type which has no events."""
    return network.number[source.at] if source is not None and source.at in network.number else 0


def _followed(network: Network, mover: Mover, events: pa.RecordBatch, since_us: int) -> Ints:
    connected = attachments(mover, network)
    times = np.array([each.time_s for each in connected])
    hosts = np.array([network.number[each.broker] for each in connected])
    seconds = (events.column("end").to_numpy(zero_copy_only=False) - since_us) / 1e6
    return hosts[np.maximum(np.searchsorted(times, seconds, side="right") - 1, 0)]


def _add_feeds(world: World, pieces: Iterable[Piece], given: _Given, settings: Settings) -> list[EventFeed]:
    feeds: list[EventFeed] = []
    readers: dict[str, list[Piece]] = {}
    for piece in pieces:
        for kind in (ANY,) if ANY in piece.reads else piece.reads:
            readers.setdefault(kind, []).append(piece)
    sources = {source.event_type: source for source in world.network.sources}
    for kind, reading in readers.items():
        events = given.events if kind == ANY else _of_type(given.events, kind)
        usable = _shared({piece.name: _usable(events, piece, kind, given, settings) for piece in reading})
        brokers = _brokers_of_types(world.network, sources, events, given.since_us)
        for number in np.unique(brokers).tolist() or [_first_place(world.network, sources.get(kind))]:
            broker = world.network.brokers[number].name
            here = {
                names: _projected(events.filter(pa.array(mask & (brokers == number))), columns)
                for names, (mask, columns) in usable.items()
            }
            source = sources.get(kind)
            size = settings.sizes.get(kind, None if source is None else source.size_b)
            feed = EventFeed(
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


def _of_type(events: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    types = events.column("type")
    types = types.cast(pa.string()) if pa.types.is_dictionary(types.type) else types
    return events.filter(pa.compute.equal(types, kind))


def _usable(events: pa.RecordBatch, piece: Piece, kind: str, given: _Given, settings: Settings) -> _Usable:
    """Mark the events of a type that a task can use; name the columns that it reads."""
    everything = np.ones(events.num_rows, np.bool_)
    if not settings.filters_at_source or kind == ANY:
        return everything, None
    columns = Relay(piece, coordinates=given.coordinates).columns
    found, condition = condition_at_source(piece, kind)
    if not found or condition is None:
        return everything, columns
    return passing(events, condition, piece.query.functions, given.coordinates), columns


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


def _add_receivers(world: World, pieces: Iterable[Piece], given: _Given) -> list[Receiver]:
    network = world.network
    consumers = network.consumers or (Consumer("consumer", network.brokers[0].name),)
    found = []
    for consumer in consumers:
        receiver = Receiver(world, consumer.name, _place(world, consumer), since_us=given.since_us)
        world.add(receiver)
        for piece in pieces:
            for name in piece.reports:
                if not consumer.wants or name in consumer.wants:
                    world.connect(piece.name, DETECTIONS + name, consumer.name)
        found.append(receiver)
    return found


def _place(world: World, item: Consumer) -> str:
    """Give the first broker of a consumer, and let it change brokers when it moves."""
    if item.at in world.network.number:
        return item.at
    first, *later = attachments(world.network.mover[item.at], world.network)
    for each in later:
        if each.time_s > 0:
            world.hand_over_at(each.time_s, item.name, each.broker)
        else:
            first = each
    return first.broker


def _outcome(world: World, receivers: list[Receiver], pieces: Iterable[Piece], given: _Given) -> Outcome:
    late = 0
    for piece in pieces:
        task = world.find(piece.name)
        assert isinstance(task, Task)
        assert isinstance(task.work, EngineWork)
        late += task.work.relay.counts.late + task.work.relay.late_derived
    return Outcome(
        detections={each.name: together(each.tables, given.coordinates) for each in receivers},
        delays_s={each.name: each.delays_s for each in receivers},
        traffic=world.links.traffic,
        moves=tuple(world.moves),
        seconds=world.clock.now,
        steps=world.clock.done,
        late=late,
        rejected=given.rejected,
    )


# -- workloads --------------------------------------------------------------------------------------------


def run_workload(
    workload: Workload,
    network: Network,
    placement: Mapping[str, str],
    *,
    until_s: float,
    moves: Iterable[Move] = (),
    step_s: float = 1.0,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
) -> Outcome:
    """Run a workload on brokers: feeds send bytes at their rates, tasks pass on the share that is theirs.

    Parameters
    ----------
    until_s
        When feeds stop; what is under way then arrives.
    step_s
        What a feed has to send in this time is one packet, or a single event if there are fewer.
    """
    world = _world(network, settings)
    feeds = []
    phases = world.clock.generator("phases").random(len(workload.feeds))
    for feed, phase in zip(workload.feeds, phases.tolist(), strict=True):
        broker = _place(world, Consumer(feed.name, feed.at))
        made = RateFeed(world, feed, broker, until_s=until_s, step_s=step_s, phase_s=phase * step_s)
        made.factor = settings.factors.get(feed.name, made.factor)
        world.add(made)
        feeds.append(made)
    for task in workload.tasks:
        if task.name not in placement:
            raise NetworkError(f"the task {task.name!r} has no broker", "name one in the placement")
        comes = sum(workload.stream(name).bytes_s for name in task.inputs)
        work = RateWork(task, task.bytes_s / comes if comes else 0.0)
        world.add(Task(world, task.name, placement[task.name], work))
        for name in task.inputs:
            world.connect(name, name, task.name)
    receivers = []
    for number, delivery in enumerate(workload.deliveries):
        name = f"{delivery.stream} to {delivery.at} ({number})"
        receiver = Receiver(world, name, _place(world, Consumer(name, delivery.at)))
        world.add(receiver)
        world.connect(delivery.stream, delivery.stream, name)
        receivers.append(receiver)
    for time_s, task_name, broker in moves:
        world.move_at(time_s, task_name, broker)
    for made in feeds:
        made.start()
    world.clock.run()
    return Outcome(
        detections={},
        delays_s={each.name: each.delays_s for each in receivers},
        traffic=world.links.traffic,
        moves=tuple(world.moves),
        seconds=world.clock.now,
        steps=world.clock.done,
    )
