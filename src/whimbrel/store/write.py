"""Bring events into the files of a store: normalised, with ids, by day and cell, sorted by their end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whimbrel.engine.identity import CONTENT, normalise_with_content
from whimbrel.engine.total_order import ids_of, numbers_of
from whimbrel.errors import DataError
from whimbrel.io.files import read_events
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.batch import COORDINATES_KEY, Normalised, Normaliser
from whimbrel.model.columns import ARROW_TYPES, INSTANT, decoded, type_of
from whimbrel.model.frames import EventPaths, EventTable, are_files, batches, listed_paths, row_count
from whimbrel.model.reading import Reading
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates, Type
from whimbrel.model.time import DAY
from whimbrel.store import files, read
from whimbrel.store.bounds import location_names
from whimbrel.store.cells import NOWHERE, CellGrid, Int64Array, cell_name, centres, day_name
from whimbrel.store.log import StoredFile

CHUNK_ROWS = 4_000_000
"""Events that are sorted and written together; a larger append makes several files a cell."""
ROW_GROUP = 65_536
"""Rows that a reader takes or leaves together: few enough for a short stretch of time to skip most."""
LISTED_TYPES = 64
CHECK_BELOW = 2**63

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class WriteInput:
    """How rows become events."""

    coordinates: Coordinates | None = None
    reading: Reading = Reading()

    def normalise(self, batch: pa.RecordBatch, first_row: int = 0) -> Normalised:
        """Bring a batch into the common form."""
        normaliser = Normaliser(coordinates=self.coordinates, reading=self.reading)
        return normalise_with_content(normaliser, batch, first_row)


def normalised(
    events: EventTable | EventPaths, how: WriteInput, writer: RejectedWriter, progress: Progress | None = None
) -> Iterator[Normalised]:
    """Read events from paths or a table and bring them into the common form; keep what is rejected."""
    if are_files(events):
        yield from _of_files(events, how, writer, progress)
        return
    total, done = row_count(events), 0
    for batch in batches(events):
        events_of_batch = how.normalise(batch, first_row=done)
        writer.write(events_of_batch.rejected, "")
        done += batch.num_rows
        if progress is not None:
            progress(done, total)
        yield events_of_batch


def _of_files(
    events: EventPaths, how: WriteInput, writer: RejectedWriter, progress: Progress | None
) -> Iterator[Normalised]:
    opened = read_events(listed_paths(events), reading=how.reading)
    for piece in opened.pieces():
        try:
            normalised_piece = how.normalise(piece.batch)
        except DataError as error:
            raise DataError(f"{piece.file}: {error}") from error
        if piece.rejected is not None:
            writer.write(piece.rejected, piece.file)
        writer.write(piece.numbered(normalised_piece.rejected), piece.file)
        if progress is not None:
            progress(opened.bytes_read, opened.bytes_total)
        yield normalised_piece


@dataclass(frozen=True, slots=True)
class Staged:
    """Files that are written and not committed, and what is in them."""

    files: tuple[StoredFile, ...]
    rows: int
    check: int
    """The same for the same times of the same number of events, in any order."""
    attributes: Mapping[str, str]
    """Attributes that are new, or need a wider type than the store has for them."""
    coordinates: Coordinates | None

    @staticmethod
    def together(parts: Sequence[Staged]) -> Staged:
        """Join what several writers have made of one batch."""
        places = {part.coordinates for part in parts} - {None}
        if len(places) > 1:
            raise DataError(
                "coordinates are mixed: some of the events are in plane coordinates, some in lonlat"
            )
        attributes: dict[str, str] = {}
        for part in parts:
            for name, kind in part.attributes.items():
                attributes[name] = _wider(name, attributes.get(name), Type(kind))
        return Staged(
            tuple(file for part in parts for file in part.files),
            sum(part.rows for part in parts),
            sum(part.check for part in parts) % CHECK_BELOW,
            attributes,
            next(iter(places), None),
        )

    def discard(self, root: Path) -> None:
        """Delete the files again."""
        for file in self.files:
            path = root / file.path
            files.staged(path).unlink(missing_ok=True)
            files.remove_empty(path.parent)


@dataclass
class Writer:
    """Writes one batch of events to staged files; nobody sees them before they are committed.

    `known` are the attributes that the store has, `before` the files whose events came before this batch.
    """

    root: Path
    name: str
    cell_m: float
    coordinates: Coordinates | None
    known: Mapping[str, str]
    before: Sequence[StoredFile]
    sequence: int
    batch: str
    made: list[StoredFile] = field(default_factory=list)
    rows: int = 0
    check: int = 0
    attributes: dict[str, str] = field(default_factory=dict)
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _rows_waiting: int = 0
    _chunks: int = 0

    def add(self, events: Normalised) -> None:
        """Take in events; write them when there are enough."""
        self._settle(events.coordinates)
        batch = _without_empty(events.events)
        if batch.num_rows:
            self._note_types(batch.schema)
            self._waiting.append(batch)
            self._rows_waiting += batch.num_rows
        if self._rows_waiting >= CHUNK_ROWS:
            self.flush()

    def _settle(self, found: Coordinates | None) -> None:
        if self.coordinates is None:
            self.coordinates = found
        elif found is not None and found is not self.coordinates:
            raise DataError(
                f"coordinates are mixed: the events have {found} coordinates, the store {self.coordinates}"
            )

    def _note_types(self, schema: pa.Schema) -> None:
        for column in schema:
            kind = type_of(column.type)
            if column.name in (*RESERVED_COLUMNS, CONTENT) or kind is None:
                continue
            if column.name in ("day", "cell"):
                raise DataError(
                    f"an attribute is named {column.name!r}, as the folders of the store are; rename it"
                )
            before = self.attributes.get(column.name, self.known.get(column.name))
            wider = _wider(column.name, before, kind)
            if wider != before:
                self.attributes[column.name] = wider

    def flush(self) -> None:
        """Write what is waiting."""
        if not self._waiting:
            return
        kinds = {**self.known, **self.attributes}
        table = pa.concat_tables(
            [pa.Table.from_batches([_plain(batch, kinds)]) for batch in self._waiting],
            promote_options="default",
        ).combine_chunks()
        self._waiting, self._rows_waiting = [], 0
        self._count(table)
        self._write(_with_ids(table, self._same_times))
        self._chunks += 1

    def _count(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        for name, weight in (("start", 31), ("end", 1)):
            total = int(_int64(table, name).view(np.uint64).sum(dtype=np.uint64))
            self.check = (self.check + weight * total) % CHECK_BELOW

    def _same_times(self, first: int, last: int) -> pa.Table:
        """List the ids of the events that came before and ended between two moments."""
        schema = pa.schema([("id", pa.string()), ("end", INSTANT)])
        wanted = (pc.field("end") >= pa.scalar(first, INSTANT)) & (
            pc.field("end") <= pa.scalar(last, INSTANT)
        )
        near = [f for f in (*self.before, *self.made) if f.first_end <= last and first <= f.last_end]
        return pa.concat_tables(
            [schema.empty_table(), *(read.read_file(self.root, file, schema, wanted) for file in near)]
        )

    def _write(self, table: pa.Table) -> None:
        x, y = centres(table, self.coordinates)
        grid = CellGrid.of(self.cell_m, self.coordinates)
        start, end = _int64(table, "start"), _int64(table, "end")
        located = ~np.isnan(x)
        keys: tuple[Any, ...] = (end // DAY, located, grid.places(x), grid.places(y))
        order = np.lexsort((start, end, *reversed(keys)))
        keys = tuple(key[order] for key in keys)
        table, x, y = _named(table.take(pa.array(order)), self.coordinates), x[order], y[order]
        for begin, stop in _runs(keys):
            day, is_located, column, row = (key[begin] for key in keys)
            cell = cell_name(int(column), int(row)) if is_located else NOWHERE
            path = f"day={day_name(int(day))}/cell={cell}/part-{self.name}-{self._chunks}.parquet"
            rows = table.slice(begin, stop - begin)
            box = _box(x[begin:stop], y[begin:stop]) if is_located else None
            self.made.append(write_file(self.root, path, rows, box, self.sequence, self.batch))

    @property
    def staged(self) -> Staged:
        """What was written so far."""
        return Staged(tuple(self.made), self.rows, self.check, self.attributes, self.coordinates)


def _without_empty(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out attributes without any value: what type they would have is not known."""
    kept = [
        name
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if name in RESERVED_COLUMNS or column.null_count < batch.num_rows
    ]
    return batch if len(kept) == batch.num_columns else batch.select(kept)


def _wider(name: str, before: str | None, kind: Type) -> str:
    """Determine the type that holds both what the store has and what comes."""
    if before is None or before == kind.value:
        return kind.value
    if {before, kind.value} == {Type.INT.value, Type.FLOAT.value}:
        return Type.FLOAT.value
    raise DataError(
        f"attribute {name!r} is {kind.value} here and {before} in the store; "
        "convert it, or give the two attributes different names"
    )


def _plain(batch: pa.RecordBatch, kinds: Mapping[str, str]) -> pa.RecordBatch:
    """Cast a normalised batch to the types of files: texts without dictionaries, times as timestamps."""
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in ("start", "end"):
            columns[name] = column.view(INSTANT)
        elif name in RESERVED_COLUMNS or name == CONTENT:
            columns[name] = decoded(column)
        elif type_of(column.type) is not None:
            columns[name] = decoded(column).cast(ARROW_TYPES[Type(kinds[name])])
    for name in ("id", "source"):
        columns.setdefault(name, pa.nulls(batch.num_rows, pa.string()))
    return pa.RecordBatch.from_pydict(columns)


def storable(events: Normalised) -> pa.RecordBatch:
    """Bring normalised events to the columns and types that they have in files."""
    kinds = {c.name: kind.value for c in events.events.schema if (kind := type_of(c.type)) is not None}
    table = _named(pa.Table.from_batches([_plain(events.events, kinds)]), events.coordinates)
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _int64(table: pa.Table, name: str) -> Int64Array:
    values: Int64Array = table.column(name).to_numpy().view("i8")
    return values


def _with_ids(table: pa.Table, same_times: Callable[[int, int], pa.Table]) -> pa.Table:
    """Assign the events that came without an id the one that the engine would make for them."""
    missing = table.column("id").is_null()
    if table.column("id").null_count:
        bare = _in_common_form(table.filter(missing))
        end = bare.column("end").to_numpy()
        earlier = same_times(int(end.min()), int(end.max())).column("id")
        taken = _numbers_taken(ids_of(bare, np.zeros(len(end), np.int64)), earlier)
        ids = ids_of(bare, numbers_of(bare) + taken)
        places = np.maximum(np.cumsum(missing.to_numpy()) - 1, 0)
        filled = pc.coalesce(table.column("id"), ids.take(pa.array(places)))
        table = table.set_column(table.schema.get_field_index("id"), "id", filled)
    return table.drop_columns([CONTENT]) if CONTENT in table.column_names else table


def _in_common_form(table: pa.Table) -> pa.RecordBatch:
    """Collect what ids are made of as the engine has it."""
    names = [name for name in ("type", "source", CONTENT) if name in table.column_names]
    columns = {name: table.column(name).combine_chunks() for name in names}
    return pa.RecordBatch.from_pydict(
        columns | {name: pa.array(_int64(table, name)) for name in ("start", "end")}
    )


_CONTENT_AND_NUMBER = r":([0-9a-f]{16}):([0-9]{6,}):"
"""What is in the middle of an id that was made."""


def _numbers_taken(ids: pa.Array, earlier: pa.ChunkedArray) -> Int64Array:
    """Tell for ids with the number 0 how many numbers are taken by equal events that came earlier."""
    as_first = pc.replace_substring_regex(earlier, _CONTENT_AND_NUMBER, r":\1:000000:")
    same = pc.is_in(as_first, ids)
    earlier, as_first = earlier.filter(same), as_first.filter(same)
    if not len(earlier):
        return np.zeros(len(ids), np.int64)
    digits = pc.replace_substring_regex(earlier, f"^.*{_CONTENT_AND_NUMBER}.*$", r"\2")
    last = pa.table({"id": as_first, "number": digits.cast(pa.int64())}).group_by("id")
    highest = last.aggregate([("number", "max")])
    places = pc.index_in(ids, highest.column("id"))
    highest_number = highest.column("number_max").take(places).fill_null(-1).to_numpy()
    return highest_number.astype(np.int64) + 1


def _runs(keys: Sequence[Int64Array]) -> Iterator[tuple[int, int]]:
    """Tell where stretches of equal keys begin and stop."""
    changes = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    bounds = [0, *(np.nonzero(changes)[0] + 1).tolist(), len(keys[0])]
    yield from pairwise(bounds)


def _box(x: Any, y: Any) -> tuple[float, float, float, float]:
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def _named(table: pa.Table, coordinates: Coordinates | None) -> pa.Table:
    """Name the coordinates so that they say what they are, and put the columns in their usual order."""
    names = dict(zip(("x", "y"), location_names(coordinates), strict=True))
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    if coordinates is not None:
        # Every file can be asked for points and polygons, whichever it has.
        for name, kind in (*((n, pa.float64()) for n in names.values()), ("geometry", pa.binary())):
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, kind))
    fixed = ("id", "type", "source", "start", "end", *names.values(), "geometry")
    order = [name for name in fixed if name in table.column_names]
    table = table.select([*order, *(name for name in table.column_names if name not in order)])
    said = "none" if coordinates is None else coordinates.value
    return table.replace_schema_metadata({COORDINATES_KEY: said.encode()})


def write_file(
    root: Path,
    path: str,
    events: pa.Table,
    box: tuple[float, float, float, float] | None,
    sequence: int,
    batch: str | None,
) -> StoredFile:
    """Write events, sorted by their end, to a staged file, and say what is in it."""
    target = files.staged(root / path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        pq.write_table(
            events,
            file,
            compression="zstd",
            row_group_size=ROW_GROUP,
            # Ids differ from each other, and times are sorted: a dictionary would only add to them.
            use_dictionary=[name for name in events.column_names if name not in ("id", "start", "end")],
            column_encoding={"start": "DELTA_BINARY_PACKED", "end": "DELTA_BINARY_PACKED"},
        )
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    start, end = _int64(events, "start"), _int64(events, "end")
    types = sorted(pc.unique(events.column("type")).to_pylist())
    points = [name for name in ("x", "lon") if name in events.column_names]
    return StoredFile(
        path=path,
        rows=events.num_rows,
        size=size,
        first_end=int(end.min()),
        last_end=int(end.max()),
        first_start=int(start.min()),
        last_start=int(start.max()),
        box=box,
        points=any(events.column(name).null_count < events.num_rows for name in points),
        types=tuple(types) if len(types) <= LISTED_TYPES else None,
        sequence=sequence,
        batch=batch,
    )
