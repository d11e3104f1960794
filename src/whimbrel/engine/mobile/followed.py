"""Whom a mobile query follows, and where: from events up to a watermark to what is told of interests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from time import thread_time_ns

import numpy as np
import pyarrow as pa

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.mobile.areas import AreaSet, ObjectPlaces, areas_at, areas_of_shapes, snapped
from whimbrel.engine.mobile.cohorts import NOBODY, Cohorts
from whimbrel.engine.mobile.deliveries import Told, delivery_table
from whimbrel.engine.mobile.found_once import FoundOnce
from whimbrel.engine.mobile.history import EventHistory
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.measured import MeasuredInterests
from whimbrel.engine.mobile.monitor import Monitor
from whimbrel.engine.mobile.quality_condition import QualityCondition
from whimbrel.engine.mobile.strong import SharedRuns
from whimbrel.engine.mobile.telling import telling
from whimbrel.engine.mobile.timelines import Ended, Switches, Timelines
from whimbrel.engine.mobile.updates import FocalKeys, LocationUpdates, Updates
from whimbrel.engine.mobile.waypoints import LastRoutes, SamplesSoFar
from whimbrel.engine.saved_state import Savable
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.errors import StateError
from whimbrel.graph.mobile import (
    CorridorInterest,
    FunctionInterest,
    ListedObject,
    MobileQuery,
    RefreshWhenQualityFalls,
)
from whimbrel.model.schema import Coordinates, Value
from whimbrel.model.time import BEGINNING_OF_TIME


class FollowedObjects:
    """The objects that a mobile query follows, and their interests.

    Everything happens by event time: a step takes it from one watermark to another, however far apart.
    """

    def __init__(self, query: MobileQuery, events: SourceEvents, name: str, monitor: Monitor) -> None:
        self.query = query
        self.monitor = monitor
        self.events = events
        self.keys = FocalKeys(query.focal)
        self.updates = LocationUpdates(query.focal, self.keys, events, name)
        self.timelines = Timelines(query.policy.refresh, query.silent)
        self.telling = telling(query.policy)
        self.measured: MeasuredInterests | None = None
        """What measures the quality of interests, if that is asked for."""
        self.current: Interests | None = None
        """The interests that have not ended."""
        self.before = BEGINNING_OF_TIME
        """The watermark of the last step."""
        self._last = BEGINNING_OF_TIME
        """When the last event that came ends: the watermark may not have reached it."""
        interest, refresh = query.interest, query.policy.refresh
        self._routes = (
            LastRoutes(interest.attribute, events) if isinstance(interest, CorridorInterest) else None
        )
        self._samples = SamplesSoFar(events) if isinstance(interest, FunctionInterest) else None
        self._quality = (
            QualityCondition(query, events, name) if isinstance(refresh, RefreshWhenQualityFalls) else None
        )

    @property
    def used(self) -> list[Selector]:
        """The selections of events that it reads, besides location updates."""
        readers = [each for each in (self._quality, self.measured) if each is not None]
        return [selector for each in readers for selector in each.used]

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        waiting = [self.before + 1] if self._last > self.before else []
        return min([self.timelines.due, self.telling.due, *waiting])

    def begin(self, coordinates: Coordinates) -> None:
        """Take note of how locations are given, before the first step."""
        for each in (self._quality, self.measured):
            if each is not None:
                each.begin(coordinates, self.keys if self.query.excluding_itself else None)

    # -- who is followed -----------------------------------------------------------------------------------

    def follow(self, rows: Iterable[ListedObject]) -> None:
        """Put objects on the list of those that are followed, from their next location update on."""
        self.keys.follow(rows)

    def unfollow(self, keys: Iterable[Value]) -> None:
        """Follow some objects no longer: their interests end now."""
        gone = self.keys.unfollow(keys)
        self.timelines.stop(gone)
        if self.current is not None:
            ends = np.isin(self.current.obj, gone)
            end = np.where(ends, np.minimum(self.current.end, self.before + 1), self.current.end)
            self.current = replace(self.current, end=end)
            self._last = max(self._last, self.before + 1)

    # -- a step --------------------------------------------------------------------------------------------

    def step(
        self,
        watermark: int,
        coordinates: Coordinates,
        once: FoundOnce | None,
        each: Cohorts | SharedRuns | None,
    ) -> pa.Table | None:
        """Let time pass to a watermark; give what is told."""
        chunks = self.events.stream.store.chunks
        self._last = max(self._last, chunks[-1].last if chunks else BEGINNING_OF_TIME)
        updates = self.updates.ready(watermark)
        self.timelines.reserve(len(self.keys))
        came_from = None if self.measured is None else self.timelines.came_from(updates)
        switches, ended = self._switches(updates, watermark, coordinates)
        self.monitor.count_for("updates", updates.obj)
        self.monitor.count_for("switches", switches.obj)
        interests = self._of_step(switches, ended, coordinates)
        since = np.where(interests.start > self.before, interests.start - interests.lifetime, self.before + 1)
        had: list[Told] = []
        if once is not None:
            began = thread_time_ns()
            until = np.minimum(interests.end, watermark + 1)
            had += once.told_of(interests, since, until, excluding_own=self.query.excluding_itself)
            self.monitor.note_looked_up(had, interests)
            if len(switches):
                self.monitor.count("processor_switch", thread_time_ns() - began)
        if each is not None:
            member, found = each.step(interests, since, self.before, watermark)
            self.monitor.note_fed(each.fed, interests)
            interests = replace(interests, member=member)
            had += found
        if came_from is not None:
            here = Switches.at(updates, np.arange(len(updates)), came_from)
            areas = self.areas_of(here, coordinates)
            self._measure(interests, updates, areas, each, watermark)
        told, of = self.telling.tell(had, interests, watermark)
        self.monitor.note_told(told, of)
        self.current = interests.take(interests.end > watermark)
        if each is not None:
            each.keep(self.current.member)
        self.before = watermark
        return self._table(told, of)

    def _switches(self, updates: Updates, watermark: int, coordinates: Coordinates) -> tuple[Switches, Ended]:
        for waypoints in (self._routes, self._samples):
            if waypoints is not None:
                waypoints.take_in(updates)
        if self._quality is None:
            return self.timelines.advance(updates, watermark, coordinates)
        areas = partial(self.areas_of, coordinates=coordinates)
        found, came_from = self._quality.find_switches(self.timelines, updates, areas)
        return self.timelines.settle(updates, found, came_from, watermark)

    def _of_step(self, switches: Switches, ended: Ended, coordinates: Coordinates) -> Interests:
        """Give the interests that a step is about: those that have not ended before, and those that begin."""
        begun = Interests(
            obj=switches.obj,
            number=switches.number,
            start=switches.time,
            end=switches.end,
            lifetime=self.keys.lifetimes(switches.obj, self.query.lifetime),
            member=np.full(len(switches), NOBODY, np.int64),
            areas=self.areas_of(switches, coordinates),
        )
        if self.current is None:
            return begun
        return Interests.concat([_with_ends(self.current, ended), begun])

    def areas_of(self, switches: Switches, coordinates: Coordinates) -> AreaSet:
        """Work out where the interests are that begin at some switches."""
        if self._samples is not None:
            assert isinstance(self.query.interest, FunctionInterest)
            shapes = self._samples.shapes(self.query.interest, switches.obj, switches.time, coordinates)
            return areas_of_shapes(shapes, coordinates)
        x, y = switches.x, switches.y
        if self.query.policy.grid_m is not None:
            x, y = snapped(x, y, self.query.policy.grid_m, coordinates)
        places = ObjectPlaces(x, y, switches.from_x, switches.from_y, self.keys.radii(switches.obj))
        routes = None if self._routes is None else self._routes.at(switches.row)
        return areas_at(self.query.interest, places, coordinates, routes=routes)

    def _measure(
        self,
        of: Interests,
        updates: Updates,
        areas: AreaSet,
        each: Cohorts | SharedRuns | None,
        watermark: int,
    ) -> None:
        """Measure the quality of interests, given where one would be at each location update."""
        assert self.measured is not None
        cohorts = each.cohorts if isinstance(each, SharedRuns) else each
        histories = [] if cohorts is None else cohorts.histories
        streamed = [history for history in histories if isinstance(history, EventHistory)]
        self.measured.step(
            of,
            (updates, areas),
            streamed,
            NO_ROWS if each is None else each.fed.joined,
            watermark,
            self.keys.longest_lifetime(self.query.lifetime),
        )

    def _table(self, told: list[Told], of: Interests) -> pa.Table | None:
        """Write what is told as one table."""
        told = [each for each in told if len(each)]
        if not told:
            return None
        return delivery_table(told, of, self.query.name, self.keys.values())

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        about = {"before": self.before, "last": self._last, "current": self.current is not None}
        blocks.put_json(name, {**about, "measured": self.measured is not None})
        for part, state in self._states().items():
            state.save(blocks, f"{name}/{part}")
        if self.current is not None:
            self.current.save(blocks, f"{name}/current")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        if about["measured"] != (self.measured is not None):
            raise StateError(
                "quality of interests is measured either in the snapshot or here, not in both; "
                "call measure_quality() before events come, in both sessions or in none"
            )
        self.before, self._last = about["before"], about["last"]
        for part, state in self._states().items():
            state.load(blocks, f"{name}/{part}")
        self.current = Interests.load(blocks, f"{name}/current") if about["current"] else None

    def _states(self) -> dict[str, Savable]:
        parts: dict[str, Savable | None] = {
            "keys": self.keys,
            "updates": self.updates,
            "timelines": self.timelines,
            "telling": self.telling,
            "routes": self._routes,
            "samples": self._samples,
            "quality": self._quality,
            "measured": self.measured,
        }
        return {part: state for part, state in parts.items() if state is not None}


def _with_ends(interests: Interests, ended: Ended) -> Interests:
    """Say of interests of earlier steps when they end, as far as that is known now."""
    if not len(ended.obj):
        return interests
    order = np.argsort(interests.obj, kind="stable")
    at = order[np.searchsorted(interests.obj[order], ended.obj)]
    end = interests.end.copy()
    end[at] = np.minimum(end[at], ended.end)
    return replace(interests, end=end)
