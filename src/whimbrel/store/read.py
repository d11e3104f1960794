"""Read events from the files of a store: in order of time, a day at a time, only the rows that are wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from whimbrel.errors import DataError
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.columns import ARROW_TYPES, INSTANT
from whimbrel.model.schema import Coordinates, Type
from whimbrel.space.geometry import points_in_region
from whimbrel.store import files
from whimbrel.store.bounds import Bounds, any_of, location_names
from whimbrel.store.cells import centres
from whimbrel.store.log import StoredFile, StoreState

BATCH_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class ScanSelection:
    """What a scan reads: files, the bounds that rows have to lie in, a region, and the attributes."""

    files: tuple[StoredFile, ...]
    bounds: tuple[Bounds, ...]
    region: str | None
    schema: pa.Schema
    """The columns that are read."""
    shown: pa.Schema
    """Those that are given out."""


def select(
    state: StoreState,
    coordinates: Coordinates | None,
    bounds: tuple[Bounds, ...],
    region: str | None,
    columns: Collection[str] | None,
) -> ScanSelection:
    """Choose the files that can hold an event inside any of the bounds."""
    chosen = [
        file for file in state.files.values() if any(alternative.may_be_in(file) for alternative in bounds)
    ]
    chosen.sort(key=lambda file: (file.day, file.sequence, file.path))
    schema = schema_of(state, coordinates, columns)
    return ScanSelection(tuple(chosen), bounds, region, schema, _shown(state, schema))


def schema_of(
    state: StoreState, coordinates: Coordinates | None, columns: Collection[str] | None = None
) -> pa.Schema:
    """List the columns that all files together have; `columns` chooses among the attributes."""
    fields = [("id", pa.string()), ("type", pa.string()), ("source", pa.string())]
    fields += [("start", INSTANT), ("end", INSTANT)]
    if coordinates is not None:
        fields += [(name, pa.float64()) for name in location_names(coordinates)]
        fields.append(("geometry", pa.binary()))
    fields += attribute_fields(state.attributes, columns)
    said = "none" if coordinates is None else coordinates.value
    return pa.schema(fields, metadata={COORDINATES_KEY: said.encode()})


def _shown(state: StoreState, schema: pa.Schema) -> pa.Schema:
    """Leave out the columns of locations that no event of the store has."""
    kinds = state.files.values()
    unused = set() if any(file.points for file in kinds) else {"x", "y", "lon", "lat"}
    unused |= set() if any(file.box is not None for file in kinds) else {"geometry"}
    fields = [column for column in schema if column.name not in unused]
    return pa.schema(fields, metadata=schema.metadata)


def attribute_fields(
    attributes: Mapping[str, str], columns: Collection[str] | None = None
) -> list[tuple[str, pa.DataType]]:
    """Determine the Arrow types of attributes."""
    return [
        (name, ARROW_TYPES[Type(kind)])
        for name, kind in attributes.items()
        if columns is None or name in columns
    ]


def batches(
    root: Path, selection: ScanSelection, coordinates: Coordinates | None
) -> Iterator[pa.RecordBatch]:
    """Select the rows that were selected, sorted by `end`; at least one batch, which may be empty."""
    wanted = any_of(selection.bounds, coordinates)
    given = False
    for chosen in _by_day(selection.files):
        tables = [read_file(root, file, selection.schema, wanted) for file in chosen]
        table = _in_region(_sorted(pa.concat_tables(tables)), selection.region, coordinates)
        # Many small batches would cost the engine more than joining them.
        whole = table.select(selection.shown.names).combine_chunks()
        for batch in whole.to_batches(max_chunksize=BATCH_ROWS):
            given = True
            yield batch
    if not given:
        arrays = [pa.nulls(0, kind) for kind in selection.shown.types]
        yield pa.RecordBatch.from_arrays(arrays, schema=selection.shown)


def _by_day(chosen: Sequence[StoredFile]) -> Iterator[list[StoredFile]]:
    days: dict[str, list[StoredFile]] = {}
    for file in chosen:
        days.setdefault(file.day, []).append(file)
    yield from days.values()


def _sorted(table: pa.Table) -> pa.Table:
    end = table.column("end").to_numpy().view("i8")
    if bool((end[1:] >= end[:-1]).all()):
        return table
    # Stable, so that what came first stays first; and quick, because the files are sorted already.
    return table.take(pa.array(np.argsort(end, kind="stable")))


def _in_region(table: pa.Table, region: str | None, coordinates: Coordinates | None) -> pa.Table:
    if region is None or not table.num_rows:
        return table
    x, y = centres(table, coordinates)
    inside = points_in_region(x, y, region, coordinates or Coordinates.PLANE)
    return table.filter(pa.array(inside))


def read_file(
    root: Path, file: StoredFile, schema: pa.Schema, wanted: pc.Expression | None = None
) -> pa.Table:
    """Read rows of one file, with the columns of `schema`; columns it does not have are null."""
    fragment = _format().make_fragment(_opened(root, file.path))
    try:
        # Handing a small file to other threads takes longer than reading it.
        table = fragment.to_table(schema=schema, filter=wanted, use_threads=file.rows > BATCH_ROWS)
    except pa.ArrowException as error:
        raise DataError(f"{root / file.path}: cannot be read: {error}") from error
    return table.cast(schema) if table.schema != schema else table


@lru_cache(maxsize=1)
def _format() -> ds.ParquetFileFormat:
    return ds.ParquetFileFormat()


def _opened(root: Path, path: str) -> pa.NativeFile:
    """Open a file; once it is open, neither a new name nor deleting it takes it away."""
    for _ in range(3):
        try:
            return pa.memory_map(str(files.find(root, path)))
        except FileNotFoundError:
            continue
    raise DataError(f"{root / path}: the file is gone; it was merged while it was to be read. Read again")
