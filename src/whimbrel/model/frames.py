"""Take events from any kind of table, without importing the packages that the table does not come from."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import pyarrow as pa

from whimbrel.errors import DataError
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.schema import Coordinates

if TYPE_CHECKING:
    from polars import LazyFrame

ACCEPTED = (
    "a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or GeoPandas DataFrame, "
    "a polars DataFrame or LazyFrame, a list of dicts, or any object with __arrow_c_stream__"
)


class ArrowStream(Protocol):
    """Whatever gives its rows as a stream of Arrow: pyarrow, pandas and polars tables, DuckDB, ..."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Open the stream."""
        ...


EventTable: TypeAlias = "ArrowStream | LazyFrame | Sequence[Mapping[str, Any]]"
"""Events in memory."""
EventPaths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]
"""Events in files: a path or several, folders and globs too."""


def are_files(events: Any) -> TypeGuard[EventPaths]:
    """Tell whether events are given by the paths of their files."""
    if isinstance(events, str | PathLike):
        return True
    return (
        isinstance(events, Sequence) and bool(events) and all(isinstance(e, str | PathLike) for e in events)
    )


def listed_paths(events: EventPaths) -> list[str | PathLike[str]]:
    """List the paths that events are given by."""
    return [events] if isinstance(events, str | PathLike) else list(events)


def batches(data: Any, *, rows: int = 262_144) -> Iterator[pa.RecordBatch]:
    """Yield the rows of any kind of table as Arrow batches of at most `rows` rows.

    Nothing is copied where the table already is Arrow, and the table is never changed. A GeoDataFrame's
    geometry becomes the column `geometry`, and its CRS says which coordinates are meant. A table without
    rows gives one batch without rows, so that its columns can still be checked.

    Raises
    ------
    DataError
        If `data` is not a table; the message lists what is.
    """
    if rows < 1:
        raise DataError(f"rows is {rows}; it must be at least 1")
    if isinstance(data, pa.RecordBatch):
        yield from _slices([data], rows)
    elif isinstance(data, pa.Table):
        yield from _of_table(data, rows)
    elif isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        yield from _of_dicts(data, rows)
    elif isinstance(data, pa.RecordBatchReader):
        yield from _of_reader(data, rows)
    elif _is_of(data, "geopandas", "GeoDataFrame"):
        yield from _of_geopandas(data, rows)
    elif _is_of(data, "pandas", "DataFrame"):
        yield from _of_pandas(data, rows)
    elif _is_of(data, "polars", "DataFrame", "LazyFrame"):
        yield from _of_polars(data, rows)
    elif hasattr(data, "__arrow_c_stream__"):
        yield from _of_reader(pa.RecordBatchReader.from_stream(data), rows)
    elif isinstance(data, Sequence) and all(isinstance(row, dict) for row in data):
        yield from _of_dicts(data, rows)
    else:
        raise DataError(f"a {type(data).__module__}.{type(data).__qualname__} is no table; give {ACCEPTED}")


def row_count(data: Any) -> int | None:
    """Return the number of rows if it is known without reading, and None if not."""
    if isinstance(data, pa.RecordBatch | pa.Table):
        return int(data.num_rows)
    frames = (("geopandas", "GeoDataFrame"), ("pandas", "DataFrame"), ("polars", "DataFrame"))
    if any(_is_of(data, package, name) for package, name in frames):
        return len(data)
    if hasattr(data, "__arrow_c_stream__") and hasattr(data, "__len__"):
        return len(data)
    return len(data) if isinstance(data, list | tuple) else None


def arrow_table(data: Any) -> pa.Table:
    """Convert what holds a whole table, such as the result of a query, to a `pyarrow.Table`."""
    return data if isinstance(data, pa.Table) else pa.table(data)


def is_spark_frame(data: object) -> bool:
    """Tell whether `data` is a Spark DataFrame, of a local session or over Spark Connect."""
    return _is_of(data, "pyspark", "DataFrame")


def _is_of(data: object, package: str, *names: str) -> bool:
    """Tell whether `data` is of a class of a package, looking at names only: nothing is imported."""
    return any(
        kind.__name__ in names and kind.__module__.split(".")[0] == package for kind in type(data).__mro__
    )


def _slices(source: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in source:
        for start in range(0, batch.num_rows or 1, rows):
            yield batch.slice(start, rows)


def _of_reader(reader: pa.RecordBatchReader, rows: int) -> Iterator[pa.RecordBatch]:
    """Cut what a reader gives; one that gives nothing has columns all the same."""
    empty = True
    for batch in _slices(reader, rows):
        empty = False
        yield batch
    if empty:
        yield from _of_table(reader.schema.empty_table(), rows)


def _of_table(table: pa.Table, rows: int) -> Iterator[pa.RecordBatch]:
    if table.num_rows == 0:
        yield pa.RecordBatch.from_arrays(
            [pa.nulls(0, kind) for kind in table.schema.types], schema=table.schema
        )
        return
    yield from table.to_batches(max_chunksize=rows)


def _of_dicts(data: Sequence[dict[str, Any]], rows: int) -> Iterator[pa.RecordBatch]:
    """Convert all rows at once: types that depended on where batches end would change from batch to batch."""
    if not data:
        return  # no rows, no columns: nothing to check
    names = dict.fromkeys(itertools.chain.from_iterable(data))
    columns = []
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"a row has the key {name!r}; keys must be texts")
        columns.append(_values([row.get(name) for row in data], name))
    if any(isinstance(column, pa.ChunkedArray) for column in columns):  # too many texts for one array
        yield from _of_table(pa.table(columns, list(names)), rows)
    else:
        yield from _slices([pa.RecordBatch.from_arrays(columns, list(names))], rows)


def _values(values: list[Any], name: str) -> pa.Array | pa.ChunkedArray:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError) as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values if value is not None}))
        raise DataError(
            f"column {name!r} holds values that do not fit together ({kinds}): {error}"
        ) from error


def _of_pandas(frame: Any, rows: int) -> Iterator[pa.RecordBatch]:
    names = [name for name in frame.columns if not isinstance(name, str)]
    if names:
        raise DataError(f"column {names[0]!r} has a name that is not text; rename it")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"the data frame cannot be turned into Arrow: {error}") from error
    # What pandas notes about itself would travel along with every batch.
    yield from _of_table(table.replace_schema_metadata(_ours(table.schema)), rows)


def _ours(schema: pa.Schema) -> dict[bytes, bytes]:
    return {key: value for key, value in (schema.metadata or {}).items() if key.startswith(b"whimbrel.")}


def _of_geopandas(frame: Any, rows: int) -> Iterator[pa.RecordBatch]:
    import pandas as pd

    try:
        position = frame.columns.get_loc(frame.geometry.name)
    except AttributeError as error:
        raise DataError("the GeoDataFrame has no active geometry; choose one with set_geometry") from error
    plain = pd.DataFrame(frame.drop(columns=frame.geometry.name))
    plain.insert(position, "geometry", frame.geometry.to_wkb().to_numpy())
    coordinates = _coordinates_of(frame.crs)
    for batch in _of_pandas(plain, rows):
        said = {COORDINATES_KEY: coordinates.encode()} if coordinates else {}
        yield batch.replace_schema_metadata({**(batch.schema.metadata or {}), **said})


def _coordinates_of(crs: Any) -> Coordinates | None:
    if crs is None:
        return None
    return Coordinates.LONLAT if crs.is_geographic else Coordinates.PLANE


def _of_polars(frame: Any, rows: int) -> Iterator[pa.RecordBatch]:
    frame = frame.collect() if _is_of(frame, "polars", "LazyFrame") else frame
    yield from _of_table(frame.to_arrow(), rows)
