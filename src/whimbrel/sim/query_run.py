"""Run a query on the brokers of a network, with real events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.engine.fragment_session import FragmentSession
from whimbrel.engine.report import together
from whimbrel.engine.row_filter import rows_passing_filter
from whimbrel.errors import NetworkError
from whimbrel.graph.fragments import Fragment, condition_at_source, cut
from whimbrel.graph.operators import ANY
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.plan.areas import attachments
from whimbrel.plan.network import Consumer, Network
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.receivers import Receiver
from whimbrel.sim.recordings import ARRIVAL, Recording, first_brokers, first_place, normalised, of_types
from whimbrel.sim.senders import EventSender
from whimbrel.sim.settings import Settings
from whimbrel.sim.tasks import RunningTask
from whimbrel.sim.work import DETECTIONS, EngineWork
from whimbrel.sim.world import World

Move = tuple[float, str, str]
"""(time in seconds, task, broker)."""
_Usable = tuple[npt.NDArray[np.bool_], set[str] | None]
"""Which events a reader can use, and which columns of them; None: all."""
_ALWAYS_SENT = {"id", "type", "source", "start", "end", "x", "y", "geometry", ARRIVAL}


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
        work = EngineWork(piece, given.coordinates, fixed, settings.sizes, work_s=work_s)
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
    world: World, pieces: Iterable[Fragment], given: Recording, settings: Settings
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
    events: pa.RecordBatch, piece: Fragment, kind: str, given: Recording, settings: Settings
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


def first_broker(world: World, item: Consumer) -> str:
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


def outcome_of(world: World, receivers: Iterable[Receiver], given: Recording) -> Outcome:
    """Put together what came of a run of a query."""
    receivers = list(receivers)
    works = [task.work for task in world.tasks() if isinstance(task.work, EngineWork)]
    return replace(
        measured(world, receivers),
        detections={each.name: together(each.tables, given.coordinates) for each in receivers},
        late=sum(work.fragment.session.counts.late + work.fragment.late_derived for work in works),
        rejected=given.rejected,
    )


def measured(world: World, receivers: Iterable[Receiver]) -> Outcome:
    """Put together what a world measured, without detections."""
    return Outcome(
        detections={},
        delays_s={each.name: each.delays_s for each in receivers},
        traffic=world.links.traffic,
        moves=tuple(world.moves),
        seconds=world.clock.now,
        steps=world.clock.done,
        work={name: host.work for name, host in world.processors.items()},
        capacity={name: host.capacity for name, host in world.processors.items()},
        notes={"stable": asdict(world.stable)} if world.links.outages.has_brokers else {},
    )
