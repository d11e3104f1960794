"""Read event files of any format, one bounded batch after another."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from whimbrel.errors import DataError, did_you_mean
from whimbrel.io import _kinds
from whimbrel.io._pieces import EventFile, Piece, Plan
from whimbrel.model.batch import convert_attribute, declared_type
from whimbrel.model.naming import plain_name, usual_role
from whimbrel.model.reading import Reading
from whimbrel.model.schema import RESERVED_COLUMNS, EventSchema, Type

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".geojson": "geojson",
    ".parquet": "parquet",
    ".geoparquet": "parquet",
}
FORMATS = ("csv", "jsonl", "json", "geojson", "parquet")
"""Names for `format`; TSV is csv with tabs, and GeoParquet is parquet."""

__all__ = ["FORMATS", "EventFiles", "Piece", "find_files", "open_file", "read_events"]

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
        Files, folders (all event files in them, by name) and patterns such as "day-*.csv".
    format
        One of `FORMATS`, if the endings of the files do not say it.
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
    found = [path for item in listed for path in find_files(item, format)]
    if not found:
        raise DataError("no event file is given")
    declared = frozenset(
        name
        for schema in schemas.values()
        for name in schema.attributes
        if declared_type(name, schemas)[0] is not None
    )
    kept = None if columns is None else frozenset(columns)
    plan = Plan(kept, declared, {}, batch_rows, reading or Reading(), schemas)
    return EventFiles([open_file(path, format) for path in found], plan, on_progress)


class EventFiles:
    """Event files, opened. Iterate for raw batches, or over `pieces()` to know the place of each row too.

    All batches of one `EventFiles` have the same attributes, with the same types: what a column holds is
    decided from all files before the first batch is given out.
    """

    def __init__(
        self, files: Sequence[EventFile], plan: Plan, on_progress: Callable[[int, int], None] | None = None
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

    def pieces(self) -> Iterator[Piece]:
        """Yield batches with their file, their row numbers, and the lines that could not be read."""
        self.bytes_read = self.malformed = 0
        kinds = self._kinds()
        common = self._common(kinds)
        for file, own in zip(self._files, kinds, strict=True):
            for piece in file.pieces(replace(self._plan, kinds=own), self._count):
                self.malformed += piece.rejected.num_rows if piece.rejected else 0
                alike = replace(piece, batch=_alike(piece.batch, common)) if len(self._files) > 1 else piece
                yield from alike.slices(self._plan.batch_rows)

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


def _alike(batch: pa.RecordBatch, common: Mapping[str, Type | None]) -> pa.RecordBatch:
    """Give a batch the attributes that all files together have, in the types that hold all values."""
    plain = {plain_name(name) for name in batch.schema.names}
    for name, kind in common.items():
        if name not in batch.schema.names:
            if plain_name(name) in plain or usual_role(name) == "source":
                continue  # it has the same in other words, or someone else who moves
            batch = batch.append_column(name, pa.nulls(batch.num_rows, _kinds.ARROW_TYPES[kind]))
        else:
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(
                place, name, convert_attribute(name, batch.column(place), kind or Type.STRING)
            )
    return batch


def find_files(item: str | PathLike[str], format: str | None = None) -> list[Path]:  # noqa: A002
    """Return the event files that a path, a folder or a pattern stands for, by name."""
    path = Path(fspath(item))
    if path.is_dir():
        found = sorted(entry for entry in path.iterdir() if entry.is_file() and (format or _format_of(entry)))
        found = [entry for entry in found if not entry.name.startswith((".", "_"))]
        if not found:
            raise DataError(f"{path}: no event files in this folder; endings looked for: {_endings()}")
        return found
    if path.exists():
        return [path]
    if glob.has_magic(str(path)):
        # Path.glob takes no absolute pattern.
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207
        found = sorted(Path(name) for name in names if Path(name).is_file())
        if not found:
            raise DataError(f"{path}: no file matches this pattern")
        return found
    raise DataError(f"{path}: no such file{_near(path)}")


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent}"
    hint = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()])
    return f"; {hint}" if hint and hint.startswith("did you mean") else ""


def _endings() -> str:
    return ", ".join(_ENDINGS) + " (text files also with .gz)"


def _format_of(path: Path) -> str | None:
    name = path.name.lower()
    packed = name.endswith(".gz")
    found = _ENDINGS.get(Path(name.removesuffix(".gz")).suffix)
    return None if packed and found == "parquet" else found


def open_file(path: Path, format: str | None = None) -> EventFile:  # noqa: A002
    """Choose the reader for a file by the format given, or by its ending."""
    chosen = format or _format_of(path)
    if chosen == "csv":
        from whimbrel.io._csv import CsvFile

        return CsvFile(path)
    if chosen == "parquet":
        from whimbrel.io._parquet import ParquetFile

        return ParquetFile(path)
    if chosen in ("jsonl", "json", "geojson"):
        return _open_json(path, chosen)
    if format:
        raise DataError(f"format {format!r} is not known; use one of: {', '.join(FORMATS)}")
    raise DataError(f"{path}: the ending does not tell a format; known: {_endings()}; or say format=...")


def _open_json(path: Path, format: str) -> EventFile:  # noqa: A002
    from whimbrel.io._document import JsonDocument, is_document
    from whimbrel.io._jsonl import JsonLinesFile

    if format == "geojson" or (format == "json" and is_document(path)):
        return JsonDocument(path)
    return JsonLinesFile(path)
