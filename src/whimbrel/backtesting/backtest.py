"""Run a query over history: what it would have found, how often, and what a changed one finds otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.backtesting.compare import ADDED, CHANGE, CHANGED, CHANGES, DROPPED, compare
from whimbrel.backtesting.counting import DetectionCounts, TimeZone
from whimbrel.backtesting.keys import KEY, keyed, with_keys, without_twins
from whimbrel.engine.bounded import Progress, run
from whimbrel.engine.ingest import Counts
from whimbrel.engine.result import Detections
from whimbrel.errors import WhimbrelError
from whimbrel.graph.query import Query
from whimbrel.model.frames import EventPaths, EventTable
from whimbrel.model.reading import Reading, ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.model.settings import check_settings

if TYPE_CHECKING:
    from whimbrel.store import Store

Runner = Callable[[Query], Detections]


class BacktestSettings(ReadSettings, total=False):
    """The settings of `backtest` that it passes on to `whimbrel.run` or `whimbrel.store.Store.run`."""

    lateness: timedelta | str | int | None
    coordinates: Coordinates | str | None
    reading: Reading | None
    since: datetime | str | int | None
    until: datetime | str | int | None


def backtest(
    query: Query,
    events: EventTable | EventPaths | Store,
    *,
    against: Query | None = None,
    by: str | Sequence[str] | None = None,
    timezone: str = "UTC",
    progress: Progress | None = None,
    rejected: str | PathLike[str] | None = None,
    **settings: Unpack[BacktestSettings],
) -> Backtest:
    """Find what a query would have detected in recorded events, and count it.

    The detections are those of `whimbrel.detect`, which are those of a live session over the same events.

    Parameters
    ----------
    query
        The query, or the old one if there are two.
    events
        As for `whimbrel.detect`: paths, Arrow, pandas, polars, a list of dicts, or an event store.
    against
        The new query: what it adds and drops is reported. Findings are matched by type and atomic events, so
        a definition should keep its name.
    by
        Attributes of the detections, or keys of the query, to count by; None: what the query groups by.
    timezone
        In which days and hours are counted, such as "Europe/Berlin".
    rejected
        A file for rows that are no events, each with its reason.
    lateness, coordinates, reading, columns, time_unit, time_format, day_first, time_zone, default_type
        As for `whimbrel.run`.
    since, until
        Of an event store, as for `whimbrel.store.Store.run`.

    Examples
    --------
    >>> import whimbrel as wb
    >>> events = [{"type": "Temp", "time": 3600 * n, "room": "ab"[n % 2], "val": 20 + n} for n in range(9)]
    >>> old = wb.compile("define Warm detect Temp(val > 25) group by room")
    >>> new = wb.compile("define Warm detect Temp(val > 24) group by room")
    >>> result = wb.backtest(old, events, against=new)
    >>> result.detections.num_rows, result.added.column("val").to_pylist(), result.dropped.num_rows
    (3, [25], 0)
    >>> result.by_key().select(["key", "old", "new", "added"]).to_pylist()
    [{'key': 'room=b', 'old': 1, 'new': 2, 'added': 1}, {'key': 'room=a', 'old': 2, 'new': 2, 'added': 0}]
    """
    check_settings(settings, BacktestSettings, "backtest()")
    if isinstance(events, pa.RecordBatchReader) and against is not None:
        events = events.read_all()  # it can be read once, and two queries run over it
    first = _runner(events, {**settings, "progress": progress, "rejected": rejected})
    second = _runner(events, {**settings, "progress": progress})
    return try_out(query, first, against=against, then=second, by=by, timezone=timezone)


def _runner(events: Any, settings: dict[str, Any]) -> Runner:
    store = sys.modules.get("whimbrel.store")  # who has a store has loaded this
    if store is not None and isinstance(events, store.Store):
        return lambda query: events.run(query, **settings)
    return lambda query: run(query, events, **settings)


def try_out(
    query: Query,
    runs: Runner,
    *,
    against: Query | None = None,
    then: Runner | None = None,
    by: str | Sequence[str] | None = None,
    timezone: str = "UTC",
) -> Backtest:
    """Do a backtest with whatever runs queries; `then` runs the new one if it is another."""
    for given in (query, against):
        if isinstance(given, str | PathLike):
            raise WhimbrelError("this is no query yet; compile it first: wb.compile(text) or wb.read(path)")
    zone, names = TimeZone(timezone), [by] if isinstance(by, str) else by
    old = _run(query, runs, names)
    new = None if against is None else _run(against, then or runs, names)
    return Backtest(query, old[0], old[1], zone, against, *(new or (None, None)))


def _run(query: Query, runs: Runner, by: Sequence[str] | None) -> tuple[pa.Table, Counts]:
    outcome = runs(with_keys(query))
    detections, keys = without_twins(outcome.detections)
    return keyed(detections, keys, query, by), outcome.counts


@dataclass(frozen=True, repr=False)
class Backtest:
    """What came of a backtest; in a notebook it shows itself."""

    query: Query
    _old: pa.Table
    counts: Counts
    """What became of the events in the run of `query`."""
    zone: TimeZone
    against: Query | None = None
    _new: pa.Table | None = None
    new_counts: Counts | None = None
    """What became of them in the run of `against`."""
    names: tuple[str, str] = ("old", "new")
    """What the two queries are called where results are shown."""

    def called(self, old: str, new: str = "new") -> Backtest:
        """Call the queries by other names where results are shown."""
        return replace(self, names=(old, new))

    @property
    def is_comparison(self) -> bool:
        """Whether there are two queries."""
        return self._new is not None

    @cached_property
    def detections(self) -> pa.Table:
        """What `query` found, as `whimbrel.detect` gives it."""
        return self._old.drop_columns([KEY])

    @cached_property
    def new_detections(self) -> pa.Table:
        """What `against` found."""
        return self._of_two(self._new).drop_columns([KEY])

    @cached_property
    def comparison(self) -> pa.Table:
        """Everything that either found: `change` says what each row is, `before` what was different."""
        return self._of_two(self.detection_counts.both).drop_columns([KEY])

    @property
    def added(self) -> pa.Table:
        """What only `against` found."""
        return self._changed(ADDED)

    @property
    def dropped(self) -> pa.Table:
        """What only `query` found."""
        return self._changed(DROPPED)

    @property
    def changed(self) -> pa.Table:
        """What both found, with other times, place or attributes."""
        return self._changed(CHANGED)

    @property
    def changes(self) -> dict[str, int]:
        """How many findings are the same, added, dropped and changed."""
        kinds = self.comparison.column(CHANGE)
        return {kind: int(pc.sum(pc.equal(kinds, kind)).as_py() or 0) for kind in CHANGES}

    @property
    def is_changed(self) -> bool:
        """Whether the two queries found anything that is not the same."""
        return any(count for kind, count in self.changes.items() if kind != "same")

    def _changed(self, kind: str) -> pa.Table:
        return self.comparison.filter(pc.equal(self.comparison.column(CHANGE), kind))

    def _of_two(self, table: pa.Table | None) -> pa.Table:
        if table is None:
            raise WhimbrelError("there is one query only; name another to compare with: against=new")
        return table

    @cached_property
    def detection_counts(self) -> DetectionCounts:
        """What is counted."""
        both = None if self._new is None else compare(self._old, self._new)
        return DetectionCounts(self._old, self._new, both, self.zone)

    # -- counts ------------------------------------------------------------------------------------------

    def by_day(self) -> pa.Table:
        """Count by day: `day` and `detections`, or `old`, `new`, `added`, `dropped` and `changed`."""
        return self.detection_counts.by_day()

    def by_hour(self) -> pa.Table:
        """Count by hour of the day: `hour`, and the columns of `by_day`."""
        return self.detection_counts.by_hour()

    def by_type(self) -> pa.Table:
        """Count by type of detection: `type`, and the columns of `by_day`."""
        return self.detection_counts.by_type()

    def by_key(self) -> pa.Table:
        """Count by `type` and `key`, the most changed or frequent first, with `first` and `last` times."""
        return self.detection_counts.by_key()

    # -- shown -------------------------------------------------------------------------------------------

    def summary(self, width: int = 80) -> str:
        """Say what was found, with bars for days and hours, in lines of text."""
        from whimbrel.backtesting.text import summary

        return summary(self, width)

    def to_svg(self) -> str:
        """Draw how often, by day (or what fits) and by hour of the day, as an SVG picture."""
        from whimbrel.backtesting.plot import picture

        return picture(self)

    def to_html(self) -> str:
        """Write a page with everything, which needs nothing else."""
        from whimbrel.backtesting.page import page

        return page(self)

    def to_json(self) -> str:
        """Write the counts and what stands out as JSON."""
        from whimbrel.backtesting.page import as_json

        return as_json(self)

    def _repr_html_(self) -> str:
        from whimbrel.backtesting.page import fragment

        return fragment(self)

    def __repr__(self) -> str:
        if not self.is_comparison:
            return f"<backtest: {self._old.num_rows:,} detections; print(result.summary()) tells more>"
        changes = ", ".join(f"{count:,} {kind}" for kind, count in self.changes.items())
        return f"<backtest: {changes}; print(result.summary()) tells more>"
