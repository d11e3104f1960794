"""One mobile query at run time: what is found once, what for each interest, and who is told."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import thread_time_ns
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.mobile.chained_runs import ChainedRuns
from whimbrel.engine.mobile.cohorts import Cohorts
from whimbrel.engine.mobile.followed import FollowedObjects, OwnedPlaces
from whimbrel.engine.mobile.found_once import FoundOnce
from whimbrel.engine.mobile.history import EventHistory, GivenHistory, History, TimePointHistory
from whimbrel.engine.mobile.known_answers import KnownAnswers
from whimbrel.engine.mobile.measured import MeasuredInterests
from whimbrel.engine.mobile.measures import memory_of
from whimbrel.engine.mobile.member_operators import known_of
from whimbrel.engine.mobile.member_pipeline import MemberPipeline
from whimbrel.engine.mobile.member_steps import SelectionReuse
from whimbrel.engine.mobile.monitor import Monitor
from whimbrel.engine.mobile.once import OncePipeline
from whimbrel.engine.mobile.once_run import OnceRun
from whimbrel.engine.mobile.optimisations import Optimisations
from whimbrel.engine.mobile.predicted import route_attribute
from whimbrel.engine.mobile.similar_selections import SimilarSelections
from whimbrel.engine.mobile.updates import FocalKeys, LocationUpdates
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import Selector, SourceEvents
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.total_order import Released, int64
from whimbrel.errors import QueryError
from whimbrel.graph.mobile import FunctionInterest, MobileQuery, RefreshWhenQualityFalls
from whimbrel.graph.mobile.additional_time import additional_time
from whimbrel.graph.mobile.parts import parts
from whimbrel.graph.mobile.reusing import reused_operators
from whimbrel.graph.reach import anchors
from whimbrel.graph.required_columns import ColumnSet, all_read, read_by
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME, TIME_POINT

LOOK_RARELY = 200
"""Where memory is watched, about the so many-th part of the processor time goes into looking at it."""


class Following:
    """One mobile query: what is found once, what is found for each interest, and who is told.

    Parameters
    ----------
    shared_runs
        What is found once for other queries, and may be for this one; what it needs itself is added.
    """

    def __init__(
        self,
        query: MobileQuery,
        events: SourceEvents,
        name: str,
        optimisations: Optimisations,
        shared_runs: list[OnceRun],
        owned: OwnedPlaces | None = None,
    ) -> None:
        self.query = query
        self.events = events
        self.name = name
        self.optimisations = optimisations
        self.parts = parts(query, query.detect.rewritten, plain_once=optimisations.plain_once)
        self.back = additional_time(query.detect.graph)
        window = query.lifetime + max(self.back.values(), default=0)
        self.monitor = Monitor()
        self.objects = FollowedObjects(query, events, name, window, self.monitor, owned)
        self.once_run = self._once_among(shared_runs) if self.parts.once.outputs else None
        self._each = replace(query.detect, graph=self.parts.each, mobile=())
        self._reused = reused_operators(query, self.parts.each)
        answers = {each.name: KnownAnswers() for each in self._reused if each.not_equal is None}
        similar = frozenset(each.name for each in self._reused if each.not_similar is None)
        self.reuse = SelectionReuse(answers, similar & answers.keys())
        self._model = self._member_pipeline() if self.parts.each.outputs else None
        self.cohorts: Cohorts | ChainedRuns | None = None
        self._coordinates: Coordinates | None = None
        self.watches_memory = False
        """Whether to look at the memory now and then."""
        self._looked_at = self._look_took = 0

    # -- what it needs -------------------------------------------------------------------------------------

    def _once_among(self, shared_runs: list[OnceRun]) -> OnceRun:
        """Choose what finds the same for another query, or add it."""
        if self.optimisations.share_once:
            for each in shared_runs:
                if each.serves(self.query, self.parts, self._excluded):
                    return each
        own = OnceRun(self.query, self.parts, self.events, self.name, self._excluded, self.monitor)
        shared_runs.append(own)
        return own

    @property
    def once(self) -> OncePipeline | None:
        """What runs once for all interests, perhaps those of other queries, too."""
        return None if self.once_run is None else self.once_run.pipeline

    @property
    def found(self) -> FoundOnce | None:
        """What was found once for all interests."""
        return None if self.once_run is None else self.once_run.found

    @property
    def used(self) -> list[Selector]:
        """The selections of atomic events that it reads."""
        used = [self.objects.updates.selector, *self.objects.used]
        used += self.once.used if self.once else []
        return used + (self._model.used if self._model else [])

    @property
    def required(self) -> ColumnSet:
        """What it reads of atomic events."""
        focal, route = self.query.focal, route_attribute(self.query)
        names = frozenset({focal.key} if route is None else {focal.key, route})
        everything = isinstance(self.query.interest, FunctionInterest)
        read = [ColumnSet(names, everything), read_by(focal.condition)]
        read += [each.required.read for each in (self.once, self._model) if each is not None]
        return all_read(read)

    @property
    def reach(self) -> int:
        """How long after its end an event can still matter."""
        reaches = [each.reach for each in (self.once, self._model) if each is not None]
        if self._model is not None:
            reaches.append(self._window)
        if self.query.policy.prediction is not None:
            reaches.append(self._window)
        if isinstance(self.query.policy.refresh, RefreshWhenQualityFalls):
            reaches.append(self.query.policy.refresh.over)
        return min(max(reaches, default=0), END_OF_TIME)

    @property
    def _window(self) -> int:
        """How far back the events lie that decide on what is told of an interest that begins."""
        return self.longest_lifetime + max(self.back.values(), default=0)

    @property
    def longest_lifetime(self) -> int:
        """For how long any object may look back."""
        return self.objects.keys.longest_lifetime(self.query.lifetime)

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        parts = [self.objects.due]
        parts += [each.due for each in (self.once, self.cohorts) if each is not None]
        return min(parts)

    @property
    def dropped(self) -> int:
        """How many matches in the making were given up because a partition had too many of them."""
        return self.once.dropped if self.once else 0

    def measure(self) -> None:
        """Measure the quality of interests from now on, before any event has come."""
        if self._coordinates is not None:
            raise QueryError(
                f"{self.query.name!r} has begun, and what its interests had before is not known",
                hint="call measure_quality() before the first event comes",
            )
        if self.objects.measured is None:
            self.objects.measured = MeasuredInterests(self.query, self.events, self.name, self.monitor)

    @property
    def needs_since(self) -> int:
        """Since when atomic events have to be kept, however far back its operators reach."""
        measured = self.objects.measured
        return END_OF_TIME if measured is None else measured.needs_since

    def note_late(self, events: pa.RecordBatch) -> None:
        """Count the location updates among events that came too late; they change nothing."""
        context = ExecutionContext(OperatorStream("events", RowStore()), {}, self._coordinates)
        late = SourceEvents(context)
        updates = LocationUpdates(self.query.focal, self.objects.keys, late, self.name)
        updates.begins = self.objects.updates.begins
        for name in {*events.column("type").to_pylist()} & {self.query.focal.type}:
            some = events.filter(pc.equal(events.column("type").cast(pa.string()), name))
            late.feed(Released(some, int64(some, "start"), int64(some, "end"), None, END_OF_TIME), None)
        self.monitor.count_for("late_updates", updates.ready(END_OF_TIME).obj)

    # -- a step --------------------------------------------------------------------------------------------

    def step(self, coordinates: Coordinates) -> pa.Table | None:
        """Let time pass to the watermark of the events; give what is told."""
        began = thread_time_ns()
        self._begin(coordinates)
        table = self.objects.step(self.events.stream.watermark, coordinates, self.found, self.cohorts)
        self._count_selections()
        self._look_at_memory()
        self._forget()
        self.monitor.count("processor", thread_time_ns() - began)
        return table

    def _count_selections(self) -> None:
        self.monitor.count("selections", self.reuse.selections)
        self.monitor.count("selections_reused", self.reuse.reused)
        self.reuse.selections = self.reuse.reused = 0

    def _look_at_memory(self) -> None:
        """Take note of the memory that is held, so rarely that it takes no time to speak of."""
        now = thread_time_ns()
        if self.watches_memory and now - self._looked_at >= LOOK_RARELY * self._look_took:
            held = memory_of(self)
            peak = self.monitor.totals["memory_peak"]
            self.monitor.totals["memory_peak"] = max(peak, held["history_bytes"] + held["state_bytes"])
            self._looked_at, self._look_took = now, thread_time_ns() - now

    def catch_up(self, coordinates: Coordinates) -> None:
        """Take in events of before the query was there."""
        self._begin(coordinates)
        self.objects.take_in()
        if self.cohorts is not None:
            self.cohorts.take_in()
        self.objects.before = self.events.stream.watermark

    def _begin(self, coordinates: Coordinates) -> None:
        """Make what needs to know how locations are given."""
        if self._coordinates is coordinates:
            return
        self._coordinates = coordinates
        self.objects.begin(coordinates)
        if self._model is not None:
            self.cohorts = self._runs(self._model, coordinates)

    def _runs(self, model: MemberPipeline, coordinates: Coordinates) -> Cohorts | ChainedRuns:
        """Make what runs for single interests; bounded graphs are strongly complete by themselves."""
        query = self.query
        bounded = not anchors(query.detect.graph, query.detect.operators)
        start, histories = partial(self._member_pipeline, coordinates), self._histories(model, coordinates)
        similar = None
        if self.reuse.similar:
            similar = SimilarSelections(query.policy.quality, self.reuse, self.objects.keys, self.events)
        may_keep_runs = query.policy.prediction is None and similar is None
        cohorts = Cohorts(
            start,
            histories,
            shares=model.parts_members,
            bounded=bounded,
            merges=self.optimisations.merge_cohorts,
            keeps_runs=self.optimisations.lemma_2 and may_keep_runs,
            similar=similar,
        )
        if query.policy.completeness != "strong" or bounded:
            return cohorts
        return ChainedRuns(cohorts, self.longest_lifetime, self._window)

    @property
    def _excluded(self) -> FocalKeys | None:
        excludes = self.query.excluding_itself and not self.query.of_situations
        return self.objects.keys if excludes else None

    def _member_pipeline(self, coordinates: Coordinates | None = None) -> MemberPipeline:
        given: dict[str, OperatorStream] = {}
        if self.once is not None:
            given = {name: self.once.streams[name] for name in self.parts.given}
        pipeline = MemberPipeline(self._each, self.events, self.name, given, self.reuse)
        pipeline.context.coordinates = coordinates or pipeline.context.coordinates
        return pipeline

    def _histories(self, model: MemberPipeline, coordinates: Coordinates) -> list[History]:
        events = [self._history_of(selector[0], stream, coordinates) for selector, stream in model.selectors]
        given = [
            GivenHistory(
                stream, self.events, self._back_of(stream.name), coordinates, self._excluded, self._known_once
            )
            for stream in model.takes[len(events) :]
        ]
        return [*events, *given]

    def _history_of(self, event_type: str, stream: OperatorStream, coordinates: Coordinates) -> History:
        back = self._back_of(event_type)
        if event_type.startswith(TIME_POINT):
            return TimePointHistory(stream, back)
        return EventHistory(stream, self.events, back, coordinates, self._excluded)

    def _back_of(self, name: str) -> int:
        """Tell how long before the first thing that is told the rows of a stream may decide about it."""
        return self.back.get(name, max(self.back.values(), default=0))

    def _known_once(self, stream: OperatorStream, rows: Any) -> Any:
        assert self.once is not None
        return known_of(self.once.graph, stream, rows)

    @property
    def looks_back_to(self) -> int:
        """Since when what is known can be told of an interest that begins."""
        return self.objects.before + 1 - self.longest_lifetime

    def _forget(self) -> None:
        """Let go of what no interest can look back at."""
        if self.cohorts is not None:
            self.cohorts.forget_before(self.looks_back_to)

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        known = None if self._coordinates is None else self._coordinates.value
        blocks.put_json(name, {"coordinates": known})
        self.objects.save(blocks, f"{name}/objects")
        self.monitor.save(blocks, f"{name}/monitor")
        if self.cohorts is not None:
            self.cohorts.save(blocks, f"{name}/cohorts")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        known = blocks.json(name)["coordinates"]
        if known is not None:
            self._begin(Coordinates(known))
        self.objects.load(blocks, f"{name}/objects")
        self.monitor.load(blocks, f"{name}/monitor")
        if self.cohorts is not None:
            self.cohorts.load(blocks, f"{name}/cohorts")
