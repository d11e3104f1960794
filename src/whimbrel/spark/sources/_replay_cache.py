"""A cache of a recording: its events in the order of their replay, ready to be read by row number.

Files may be of any format and in any order, and the driver and the workers of a replay all need some rows
of them. So the files are read and put in order once, and kept as an Arrow file that any process of the
machine maps into memory. The same files give the same cache on every machine, after every restart.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.errors import DataError, did_you_mean
from whimbrel.io.files import ReadBatch, find_files, read_events
from whimbrel.model import columns as columns_of
from whimbrel.model.batch import TIME_UNIT_KEY
from whimbrel.model.faults import Faults
from whimbrel.model.reading import NamedColumns, Reading, joined, resolve
from whimbrel.model.schema import Columns
from whimbrel.model.times import NAIVE, TimeReading

BATCH_ROWS = 65_536
"""Rows in one batch of a cache: what a worker reads at a time."""
RAW = "_raw"
"""The column of a line that could not be read as an event; all other columns are null then."""

_FORM = "2"
_KEPT_SECONDS = 24 * 3600
_TIMES = ("time", "start", "end")
_ORDER = (("time", "end"), ("start",))
"""The times by which rows are ordered: by the first one of each."""
_NUMBERS = ("x", "y", "lon", "lat")
Instants = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ReplayFiles:
    """Which files are replayed, in which order.

    Parameters
    ----------
    path
        A file, a folder or a pattern.
    format
        The format, if the endings of the files do not tell it.
    order
        "time" for event time, "file" for the order of the rows, or the name of a column with times.
    cache
        The folder for caches; by default one of this user among the machine's temporary files.
    reading
        Which column is the time, and how times are written, for the order of the rows. Rows keep their
        columns as they are; how they are read as events is up to whoever reads the stream.
    said
        The columns that the query names in its clauses `from columns`.
    """

    path: str
    format: str | None = None
    order: str = "time"
    cache: str | None = None
    reading: Reading = Reading()
    said: Mapping[str, Columns] = field(default_factory=dict)

    def name(self) -> str:
        """Name the recording by what it holds, for as far as names and sizes of files tell."""
        sizes = [f"{path.name}:{path.stat().st_size}" for path in self.files()]
        return _digest([*self._settings(), *sizes])

    def files(self) -> list[Path]:
        return find_files(self.path, self.format)

    def _settings(self) -> list[str]:
        named = json.dumps([self.reading.columns, self.said], sort_keys=True)
        return [_FORM, self.format or "", self.order, repr(self.reading.times), named]

    def place(self) -> Path:
        """Return the folder of the cache, which changes whenever a file does."""
        stats = [(path.resolve(), path.stat()) for path in self.files()]
        states = [f"{path}:{stat.st_size}:{stat.st_mtime_ns}" for path, stat in stats]
        return _cache_folder(self.cache) / _digest([*self._settings(), *states])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _cache_folder(given: str | None) -> Path:
    folder = Path(given) if given else Path(tempfile.gettempdir()) / f"whimbrel-replays-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise DataError(f"{folder}: belongs to another user; name another folder with the option 'cache'")
    return folder


class ReplayCache:
    """An opened cache; rows are numbered from 0 in the order of the replay."""

    def __init__(self, folder: Path) -> None:
        self._file = pa.ipc.open_file(pa.memory_map(str(folder / "events.arrow")))
        self.schema: pa.Schema = self._file.schema
        self.due: Instants = np.load(folder / "due.npy", mmap_mode="r", allow_pickle=False)
        """When each row is due, in microseconds of the recording's own time; never falls."""
        self.rows = len(self.due)

    def batches(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows from `first` up to, and without, `last`."""
        for number in range(first // BATCH_ROWS, -(-last // BATCH_ROWS)):
            start = number * BATCH_ROWS
            begin = max(first, start)
            yield self._file.get_batch(number).slice(begin - start, min(last, start + BATCH_ROWS) - begin)


def open_cache(recording: ReplayFiles) -> ReplayCache:
    """Open the cache of a recording; it is made first if this machine has none."""
    folder = recording.place()
    if not folder.exists():
        _make(recording, folder)
    with contextlib.suppress(OSError):
        os.utime(folder)
    return ReplayCache(folder)


def _make(recording: ReplayFiles, folder: Path) -> None:
    _forget_old(folder.parent)
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    try:
        _write(recording, part)
        # Another process may have made the same cache meanwhile; either will do.
        with contextlib.suppress(OSError):
            part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _forget_old(cache: Path) -> None:
    """Remove caches that nobody has opened for a day; a process that still reads one keeps its mapping."""
    oldest = time.time() - _KEPT_SECONDS
    for entry in cache.iterdir():
        with contextlib.suppress(OSError):
            if entry.stat().st_mtime < oldest:
                shutil.rmtree(entry, ignore_errors=True)


def _write(recording: ReplayFiles, folder: Path) -> None:
    table, units = _read(recording)
    chosen, due = _ordered(table, recording, units)
    np.save(folder / "due.npy", due, allow_pickle=False)
    with pa.ipc.new_file(str(folder / "events.arrow"), table.schema) as writer:
        for start in range(0, table.num_rows, BATCH_ROWS):
            rows = slice(start, start + BATCH_ROWS)
            part = table.slice(start, BATCH_ROWS) if chosen is None else table.take(pa.array(chosen[rows]))
            writer.write_batch(_one_batch(part))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [_whole(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _read(recording: ReplayFiles) -> tuple[pa.Table, TimeReading]:
    """Read all files into one table whose types Spark has, and return how its plain times are read."""
    batches: list[pa.RecordBatch] = []
    times = recording.reading.times
    for piece in read_events(recording.path, format=recording.format).pieces():
        batches += _usable(piece)
    kinds = _kinds(batches)
    schema = pa.schema(list(kinds.items()))
    alike = [_alike(batch, schema) for batch in batches if batch.num_rows]
    table = pa.Table.from_batches(alike, schema=schema)
    for name in (name for name in _TIMES if name in kinds):
        table = _as_timestamps(table, name, times)
    return table, times


def _as_timestamps(table: pa.Table, name: str, times: TimeReading) -> pa.Table:
    """Make timestamps of times; a column with one that cannot be read stays, so that Whimbrel shows it.

    Times without a zone stay, too, and what a format says: whoever reads the stream knows their zone.
    """
    kind = table[name].type
    if kind == NAIVE or times.format is not None:
        return table
    if pa.types.is_string(kind) and not _say_zones(table[name]):
        return table
    faults = Faults(table.num_rows)
    instants = columns_of.as_instants(name, _whole(table[name]), times, faults)
    if faults:
        return table
    return table.set_column(table.schema.names.index(name), name, instants.view(columns_of.INSTANT))


def _say_zones(texts: pa.ChunkedArray) -> bool:
    try:
        texts.cast(columns_of.INSTANT)
    except pa.ArrowInvalid:
        return False
    return True


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _usable(piece: ReadBatch) -> list[pa.RecordBatch]:
    """Bring a piece into types that Spark has; lines that could not be read become rows of `_raw` alone."""
    said = (piece.batch.schema.metadata or {}).get(TIME_UNIT_KEY, b"").decode()
    columns = {
        name: _column(name, column, said or None)
        for name, column in zip(piece.batch.schema.names, piece.batch.columns, strict=True)
    }
    batches = [pa.RecordBatch.from_pydict(columns)] if columns else []
    if piece.rejected is not None and piece.rejected.num_rows:
        batches.append(pa.RecordBatch.from_pydict({RAW: piece.rejected.column("event")}))
    return batches


def _column(name: str, column: pa.Array, said: str | None) -> pa.Array:
    faults = Faults(len(column))
    plain = columns_of.decoded(column)
    kind = plain.type
    if pa.types.is_time(kind):
        return plain.cast(pa.string())  # a time of day, which may be a part of a time
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        # Whoever reads the stream knows which zone is meant.
        values = columns_of.as_instants(name, plain, columns_of.MICROSECONDS, faults).view(NAIVE)
    elif name in _TIMES:
        is_instant = pa.types.is_temporal(kind) or (said and pa.types.is_integer(kind))
        if not is_instant:
            return plain
        values = columns_of.as_instants(name, plain, TimeReading(said or "us"), faults).view(
            columns_of.INSTANT
        )
    elif name in _NUMBERS:
        return plain if pa.types.is_string(plain.type) else columns_of.as_numbers(name, plain, faults)
    elif pa.types.is_binary(plain.type):
        return plain
    else:
        values = columns_of.decoded(columns_of.natural(name, plain, faults))
    return columns_of.with_nulls(values, faults.bad()) if faults else values


def _kinds(batches: list[pa.RecordBatch]) -> dict[str, pa.DataType]:
    """Find one type for each column; text holds what different files write in different types."""
    kinds_of: dict[str, set[pa.DataType]] = {}
    for batch in batches:
        for column in batch.schema:
            kinds_of.setdefault(column.name, set()).add(column.type)
    kinds = {}
    for name, types in kinds_of.items():
        types.discard(pa.null())
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types)
        wide = pa.float64() if numbers and types else pa.string()
        kinds[name] = types.pop() if len(types) == 1 else wide
    return kinds


def _alike(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _ordered(table: pa.Table, recording: ReplayFiles, times: TimeReading) -> tuple[Instants | None, Instants]:
    """Return the rows in the order of the replay (None if they are), and when each of them is due."""
    if recording.order in ("time", "file"):
        named = _named(table, recording)
        last, first = (next((name for name in names if name in named.columns), None) for names in _ORDER)
        if last is None:
            raise DataError(
                f"{recording.path}: no column says when: give 'time', or 'start' and 'end', or say "
                "order=COLUMN"
            )
        keys = [_instants(_times_of(table, named, last), last, times)]
        if recording.order == "file":
            # When a late row came is not known: no later than the first one that shows a newer time.
            return None, np.maximum.accumulate(keys[0])
        keys += [_instants(_times_of(table, named, first), first, times)] if first is not None else []
    else:
        if recording.order not in table.schema.names:
            hint = did_you_mean(recording.order, table.schema.names)
            raise DataError(f"{recording.path}: no column {recording.order!r} to order by; {hint}")
        keys = [_instants(_whole(table[recording.order]), recording.order, times)]
    order = np.lexsort(keys[::-1])
    if (order[1:] > order[:-1]).all():
        return None, keys[0]
    return order, keys[0][order]


def _named(table: pa.Table, recording: ReplayFiles) -> NamedColumns:
    try:
        return resolve(table.schema.names, given=recording.reading.columns, said=recording.said)
    except DataError as error:
        raise DataError(f"{recording.path}: {error}") from error


def _times_of(table: pa.Table, named: NamedColumns, role: str) -> pa.Array:
    """Read the times of a role, which may stand in several columns."""
    parts = named.joined.get(role)
    return (
        _whole(table[named.columns[role]])
        if parts is None
        else joined(_one_batch(table.select(parts)), parts)
    )


def _instants(column: pa.Array, name: str, times: TimeReading) -> Instants:
    """Return times in microseconds; a row without a readable one stays with the row before it."""
    faults = Faults(len(column))
    column = columns_of.as_one_text(name, column, times)
    instants = columns_of.as_instants(name, column, times, faults)
    missing = columns_of.nulls_of(instants) | (faults.bad() if faults else False)
    values = columns_of.values_of(instants, "i8")
    if not missing.any():
        return values
    if missing.all():
        return np.zeros(len(values), "i8")
    places = np.maximum.accumulate(np.where(missing, -1, np.arange(len(values))))
    return values[np.where(places < 0, int(np.argmin(missing)), places)]
