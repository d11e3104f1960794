"""The way in: run a query once more over events, watch every operator, and explain what it did."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack, cast

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.bounded import normalised_batches, run_bounded
from whimbrel.engine.session import Session
from whimbrel.engine.values import decoded
from whimbrel.errors import QueryError, WhimbrelError, did_you_mean
from whimbrel.graph.mobile import MobileQuery
from whimbrel.graph.mobile.reading import types_read
from whimbrel.graph.operators import ANY, Graph, Source, TimePoints
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.passes.find_joins import find_joins
from whimbrel.graph.query import Query
from whimbrel.graph.reach import reach
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.frames import EventPaths, EventTable, is_spark_frame
from whimbrel.model.reading import Reading, ReadSettings
from whimbrel.model.schema import Coordinates, Value
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME, MINUTE, Duration, Moment, duration, instant
from whimbrel.whynot.aside import unprocessed
from whimbrel.whynot.asking import EFFORT, SHOWN, EngineView, EventGroups, key_asked_for
from whimbrel.whynot.explanation import Explanation, key_text
from whimbrel.whynot.following import NotedRun, explain_deliveries
from whimbrel.whynot.operators import explain_graph
from whimbrel.whynot.watching import Watched
from whimbrel.whynot.words import clock, listed

if TYPE_CHECKING:
    from whimbrel.spark.detecting import DataFrame
    from whimbrel.store import Store

Span = tuple[int, int]


def why(
    query: Query,
    events: EventTable | EventPaths | Store | DataFrame,
    *,
    key: Value | Mapping[str, Value] = None,
    at: Moment | None = None,
    around: Duration | None = None,
    lateness: Duration | None = None,
    coordinates: Coordinates | str | None = None,
    limit: int = SHOWN,
    effort: int = EFFORT,
    focal: Value = None,
    **how: Unpack[ReadSettings],
) -> Explanation:
    """Say why a query detected something in some events, or did not.

    The query runs over the events as `whimbrel.run` runs it, and every operator is watched. Then the partial
    matches are searched: how far each came, and what stopped it, with the values it saw.

    Parameters
    ----------
    events
        All that `whimbrel.detect` takes: files, tables, frames, an event store. Of a Spark DataFrame, the
        rows that can matter for the key and time are collected and explained here.
    key
        Of which group: a value where the query has one key (`group by vehicle`), else names with values.
    at
        Around which time, as `datetime`, ISO 8601 text or microseconds since 1970 UTC.
    around
        How far around; by default as far as the query reaches back, or a minute if it looks at single events.
    lateness, coordinates, columns, time_unit, time_format, day_first, time_zone, default_type
        As for `whimbrel.run`: with a lateness, events count as late that come later than it.
    limit
        How many misses to show for each definition; the others are counted.
    effort
        How many partial matches to look at for each definition, so that an answer comes in seconds.
    focal
        Of a query that follows something: the key of the object that was told, or was not; by default the
        first few objects.

    Examples
    --------
    >>> import whimbrel as wb
    >>> query = wb.compile("define Fast detect Position(speed > 30)")
    >>> answer = wb.why(query, [{"type": "Position", "id": "p1", "time": 0, "speed": 28.0}])
    >>> answer.matched, answer.misses[0].reasons[0].text
    (False, 'speed was 28, needed > 30')
    """
    if isinstance(query, str | os.PathLike):
        raise WhimbrelError("this is no query yet; compile it first: wb.compile(text) or wb.read(path)")
    if query.mobile:
        asked_of = _Following(query, focal, key, at, around, limit, effort)
        return asked_of.explained(events, lateness, coordinates, Reading.of(**how))
    if focal is not None:
        raise QueryError(
            "the query follows nothing, so that nobody is told", hint="leave focal out, or ask for a key"
        )
    asked = key_asked_for(key, find_joins(query.graph))
    span = _span(query.graph, at, around)
    frame = cast("DataFrame", events) if is_spark_frame(events) else None
    # The columns of a frame have their names when they come here; its mapping may hold Spark's expressions.
    own: ReadSettings = {**how, "columns": None} if frame is not None else how
    reading = replace(Reading.of(**own), is_settled=frame is not None or _is_store(events))
    watched = Watched(query, lateness=lateness, coordinates=coordinates, reading=reading)
    if frame is not None:
        from whimbrel.spark import collecting

        reached = _reached(query.graph, span)
        events = collecting.rows_of(query, frame, asked, reached, **how)
    types: Counter[str] = Counter()
    source = _counted(_source(watched, events), types)
    _feed(watched.session, source, lateness)
    if frame is not None and not _types_read(watched.watched) - {ANY} <= types.keys():
        types = (
            Counter(collecting.types_of(query, frame, **how)) | types
        )  # to name those that there are instead
    return _explained(_view(watched, asked, span, limit, effort, types), at)


def why_of_session(
    session: Session,
    *,
    key: Value | Mapping[str, Value] = None,
    at: Moment | None = None,
    around: Duration | None = None,
    name: str | None = None,
    limit: int = SHOWN,
    effort: int = EFFORT,
) -> Explanation:
    """Say why a query of a running session detected something, from the events the session still remembers.

    See `whimbrel.Session.why`.
    """
    query = session.query(name)
    if query.mobile:
        raise QueryError(
            "a session does not remember where objects were that its queries follow, so that it cannot say "
            "why they were told",
            hint="ask over recorded events: whimbrel.why(query, events, focal=...)",
        )
    asked = key_asked_for(key, find_joins(query.graph))
    span = _span(query.graph, at, around)
    watched = Watched(query, lateness=None, coordinates=session.coordinates)
    types: Counter[str] = Counter()
    for batch in _counted(session.remembered().to_batches(), types):
        watched.session.feed(batch)
    watched.session.keep_time_points(session.time_points)
    watched.session.feed(None, session.watermark)
    notes = _forgotten(session)
    return _explained(_view(watched, asked, span, limit, effort, types), at, session, notes)


@dataclass(frozen=True)
class _Following:
    """What is asked of a query that follows something."""

    query: Query
    focal: Value
    key: Value | Mapping[str, Value]
    at: Moment | None
    around: Duration | None
    limit: int
    effort: int

    def explained(
        self, events: Any, lateness: Duration | None, coordinates: Coordinates | str | None, reading: Reading
    ) -> Explanation:
        """Run the query and its plain part over the events, and explain both."""
        if is_spark_frame(events):
            raise QueryError(
                "deliveries are not explained in Spark DataFrames",
                hint="give the events as files, as a table, or as an event store",
            )
        reading = replace(reading, is_settled=_is_store(events))
        run = NotedRun(self.query, lateness=lateness, coordinates=coordinates, reading=reading)
        types: Counter[str] = Counter()
        known = types_read(self.query)
        if _is_store(events):
            events = events.scan(types=None if ANY in known else sorted(known))
        with RejectedWriter(None) as unwritten:
            batches = list(_counted(normalised_batches(run.session, events, unwritten), types))
        run.batches = batches
        _feed(run.session, batches, lateness)
        views = [self._view_of(mobile, run, batches, lateness, types) for mobile in self.query.mobile]
        findings = {
            (each.definition, each.operator, each.case): each
            for view in views
            for each in explain_graph(view)
        }
        return Explanation(
            findings=tuple(findings.values()),
            key=views[0].key,
            at=None if self.at is None else instant(self.at),
            events=run.session.counts.processed,
            types=dict(types.most_common()),
            unprocessed=unprocessed(run.session, views[0].key, frozenset(known), self.limit),
            notes=tuple(dict.fromkeys(note for view in views for note in _unknown_key(view))),
            deliveries=tuple(
                each
                for mobile, view in zip(self.query.mobile, views, strict=True)
                for each in explain_deliveries(mobile, run, view, self.focal)
            ),
            follows=True,
        )

    def _view_of(
        self,
        mobile: MobileQuery,
        run: NotedRun,
        batches: list[pa.RecordBatch],
        lateness: Duration | None,
        types: Counter[str],
    ) -> EngineView:
        plain = mobile.detect
        watched = Watched(plain, lateness=lateness, coordinates=run.session.coordinates)
        _feed(watched.session, batches, lateness)
        asked = key_asked_for(self.key, find_joins(self.query.graph))
        return _view(watched, asked, _span(plain.graph, self.at, self.around), self.limit, self.effort, types)


def _feed(session: Session, batches: Iterable[pa.RecordBatch], lateness: Duration | None) -> None:
    """Let all events pass as `whimbrel.run` does."""
    if lateness is None:
        run_bounded(session, batches)
        return
    for batch in batches:
        session.feed(batch)
    session.feed(None, END_OF_TIME)


def _view(
    watched: Watched, asked: dict[str, Any], span: Span, limit: int, effort: int, types: Counter[str]
) -> EngineView:
    if limit < 1 or effort < 1:
        raise QueryError("limit and effort must be at least 1")
    return EngineView(watched, asked, *span, limit, effort, types)


def _explained(
    view: EngineView, at: Moment | None, session: Session | None = None, notes: tuple[str, ...] = ()
) -> Explanation:
    """Explain what was watched; what was not processed is told by the live session, if there is one."""
    watched, types = view.watched, view.types
    return Explanation(
        findings=explain_graph(view),
        key=view.key,
        at=None if at is None else instant(at),
        events=watched.session.counts.processed if session is None else sum(types.values()),
        types=dict(Counter(types).most_common()),
        unprocessed=unprocessed(
            session or watched.session, view.key, _types_read(watched.watched), view.limit
        ),
        notes=(*notes, *_unknown_key(view)),
        is_live=session is not None,
    )


# -- events -----------------------------------------------------------------------------------------------


def _source(watched: Watched, events: Any) -> Iterator[pa.RecordBatch]:
    """Read events in the common form, from wherever they are."""
    if _is_store(events):
        types = _types_read(watched.watched)
        events = events.scan(types=None if ANY in types else sorted(types))
    with RejectedWriter(None) as unwritten:
        yield from normalised_batches(watched.session, events, unwritten)


def _is_store(events: Any) -> bool:
    store = sys.modules.get("whimbrel.store")  # who has a store has loaded this
    return store is not None and isinstance(events, store.Store)


def _counted(source: Iterable[pa.RecordBatch], types: Counter[str]) -> Iterator[pa.RecordBatch]:
    """Count events by their type as they pass."""
    for batch in source:
        for count in pc.value_counts(decoded(batch.column("type"))).to_pylist():
            types[count["values"]] += count["counts"]
        yield batch


def _types_read(graph: Graph) -> frozenset[str]:
    sources = [op for op in graph.operators if isinstance(op, Source) and not isinstance(op, TimePoints)]
    return frozenset(op.event_type for op in sources)


# -- times ------------------------------------------------------------------------------------------------


def _span(graph: Graph, at: Moment | None, around: Duration | None) -> Span:
    """Tell from when to when events are looked at."""
    if at is None:
        if around is not None:
            raise QueryError("around says how far from a time; say which time with `at`")
        return BEGINNING_OF_TIME, END_OF_TIME
    wide = duration(around) if around is not None else _reach(graph) or MINUTE
    return instant(at) - wide, instant(at) + wide


def _reach(graph: Graph) -> int:
    used = drop_unused(graph)
    return max((reach(used, name) for name in used.outputs), default=0)


def _reached(graph: Graph, span: Span) -> Span:
    """Tell from when to when events can matter for those that are looked at."""
    if span == (BEGINNING_OF_TIME, END_OF_TIME):
        return span
    return span[0] - _reach(graph), span[1] + _reach(graph)


# -- notes ------------------------------------------------------------------------------------------------


def _forgotten(session: Session) -> tuple[str, ...]:
    since = session.remembers_since
    if since is None:
        return ()
    return (f"the session has forgotten events before {clock(since)}; what they did is not explained",)


def _unknown_key(view: EngineView) -> tuple[str, ...]:
    """Say that no event has the key that was asked for, and which there are."""
    seen: dict[str, set[str]] = {name: set() for name in view.key}
    for group in _groups_read(view) if view.key else ():
        if all(name in group for name in view.key) and view.of_group(group):
            return ()
        for name in seen.keys() & group.keys():
            seen[name].add(str(group[name]))
    return tuple(_no_such_key(name, view.key[name], found) for name, found in seen.items() if found)


def _groups_read(view: EngineView) -> Iterator[dict[str, Any]]:
    """Collect the different groups of the events that any operator reads."""
    for operator in view.graph.operators:
        partitioning = operator.partitioning
        for input in operator.inputs if partitioning.keys else ():
            groups, stream = EventGroups(view.context, partitioning.keys), view.stream(input)
            groups.of(stream, stream.new)
            yield from groups.values


def _no_such_key(name: str, wanted: Any, found: set[str]) -> str:
    hint = did_you_mean(str(wanted), found) or ""
    hint = hint if hint.startswith("did you mean") else f"there are {listed(sorted(found))}"
    return f"no event that the query reads has {key_text({name: wanted})}; {hint}"
