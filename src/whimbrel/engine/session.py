"""Running queries over time: push events, let time pass, get detections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np
import pyarrow as pa

from whimbrel.engine.content_hashes import CONTENT
from whimbrel.engine.ingest import ARRIVAL, Counts, Ingest, RecentIds, Released
from whimbrel.engine.input_notes import InputNotes
from whimbrel.engine.observer import Observer
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.query_template import QueryInstance
from whimbrel.engine.remembered_events import events_of
from whimbrel.engine.report import report, together
from whimbrel.engine.retraction import Retraction, replayed
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.sharing import Sharing, alone
from whimbrel.engine.snapshot import Blocks, load_store, save_store
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.time_points import times_of, with_time_points
from whimbrel.engine.values import Int64Array
from whimbrel.errors import QueryError, StateError, UnknownNameError, WhimbrelError
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.operators import Derive, Filter, JoinPattern, Source
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.graph.required_columns import ColumnSet, RequiredColumns
from whimbrel.model.batch import Normalised
from whimbrel.model.frames import EventTable, batches
from whimbrel.model.reading import Reading, ReadSettings
from whimbrel.model.schema import Coordinates, EventSchema, Value
from whimbrel.model.time import END_OF_TIME, Duration, Moment, duration, instant

if TYPE_CHECKING:
    from whimbrel.whynot import Explanation

SLICE = 196_608
"""Events processed at once: few enough to stay in the cache, many enough to be worth a call."""


class Session:
    """Queries that run over a stream of events.

    Results depend on the events alone, not on how they are cut into batches, nor on the order
    they come in as long as none is later than `lateness`.

    Parameters
    ----------
    query
        What to detect; more can be added with `add`.
    lateness
        How long to wait for events that are out of order, as `timedelta` or text such as "10s".
        None stands for a bounded input: time moves only with `advance` and `close`.
    coordinates
        "plane" or "lonlat"; None takes what the query or the events say.
    follows_events
        Whether time moves with the events that are pushed. If not, it moves with `advance` only, for sessions
        that see some of the events and are told the time by whoever sees them all.
    owned
        Where several sessions get some of the same events: an attribute that is true in one of them only. A
        detection is reported by the session in which its first event has it.
    remember
        How much longer events are remembered than the queries need them, so that `why` can tell of them.
    reading
        How events are read, as one value; else the settings below say it.
    columns
        Which column is what, for events that name them otherwise: `{"time": "BaseDateTime"}`. Usual names are
        known; a name that is none of `time`, `lon`, ... is an attribute's. `session.columns_taken`
        tells what was taken.
    time_unit
        The unit of times that are plain numbers: "s", "ms", "us" or "ns"; None tells it by their size.
    time_format, day_first, time_zone
        How times are written, as for `strptime`; whether 03/01/2022 is in January; the zone of times that do
        not say theirs, such as "Europe/Berlin".
    observer
        What watches the queries run, one by one: for tools that trace, measure or carry on what they find.
    default_type
        The type of events without a column `type`; None: that which the queries read, if it is one.

    Examples
    --------
    >>> import whimbrel as wb
    >>> query = wb.compile("define Late detect Leave as a then not Arrive for 1 h group by source")
    >>> session = wb.Session(query)
    >>> session.push([{"type": "Leave", "time": "2024-05-01T08:00:00Z", "source": "truck-1"}]).num_rows
    0
    >>> session.advance("2024-05-01T09:00:00Z").column("type").to_pylist()
    ['Late']
    """

    explainer: ClassVar[Callable[..., Explanation] | None] = None
    """What answers `why`. Explanations stand above the engine; they, or the front door, say who it is."""

    def __init__(
        self,
        query: Query | Compilable | None = None,
        *,
        lateness: Duration | None = 0,
        coordinates: Coordinates | str | None = None,
        name: str | None = None,
        follows_events: bool = True,
        owned: str | None = None,
        remember: Duration = 0,
        reading: Reading | None = None,
        observer: Observer | None = None,
        **how: Unpack[ReadSettings],
    ) -> None:
        place = None if coordinates is None else Coordinates(coordinates)
        self._ingest = Ingest(
            lateness=None if lateness is None else duration(lateness),
            schemas={},
            coordinates=place,
            reading=reading or Reading.of(**how),
        )
        self._ingest.follows_events &= follows_events
        self._ingest.owned = owned
        self._around = ExecutionContext(OperatorStream("events", RowStore()), {}, place)
        self._atoms = SourceEvents(self._around)
        self._ingest.types = self._atoms.types
        self._pipelines: dict[str, Pipeline | QueryInstance] = {}
        self._sharing = Sharing(self._atoms)
        self._observer = observer
        self._reach = 0
        self._remember = duration(remember)
        self._owned = None if owned is None else Attribute(None, owned)
        self._is_planned = False
        self._columns: set[str] | None = None
        self.reads_once = False
        """Whether the queries are final when events come, so that columns nobody reads can be left out."""
        self.names_queries = False
        """Whether detections say in a column `@query` which query they are of."""
        self._kept: list[pa.Table] = []
        """Detections of a step in which another query failed."""
        self._ahead: set[int] = set()
        """The time points that queries wait for."""
        self._timers: list[tuple[int, str]] = []
        """When queries want to run even without events; may hold times that have become meaningless."""
        if query is not None:
            self.add(query, name=name)

    # -- queries -----------------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the running queries."""
        return tuple(self._pipelines)

    def add(self, query: Query | Compilable, *, name: str | None = None) -> str:
        """Start a query; it sees the events that come from now on. Give its name."""
        query = compiled(query)
        chosen = name or "+".join(query.types)
        if chosen in self._pipelines:
            raise QueryError(
                f"a query named {chosen!r} is running already", hint="remove it first, or give another name"
            )
        self._settle_coordinates(query)
        self._pipelines[chosen] = self._deployed(query, chosen)
        if self._observer is None:
            self._sharing.add(chosen)
        self._ingest.schemas |= query.schemas
        self._ahead |= {time for time in query.graph.time_points if time > self._ingest.watermark}
        self._is_planned = False
        return chosen

    def _deployed(self, query: Query, name: str) -> Pipeline | QueryInstance:
        if self._observer is not None:
            return Pipeline(query, self._atoms, name, self._observer.passes, observer=self._observer)
        return self._sharing.families.deploy(query, name)

    def remove(self, name: str) -> None:
        """Stop a query and forget its state."""
        if name not in self._pipelines:
            known = ", ".join(self._pipelines) or "none"
            raise QueryError(f"no query named {name!r} is running; running: {known}")
        self._sharing.remove(name, self._pipelines.pop(name))
        self._is_planned = False

    def _settle_coordinates(self, query: Query) -> None:
        wanted = query.graph.coordinates
        if wanted is None:
            return
        if self._ingest.coordinates not in (None, wanted):
            raise QueryError(
                f"the query is in {wanted.value} coordinates, the session in {self._ingest.coordinates}"
            )
        self._ingest.coordinates = wanted

    def _plan(self) -> None:
        """Work out what all running queries need together, once they have changed."""
        if self._is_planned:
            return
        self._is_planned = True
        each = self._running() + [query for query in self._pipelines.values() if _is_undecided(query)]
        self._reach = max((query.reach for query in each), default=0)
        self._columns = self._columns_needed([query.required for query in each])
        self._ingest.expect(
            self._columns,
            frozenset().union(*(query.required.atoms for query in each)),
            only_these=self.reads_once,
            exact=not all(_ignores_ties(query.query) for query in each),
        )

    def _columns_needed(self, required: Iterable[RequiredColumns | ColumnSet]) -> set[str] | None:
        """Name the attributes of atomic events that are read; None stands for all."""
        own = {CONTENT, ARRIVAL} | ({self._owned.name} if self._owned is not None else set())
        return (
            None
            if any(each.all_atoms for each in required)
            else own.union(*(each.atoms for each in required))
        )

    def _running(self) -> list[Pipeline]:
        """Give all that runs: queries, what they have in common, families of them."""
        sharing = self._sharing
        return [
            *sharing.commons.values(),
            *sharing.families.running.values(),
            *alone(self._pipelines).values(),
        ]

    def beside(self, query: Query, *, name: str | None = None) -> Session:
        """Open another session with the settings and the time of this one, for a query that starts now."""
        ingest = self._ingest
        other = Session(
            query,
            lateness=ingest.lateness,
            coordinates=ingest.coordinates,
            reading=ingest.reading,
            name=name,
            follows_events=ingest.follows_events,
            owned=ingest.owned,
        )
        other._ingest.advance(ingest.watermark)
        other.keep_time_points(time for time in query.graph.time_points if time > ingest.watermark)
        return other

    def twin(self) -> Session:
        """Open another session with the settings and the queries of this one, which has seen nothing yet."""
        ingest = self._ingest
        other = Session(
            lateness=None,
            coordinates=ingest.coordinates,
            reading=ingest.reading,
            remember=self._remember,
        )
        other.names_queries = self.names_queries
        for name, pipeline in self._pipelines.items():
            other.add(pipeline.query, name=name)
        other.keep_time_points(self.time_points)
        return other

    # -- events ------------------------------------------------------------------------------------------

    def push(self, events: EventTable) -> pa.Table:
        """Take in events (Arrow, pandas, polars, a list of dicts) and give the detections they complete."""
        found: list[pa.Table] = []
        for batch in batches(events, rows=self.slice_rows):
            found += self._push(batch)
        return together(found, self._ingest.coordinates)

    @property
    def slice_rows(self) -> int:
        """How many events to process at once: many queries share the work on one slice."""
        return SLICE if len(self._pipelines) < 64 else 8 * SLICE

    def _push(self, batch: pa.RecordBatch) -> list[pa.Table]:
        self._ingest.accept(self.normalise(batch).events)
        return self._run()

    def normalise(self, batch: pa.RecordBatch) -> Normalised:
        """Bring a batch into the common form, counting the rows that are no events."""
        self._plan()
        return self._ingest.normalise(batch)

    def count_rejected(self, rejected: pa.RecordBatch) -> None:
        """Count rows that a reader could not even read."""
        self._ingest.counts.received += rejected.num_rows
        self._ingest.set_rejected_aside(rejected)

    def look_ahead(self, batches: list[pa.RecordBatch]) -> None:
        """Take note of the ids of a whole input before it is fed."""
        self._ingest.look_ahead(batches)

    def expect_each_once(self) -> None:
        """Take every event as new: whoever sends them delivers each once, and no ids need be remembered."""
        self._ingest.look_ahead([])
        self._ingest.recent = RecentIds(END_OF_TIME, room=1)

    def accept(self, events: pa.RecordBatch) -> None:
        """Take in events that are in the common form, and let them wait until time moves on."""
        self._ingest.counts.received += events.num_rows
        self._ingest.accept(events)

    def feed(
        self, events: pa.RecordBatch | Iterable[pa.RecordBatch] | None, watermark: int | None = None
    ) -> list[pa.Table]:
        """Take in events that are in the common form, and let time pass to `watermark`.

        Gives the detections as they come, one table an output; `whimbrel.engine.report.together` joins them.
        """
        self._ingest.begin()
        for batch in (events,) if isinstance(events, pa.RecordBatch) else events or ():
            self._ingest.accept(batch)
        if watermark is not None:
            self._ingest.advance(watermark)
        return self._run()

    def advance(self, watermark: Moment) -> pa.Table:
        """Say that every event up to `watermark` has been pushed; give what that completes.

        Numbers are microseconds since 1970 UTC.
        """
        self._ingest.advance(instant(watermark))
        return together(self._run(), self._ingest.coordinates)

    def close(self) -> pa.Table:
        """Say that no more events will come: every window and absence that is still open ends."""
        self._ingest.advance(END_OF_TIME)
        return together(self._run(), self._ingest.coordinates)

    def invalidate(self, ids: str | Iterable[str]) -> Retraction:
        """Take events back that turned out wrong: the session goes on as if they had never come.

        Patterns that hold without them are found now, those that hold no longer are given as withdrawn. It is
        worked out from the events that the session still remembers, so that it reaches back as far as the
        queries do, and as much farther as `remember` says; events that are forgotten stay. An event with the
        same id that comes later counts as delivered again.

        Raises
        ------
        QueryError
            If a query depends on more than the events that the session still remembers.
        """
        wanted = {ids} if isinstance(ids, str) else set(ids)
        changed, other = replayed(self, wanted)
        waiting = self._ingest.take_back(wanted)
        if other is not None:
            self._take_over(other)
        return replace(changed, events=changed.events + waiting)

    def _take_over(self, other: Session) -> None:
        """Go on with what another session knows, but for what waits for its time."""
        self._around, self._atoms, self._timers = other._around, other._atoms, other._timers
        self._pipelines, self._sharing = other._pipelines, other._sharing
        self._ingest.types = self._atoms.types
        self._is_planned = False
        self._plan()

    def _run(self) -> list[pa.Table]:
        """Process everything that the watermark has reached."""
        self._plan()
        found: list[pa.Table] = []
        watermark = self._ingest.watermark
        if self._around.coordinates is not self._ingest.coordinates:
            self._settle_around()
        for batch in self._released(watermark):
            self._share(batch.batch)
            self._atoms.advance(batch.watermark)
            touched = self._atoms.feed(batch, self._columns)
            found += self._step(_readers(touched))
        self._atoms.clear()
        self._atoms.advance(watermark)
        found += self._step(self._due_by(watermark))
        self._forget(watermark)
        # In order already here, a long result need not be copied to be sorted as a whole.
        return [together(found, self._ingest.coordinates)] if len(found) else []

    def _released(self, watermark: int) -> list[Released]:
        """Give the events that the watermark has reached, the time points that it has passed among them."""
        passed = {time for time in self._ahead if time <= watermark}
        self._ahead -= passed
        return with_time_points(self._ingest.release(), passed, watermark, self._ingest.owned)

    def _share(self, events: pa.RecordBatch | None = None) -> None:
        """Let queries that have seen no event yet share what they have in common."""
        if self._sharing.fresh:
            self._sharing.settle(self._pipelines, events)
            self._is_planned = False
            self._plan()
            self._settle_around()

    def _due_by(self, watermark: int) -> dict[str, None]:
        """Name the queries in which something happens by `watermark` even without events."""
        names: dict[str, None] = {}
        if self._observer is not None and self._observer.steps_always:
            names = dict.fromkeys(self._pipelines)
        while self._timers and self._timers[0][0] <= watermark:
            names.setdefault(heappop(self._timers)[1])
        return names

    def _settle_around(self) -> None:
        self._around.coordinates = self._ingest.coordinates
        for pipeline in self._running():
            if pipeline.context.coordinates is None:
                pipeline.context.coordinates = self._ingest.coordinates

    def _step(self, names: Iterable[str]) -> list[pa.Table]:
        """Run some queries once, and take note of when they want to run again."""
        found, self._kept = self._kept, []
        ready = self._sharing.step(names, self._pipelines)
        failure = ready.failure
        for time in ready.due:
            heappush(self._timers, time)
        for name in ready.names:
            pipeline = self._sharing.families.running.get(name) or self._pipelines.get(name)
            if not isinstance(pipeline, Pipeline):
                continue
            try:
                for _ in pipeline.rounds():
                    found += self._found(pipeline)
                    pipeline.clear_made()
            except WhimbrelError as error:
                failure = failure or error
                continue
            if pipeline.due < END_OF_TIME:
                heappush(self._timers, (pipeline.due, name))
        if failure is not None:
            # The other queries have done their work; what they found comes with the next call.
            self._kept = found
            raise failure
        return found

    def _found(self, pipeline: Pipeline) -> Iterator[pa.Table]:
        """Report what is new in the outputs of a query, or of a family of them."""
        for stream in pipeline.outputs:
            rows = self._reported(pipeline, stream)
            if len(rows):
                table = self._written(stream, rows, pipeline)
                if table is None:
                    continue
                if self.names_queries:
                    table = table.append_column("@query", pipeline.queries(stream, rows))
                yield table

    def _written(self, stream: OperatorStream, rows: Int64Array, pipeline: Pipeline) -> pa.Table | None:
        """Write detections as a table; None if an observer keeps them to itself."""
        if self._observer is not None:
            return self._observer.report(stream, rows, pipeline)
        return report(stream, rows, pipeline.context)

    def _reported(self, pipeline: Pipeline, stream: OperatorStream) -> Int64Array:
        """Give the new rows of an output that are this session's to report."""
        rows = pipeline.reported(stream)
        if self._owned is None or not len(rows):
            return rows
        mine = pipeline.context.atoms.store.column(self._owned, stream.store.lineage(rows).oldest)
        return rows[mine.values & ~mine.nulls]

    def _forget(self, watermark: int) -> None:
        if self._observer is not None and self._observer.keeps_rows:
            return
        before = watermark - self._reach - self._remember
        if self._atoms.stream.store.forget_before(before):
            for pipeline in self._running():
                pipeline.forget_before(before)

    # -- snapshots ---------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Give the whole state as one block of bytes, which `restore` takes up again.

        Events that were set aside for inspection are not part of it; their counts are.
        """
        self._share()
        self._sharing.catch_up(self._pipelines)
        blocks = Blocks()
        about = {
            "queries": list(self._pipelines),
            "timers": self._timers,
            "sharing": self._sharing.save(blocks),
            "families": self._sharing.families.save(blocks, self._pipelines),
        }
        blocks.put_json("session", about)
        self._ingest.save(blocks, "intake")
        save_store(blocks, "atoms", self._atoms.stream.store)
        for number, query in enumerate(self._pipelines.values()):
            if isinstance(query, Pipeline):
                query.save(blocks, f"query/{number}")
        return blocks.to_bytes()

    def restore(self, snapshot: bytes) -> None:
        """Go on where `snapshot` was taken. The session must run the same queries, with the same names.

        Raises
        ------
        StateError
            If the snapshot is damaged, of another version, or of other queries.
        """
        blocks = Blocks.from_bytes(snapshot)
        about = blocks.json("session")
        if about["queries"] != list(self._pipelines):
            raise StateError(
                f"the snapshot is of the queries {', '.join(about['queries']) or 'none'}; "
                f"this session runs {', '.join(self._pipelines) or 'none'}"
            )
        self._ingest.load(blocks, "intake")
        self._ahead = {time for time in self._ahead if time > self._ingest.watermark}
        self._timers = [(due, name) for due, name in about["timers"]]
        load_store(blocks, "atoms", self._atoms.stream.store, is_atomic=True)
        shared, families = about.get("sharing", []), about.get("families", [])
        self._sharing.load(blocks, shared, families, self._pipelines, self._deployed)
        self._is_planned = False
        for number, query in enumerate(self._pipelines.values()):
            if isinstance(query, Pipeline):
                query.load(blocks, f"query/{number}")
        self._atoms.advance(self._ingest.watermark)
        self._settle_around()

    # -- what became of the events -----------------------------------------------------------------------

    @property
    def coordinates(self) -> Coordinates | None:
        """How locations are given, once that is known."""
        return self._ingest.coordinates

    @property
    def schemas(self) -> Mapping[str, EventSchema]:
        """The event types that the running queries declare."""
        return self._ingest.schemas

    @property
    def reading(self) -> Reading:
        """How rows are read as events."""
        return self._ingest.reading

    @property
    def columns_taken(self) -> dict[str, str]:
        """The column that was taken so far for each of `time`, `source` and so on."""
        return dict(self._ingest.noticed.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken on trust so far, in words: usual names of columns, units told by their size."""
        return self._ingest.noticed.lines()

    @property
    def noticed(self) -> InputNotes:
        """What was noticed about the input so far."""
        return self._ingest.noticed

    def warnings(self, found: int) -> tuple[str, ...]:
        """Say what looks like a mistake in the input, given how many detections there were."""
        graphs = [pipeline.query.graph for pipeline in self._pipelines.values()]
        ingest = self._ingest
        return ingest.noticed.warnings(ingest.counts, graphs, ingest.types, ingest.reading, found)

    @property
    def watermark(self) -> int:
        """Up to which time (microseconds UTC) every event has been seen."""
        return self._ingest.watermark

    @property
    def reach(self) -> int:
        """How long after its end (microseconds) an event can still become part of a detection."""
        self._plan()
        return self._reach

    @property
    def columns_read(self) -> set[str] | None:
        """The attributes of atomic events that the queries read; None: all."""
        self._plan()
        return self._columns

    @property
    def newest(self) -> int:
        """The latest time that an event which was pushed can have; without a lateness any."""
        lateness = self._ingest.lateness
        return END_OF_TIME if lateness is None else min(self.watermark + lateness + 1, END_OF_TIME)

    @property
    def counts(self) -> Counts:
        """What became of the events: processed, waiting, late, duplicate, rejected."""
        return self._ingest.counts

    @property
    def dropped(self) -> dict[str, int]:
        """How many matches in the making each query has given up because a partition had too many of them."""
        found = {name: pipeline.dropped for name, pipeline in alone(self._pipelines).items()}
        return {name: number for name, number in found.items() if number}

    def take_late(self) -> pa.Table | None:
        """Give the events that came too late since the last call."""
        return self._ingest.late.take()

    def take_duplicates(self) -> pa.Table | None:
        """Give the events that were delivered again since the last call."""
        return self._ingest.duplicates.take()

    def take_rejected(self) -> pa.Table | None:
        """Give the rows that are no events, with their reasons, since the last call."""
        return self._ingest.rejected.take()

    # -- why -------------------------------------------------------------------------------------------------

    def why(
        self,
        *,
        key: Value | Mapping[str, Value] = None,
        at: Moment | None = None,
        around: Duration | None = None,
        name: str | None = None,
        limit: int = 5,
        effort: int = 4_000,
    ) -> Explanation:
        """Say why a running query detected something, or did not.

        It is told from the events that the session still remembers: those within the reach of its queries,
        and as much more as `remember` says. What older events did, and used up, it cannot know. Nothing is
        kept or computed for it beforehand, and the session goes on unchanged.

        Parameters
        ----------
        key, at, around, limit, effort
            As for `whimbrel.why`.
        name
            Which query, where several are running.
        """
        explain = Session.explainer
        if explain is None:
            raise WhimbrelError(
                "explanations are not loaded: use whimbrel.Session, or import whimbrel.whynot"
            )
        return explain(self, key=key, at=at, around=around, name=name, limit=limit, effort=effort)

    def query(self, name: str | None = None) -> Query:
        """Give a running query by its name, or the only one."""
        if name is None and len(self._pipelines) == 1:
            return next(iter(self._pipelines.values())).query
        if name is None:
            raise QueryError(f"say which query: {', '.join(self._pipelines) or 'none is running'}")
        if name not in self._pipelines:
            raise UnknownNameError("running query", name, self._pipelines)
        return self._pipelines[name].query

    @property
    def lateness(self) -> int | None:
        """How long it waits for events that are out of order, in microseconds; None: the input is bounded."""
        return self._ingest.lateness

    @property
    def remembers_since(self) -> int | None:
        """From when on every event is remembered (microseconds UTC); None if none was forgotten."""
        if not self._atoms.stream.store.first:
            return None
        return self._ingest.watermark - self._reach - self._remember

    @property
    def time_points(self) -> frozenset[int]:
        """The time points that it waits for, and those that it remembers."""
        store = self._atoms.stream.store
        types = store.column(Attribute(None, "type"), np.arange(store.first, store.total))
        passed = frozenset() if types.type is None else times_of(types.values)
        return passed | self._ahead

    def keep_time_points(self, times: Iterable[int]) -> None:
        """Wait for no other time points than some: the others have passed before."""
        self._ahead &= set(times)

    def remembered(self) -> pa.Table:
        """Give the processed events that are still remembered, with the columns that the queries read."""
        return events_of(self._atoms.stream.store)

    def look_aside(self) -> dict[str, pa.Table | None]:
        """Look at the late, duplicate and rejected events that were kept, leaving them where they are."""
        ingest = self._ingest
        kept = {"late": ingest.late, "duplicate": ingest.duplicates, "rejected": ingest.rejected}
        return {kind: aside.look() for kind, aside in kept.items()}


def _readers(touched: Iterable[OperatorStream]) -> dict[str, None]:
    """Name the queries and families that read selections in which something is new, and let these have it."""
    names: dict[str, None] = {}
    for stream in touched:
        names |= stream.users
        for subscriber in stream.subscribers:
            subscriber.add(stream.new)
            names[subscriber.family] = None
    return names


def _is_undecided(query: Pipeline | QueryInstance) -> bool:
    return isinstance(query, QueryInstance) and query.family is None


def _ignores_ties(query: Query) -> bool:
    """Tell whether events of the same times may be processed in any order: filters and plain sequences."""
    for operator in query.graph.operators:
        if isinstance(operator, JoinPattern):
            chained = {(order.first, order.second) for order in operator.orders if order.gap is None}
            plain = operator.context.value == "each" and not operator.consuming
            steps = {(part, part + 1) for part in range(len(operator.parts) - 1)}
            if not plain or not steps <= chained or any(p.select.value != "each" for p in operator.parts):
                return False
        elif not isinstance(operator, Source | Filter | Derive):
            return False
    return True


def run_bounded(session: Session, source: Iterable[pa.RecordBatch]) -> pa.Table:
    """Feed a whole input, already in the common form, to a session, time following as far as the rest allows.

    Slices are fed one by one, so that sorted inputs of any size need little memory.
    """
    slices: list[pa.RecordBatch | None] = list(source)
    session.look_ahead([events for events in slices if events is not None])
    least = [_least_end(events) for events in slices]
    for number in range(len(least) - 2, -1, -1):
        least[number] = min(least[number], least[number + 1])
    found: list[pa.Table] = []
    for number, events in enumerate(slices):
        slices[number] = None  # let go of it as soon as it is processed
        rest = least[number + 1] if number + 1 < len(least) else END_OF_TIME + 1
        found += session.feed(events, rest - 1)
    if not slices:
        found += session.feed(None, END_OF_TIME)
    return together(found, session.coordinates)


def _least_end(events: pa.RecordBatch | None) -> int:
    if events is None or not events.num_rows:
        return END_OF_TIME + 1
    return int(events.column("end").to_numpy(zero_copy_only=False).min())
