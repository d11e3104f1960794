"""The event store: raw events as Parquet files by day and place, which queries over history prune on."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.bounded import run
from whimbrel.engine.input_notes import InputNotes
from whimbrel.engine.result import Detections
from whimbrel.engine.session import Session
from whimbrel.errors import DataError, WhimbrelError
from whimbrel.graph.mobile.reading import read_of
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.io.atomic import writing
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.frames import EventPaths, EventTable
from whimbrel.model.reading import Reading, ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.model.settings import check_settings
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME, Duration, duration, instant
from whimbrel.space.geometry import invalid_reason
from whimbrel.store import compact as compaction
from whimbrel.store import files, read
from whimbrel.store.bounds import ANYTHING, Bounds, box_of, simplified
from whimbrel.store.cells import day_name, first_whole_day, today
from whimbrel.store.following import bounds_from, following_from
from whimbrel.store.log import FOLDER, Batch, Commit, Log, StoredFile, StoreState, next_commit
from whimbrel.store.write import Progress, Staged, WriteInput, Writer, normalised

SETTINGS = "_store.json"
FORMAT_VERSION = 1
CELL_M = 50_000.0
TARGET_ROWS = 1_000_000
PATIENCE = "15 min"

_LOG = logging.getLogger(__name__)
_WRITING, _COMPACTING = "_lock", "_compacting"
_BATCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Moment = datetime | str | int


class StretchSettings(TypedDict, total=False):
    """A stretch of time: events with since <= end < until, so that neighbouring stretches share none."""

    since: Moment | None
    until: Moment | None


class ScanSettings(StretchSettings, total=False):
    """Which events of a store are asked for; each setting may be left out."""

    region: str | None
    """Events whose centre lies in this region, given as WKT, borders included."""
    types: Collection[str] | None
    """Events of these types."""


class StoreRunSettings(StretchSettings, ReadSettings, total=False):
    """The settings of `Store.run`; each may be left out."""

    progress: Progress | None
    rejected: str | PathLike[str] | None
    ready: Callable[[], None] | None


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an append."""

    batch: str
    events: int
    rejected: int
    files: int
    reasons: Counter[str] = field(default_factory=Counter)
    is_repeated: bool = False
    """Whether the batch was in the store already and could not be told from this one: nothing was done."""
    notes: tuple[str, ...] = ()
    """Which columns were taken for what, and what else was taken on trust."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did."""

    files_before: int
    files_after: int
    events: int
    """How many events lie in the files that were written."""
    duplicates: int
    """How many repeated events were left out."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What retention deleted, or would delete."""

    days: tuple[str, ...]
    files: int
    events: int
    size: int


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a store is read: of how many files, events and bytes, and why no more."""

    files: int
    files_read: int
    events: int
    events_read: int
    """Events in the files that are read; fewer pass the test of single rows."""
    size: int
    size_read: int
    bounds: tuple[Bounds, ...]

    def __str__(self) -> str:
        line = (
            f"reads {self.files_read:,} of {self.files:,} files, "
            f"{self.events_read:,} of {self.events:,} events, "
            f"{self.size_read / 1e6:.1f} of {self.size / 1e6:.1f} MB"
        )
        return "\n".join([line, *(f"  {bounds}" for bounds in self.bounds)])


class Store:
    """Events in a folder, by the day they ended on and the cell they lie in.

    Any number of processes may read while others append, compact or delete; those take turns.

    Examples
    --------
    >>> import tempfile
    >>> import whimbrel as wb
    >>> store = Store.create(tempfile.mkdtemp() + "/events", coordinates="plane", cell_m=1_000)
    >>> store.append([{"type": "Fix", "time": n, "x": 100.0 * n, "y": 0.0} for n in range(30)]).events
    30
    >>> query = wb.compile("region Gate = box(0, 0, 250, 10) define Passing detect Fix(this in Gate)")
    >>> print(store.explain(query))
    reads 1 of 3 files, 10 of 30 events, 0.0 of 0.0 MB
      Fix, x 0 to 250, y 0 to 10
    >>> store.detect(query).num_rows
    3
    """

    def __init__(self, root: Path, cell_m: float, coordinates: Coordinates | None) -> None:
        self.root = root
        self.cell_m = cell_m
        self._coordinates = coordinates
        self._log = Log(root)

    @staticmethod
    def create(
        root: str | PathLike[str], *, cell_m: float = CELL_M, coordinates: Coordinates | str | None = None
    ) -> Store:
        """Make an empty store in a folder that does not exist or has nothing in it.

        Parameters
        ----------
        cell_m
            The width of the cells in metres. A query that names a region reads the cells that it touches;
            each cell and day is at least one file. So about as wide as the regions that are asked for.
        coordinates
            "plane" or "lonlat"; None takes those of the first events that have a location.
        """
        path = Path(fspath(root))
        if not 0 < cell_m < float("inf"):
            raise DataError(f"cell_m is {cell_m}; it must be a number of metres above 0")
        settled = None if coordinates is None else _coordinates(coordinates)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            what = "there is a store already" if (path / SETTINGS).exists() else "the folder is not empty"
            raise DataError(f"{path}: {what}; name a new folder")
        (path / FOLDER).mkdir(parents=True)
        store = Store(path, float(cell_m), settled)
        store._write_settings()
        return store

    @staticmethod
    def open(root: str | PathLike[str]) -> Store:
        """Open a store that is there.

        Raises
        ------
        DataError
            If there is none, or it was made by a later version of Whimbrel.
        """
        path = Path(fspath(root))
        cell_m, coordinates = _read_settings(path)
        return Store(path, cell_m, coordinates)

    @property
    def coordinates(self) -> Coordinates | None:
        """How locations are given; None as long as no event has had one."""
        if self._coordinates is None:
            self._coordinates = _read_settings(self.root)[1]
        return self._coordinates

    @property
    def state(self) -> StoreState:
        """What the store holds now: its files, batches and attributes."""
        return self._log.state()

    # -- writing -----------------------------------------------------------------------------------------

    def append(
        self,
        events: EventTable | EventPaths,
        *,
        batch: str | int | None = None,
        rejected: str | PathLike[str] | None = None,
        progress: Progress | None = None,
        **settings: Unpack[ReadSettings],
    ) -> Appended:
        """Add events: all of them or, if anything goes wrong, none.

        Parameters
        ----------
        events
            A path or several, an Arrow table, a pandas or polars data frame, or a list of dicts.
        batch
            A name for these events. A batch of the same name takes the place of the one before, so that a
            source that delivers a batch again leaves nothing twice. Once its files have been merged with
            others it cannot be replaced: the same events again are passed over, others are an error.
        rejected
            A file for rows that are no events, each with its reason (JSON lines); made only if there are any.
        columns, time_unit, time_format, day_first, time_zone, default_type
            How events are read, as for `whimbrel.run`.
        """
        how = WriteInput(self.coordinates, Reading.of(**settings))
        noticed = InputNotes()
        with RejectedWriter(rejected) as refused:

            def stage(writer: Writer) -> Staged:
                for each in normalised(events, how, refused, progress):
                    noticed.note(each)
                    writer.add(each)
                writer.flush()
                return writer.staged

            appended = self.append_staged(stage, batch=batch)
        return replace(appended, rejected=refused.total, reasons=refused.counts, notes=noticed.lines())

    def append_staged(self, stage: Callable[[Writer], Staged], *, batch: str | int | None = None) -> Appended:
        """Add the events that `stage` writes with the writer it is given, or with copies of it elsewhere."""
        with files.locked(self.root, _WRITING):
            state = self._recovered()
            writer = self._writer(state, batch)
            try:
                staged = stage(writer)
                is_repeated = self._commit_batch(state, writer, staged)
            except BaseException:
                if self.state.version == state.version:  # after the commit the files belong to the store
                    writer.staged.discard(self.root)
                raise
        _LOG.info(
            "%s: batch %s: %s",
            self.root, writer.batch,
            "was there already" if is_repeated else f"{staged.rows} events in {len(staged.files)} files",
        )  # fmt: skip
        return Appended(writer.batch, staged.rows, 0, len(staged.files), is_repeated=is_repeated)

    def _writer(self, state: StoreState, batch: str | int | None) -> Writer:
        name = _free_name(state) if batch is None else str(batch)
        if not _BATCH.fullmatch(name):
            raise DataError(
                f"{name!r} is no name for a batch; use letters, digits, '.', '_' and '-', at most 100"
            )
        before = state.batches.get(name)
        sequence = state.sequence + 1 if before is None else before.sequence
        return Writer(
            self.root,
            name if before is None else f"{name}-again{before.generation + 1}",
            self.cell_m,
            self.coordinates,
            state.attributes,
            [file for file in state.files.values() if file.sequence < sequence],
            sequence,
            name,
        )

    def _commit_batch(self, state: StoreState, writer: Writer, staged: Staged) -> bool:
        """Commit what was written; tell whether it was there already."""
        before = state.batches.get(writer.batch)
        own = state.of_batch(writer.batch)
        if before is not None and sum(file.rows for file in own) != before.rows:
            # Some of its events lie in merged files by now, or were deleted by retention.
            if (before.rows, before.check) != (staged.rows, staged.check):
                raise DataError(
                    f"the batch {writer.batch!r} has been merged with others, so that it cannot be replaced "
                    "by other events; give the new ones another name"
                )
            staged.discard(self.root)
            return True
        self._settle(staged.coordinates)
        kinds = {**state.attributes, **staged.attributes}
        wider = compaction.widen(self.root, _without(state, own), kinds)
        gone = [*own, *(file for each in wider for file in each.replaces)]
        commit = Commit(
            0,
            (*staged.files, *(each.file for each in wider)),
            tuple(file.path for file in gone),
            Batch(
                writer.batch,
                writer.sequence,
                staged.rows,
                staged.check,
                0 if before is None else before.generation + 1,
            ),
            staged.attributes,
        )
        self._commit(state, commit)
        return False

    def _settle(self, coordinates: Coordinates | None) -> None:
        if self.coordinates is None and coordinates is not None:
            self._coordinates = coordinates
            self._write_settings()

    def _write_settings(self) -> None:
        said = None if self._coordinates is None else self._coordinates.value
        settings = {
            "what": "whimbrel event store",
            "version": FORMAT_VERSION,
            "coordinates": said,
            "cell_m": self.cell_m,
        }
        with writing(self.root / SETTINGS) as file:
            file.write(json.dumps(settings, indent=2).encode() + b"\n")

    def _recovered(self) -> StoreState:
        """Finish what a crash has left half done; only whoever holds the lock may do it."""
        last = self._log.last_commit()
        if last is not None:
            files.carry_out(self.root, last)
        return self.state

    def _commit(self, state: StoreState, commit: Commit) -> None:
        numbered = next_commit(state, commit)
        self._log.write(numbered)
        files.carry_out(self.root, numbered)
        self._log.tidy()

    def repair(self, *, patience: timedelta | str | int = PATIENCE) -> None:
        """Finish what a crash has left half done, for those who read the folder without Whimbrel.

        Appending, compacting and retention do it first of all. For `patience` see `compact`.
        """
        with files.locked(self.root, _COMPACTING), files.locked(self.root, _WRITING):
            files.sweep(self.root, self._recovered().files, duration(patience))

    # -- reading -----------------------------------------------------------------------------------------

    def scan(
        self,
        query: Query | None = None,
        *,
        columns: Collection[str] | None = None,
        **asked: Unpack[ScanSettings],
    ) -> pa.RecordBatchReader:
        """Read events, sorted by their end, from the files that can hold any of those wanted.

        Parameters
        ----------
        query
            Leave out events that the query cannot use (not all of them: what is given may be more). One that
            follows something also uses events before `since`: the history of its first interests.
        since, until
            Events with since <= end < until, so that neighbouring stretches of time share none.
        region
            Events whose centre lies in this region, given as WKT, borders included.
        types
            Events of these types.
        columns
            The attributes to read; None reads all that the query needs, or all there are without a query.
        """
        selection = self.selection(query, columns=columns, **asked)
        rows = read.batches(self.root, selection, self.coordinates)
        return pa.RecordBatchReader.from_batches(selection.shown, rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand all events to whoever takes Arrow: `pa.table(store)`, `pl.DataFrame(store)`."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def detect(self, query: Query, **settings: Unpack[StoreRunSettings]) -> Detections:
        """Find all detections of a query in the stored events; see `run` for the settings."""
        return self.run(query, **settings)

    def run(
        self,
        query: Query,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        progress: Progress | None = None,
        rejected: str | PathLike[str] | None = None,
        ready: Callable[[], None] | None = None,
        **how: Unpack[ReadSettings],
    ) -> Detections:
        """Find all detections of a query in the stored events, reading only what the query can use.

        The detections are those that `whimbrel.detect` finds in all stored events with since <= end < until.
        A query that follows something follows nobody before `since`; what happened before is the history that
        the first interests begin with, as if the query had been added then.

        Parameters
        ----------
        rejected, ready, time_unit, ...
            As for `whimbrel.run`. There is no lateness: stored events are in order, and none is late.
        """
        if "lateness" in how:
            raise WhimbrelError("stored events are in order, and none is late; leave lateness out")
        check_settings(how, StoreRunSettings, "run() of a store")
        selection = self.selection(query, since=since, until=until)
        rows = read.batches(self.root, selection, self.coordinates)
        total = sum(file.rows for file in selection.files)
        shown_progress = None if progress is None else lambda done, _: progress(done, total)
        reader = pa.RecordBatchReader.from_batches(selection.shown, rows)
        reading = replace(Reading.of(**how), is_settled=True)
        if since is not None and query.mobile:
            query = following_from(query, instant(since))
        return run(
            query,
            reader,
            coordinates=self.coordinates,
            progress=shown_progress,
            reading=reading,
            rejected=rejected,
            ready=ready,
        )

    def session(
        self,
        query: Query | Compilable,
        *,
        at: Moment,
        lateness: Duration | None = 0,
        **how: Unpack[ReadSettings],
    ) -> Session:
        """Open a session for live events from a time on, to which what is stored of before is history.

        A query that follows something follows nobody before `at`. The first interests have their history from
        the store, as of its last commit, and what is pushed follows without a gap: events that end before
        `at` are late. Other queries begin with what is pushed.

        Parameters
        ----------
        at
            When live events begin, and stored ones end.
        lateness, time_unit, ...
            As for `whimbrel.Session`.

        Examples
        --------
        >>> import tempfile
        >>> import whimbrel as wb
        >>> from whimbrel.store import Store
        >>> store = Store.create(tempfile.mkdtemp(), coordinates="plane")
        >>> stored = store.append([{"type": "Slow", "time": 50, "source": "b", "x": 0, "y": 0}])
        >>> seen = wb.compile("define Seen detect Slow")
        >>> near = wb.follow(seen, "a", type="Car", within="9 m", lifetime="1 min")
        >>> session = store.session(near, at=60_000_000)
        >>> told = session.push([{"type": "Car", "time": 70, "source": "a", "x": 1, "y": 0}])
        >>> session.close().select(["focal", "type", "live"]).to_pylist()
        [{'focal': 'a', 'type': 'Seen', 'live': False}]
        """
        query, moment = compiled(query), instant(at)
        session = Session(query, lateness=lateness, coordinates=self.coordinates, reading=Reading.of(**how))
        if query.mobile:
            session.recall(self.scan(query, since=moment, until=moment), until=moment - 1)
        else:
            session.advance(moment - 1)
        return session

    def bounds_of(self, query: Query, since: Moment | None = None) -> tuple[Bounds, ...]:
        """List the types, times and places, in one of which every event lies that the query can use."""
        first = BEGINNING_OF_TIME if since is None else instant(since)
        return bounds_from(query, self.state.attributes, first)

    def explain(self, query: Query | None = None, **asked: Unpack[ScanSettings]) -> Share:
        """Tell how much of the store a scan or a detection reads; the settings are those of `scan`."""
        every = self.state.files.values()
        selection = self.selection(query, **asked)
        chosen = selection.files
        return Share(
            len(every),
            len(chosen),
            sum(file.rows for file in every),
            sum(file.rows for file in chosen),
            sum(file.size for file in every),
            sum(file.size for file in chosen),
            selection.bounds,
        )

    def selection(
        self,
        query: Query | None = None,
        *,
        columns: Collection[str] | None = None,
        **asked: Unpack[ScanSettings],
    ) -> read.ScanSelection:
        """Choose files, columns and bounds, also for those who read the files themselves."""
        check_settings(asked, ScanSettings, "a scan of a store")
        since, region = asked.get("since"), asked.get("region")
        bounds = asked_for(None if query is not None else since, asked.get("until"), asked.get("types"))
        if region is not None:
            if (reason := invalid_reason(region)) is not None:
                raise DataError(f"the region cannot be used: {reason}")
            bounds = bounds.both(Bounds(box=box_of(region)))
        wanted = (ANYTHING,) if query is None else self.bounds_of(query, since)
        if columns is None and query is not None:
            columns = _needed(query, self.state.attributes)
        alternatives = simplified(bounds.both(each) for each in wanted)
        return read.select(self.state, self.coordinates, alternatives, region, columns)

    def conflicts(self) -> pa.Table:
        """Find ids that stand for different events: `id`, and how many `events` it stands for.

        Pruning relies on there being none. Every event is read, but for its attributes.
        """
        table = self.scan(columns=[]).read_all()
        location = [name for name in ("x", "y", "lon", "lat", "geometry") if name in table.column_names]
        different = table.group_by(["id", "type", "start", "end", *location]).aggregate([])
        counted = different.group_by("id").aggregate([("type", "count")]).rename_columns(["id", "events"])
        return counted.filter(pc.field("events") > 1).sort_by("id")

    # -- maintenance -------------------------------------------------------------------------------------

    def compact(
        self,
        *,
        before: date | Moment | None = None,
        target_rows: int = TARGET_ROWS,
        drop_duplicates: bool = False,
        patience: timedelta | str | int = PATIENCE,
        progress: Progress | None = None,
    ) -> Compacted:
        """Join the small files of each day and cell. Others may read and append meanwhile.

        Parameters
        ----------
        before
            Only days that lie wholly before this moment, such as those to which nothing more is added.
        target_rows
            Files with fewer events than this are small; joined ones have at least so many, if there are any.
        drop_duplicates
            Leave out events whose id another one has that is joined with it and comes before it in the
            total order. Detection passes over them anyway.
        patience
            How long files that were merged or replaced stay on disk, hidden, for those who began to read
            before; a later compaction deletes them.
        """
        if target_rows < 1:
            raise DataError(f"target_rows is {target_rows}; it must be at least 1")
        with files.locked(self.root, _COMPACTING):
            with files.locked(self.root, _WRITING):
                state = self._recovered()
                files.sweep(self.root, state.files, duration(patience))
            last = None if before is None else day_name(first_whole_day(before))
            groups = [
                group
                for (day, _), partition in state.partitions.items()
                if last is None or day < last
                for group in compaction.groups(partition, target_rows, singles=drop_duplicates)
            ]
            done = [self._merge(group, drop_duplicates) for group in _told(groups, progress)]
        merged = [each for each in done if each is not None]
        compacted = Compacted(
            sum(len(each.replaces) for each in merged),
            len(merged),
            sum(each.file.rows for each in merged),
            sum(each.dropped for each in merged),
        )
        _LOG.info(
            "%s: %d files joined into %d, %d repeated events left out",
            self.root, compacted.files_before, compacted.files_after, compacted.duplicates,
        )  # fmt: skip
        return compacted

    def _merge(self, group: tuple[StoredFile, ...], drop_duplicates: bool) -> compaction.MergedFile | None:
        read_as = self.state
        merged = compaction.merge(
            self.root, group, read_as, self.coordinates, drop_duplicates=drop_duplicates
        )
        if merged is None:
            return None
        with files.locked(self.root, _WRITING):
            state = self._recovered()
            is_current = all(state.attributes[name] == kind for name, kind in read_as.attributes.items())
            if is_current and all(file.path in state.files for file in group):
                self._commit(state, Commit(0, (merged.file,), tuple(file.path for file in group)))
                return merged
        # Somebody has replaced or deleted one of the files meanwhile; the next compaction sees to the rest.
        files.staged(self.root / merged.file.path).unlink(missing_ok=True)
        return None

    def retain(
        self,
        *,
        days: int | None = None,
        before: date | Moment | None = None,
        now: datetime | None = None,
        dry_run: bool = False,
    ) -> Removed:
        """Delete whole days: all but the last `days`, or those that lie wholly before a moment.

        Who is reading those days just now gets an error.

        Parameters
        ----------
        days
            Keep today (UTC) and as many days before it as make up this number.
        now
            The moment that counts as now; None asks the clock.
        dry_run
            Delete nothing, and tell what would be.
        """
        if (days is None) == (before is None):
            raise DataError("say either how many days to keep, or before which moment to delete")
        if days is not None and days < 1:
            raise DataError(f"days is {days}; at least 1 has to be kept")
        first = today(now) - days + 1 if days is not None else first_whole_day(before or 0)
        with files.locked(self.root, _COMPACTING), files.locked(self.root, _WRITING):
            state = self.state if dry_run else self._recovered()
            gone = [file for file in state.files.values() if file.day < day_name(first)]
            if gone and not dry_run:
                self._commit(state, Commit(0, remove=tuple(file.path for file in gone), erase=True))
                _LOG.info("%s: deleted %d files, of days before %s", self.root, len(gone), day_name(first))
        named = tuple(sorted({file.day for file in gone}))
        return Removed(named, len(gone), sum(f.rows for f in gone), sum(f.size for f in gone))

    def summary(self) -> pa.Table:
        """Count per day: `day`, `events`, `cells`, `files`, `bytes`. No file is read."""
        by_day: dict[str, list[StoredFile]] = {}
        for (day, _), partition in self.state.partitions.items():
            by_day.setdefault(day, []).extend(partition)
        columns = {
            "day": pa.array([date.fromisoformat(day) for day in by_day], pa.date32()),
            "events": [sum(file.rows for file in each) for each in by_day.values()],
            "cells": [len({file.cell for file in each}) for each in by_day.values()],
            "files": [len(each) for each in by_day.values()],
            "bytes": [sum(file.size for file in each) for each in by_day.values()],
        }
        return pa.table(
            {
                name: column if name == "day" else pa.array(column, pa.int64())
                for name, column in columns.items()
            }
        )


def asked_for(since: Moment | None, until: Moment | None, types: Collection[str] | None = None) -> Bounds:
    """Determine the bounds of events with since <= end < until, of some types."""
    first = BEGINNING_OF_TIME if since is None else instant(since)
    last = END_OF_TIME if until is None else instant(until) - 1
    return Bounds(None if types is None else frozenset(types), end=(first, last))


def _coordinates(name: Coordinates | str) -> Coordinates:
    try:
        return Coordinates(name)
    except ValueError as error:
        raise DataError(f"{name!r} are no coordinates; use plane or lonlat") from error


def _read_settings(root: Path) -> tuple[float, Coordinates | None]:
    path = root / SETTINGS
    try:
        settings = json.loads(path.read_bytes())
        version, said = settings["version"], settings["coordinates"]
        if version > FORMAT_VERSION:
            raise DataError(f"{path}: the store has format {version}; this version of Whimbrel knows 1")
        return float(settings["cell_m"]), None if said is None else Coordinates(said)
    except FileNotFoundError as error:
        raise DataError(
            f"{root}: there is no event store here; make one with Store.create or `whimbrel store create`"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: the settings of the store cannot be understood: {error}") from error


def _free_name(state: StoreState) -> str:
    """Name a batch that nobody has named."""
    name = f"append-{state.version + 1}"
    while name in state.batches:
        name += "-"
    return name


def _needed(query: Query, attributes: Iterable[str]) -> set[str] | None:
    """Name the attributes of atomic events that a query reads, as the store calls them; None: all."""
    needs = read_of(query)
    if needs.all_atoms:
        return None
    named = Reading(is_settled=True).named(attributes, query.schemas, needs.atoms)
    return {*needs.atoms} | set(named.taken.values())


def _without(state: StoreState, gone: Collection[StoredFile]) -> StoreState:
    return state.after(Commit(state.version, remove=tuple(file.path for file in gone)))


def _told(
    groups: list[tuple[StoredFile, ...]], progress: Progress | None
) -> Iterator[tuple[StoredFile, ...]]:
    total = sum(len(group) for group in groups)
    done = 0
    for group in groups:
        yield group
        done += len(group)
        if progress is not None:
            progress(done, total)
