"""From location updates to interests: where each focal object's interest is, from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.reference.data import Event, Value, order
from tests.reference.expressions import Env, World, holds
from tests.reference.functions import Place
from tests.reference.streams import source

from whimbrel.graph.operators import Source
from whimbrel.model.schema import Coordinates

from .areas import area, distance, place_of
from .quality import falls_to, quality, read_by
from .query import Always, Every, MobileQuery, Moved, WhenQualityFalls


@dataclass(frozen=True, eq=False)
class Interest:
    """R_i of one focal object: its interest in [start, end), or to the end of the input."""

    focal: Value
    number: int
    start: int
    end: int | None
    area: Place
    samples: tuple[Event, ...]
    """The location updates up to its start."""


def timelines(query: MobileQuery, events: Sequence[Event], world: World) -> list[list[Interest]]:
    """The interests of every focal object, one list for each, in order."""
    updates = location_updates(query, events, world)
    keys = sorted(updates, key=lambda key: (str(type(key)), key))  # type: ignore[arg-type, return-value]
    return [_interests(query, key, updates[key], events, world) for key in keys]


def location_updates(query: MobileQuery, events: Sequence[Event], world: World) -> dict[Value, list[Event]]:
    """Where each focal object was, one update at a time."""
    updates: dict[Value, list[Event]] = {}
    for event in sorted(events, key=order):
        key = _focal(query, event, world)
        if key is not None:
            updates.setdefault(key, []).append(event)
    return {key: _one_a_time(found) for key, found in updates.items()}


def _focal(query: MobileQuery, event: Event, world: World) -> Value:
    """The focal object that an event is a location update of; None if of none."""
    focal = query.focal
    if event.type != focal.type or place_of(event, world.coordinates) is None:
        return None
    if (query.begins is not None and event.end < query.begins) or (
        query.ends is not None and event.end >= query.ends
    ):
        return None
    if focal.condition is not None:
        (item,) = source(Source(focal.type, focal.type), [event])
        if not holds(focal.condition, Env(world, {None: item}, {})):
            return None
    key = event.source if focal.key == "source" else event.attributes.get(focal.key)
    return key if focal.only is None or key in focal.only else None


def _one_a_time(updates: list[Event]) -> list[Event]:
    """Of the updates of one time, the last in the total order: an object is at one place at a time."""
    return list({update.end: update for update in updates}.values())


def _interests(
    query: MobileQuery, key: Value, updates: list[Event], events: Sequence[Event], world: World
) -> list[Interest]:
    starts: list[int] = []
    for number, update in enumerate(updates):
        if (
            not starts
            or _was_silent(query, updates[number - 1].end, update.end)
            or _switches(query, updates, starts[-1], number, events, world.coordinates)
        ):
            starts.append(number)
    found = []
    for place, first in enumerate(starts):
        following = starts[place + 1] if place + 1 < len(starts) else len(updates)
        samples = tuple(updates[: first + 1])
        where = area(query, samples, world.coordinates)
        end = _end(
            query, updates[following - 1].end, updates[following].end if following < len(updates) else None
        )
        found.append(Interest(key, place + 1, updates[first].end, end, where, samples))
    return found


def _was_silent(query: MobileQuery, before: int, now: int) -> bool:
    return query.silent is not None and now - before > query.silent


def _end(query: MobileQuery, last: int, following: int | None) -> int | None:
    """When an interest ends: at the next switch, after too long a silence, or with the query."""
    silence = None if query.silent is None else last + query.silent + 1
    known = [end for end in (following, silence, query.ends) if end is not None]
    return min(known) if known else None


def _switches(
    query: MobileQuery,
    updates: Sequence[Event],
    current: int,
    number: int,
    events: Sequence[Event],
    coordinates: Coordinates,
) -> bool:
    """Whether the reconfiguration condition holds at an update, the last switch being at `current`."""
    before, now = updates[current], updates[number]
    match query.refresh:
        case Always():
            return True
        case Every(time):
            return before.end + time < now.end
        case Moved(metres):
            here, there = place_of(now, coordinates), place_of(before, coordinates)
            assert here is not None
            assert there is not None
            return distance(there, here, coordinates) > metres
        case WhenQualityFalls(threshold, over):
            true = area(query, updates[: number + 1], coordinates)
            used = area(query, updates[: current + 1], coordinates)
            found = quality(read_events(query, events, now), true, used, now.end - over, now.end, coordinates)
            return falls_to(found, threshold)


def read_events(query: MobileQuery, events: Sequence[Event], sample: Event) -> list[Event]:
    """The events that count for an object: those that are read, and not its own where these do not."""
    read = read_by(query.graph, events)
    return [event for event in read if not (query.excluding_itself and is_own(query, event, sample))]


def is_own(query: MobileQuery, event: Event, sample: Event) -> bool:
    """Whether an event comes from the focal object that a sample is of: it has the same key."""
    if query.focal.key == "source":
        return event.source == sample.source
    name = query.focal.key
    return event.attributes.get(name) is not None and event.attributes.get(name) == sample.attributes.get(
        name
    )
