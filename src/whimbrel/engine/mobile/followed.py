"""Whom a mobile query follows, and where: from events up to a watermark to what is told of interests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from time import thread_time_ns
from typing import Protocol

import numpy as np
import pyarrow as pa

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.mobile.area_counts import AreaCounts
from whimbrel.engine.mobile.areas import AreaSet, ObjectPlaces, areas_at, areas_of_shapes, snapped
from whimbrel.engine.mobile.chained_runs import ChainedRuns
from whimbrel.engine.mobile.cohorts import NOBODY, Cohorts
from whimbrel.engine.mobile.deliveries import Told, delivery_table, interest_table
from whimbrel.engine.mobile.found_once import FoundOnce
from whimbrel.engine.mobile.history import EventHistory
from whimbrel.engine.mobile.interests import AROUND_OBJECT, Interests
from whimbrel.engine.mobile.measured import MeasuredInterests
from whimbrel.engine.mobile.monitor import Monitor
from whimbrel.engine.mobile.predicted import ChosenAreas, PredictedAreas, route_attribute
from whimbrel.engine.mobile.prepared_runs import PreparedRuns
from whimbrel.engine.mobile.quality_condition import QualityCondition
from whimbrel.engine.mobile.telling import telling
from whimbrel.engine.mobile.timelines import Ended, Switches, Timelines
from whimbrel.engine.mobile.updates import FocalKeys, LocationUpdates, Updates
from whimbrel.engine.mobile.waypoints import LastRoutes, SamplesSoFar
from whimbrel.engine.saved_state import Savable
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.values import BoolArray, FloatArray, Int64Array
from whimbrel.errors import StateError
from whimbrel.graph.mobile import (
    CorridorInterest,
    FunctionInterest,
    ListedObject,
    MobileQuery,
    Refresh,
    RefreshWhenQualityFalls,
)
from whimbrel.model.schema import Coordinates, Value
from whimbrel.model.time import BEGINNING_OF_TIME


class OwnedPlaces(Protocol):
    """The places of a session, where others have the other places."""

    def holds(self, x: FloatArray, y: FloatArray, coordinates: Coordinates | None) -> BoolArray:
        """Tell which of some places are its own."""
        ...


class FollowedObjects:
    """The objects that a mobile query follows, and their interests.

    Everything happens by event time: a step takes it from one watermark to another, however far apart.
    """

    def __init__(
        self,
        query: MobileQuery,
        events: SourceEvents,
        name: str,
        window: int,
        monitor: Monitor,
        owned: OwnedPlaces | None = None,
    ) -> None:
        self.query = query
        self.monitor = monitor
        self.events = events
        self.owned = owned
        self.keys = FocalKeys(query.focal)
        self.updates = LocationUpdates(query.focal, self.keys, events, name)
        self.timelines = Timelines(query.policy.refresh, query.silent)
        self._hands_on = owned is not None and query.policy.deliver != "all"
        """Whether another one compares what is told here with what is told of other places."""
        self.telling = telling(replace(query.policy, deliver="all") if self._hands_on else query.policy)
        self._handed_on: list[pa.Table] = []
        self.measured: MeasuredInterests | None = None
        """What measures the quality of interests, if that is asked for."""
        self.current: Interests | None = None
        """The interests that have not ended."""
        self.before = BEGINNING_OF_TIME
        """The watermark of the last step."""
        self._last = BEGINNING_OF_TIME
        """When the last event that came ends: the watermark may not have reached it."""
        interest, refresh = query.interest, query.policy.refresh
        attribute = route_attribute(query)
        self._routes = None if attribute is None else LastRoutes(attribute, events)
        self._samples = SamplesSoFar(events) if isinstance(interest, FunctionInterest) else None
        self._counts: AreaCounts | None = None
        self._counted = 0
        """How long events are remembered to be counted."""
        self._quality: QualityCondition | None = None
        self._predicted: PredictedAreas | None = None
        self._prepared = PreparedRuns()
        if isinstance(refresh, RefreshWhenQualityFalls) or query.policy.prediction is not None:
            self._counts = AreaCounts(query, events, name)
            self._count_for(refresh, self._counts, window)

    def _count_for(self, refresh: Refresh, counts: AreaCounts, window: int) -> None:
        """Begin what looks at how many events lie where."""
        if isinstance(refresh, RefreshWhenQualityFalls):
            self._quality = QualityCondition(self.query, counts)
            self._counted = refresh.over
        if self.query.policy.prediction is not None:
            self._predicted = PredictedAreas(self.query, counts, window)
            self._counted = max(self._counted, window)

    @property
    def used(self) -> list[Selector]:
        """The selections of events that it reads, besides location updates."""
        readers = [each for each in (self._counts, self.measured) if each is not None]
        return [selector for each in readers for selector in each.used]

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        waiting = [self.before + 1] if self._last > self.before else []
        if self._hands_on and self.current is not None and len(self.current):
            waiting.append(int(self.current.end.min()))
        return min([self.timelines.due, self.telling.due, *waiting])

    def begin(self, coordinates: Coordinates) -> None:
        """Take note of how locations are given, before the first step."""
        for each in (self._counts, self.measured):
            if each is not None:
                each.begin(coordinates, self.keys if self.query.excluding_itself else None)

    def take_in(self) -> None:
        """Take in events of before the query was there, to be counted and measured."""
        for each in (self._counts, self.measured):
            if each is not None:
                each.take_in()

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
        each: Cohorts | ChainedRuns | None,
    ) -> pa.Table | None:
        """Let time pass to a watermark; give what is told."""
        chunks = self.events.stream.store.chunks
        self._last = max(self._last, chunks[-1].last if chunks else BEGINNING_OF_TIME)
        updates = self.updates.ready(watermark)
        if self._counts is not None:
            self._counts.take_in()
        self.timelines.reserve(len(self.keys))
        came_from = None if self.measured is None else self.timelines.came_from(updates)
        switches, ended = self._switches(updates, watermark, coordinates)
        self.monitor.count_for("updates", updates.obj)
        self.monitor.count_for("switches", switches.obj)
        interests = self._of_step(updates, switches, ended, coordinates)
        is_predicted = (interests.start > self.before) & (interests.candidate != AROUND_OBJECT)
        self.monitor.count_for("predicted", interests.obj[is_predicted])
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
            member, found = self._step_runs(each, interests, since, watermark)
            self.monitor.note_fed(each.fed, interests)
            interests = replace(interests, member=member)
            had += found
        if came_from is not None:
            here = Switches.at(updates, np.arange(len(updates)), came_from)
            areas = self.areas_of(here, coordinates)
            self._measure(interests, updates, areas, each, watermark)
        told, of = self.telling.tell(had, interests, watermark)
        self.monitor.note_told(told, of)
        if self._hands_on:
            self._hand_on(interests, watermark)
        self.current = interests.take(interests.end > watermark)
        if each is not None:
            each.keep(np.concatenate([self.current.member, self._prepared_members(watermark)]))
        self.before = watermark
        if self._counts is not None:
            self._counts.forget_before(watermark + 1 - self._counted)
        return self._table(told, of)

    def _hand_on(self, interests: Interests, watermark: int) -> None:
        """Take note of the interests that begin or end in a step."""
        changed = interests.take((interests.start > self.before) | (interests.end <= watermark))
        if len(changed):
            self._handed_on.append(interest_table(changed, self.query.name, self.keys.values()))

    def take_interests(self) -> list[pa.Table]:
        """Take the interests that began or ended since the last time, where another one compares them."""
        taken, self._handed_on = self._handed_on, []
        return taken

    def _step_runs(
        self, each: Cohorts | ChainedRuns, of: Interests, since: Int64Array, watermark: int
    ) -> tuple[Int64Array, list[Told]]:
        """Let time pass for what runs for single interests, and for those that are prepared."""
        if self._predicted is None or not isinstance(each, Cohorts) or not each.bounded:
            return each.step(of, since, self.before, watermark)
        candidates = self._predicted.candidates
        obj = candidates.obj if candidates is not None else NO_ROWS
        lifetimes = self.keys.lifetimes(obj, self.query.lifetime)
        member, told, self._predicted.candidates = self._prepared.step(
            each, of, since, candidates, self.before, watermark, lifetimes
        )
        return member, told

    def _prepared_members(self, watermark: int) -> Int64Array:
        """Give the members that are prepared, and let go of what was found for others."""
        if self._predicted is None or self._predicted.candidates is None:
            return NO_ROWS
        longest = self.keys.longest_lifetime(self.query.lifetime)
        self._prepared.forget(self._predicted.candidates, watermark + 1 - longest)
        return self._predicted.candidates.member

    def _switches(self, updates: Updates, watermark: int, coordinates: Coordinates) -> tuple[Switches, Ended]:
        for waypoints in (self._routes, self._samples):
            if waypoints is not None:
                waypoints.take_in(updates)
        if self._quality is None:
            return self.timelines.advance(updates, watermark, coordinates)
        areas = partial(self.areas_of, coordinates=coordinates)
        found, came_from = self._quality.find_switches(self.timelines, updates, areas)
        return self.timelines.settle(updates, found, came_from, watermark)

    def _of_step(
        self, updates: Updates, switches: Switches, ended: Ended, coordinates: Coordinates
    ) -> Interests:
        """Give the interests that a step is about: those that have not ended before, and those that begin.

        Where other sessions have the other places, an interest is that of the one which has its centre.
        """
        if self.owned is not None:
            switches = switches.take(self.owned.holds(*self._centres(switches, coordinates), coordinates))
        chosen = self._areas_used(updates, switches, coordinates)
        begun = Interests(
            obj=switches.obj,
            number=switches.number,
            start=switches.time,
            end=switches.end,
            lifetime=self.keys.lifetimes(switches.obj, self.query.lifetime),
            member=chosen.member,
            candidate=chosen.candidate,
            areas=chosen.areas,
        )
        if self.current is None:
            return begun
        return Interests.concat([_with_ends(self.current, ended), begun])

    def _areas_used(self, updates: Updates, switches: Switches, coordinates: Coordinates) -> ChosenAreas:
        """Choose the areas of interests that begin: around the object, or as they were predicted."""
        areas = self.areas_of(switches, coordinates)
        if self._predicted is None:
            nothing = np.full(len(switches), AROUND_OBJECT, np.int64)
            return ChosenAreas(areas, nothing, np.full(len(switches), NOBODY, np.int64))
        areas_at = partial(self.areas_of, coordinates=coordinates)
        routes = None if self._routes is None else self._routes.at(updates.row)
        return self._predicted.choose(updates, switches, areas, areas_at, coordinates, routes)

    def areas_of(self, switches: Switches, coordinates: Coordinates) -> AreaSet:
        """Work out where the interests are that begin at some switches."""
        if self._samples is not None:
            assert isinstance(self.query.interest, FunctionInterest)
            shapes = self._samples.shapes(self.query.interest, switches.obj, switches.time, coordinates)
            return areas_of_shapes(shapes, coordinates)
        x, y = self._centres(switches, coordinates)
        places = ObjectPlaces(x, y, switches.from_x, switches.from_y, self.keys.radii(switches.obj))
        along = self._routes if isinstance(self.query.interest, CorridorInterest) else None
        routes = None if along is None else along.at(switches.row)
        return areas_at(self.query.interest, places, coordinates, routes=routes)

    def _measure(
        self,
        of: Interests,
        updates: Updates,
        areas: AreaSet,
        each: Cohorts | ChainedRuns | None,
        watermark: int,
    ) -> None:
        """Measure the quality of interests, given where one would be at each location update."""
        assert self.measured is not None
        cohorts = each.cohorts if isinstance(each, ChainedRuns) else each
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

    def _centres(self, switches: Switches, coordinates: Coordinates) -> tuple[FloatArray, FloatArray]:
        if self.query.policy.grid_m is None:
            return switches.x, switches.y
        return snapped(switches.x, switches.y, self.query.policy.grid_m, coordinates)

    def _table(self, told: list[Told], of: Interests) -> pa.Table | None:
        """Write what is told as one table."""
        told = [each for each in told if len(each)]
        if not told:
            return None
        says_predicted = self._predicted is not None
        says_reused = self.query.policy.reuse == "similar"
        return delivery_table(
            told,
            of,
            self.query.name,
            self.keys.values(),
            says_predicted=says_predicted,
            says_reused=says_reused,
        )

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
            "counts": self._counts,
            "predicted": self._predicted,
            "prepared": self._prepared,
            "measured": self.measured,
        }
        return {part: state for part, state in parts.items() if state is not None}


def _with_ends(interests: Interests, ended: Ended) -> Interests:
    """Say of interests of earlier steps when they end, as far as that is known now."""
    if not len(ended.obj) or not len(interests):
        return interests
    order = np.argsort(interests.obj, kind="stable")
    place = np.minimum(np.searchsorted(interests.obj[order], ended.obj), len(order) - 1)
    known = interests.obj[order[place]] == ended.obj  # others are told of elsewhere
    at = order[place[known]]
    end = interests.end.copy()
    end[at] = np.minimum(end[at], ended.end[known])
    return replace(interests, end=end)
