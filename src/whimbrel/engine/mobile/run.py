"""A query that follows objects at run time: it takes the place of a pipeline among the queries of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa

from whimbrel.engine.mobile.cohorts import Cohorts
from whimbrel.engine.mobile.followed import FollowedObjects
from whimbrel.engine.mobile.found_once import FoundOnce
from whimbrel.engine.mobile.history import EventHistory, GivenHistory, History, TimePointHistory
from whimbrel.engine.mobile.member_operators import known_of
from whimbrel.engine.mobile.member_pipeline import MemberPipeline, can_part
from whimbrel.engine.mobile.once import OncePipeline
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.graph.mobile import CorridorInterest, FunctionInterest, MobileQuery
from whimbrel.graph.mobile.additional_time import additional_time
from whimbrel.graph.mobile.parts import MobileParts, parts
from whimbrel.graph.query import Query
from whimbrel.graph.reach import anchors
from whimbrel.graph.required_columns import ColumnSet, all_read, read_by
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME, TIME_POINT


class MobileRun:
    """All mobile queries of a query, at run time."""

    def __init__(self, query: Query, events: SourceEvents, name: str) -> None:
        self.query = query
        self.name = name
        self.events = events
        self.following = [Following(each, events, name) for each in query.mobile]
        self.context = ExecutionContext(events.stream, query.functions, query.graph.coordinates)
        self.reach = max(each.reach for each in self.following)
        self.used = [selector for each in self.following for selector in each.used]

    @property
    def required(self) -> ColumnSet:
        """What it reads of atomic events."""
        return all_read(each.required for each in self.following)

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return min(each.due for each in self.following)

    @property
    def dropped(self) -> int:
        """How many matches in the making were given up because a partition had too many of them."""
        return sum(each.dropped for each in self.following)

    def step(self) -> Iterator[pa.Table]:
        """Let time pass to the watermark of the events; give what is told."""
        coordinates = self.context.coordinates or Coordinates.PLANE
        for each in self.following:
            table = each.step(self.events.stream.watermark, coordinates)
            if table is not None:
                yield table

    def forget_before(self, time: int) -> None:
        """Let go of events that can no longer take part in anything: each part knows by itself."""

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state of all."""
        for number, each in enumerate(self.following):
            each.save(blocks, f"{name}/{number}")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        for number, each in enumerate(self.following):
            each.load(blocks, f"{name}/{number}")


class Following:
    """One mobile query at run time: what is found once, what is found for each interest, and who is told."""

    def __init__(self, query: MobileQuery, events: SourceEvents, name: str) -> None:
        self.query = query
        self.events = events
        self.name = name
        graph = query.detect.rewritten
        self.parts = parts(query, graph)
        self.back = additional_time(query.detect.graph)
        self.objects = FollowedObjects(query, events, name)
        self.once = OncePipeline(query.detect, self.parts, events, name) if self.parts.once.outputs else None
        self._each = replace(query.detect, graph=self.parts.each)
        self._model = self._member_pipeline() if self.parts.each.outputs else None
        self.found: FoundOnce | None = None
        self.cohorts: Cohorts | None = None
        self.used: list[Selector] = [self.objects.updates.selector]
        self.used += self.once.used if self.once else []
        self.used += self._model.used if self._model else []
