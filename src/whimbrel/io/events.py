"""Write events as CSV, JSON lines, Parquet or GeoParquet, so that reading gives the same events again."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from whimbrel.errors import DataError
from whimbrel.io import _text
from whimbrel.io.atomic import format_by_ending, refuse_packed, writing
from whimbrel.io.detections import geo_metadata
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.columns import INSTANT, decoded, nulls_of
from whimbrel.model.schema import Coordinates

_ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".geoparquet": "geoparquet",
}
_ORDER = ("id", "type", "source", "start", "end", "x", "y", "lon", "lat", "geometry")


def write_events(
    batches: Iterable[pa.RecordBatch],
    target: str | PathLike[str],
    format: str | None = None,  # noqa: A002
) -> int:
    """Write normalised batches to a file and return the number of events.

    Points are written as `x` and `y`, or `lon` and `lat`; GeoParquet has one geometry column for points and
    polygons. Text files do not say what types attributes have: reading them back needs the schemas for
    timestamps, and for texts that look like numbers.

    Parameters
    ----------
    target
        A path, or "-" for standard output. The file appears only when it is complete.
    format
        "csv", "jsonl", "parquet" or "geoparquet"; by default the ending of `target` tells.
    """
    chosen = format or format_by_ending(target, _ENDINGS, default="jsonl")
    refuse_packed(target, "parquet" if chosen == "geoparquet" else chosen)
    if chosen not in _WRITERS:
        raise DataError(f"format {chosen!r} is not known; use one of: {', '.join(_WRITERS)}")
    with writing(target) as file:
        return _WRITERS[chosen](batches, file)


def _write_jsonl(batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> int:
    count = 0
    for batch in batches:
        columns = _text_columns(batch)
        members = {name: _text.json_values(column) for name, column in columns.items()}
        file.write(_text.lines(_text.json_objects(members, batch.num_rows)))
        count += batch.num_rows
    return count


def _write_csv(batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> int:
    texts = (pa.RecordBatch.from_pydict(_text_columns(batch)) for batch in batches)
    with _spooled(texts) as (schema, rows), pa.csv.CSVWriter(file, schema) as writer:
        return _copy(rows, writer.write_batch)


def _write_parquet(batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> int:
    shown = (_table_form(batch, _named_location(batch)) for batch in batches)
    with _spooled(shown) as (schema, rows), pq.ParquetWriter(file, schema, compression="zstd") as writer:
        return _copy(rows, writer.write_batch)


def _write_geoparquet(batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> int:
    shown = (_table_form(batch, {"geometry": _all_geometries(batch)}) for batch in batches)
    with _spooled(shown) as (schema, rows):
        lonlat = (schema.metadata or {}).get(COORDINATES_KEY) == Coordinates.LONLAT.encode()
        metadata = {**(schema.metadata or {}), b"geo": geo_metadata(lonlat)}
        with pq.ParquetWriter(file, schema.with_metadata(metadata), compression="zstd") as writer:
            return _copy((batch.replace_schema_metadata(metadata) for batch in rows), writer.write_batch)


_WRITERS: dict[str, Callable[[Iterable[pa.RecordBatch], IO[bytes]], int]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
    "geoparquet": _write_geoparquet,
}


def _copy(rows: Iterable[pa.RecordBatch], write: Callable[[pa.RecordBatch], None]) -> int:
    count = 0
    for batch in rows:
        write(batch)
        count += batch.num_rows
    return count


def _is_lonlat(batch: pa.RecordBatch) -> bool:
    said = (batch.schema.metadata or {}).get(COORDINATES_KEY)
    return bool(said == Coordinates.LONLAT.encode())


def _named_location(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the location columns under the names that say which coordinates they have."""
    names = batch.schema.names
    if "x" not in names and "geometry" not in names:
        return {}
    pair = ("lon", "lat") if _is_lonlat(batch) else ("x", "y")
    points = {
        # A file of polygons alone still has to say which coordinates are meant.
        shown: batch.column(name) if name in names else pa.nulls(batch.num_rows, pa.float64())
        for name, shown in zip(("x", "y"), pair, strict=True)
    }
    return {**points, **({"geometry": batch.column("geometry")} if "geometry" in names else {})}


def _all_geometries(batch: pa.RecordBatch) -> pa.Array:
    import shapely

    shapes = np.full(batch.num_rows, None, dtype=object)
    if "x" in batch.schema.names:
        given = ~nulls_of(batch.column("x"))
        x, y = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("x", "y"))
        shapes[given] = shapely.to_wkb(shapely.points(x[given], y[given]), byte_order=1)
    if "geometry" in batch.schema.names:
        given = ~nulls_of(batch.column("geometry"))
        shapes[given] = np.array([*batch.column("geometry").to_pylist(), None], dtype=object)[:-1][given]
    return pa.array(shapes.tolist(), pa.binary())


def _table_form(batch: pa.RecordBatch, location: dict[str, pa.Array]) -> pa.RecordBatch:
    columns = {name: batch.column(name) for name in ("id", "type", "source") if name in batch.schema.names}
    columns |= {name: batch.column(name).view(INSTANT) for name in ("start", "end")}
    columns |= location | _attributes(batch)
    coordinates = (batch.schema.metadata or {}).get(COORDINATES_KEY, b"none")
    return pa.RecordBatch.from_pydict(columns, metadata={COORDINATES_KEY: coordinates})


def _text_columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    shown = _table_form(batch, _named_location(batch))
    return {
        name: _as_text(name, column) for name, column in zip(shown.schema.names, shown.columns, strict=True)
    }


def _as_text(name: str, column: pa.Array) -> pa.Array:
    if name == "geometry":
        return _text.wkt(column)
    column = decoded(column)
    return _text.iso(column) if pa.types.is_timestamp(column.type) else column


def _attributes(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return {name: batch.column(name) for name in batch.schema.names if name not in _ORDER}


@contextlib.contextmanager
def _spooled(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Set batches aside until all columns are known, because these formats want them at the beginning.

    A batch may lack columns that a later one has: the first polygon may come late.
    """
    schemas: list[pa.Schema] = []
    with tempfile.TemporaryFile() as spool:
        for batch in batches:
            plain = _plain(batch)
            with pa.ipc.new_stream(spool, plain.schema) as stream:
                stream.write_batch(plain)
            schemas.append(plain.schema)
        schema = _joined(schemas)
        spool.seek(0)
        yield schema, (_filled(_next(spool), schema) for _ in schemas)


def _next(spool: IO[bytes]) -> pa.RecordBatch:
    # All of one stream is read, so that the next one starts where it ends.
    (batch,) = list(pa.ipc.open_stream(spool))
    return batch


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    # Dictionaries differ from batch to batch, and files have one schema.
    columns = [decoded(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names, metadata=batch.schema.metadata)


def _joined(schemas: list[pa.Schema]) -> pa.Schema:
    if not schemas:
        return pa.schema([("type", pa.string()), ("start", INSTANT), ("end", INSTANT)])
    try:
        joined = pa.unify_schemas([schema.remove_metadata() for schema in schemas])
    except pa.ArrowException as error:
        raise DataError(f"the batches do not have the same types: {error}") from error
    said = {(schema.metadata or {}).get(COORDINATES_KEY, b"none") for schema in schemas} - {b"none"}
    if len(said) > 1:
        raise DataError("the batches mix plane and lonlat coordinates; write them to different files")
    fields = sorted(
        joined, key=lambda field: _ORDER.index(field.name) if field.name in _ORDER else len(_ORDER)
    )
    return pa.schema(fields, metadata={COORDINATES_KEY: said.pop() if said else b"none"})


def _filled(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        batch.column(field.name) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
