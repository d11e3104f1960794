"""The queries of a session at run time: released events in, detections out, one table an output and step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import ClassVar

import pyarrow as pa

from whimbrel.engine.identity import CONTENT
from whimbrel.engine.mobile.followed import OwnedPlaces
from whimbrel.engine.mobile.optimisations import ALL
from whimbrel.engine.mobile.run import MobileRun
from whimbrel.engine.observer import Observer
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.query_template import QueryInstance
from whimbrel.engine.report import report
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.sharing import Sharing, alone
from whimbrel.engine.snapshot import Blocks, load_store, save_store
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.total_order import ARRIVAL, Released
from whimbrel.engine.values import Int64Array
from whimbrel.errors import QueryError, StateError, UnknownNameError, WhimbrelError
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.query import Query
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME


class RunningQueries:
    """Queries that see the same events, in total order, and share what they have in common.

    Parameters
    ----------
    owned
        The attribute that the events have whose detections are reported here; None: all are.
    observer
        What watches the queries, and decides what is reported of them.
    places
        The places around which interests are told of here; None: all.
    """

    optimisations: ClassVar = ALL
    """Which ways to save work mobile queries take; they change nothing in what is told."""

    def __init__(
        self,
        coordinates: Coordinates | None,
        owned: str | None,
        observer: Observer | None = None,
        places: OwnedPlaces | None = None,
    ) -> None:
        self.context = ExecutionContext(OperatorStream("events", RowStore()), {}, coordinates)
        self.events = SourceEvents(self.context)
        self.pipelines: dict[str, Pipeline | QueryInstance] = {}
        self.names_queries = False
        """Whether detections say in a column `@query` which query they are of."""
        self.watches_memory = False
        """Whether the memory of mobile queries is looked at now and then."""
        self.measures = False
        """Whether the quality of the interests of mobile queries is measured."""
        self.plans = 0
        """How often it was worked out what they need."""
        self.reach = 0
        """How long after its end (microseconds) an event can still become part of a detection."""
        self.columns: set[str] | None = None
        """The attributes of atomic events that are read; None: all."""
        self.mentioned: frozenset[str] = frozenset()
        """The attributes of atomic events that are named."""
        self.breaks_ties = False
        """Whether the order of events of the same times matters."""
        self.sharing = Sharing(self.events)
        self._owned = None if owned is None else Attribute(None, owned)
        self._observer = observer
        self.places = places
        self._is_planned = False
        self._unreported: list[pa.Table] = []
        """Detections of a step in which another query failed."""
        self._timers: list[tuple[int, str]] = []
        """When queries want to run even without events; may hold times that have become meaningless."""

    # -- queries come and go -----------------------------------------------------------------------------

    def add(self, query: Query, name: str) -> None:
        """Start a query; it sees the events that come from now on."""
        if name in self.pipelines:
            raise QueryError(
                f"a query named {name!r} is running already", hint="remove it first, or give another name"
            )
        self.pipelines[name] = self._deployed(query, name)
        if self._observer is None and not query.mobile:
            self.sharing.add(name)
        self._is_planned = False

    def _deployed(self, query: Query, name: str) -> Pipeline | QueryInstance:
        if query.mobile:
            return self._mobile(query, name)
        if self._observer is not None:
            return Pipeline(query, self.events, name, self._observer.passes, observer=self._observer)
        return self.sharing.templates.deploy(query, name)

    def _mobile(self, query: Query, name: str) -> MobileRun:
        """Start a mobile query, with the events that are still remembered as its history."""
        started = MobileRun(query, self.events, name, self.optimisations, self.places)
        if self.measures:
            started.measure()
        for each in started.following:
            each.watches_memory = self.watches_memory
        started.context.coordinates = started.context.coordinates or self.context.coordinates
        if len(self.events.stream.store):
            started.catch_up()
        started.begin_at(self.events.stream.watermark + 1)
        return started

    def mobile(self, name: str | None) -> MobileRun:
        """Look up a running query that follows something."""
        self.query(name)  # says what is wrong with the name
        found = next(iter(self.pipelines.values())) if name is None else self.pipelines[name]
        if not isinstance(found, MobileRun):
            raise QueryError(
                f"the query {found.name!r} follows nothing", hint="a mobile query says around ..."
            )
        return found

    def warnings(self) -> list[str]:
        """Say what looks like a mistake in the queries that follow something."""
        return [said for query in self.following for said in query.warnings()]

    def begin_at(self, time: int) -> None:
        """Let mobile queries follow nobody before a time."""
        for query in self.following:
            query.begin_at(time)

    def remove(self, name: str) -> None:
        """Stop a query and forget its state."""
        if name not in self.pipelines:
            known = ", ".join(self.pipelines) or "none"
            raise QueryError(f"no query named {name!r} is running; running: {known}")
        self.sharing.remove(name, self.pipelines.pop(name))
        self._is_planned = False

    def query(self, name: str | None) -> Query:
        """Look up a query by its name, or the only one."""
        if name is None and len(self.pipelines) == 1:
            return next(iter(self.pipelines.values())).query
        if name is None:
            raise QueryError(f"say which query: {', '.join(self.pipelines) or 'none is running'}")
        if name not in self.pipelines:
            raise UnknownNameError("running query", name, self.pipelines)
        return self.pipelines[name].query

    @property
    def following(self) -> list[MobileRun]:
        """Those of the queries that follow objects."""
        return [each for each in self.pipelines.values() if isinstance(each, MobileRun)]

    def plan_anew(self) -> None:
        """Say that what queries need has changed."""
        self._is_planned = False

    def plan(self) -> None:
        """Work out what all queries need together, once they have changed."""
        if self._is_planned:
            return
        self._is_planned = True
        self.plans += 1
        queries = [*self._running(), *filter(_is_undecided, self.pipelines.values())]
        required = [query.required for query in queries]
        self.reach = max((query.reach for query in queries), default=0)
        self.mentioned = frozenset().union(*(columns.atoms for columns in required))
        operators = (operator for query in queries for operator in query.query.graph.operators)
        follows = any(query.query.mobile for query in queries)  # of updates of one time, the last one counts
        self.breaks_ties = follows or not all(operator.ignores_ties for operator in operators)
        own = {CONTENT, ARRIVAL} if self._owned is None else {CONTENT, ARRIVAL, self._owned.name}
        self.columns = None if any(columns.all_atoms for columns in required) else own | self.mentioned

    def _running(self) -> list[Pipeline]:
        """List all that runs: queries, what they have in common, templates of them."""
        templates = self.sharing.templates.running
        return [*self.sharing.commons.values(), *templates.values(), *alone(self.pipelines).values()]

    # -- a step ------------------------------------------------------------------------------------------

    def process(self, released: Sequence[Released], watermark: int) -> list[pa.Table]:
        """Let events in total order and then time up to the watermark pass; report what that completes."""
        tables: list[pa.Table] = []
        for events in released:
            self.share(events.batch)
            self.events.advance(events.watermark)
            touched = self.events.feed(events, self.columns)
            tables += self._step(_readers(touched))
        self.events.clear()
        self.events.advance(watermark)
        tables += self._step(self._due_by(watermark))
        return tables

    def share(self, events: pa.RecordBatch | None = None) -> None:
        """Let queries that have seen no event yet share what they have in common."""
        if self.sharing.fresh:
            self.sharing.settle(self.pipelines, events)
            self._is_planned = False
            self.plan()
            self.settle_coordinates(self.context.coordinates)

    def settle_coordinates(self, coordinates: Coordinates | None) -> None:
        """Tell the operators how locations are given, once that is known."""
        self.context.coordinates = coordinates
        for pipeline in self._running():
            if pipeline.context.coordinates is None:
                pipeline.context.coordinates = coordinates

    def _due_by(self, watermark: int) -> dict[str, None]:
        """Name the queries in which something happens by `watermark` even without events."""
        names: dict[str, None] = {}
        if self._observer is not None and self._observer.steps_always:
            names = dict.fromkeys(self.pipelines)
        while self._timers and self._timers[0][0] <= watermark:
            names.setdefault(heappop(self._timers)[1])
        return names

    def _step(self, names: Iterable[str]) -> list[pa.Table]:
        """Run some queries once, and take note of when they want to run again."""
        tables, self._unreported = self._unreported, []
        ready = self.sharing.step(names, self.pipelines)
        failure = ready.failure
        for time in ready.due:
            heappush(self._timers, time)
        for name in ready.names:
            pipeline = self.sharing.templates.running.get(name) or self.pipelines.get(name)
            if not isinstance(pipeline, Pipeline):
                continue
            try:
                for _ in pipeline.rounds():
                    tables += self._reported(pipeline)
                    pipeline.clear_made()
            except WhimbrelError as error:
                failure = failure or error
                continue
            if pipeline.due < END_OF_TIME:
                heappush(self._timers, (pipeline.due, name))
        if failure is not None:
            # The other queries have done their work; what they found comes with the next call.
            self._unreported = tables
            raise failure
        return tables

    def _reported(self, pipeline: Pipeline) -> Iterator[pa.Table]:
        """Report what is new in the outputs of a query, or of a template of them."""
        for table in pipeline.told():
            yield (
                table.append_column("@query", pa.repeat(pipeline.name, len(table)))
                if self.names_queries
                else table
            )
        for stream in pipeline.outputs:
            rows = self._own(pipeline, stream)
            if not len(rows):
                continue
            if self._observer is None:
                table = report(stream, rows, pipeline.context)
            elif (table := self._observer.report(stream, rows, pipeline)) is None:
                continue
            if self.names_queries:
                table = table.append_column("@query", pipeline.queries(stream, rows))
            yield table

    def _own(self, pipeline: Pipeline, stream: OperatorStream) -> Int64Array:
        """Choose the new rows of an output that are to be reported here."""
        rows = pipeline.reported(stream)
        if self._owned is None or not len(rows):
            return rows
        own = pipeline.context.atoms.store.column(self._owned, stream.store.lineage(rows).oldest)
        return rows[own.values & ~own.nulls]

    def forget_before(self, time: int) -> None:
        """Let go of events that ended before a time, which no query needs any more."""
        if self._observer is not None and self._observer.keeps_rows:
            return
        time = min([time, *(each.needs_since for each in self.following)])
        if self.events.stream.store.forget_before(time):
            for pipeline in self._running():
                pipeline.forget_before(time)

    def take_interests(self) -> list[pa.Table]:
        """Take the interests that began or ended since the last time, where another session compares them."""
        runs = [each for each in self.pipelines.values() if isinstance(each, MobileRun)]
        return [table for run in runs for table in run.take_interests()]

    @property
    def dropped(self) -> dict[str, int]:
        """How many matches in the making each query has given up because a partition had too many of them."""
        counts = {name: pipeline.dropped for name, pipeline in alone(self.pipelines).items()}
        return {name: count for name, count in counts.items() if count}

    # -- snapshots ---------------------------------------------------------------------------------------

    def save(self, blocks: Blocks) -> None:
        """Write the state of all queries, and the events that they remember."""
        self.share()
        self.sharing.catch_up(self.pipelines)
        about = {
            "queries": list(self.pipelines),
            "timers": self._timers,
            "sharing": self.sharing.save(blocks),
            "templates": self.sharing.templates.save(blocks, self.pipelines),
        }
        blocks.put_json("session", about)
        save_store(blocks, "atoms", self.events.stream.store)
        for number, query in enumerate(self.pipelines.values()):
            if isinstance(query, Pipeline):
                query.save(blocks, f"query/{number}")

    def check(self, blocks: Blocks) -> None:
        """Refuse a snapshot of other queries."""
        names = blocks.json("session")["queries"]
        if names != list(self.pipelines):
            raise StateError(
                f"the snapshot is of the queries {', '.join(names) or 'none'}; "
                f"this session runs {', '.join(self.pipelines) or 'none'}"
            )

    def load(self, blocks: Blocks, watermark: int, coordinates: Coordinates | None) -> None:
        """Read what `save` wrote."""
        about: Mapping[str, list[object]] = blocks.json("session")
        self._timers = [(due, name) for due, name in blocks.json("session")["timers"]]
        load_store(blocks, "atoms", self.events.stream.store, is_atomic=True)
        shared, templates = about.get("sharing", []), about.get("templates", [])
        self.sharing.load(blocks, shared, templates, self.pipelines, self._deployed)
        self._is_planned = False
        for number, query in enumerate(self.pipelines.values()):
            if isinstance(query, Pipeline):
                query.load(blocks, f"query/{number}")
        self.events.advance(watermark)
        self.settle_coordinates(coordinates)


def _readers(touched: Iterable[OperatorStream]) -> dict[str, None]:
    """Name the queries and templates that read selections with something new, and let these have it."""
    names: dict[str, None] = {}
    for stream in touched:
        names |= stream.users
        for subscriber in stream.subscribers:
            subscriber.add(stream.new)
            names[subscriber.template] = None
    return names


def _is_undecided(query: Pipeline | QueryInstance) -> bool:
    return isinstance(query, QueryInstance) and query.template is None
