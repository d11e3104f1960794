"""Read event files of any format, one bounded batch after another."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from whimbrel.errors import DataError, did_you_mean
from whimbrel.io import _kinds
from whimbrel.io._pieces import EventFile, ReadBatch, ReadPlan
from whimbrel.io._streams import Progress, known_encoding
from whimbrel.io.paths import FORMATS, EventPath, endings, event_path, format_by_name, format_of
from whimbrel.model.batch import convert_attribute, declared_type
from whimbrel.model.columns import arrow_type
from whimbrel.model.reading import Reading, plain_name, usual_role
from whimbrel.model.schema import RESERVED_COLUMNS, EventSchema, Type

__all__ = [
    "FORMATS",
    "EventFiles",
    "EventPath",
    "FilePart",
    "ReadBatch",
    "find_files",
    "is_event_file",
    "open_file",
    "read_events",
]

_NO_SCHEMAS: Mapping[str, EventSchema] = MappingProxyType({})


def read_events(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002 - the name that users of every reader know
    batch_rows: int = 262_144,
    columns: Collection[str] | None = None,
    schemas: Mapping[str, EventSchema] = _NO_SCHEMAS,
    reading: Reading | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> EventFiles:
    """Open event files; nothing but their names and headers is read before iterating.

    Parameters
    ----------
    paths
        Files, folders (all event files in them, by name) and patterns such as "day-*.csv"; an `EventPath`
        says of one how it is read: its format, encoding and delimiter.
    format
        One of `FORMATS`, if neither the endings of the files nor their contents say it.
    batch_rows
        The largest number of rows in a batch.
    columns
        The attributes to read; None reads all. Pruned columns of a Parquet file are never read.
    schemas
        The declared event types. Text files are read once instead of twice if every attribute is declared.
    reading
        Which column is what, for files that name them otherwise; batches keep the names of the file.
    on_progress
        Called with the bytes read so far and `bytes_total`.

    Raises
    ------
    DataError
        If there is no such file, or it is not one of events.
    """
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if batch_rows < 1:
        raise DataError(f"batch_rows is {batch_rows}; it must be at least 1")
    asked = [event_path(item, format) for item in listed]
    files_asked_for = [(path, how) for how in asked for path in find_files(how)]
    if not files_asked_for:
        raise DataError("no event file is given")
    declared = frozenset(
        name
        for schema in schemas.values()
        for name in schema.attributes
        if declared_type(name, schemas)[0] is not None
    )
    kept = None if columns is None else frozenset(columns)
    plan = ReadPlan(kept, declared, {}, batch_rows, reading or Reading(), schemas)
    files = [
        open_file(path, how.format, delimiter=how.delimiter, encoding=how.encoding)
        for path, how in files_asked_for
    ]
    return EventFiles(files, plan, on_progress)


class EventFiles:
    """Event files, opened. Iterate for raw batches, or over `pieces()` to know the place of each row too.

    All batches of one `EventFiles` have the same attributes, with the same types: what a column holds is
    decided from all files before the first batch is given out.
    """

    def __init__(
        self,
        files: Sequence[EventFile],
        plan: ReadPlan,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._files = files
        self._plan = plan
        self._on_progress = on_progress
        self.paths = tuple(file.path for file in files)
        self.bytes_read = 0
        self.malformed = 0
        """How many lines so far were no rows at all; `pieces()` gives them with their reasons."""
        sizes = [file.path.stat().st_size for file in files]
        passes = [2 if file.unknown(plan) else 1 for file in files]
        self.bytes_total = sum(size * count for size, count in zip(sizes, passes, strict=True))
        """Bytes to read; a file that is read twice counts twice."""
        rows = [file.rows for file in files]
        self.rows_total = None if None in rows else sum(count for count in rows if count is not None)
        """The number of rows, if the files tell it without being read."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return (piece.batch for piece in self.pieces())

    def pieces(self) -> Iterator[ReadBatch]:
        """Yield batches with their file, their row numbers, and the lines that could not be read."""
        self.bytes_read = self.malformed = 0
        for part in self.parts():
            for piece in part.pieces(self._count):
                self.malformed += piece.rejected.num_rows if piece.rejected else 0
                yield piece

    def parts(self) -> list[FilePart]:
        """Make the first pass, and give for every file what it takes to read it alone, in any process."""
        kinds = self._kinds()
        common = self._common(kinds) if len(self._files) > 1 else None
        return [
            FilePart(file, replace(self._plan, kinds=own), common)
            for file, own in zip(self._files, kinds, strict=True)
        ]

    def _kinds(self) -> list[dict[str, Type | None]]:
        return [file.kinds(self._plan, self._count) for file in self._files]

    def _common(self, kinds: list[dict[str, Type | None]]) -> dict[str, Type | None]:
        common: dict[str, Type | None] = {}
        for own in kinds:
            _kinds.join_all(common, own)
        ours = self._plan.declared | RESERVED_COLUMNS
        # What may be a time or a place is read by its own rules; who moves is an attribute, too.
        free = [name for name in common if self._plan.role(name) in (None, "source")]
        return {name: common[name] for name in free if name not in ours}

    def _count(self, count: int) -> None:
        self.bytes_read += count
        if self._on_progress:
            self._on_progress(self.bytes_read, self.bytes_total)


def _refuse_unreadable(piece: ReadBatch) -> None:
    """Stop at a file in which nothing is a row: then it is not what its name says."""
    if piece.batch.num_columns == 0 and piece.rejected is not None and piece.rejected.num_rows:
        first = piece.rejected.slice(0, 1).to_pylist()[0]
        raise DataError(
            f"{piece.file}: nothing in it could be read as an event; row {first['row']}: {first['reason']}"
        )


@dataclass(frozen=True)
class FilePart:
    """One of several event files, and what all of them together say about its columns: plain data."""

    file: EventFile
    plan: ReadPlan
    common: Mapping[str, Type | None] | None = None

    def pieces(self, on_read: Progress = lambda _: None) -> Iterator[ReadBatch]:
        """Yield what the file holds, with the attributes that all files have."""
        for piece in self.file.pieces(self.plan, on_read):
            _refuse_unreadable(piece)
            common = self.common
            alike = piece if common is None else replace(piece, batch=_alike(piece.batch, common))
            yield from alike.slices(self.plan.batch_rows)


def _alike(batch: pa.RecordBatch, common: Mapping[str, Type | None]) -> pa.RecordBatch:
    """Add to a batch the attributes that all files together have, in the types that hold all values."""
    plain = {plain_name(name) for name in batch.schema.names}
    for name, kind in common.items():
        if name not in batch.schema.names:
            if plain_name(name) in plain or usual_role(name) == "source":
                continue  # it has the same in other words, or someone else who moves
            batch = batch.append_column(name, pa.nulls(batch.num_rows, arrow_type(kind)))
        else:
            number = batch.schema.get_field_index(name)
            batch = batch.set_column(
                number, name, convert_attribute(name, batch.column(number), kind or Type.STRING)
            )
    return batch


def find_files(item: str | PathLike[str], format: str | None = None) -> list[Path]:  # noqa: A002
    """Return the event files that a path, a folder or a pattern stands for, by name."""
    path = Path(fspath(item))
    format = format or (item.format if isinstance(item, EventPath) else None)  # noqa: A001
    if path.is_dir():
        files = sorted(
            entry for entry in path.iterdir() if entry.is_file() and (format or format_by_name(entry))
        )
        files = [entry for entry in files if not entry.name.startswith((".", "_"))]
        if not files:
            raise DataError(f"{path}: no event files in this folder; endings looked for: {endings()}")
        return files
    if path.exists():
        return [path]
    if glob.has_magic(str(path)):
        # Path.glob takes no absolute pattern.
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207
        files = sorted(Path(name) for name in names if Path(name).is_file())
        if not files:
            raise DataError(f"{path}: no file matches this pattern")
        return files
    raise DataError(f"{path}: no such file{_near(path)}")


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent}"
    hint = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()])
    return f"; {hint}" if hint and hint.startswith("did you mean") else ""


def is_event_file(path: Path) -> bool:
    """Tell whether the name of a file says that it holds events, as those read from a folder must."""
    return format_by_name(path) is not None and not path.name.startswith((".", "_"))


def open_file(
    path: Path,
    format: str | None = None,  # noqa: A002
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> EventFile:
    """Choose the reader for a file by the format given, or by its ending, or by its content."""
    if format is not None and format not in FORMATS:
        raise DataError(f"format {format!r} is not known; use one of: {', '.join(FORMATS)}")
    encoding = None if encoding is None else known_encoding(encoding)
    chosen = format or format_of(path, encoding)
    if chosen == "csv":
        from whimbrel.io._csv import CsvFile

        return CsvFile(path, delimiter, encoding)
    if chosen == "parquet":
        from whimbrel.io._parquet import ParquetFile

        return ParquetFile(path)
    if chosen == "gpx":
        from whimbrel.io._gpx import GpxFile

        return GpxFile(path, encoding)
    if chosen == "nmea":
        from whimbrel.io._nmea import NmeaFile

        return NmeaFile(path, encoding)
    return _open_json(path, chosen, encoding)


def _open_json(path: Path, format: str, encoding: str | None) -> EventFile:  # noqa: A002
    from whimbrel.io._document import layout_of, open_document
    from whimbrel.io._geojson import GeoJsonFile
    from whimbrel.io._jsonl import JsonLinesFile
    from whimbrel.io._moving import is_feature

    layout = layout_of(path, encoding)
    if format == "geojsonl" or (layout.is_lines and is_feature(layout.first)):
        return GeoJsonFile(path, encoding)
    if format == "jsonl" or (format == "json" and layout.is_lines):
        return JsonLinesFile(path, encoding)
    return open_document(path, encoding)
