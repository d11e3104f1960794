"""Running queries over time: push events, let time pass, get detections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.ingest import Counts, Ingest
from whimbrel.engine.mobile.followed import OwnedPlaces
from whimbrel.engine.mobile.measures import By, monitor_table
from whimbrel.engine.observer import Observer
from whimbrel.engine.remembered_events import events_of
from whimbrel.engine.report import together
from whimbrel.engine.retraction import Retraction, replayed
from whimbrel.engine.running_queries import RunningQueries
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.total_order import times_of
from whimbrel.errors import QueryError, WhimbrelError
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.mobile import ListedObject
from whimbrel.graph.query import Compilable, Query, compiled
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
    places
        The places around which interests of mobile queries are told of, where other sessions have the others.
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
        places: OwnedPlaces | None = None,
        remember: Duration = 0,
        reading: Reading | None = None,
        observer: Observer | None = None,
        **how: Unpack[ReadSettings],
    ) -> None:
        given = None if coordinates is None else Coordinates(coordinates)
        self.ingest = Ingest(
            lateness=None if lateness is None else duration(lateness),
            schemas={},
            coordinates=given,
            reading=reading or Reading.of(**how),
        )
        """Where events wait for their time, and where late, repeated and rejected ones are."""
        self.running = RunningQueries(given, owned, observer, places)
        self._planned = 0
        """Which plan of the queries is known where events come in."""
        self._remember = duration(remember)
        self.ingest.follows_events &= follows_events
        self.ingest.owned = owned
        self.ingest.types = self.running.events.types
        self.reads_once = False
        """Whether the queries are final when events come, so that columns nobody reads can be left out."""
        if query is not None:
            self.add(query, name=name)

    # -- queries -----------------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the running queries."""
        return tuple(self.running.pipelines)

    def query(self, name: str | None = None) -> Query:
        """Look up a running query by its name, or the only one."""
        return self.running.query(name)

    def add(self, query: Query | Compilable, *, name: str | None = None) -> str:
        """Start a query; it sees the events that come from now on. Give its name."""
        query, ingest = compiled(query), self.ingest
        wanted = query.graph.coordinates
        if wanted is not None and ingest.coordinates not in (None, wanted):
            raise QueryError(
                f"the query is in {wanted.value} coordinates, the session in {ingest.coordinates}"
            )
        chosen = name or "+".join(query.types)
        self.running.add(query, chosen)
        if query.mobile:
            ingest.note_late = self._note_late
        ingest.coordinates = wanted or ingest.coordinates
        ingest.schemas |= query.schemas
        ingest.time_points |= {time for time in query.graph.time_points if time > ingest.watermark}
        return chosen

    def remove(self, name: str) -> None:
        """Stop a query and forget its state."""
        self.running.remove(name)

    def recall(self, events: EventTable, *, until: Moment | None = None) -> None:
        """Let the queries know what happened before, and tell nothing of it.

        Mobile queries begin after these events, which are the history of their first interests; other queries
        go on as if they had run before. Live events follow without a gap: those up to `until`, or else up to
        the last of these events, have been seen.

        Examples
        --------
        >>> import whimbrel as wb
        >>> near = wb.follow(wb.compile("define Slow detect Position(speed < 1)"), "a", type="Position",
        ...                  within="150 m", lifetime="1 min")
        >>> session = wb.Session(near)
        >>> session.recall([{"type": "Position", "time": 0, "source": "b", "x": 0, "y": 0, "speed": 0}])
        >>> told = session.push([{"type": "Position", "time": 9, "source": "a", "x": 9, "y": 0, "speed": 8}])
        >>> session.close().select(["focal", "type", "live"]).to_pylist()
        [{'focal': 'a', 'type': 'Slow', 'live': False}]
        """
        self._plan()
        self.running.begin_at(END_OF_TIME)
        last = self.watermark
        for batch in batches(events, rows=self.slice_rows):
            accepted = self.normalise(batch).events
            last = max(last, int(pc.max(accepted.column("end").cast(pa.int64())).as_py() or last))
            self.ingest.accept(accepted)
            self._run()
        self.ingest.advance(last if until is None else instant(until))
        self._run()
        self.running.begin_at(self.watermark + 1)

    def follow(
        self, objects: Iterable[ListedObject | Value], *, query: str | None = None, mobile: str | None = None
    ) -> None:
        """Put objects on the list of a mobile query that follows those of a table.

        They are followed from their next location update on. A lifetime longer than any before reaches back
        only to events that are still remembered.

        Parameters
        ----------
        objects
            Their keys, or `ListedObject` with a radius and a lifetime of its own.
        query, mobile
            The name of the query, and of the mobile query in it, where there are several.
        """
        rows = [each if isinstance(each, ListedObject) else ListedObject(each) for each in objects]
        self.running.mobile(query).following_of(mobile).objects.follow(rows)
        self.running.plan_anew()

    def unfollow(self, keys: Iterable[Value], *, query: str | None = None, mobile: str | None = None) -> None:
        """Take objects off the list; their interests end now."""
        self.running.mobile(query).following_of(mobile).objects.unfollow(keys)

    def name_queries(self) -> None:
        """Let detections say in a column `@query` which query they are of."""
        self.running.names_queries = True

    def _plan(self) -> None:
        """Work out what all running queries need together, and let it be known where events come in."""
        queries = self.running
        queries.plan()
        if queries.plans != self._planned:
            self._planned = queries.plans
            self.ingest.expect(
                queries.columns, queries.mentioned, only_these=self.reads_once, exact=queries.breaks_ties
            )

    def beside(self, query: Query, *, name: str | None = None) -> Session:
        """Open another session with the settings and the time of this one, for a query that starts now."""
        ingest = self.ingest
        other = Session(
            query,
            lateness=ingest.lateness,
            coordinates=ingest.coordinates,
            reading=ingest.reading,
            name=name,
            follows_events=ingest.follows_events,
            owned=ingest.owned,
            places=self.running.places,
        )
        other.ingest.advance(ingest.watermark)
        other.keep_time_points(time for time in query.graph.time_points if time > ingest.watermark)
        return other

    def twin(self) -> Session:
        """Open another session with the settings and the queries of this one, which has seen nothing yet."""
        ingest = self.ingest
        other = Session(
            lateness=None,
            coordinates=ingest.coordinates,
            reading=ingest.reading,
            remember=self._remember,
        )
        other.running.names_queries = self.running.names_queries
        for name in self.queries:
            other.add(self.query(name), name=name)
        other.keep_time_points(self.time_points)
        return other

    # -- events ------------------------------------------------------------------------------------------

    def push(self, events: EventTable) -> pa.Table:
        """Take in events (Arrow, pandas, polars, a list of dicts) and give the detections they complete."""
        steps: list[pa.Table] = []
        for batch in batches(events, rows=self.slice_rows):
            self.ingest.accept(self.normalise(batch).events)
            steps += self._run()
        return together(steps, self.coordinates)

    @property
    def slice_rows(self) -> int:
        """How many events to process at once: many queries share the work on one slice."""
        return SLICE if len(self.queries) < 64 else 8 * SLICE

    def normalise(self, batch: pa.RecordBatch) -> Normalised:
        """Bring a batch into the common form, counting the rows that are no events."""
        self._plan()
        return self.ingest.normalise(batch)

    def accept(self, events: pa.RecordBatch) -> None:
        """Take in events that are in the common form, and let them wait until time moves on."""
        self.ingest.counts.received += events.num_rows
        self.ingest.accept(events)

    def feed(
        self, events: pa.RecordBatch | Iterable[pa.RecordBatch] | None, watermark: int | None = None
    ) -> list[pa.Table]:
        """Take in events that are in the common form, and let time pass to `watermark`.

        Gives the detections of this step in order; `whimbrel.engine.report.together` joins those of several.
        """
        self.ingest.begin()
        for batch in (events,) if isinstance(events, pa.RecordBatch) else events or ():
            self.ingest.accept(batch)
        if watermark is not None:
            self.ingest.advance(watermark)
        return self._run()

    def advance(self, watermark: Moment) -> pa.Table:
        """Say that every event up to `watermark` has been pushed; give what that completes.

        Numbers are microseconds since 1970 UTC.
        """
        self.ingest.advance(instant(watermark))
        return together(self._run(), self.coordinates)

    def close(self) -> pa.Table:
        """Say that no more events will come: every window and absence that is still open ends."""
        return self.advance(END_OF_TIME)

    def _run(self) -> list[pa.Table]:
        """Process everything that the watermark has reached."""
        self._plan()
        ingest, queries = self.ingest, self.running
        if queries.context.coordinates is not ingest.coordinates:
            queries.settle_coordinates(ingest.coordinates)
        tables = queries.process(ingest.release(), ingest.watermark)
        queries.forget_before(ingest.watermark - queries.reach - self._remember)
        # In order already here, a long result need not be copied to be sorted as a whole.
        return [together(tables, ingest.coordinates)] if tables else []

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
        waiting = self.ingest.take_back(wanted)
        if other is not None:
            self.running = other.running
            self._planned = 0
            self.ingest.types = self.running.events.types
        return replace(changed, events=changed.events + waiting)

    # -- snapshots ---------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Write the whole state as one block of bytes, which `restore` takes up again.

        Events that were set aside for inspection are not part of it; their counts are.
        """
        return self.state().to_bytes()

    def state(self) -> Blocks:
        """Write the whole state as blocks, for who keeps large ones apart; `take_up` reads them."""
        blocks = Blocks()
        self.running.save(blocks)
        self.ingest.save(blocks, "ingest")
        return blocks

    def restore(self, snapshot: bytes) -> None:
        """Go on where `snapshot` was taken. The session must run the same queries, with the same names.

        Raises
        ------
        StateError
            If the snapshot is damaged, of another version, or of other queries.
        """
        self.take_up(Blocks.from_bytes(snapshot))

    def take_up(self, blocks: Blocks) -> None:
        """Go on where `state` was written; see `restore`."""
        self.running.check(blocks)
        self.ingest.load(blocks, "ingest")
        self.running.load(blocks, self.ingest.watermark, self.coordinates)

    # -- what mobile queries do --------------------------------------------------------------------------

    def measure_quality(self) -> None:
        """Measure how well interests stand for what is around their objects, before the first event comes.

        At every location update precision and recall of the current interest are measured. They are counted
        over all events that the interest has, so these are kept until it ends. What is told stays the same.
        """
        self.running.measures = True
        for query in self.running.following:
            query.measure()
        self.running.plan_anew()

    def watch_memory(self) -> None:
        """Look at the memory of mobile queries now and then, so that `monitor` can tell the most of it."""
        self.running.watches_memory = True
        for query in self.running.following:
            for each in query.following:
                each.watches_memory = True

    def monitor(self, *, by: By = "query") -> pa.Table:
        """Tell what mobile queries have done so far: what was told, and what that took.

        Parameters
        ----------
        by
            `query` for a row a mobile query, `focal` for a row a focal object of each.

        Returns
        -------
        pyarrow.Table
            A column a measure; `whimbrel.engine.mobile.measures` says what each means, and writes the table
            for Prometheus or as JSON. A measure that is not known is null.
        """
        for query in self.running.following:
            query.settle()
        return monitor_table(self.running.following, by=by)

    def _note_late(self, events: pa.RecordBatch) -> None:
        for query in self.running.following:
            query.note_late(events)

    # -- what became of the events -----------------------------------------------------------------------

    @property
    def coordinates(self) -> Coordinates | None:
        """How locations are given, once that is known."""
        return self.ingest.coordinates

    @property
    def schemas(self) -> Mapping[str, EventSchema]:
        """The event types that the running queries declare."""
        return self.ingest.schemas

    @property
    def reading(self) -> Reading:
        """How rows are read as events."""
        return self.ingest.reading

    @property
    def columns_taken(self) -> dict[str, str]:
        """The column that was taken so far for each of `time`, `source` and so on."""
        return dict(self.ingest.noticed.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken on trust so far, in words: usual names of columns, units told by their size."""
        return self.ingest.noticed.lines()

    def warnings(self, found: int) -> tuple[str, ...]:
        """Say what looks like a mistake in the input, given how many detections there were."""
        graphs = [self.query(name).graph for name in self.queries]
        ingest = self.ingest
        said = ingest.noticed.warnings(ingest.counts, graphs, ingest.types, ingest.reading, found)
        return (*said, *self.running.warnings())

    @property
    def watermark(self) -> int:
        """Up to which time (microseconds UTC) every event has been seen."""
        return self.ingest.watermark

    @property
    def reach(self) -> int:
        """How long after its end (microseconds) an event can still become part of a detection."""
        self._plan()
        return self.running.reach

    @property
    def columns_read(self) -> set[str] | None:
        """The attributes of atomic events that the queries read; None: all."""
        self._plan()
        return self.running.columns

    @property
    def newest(self) -> int:
        """The latest time that an event which was pushed can have; without a lateness any."""
        lateness = self.ingest.lateness
        return END_OF_TIME if lateness is None else min(self.watermark + lateness + 1, END_OF_TIME)

    @property
    def counts(self) -> Counts:
        """What became of the events: processed, waiting, late, duplicate, rejected."""
        return self.ingest.counts

    @property
    def dropped(self) -> dict[str, int]:
        """How many matches in the making each query has given up because a partition had too many of them."""
        return self.running.dropped

    def take_late(self) -> pa.Table | None:
        """Take the events that came too late since the last call."""
        return self.ingest.late.take()

    def take_duplicates(self) -> pa.Table | None:
        """Take the events that were delivered again since the last call."""
        return self.ingest.duplicates.take()

    def take_rejected(self) -> pa.Table | None:
        """Take the rows that are no events, with their reasons, since the last call."""
        return self.ingest.rejected.take()

    def take_interests(self) -> pa.Table | None:
        """Take the interests that began or ended since the last call: for those who compare what is told.

        There are any only where other sessions have other places, and a mobile query tells what is new or
        changes; see `whimbrel.engine.mobile.retelling`.
        """
        tables = self.running.take_interests()
        return pa.concat_tables(tables, promote_options="permissive") if tables else None

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

    @property
    def remembers_since(self) -> int | None:
        """From when on every event is remembered (microseconds UTC); None if none was forgotten."""
        if not self.running.events.stream.store.first:
            return None
        return self.watermark - self.running.reach - self._remember

    @property
    def time_points(self) -> frozenset[int]:
        """The time points that it waits for, and those that it remembers."""
        store = self.running.events.stream.store
        types = store.column(Attribute(None, "type"), np.arange(store.first, store.total))
        passed = frozenset() if types.type is None else times_of(types.values)
        return passed | self.ingest.time_points

    def keep_time_points(self, times: Iterable[int]) -> None:
        """Wait for no other time points than some: the others have passed before."""
        self.ingest.time_points &= set(times)

    def remembered(self) -> pa.Table:
        """List the processed events that are still remembered, with the columns that the queries read."""
        return events_of(self.running.events.stream.store)
