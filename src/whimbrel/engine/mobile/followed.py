"""One mobile query at run time: from events up to a watermark to what is told of its interests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from whimbrel.engine.mobile.areas import ObjectPlaces, areas_at
from whimbrel.engine.mobile.cohorts import NOBODY, Cohorts
from whimbrel.engine.mobile.deliveries import delivery_table
from whimbrel.engine.mobile.found_once import FoundOnce
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.telling import telling
from whimbrel.engine.mobile.timelines import Ended, Switches, Timelines
from whimbrel.engine.mobile.updates import FocalKeys, LocationUpdates
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.values import Int64Array
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.mobile import CorridorInterest, MobileQuery
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME


class FollowedObjects:
    """The objects that a mobile query follows, and their interests.

    Everything happens by event time: a step takes it from one watermark to another, however far apart they are.
    """

    def __init__(self, query: MobileQuery, events: SourceEvents, name: str) -> None:
        self.query = query
        self.events = events
        self.keys = FocalKeys(query.focal)
        self.updates = LocationUpdates(query.focal, self.keys, events, name)
        self.timelines = Timelines(query.policy.refresh, query.silent)
        self.telling = telling(query.policy)
        self.current: Interests | None = None
        """The interests that have not ended."""
        self.before = BEGINNING_OF_TIME
        """The watermark of the last step."""

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return min(self.timelines.due, self.telling.due)

    def step(
        self, watermark: int, coordinates: Coordinates, once: FoundOnce | None, each: Cohorts | None
    ) -> pa.Table | None:
        """Let time pass to a watermark; give what is told."""
        updates = self.updates.ready(watermark)
        self.timelines.reserve(len(self.keys))
        switches, ended = self.timelines.advance(updates, watermark, coordinates)
        interests = self._of_step(switches, ended, coordinates)
        since = np.where(
            interests.start > self.before, interests.start - interests.lifetime, self.before + 1
        )
        had = []
        if once is not None:
            until = np.minimum(interests.end, watermark + 1)
            had += once.told_of(interests, since, until, excluding_own=self.query.excluding_itself)
        if each is not None:
            member, found = each.step(interests, since, self.before, watermark)
            interests = replace(interests, member=member)
            had += found
        told, of = self.telling.tell(had, interests, watermark)
        self.current = interests.take(interests.end > watermark)
        if each is not None:
            each.keep(self.current.member)
        self.before = watermark
        return self._table(told, of)

    def _of_step(self, switches: Switches, ended: Ended, coordinates: Coordinates) -> Interests:
        """Give the interests that a step is about: those that have not ended before, and those that begin."""
        begun = self._begun(switches, coordinates)
        if self.current is None:
            return begun
        return Interests.concat([_with_ends(self.current, ended), begun])

    def _begun(self, switches: Switches, coordinates: Coordinates) -> Interests:
        return Interests(
            obj=switches.obj,
            number=switches.number,
            start=switches.time,
            end=switches.end,
            lifetime=self.keys.lifetimes(switches.obj, self.query.lifetime),
            member=np.full(len(switches), NOBODY, np.int64),
            areas=self.areas_of(switches, coordinates),
        )

    def areas_of(self, switches: Switches, coordinates: Coordinates) -> AreaSet:
        """Work out where interests are."""
        x, y = switches.x, switches.y
        if self.query.policy.grid_m is not None:
            x, y = snapped(x, y, self.query.policy.grid_m, coordinates)
        places = ObjectPlaces(x, y, switches.from_x, switches.from_y, self.keys.radii(switches.obj))
        return areas_at(self.query.interest, places, coordinates, routes=self._routes(switches))

    def _routes(self, switches: Switches) -> np.ndarray | None:
        if not isinstance(self.query.interest, CorridorInterest):
            return None
        return self.routes.at(switches)

    def _table(self, told: list[Told], of: Interests) -> pa.Table | None:
        """Write what is told as one table."""
        told = [each for each in told if len(each)]
        if not told:
            return None
        tables = [delivery_table(each, of, self.query.name, self.keys.values()) for each in told]
        return concat_detections(tables)
