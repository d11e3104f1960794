"""Event files as frames: read on Spark's workers by the readers that the embedded engine uses.

Parquet files of plain columns are left to Spark, which reads parts of them in parallel and leaves out what a
query does not use. Everything else goes through Whimbrel's own readers, one task a file, so that types, row
numbers and rejected lines are those of the embedded engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql

from whimbrel.errors import DataError
from whimbrel.io import files as io_files
from whimbrel.io._csv import CsvFile
from whimbrel.io.files import FilePart, ReadBatch, find_files
from whimbrel.io.paths import event_path
from whimbrel.model import columns as columns_of
from whimbrel.model.batch import COORDINATES_KEY, TIME_UNIT_KEY
from whimbrel.model.faults import Faults
from whimbrel.model.reading import Reading, usual_role
from whimbrel.model.schema import RESERVED_COLUMNS, EventSchema, Type
from whimbrel.model.times import NAIVE, TIME_UNITS, TimeReading
from whimbrel.spark import parquet
from whimbrel.spark.errors import plain_errors
from whimbrel.spark.lines import LINE, LINE_ARROW, line_field, lines_of_refused, lines_of_rows, said_arrow
from whimbrel.spark.worker import Batches, spare_modules

_TIMES = frozenset({"time", "start", "end"})
_NAMES = frozenset({"id", "source"})
_NUMBERS = frozenset({"x", "y", "lon", "lat"})
_MOST_TASKS = 256
"""Files are read one a task; more of them than this share tasks."""

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@plain_errors()
def read_events(
    spark: SparkSession,
    paths: Paths,
    *,
    format: str | None = None,  # noqa: A002 - the name that users of every reader know
    columns: Collection[str] | None = None,
    schemas: Mapping[str, EventSchema] | None = None,
    reading: Reading | None = None,
) -> DataFrame:
    """Read event files of any format into a frame, with the columns and types the embedded engine sees.

    Take this instead of `spark.read`: Spark's own readers refuse Parquet files with times in nanoseconds
    (as pandas writes them), guess other types for CSV files and drop lines that they cannot read. A line that
    is no row comes as a row with nothing but the hidden column `@line`; `whimbrel.spark.outcomes` reports it
    as rejected, with file, row and reason.

    Parameters
    ----------
    paths
        Files, folders (all event files in them) and patterns such as ``day-*.csv``, also of several formats.
        The program and all workers must find them under the same path.
    format
        The format, if the endings of the files do not tell it.
    columns
        The attributes to read; None reads all.
    schemas
        The event types that a query declares (`query.schemas`), if there is one; their attributes are read as
        declared.
    reading
        Which column is what, if their names do not tell; say the same to `detect`.

    Raises
    ------
    DataError
        If there is no such file, or it is not one of events.
    """
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    event_paths = [event_path(item, format) for item in listed]
    listed_files = [(path, each) for each in event_paths for path in find_files(each.path, each.format)]
    given = {path.absolute(): path for path, _ in listed_files}
    files = [replace(each, path=str(path.absolute())) for path, each in listed_files]
    try:
        opened = io_files.read_events(files, columns=columns, schemas=schemas or {}, reading=reading)
        parts = opened.parts()
        by_spark = parquet.read_plain(spark, [part.file for part in parts], columns, _as_given(given))
        return by_spark if by_spark is not None else _read_here(spark, parts, _as_given(given))
    except DataError as error:
        raise _named_as_given(error, given) from error


def _as_given(given: Mapping[Path, Path]) -> dict[str, str]:
    return {str(path): str(name) for path, name in given.items()}


def _named_as_given(error: DataError, given: Mapping[Path, Path]) -> DataError:
    text = str(error)
    for path, name in given.items():
        text = text.replace(str(path), str(name))
    return DataError(text)


# -- by Whimbrel's readers ----------------------------------------------------------------------------------


def _read_here(spark: SparkSession, parts: Sequence[FilePart], given: Mapping[str, str]) -> DataFrame:
    seen = [_look(part) for part in parts]
    if not any(schema.names for schema in seen):
        seen = [_header(part) for part in parts]
    target = CommonColumns.over(seen)
    schema = target.spark_schema(line_field(given[str(parts[0].file.path)], _coordinates(parts, seen)))
    check_case(spark, schema.names)
    tasks = min(len(parts), _MOST_TASKS)
    return spark.range(0, len(parts), 1, tasks).mapInArrow(_reading(parts, target), schema)


def look_at_files(paths: Sequence[Path], format: str | None) -> tuple[CommonColumns, str | None]:  # noqa: A002
    """Find the columns that files have, and the coordinates that they say they are in."""
    parts = io_files.read_events(list(paths), format=format).parts()
    seen = [_look(part) for part in parts]
    return CommonColumns.over(seen), _coordinates(parts, seen)


def _look(part: FilePart) -> pa.Schema:
    """Read the columns of a file as its reader has them."""
    for piece in part.pieces():
        return piece.batch.schema
    return pa.schema([])


def _header(part: FilePart) -> pa.Schema:
    """List the columns that a file without rows names: all of them texts, as far as anybody knows."""
    names = part.file.columns() if isinstance(part.file, CsvFile) else []
    return pa.schema([(name, pa.string()) for name in names])


def _coordinates(parts: Sequence[FilePart], seen: Sequence[pa.Schema]) -> str | None:
    """Determine the coordinates that files say they have, which must be the same."""
    coordinates: str | None = None
    for part, schema in zip(parts, seen, strict=True):
        said = (schema.metadata or {}).get(COORDINATES_KEY, b"none").decode(errors="replace")
        if said not in ("plane", "lonlat") or not {"x", "lon", "geometry"} & set(schema.names):
            continue
        if coordinates is not None and said != coordinates:
            raise DataError(
                f"{part.file.path}: coordinates are mixed: the events have {said} coordinates, those before "
                f"{coordinates}"
            )
        coordinates = said
    return coordinates


def _reading(parts: Sequence[FilePart], target: CommonColumns) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for piece in parts[number].pieces():
                    yield from rows_of(piece, target, str(piece.file))
        spare_modules()

    return run


def rows_of(piece: ReadBatch, target: CommonColumns, file: str) -> Iterator[pa.RecordBatch]:
    """Turn what a piece of a file holds into rows of a frame, lines that are none included."""
    rows, refused = target.convert(piece)
    if rows.num_rows:
        yield rows.append_column(LINE, lines_of_rows(file, _numbers(piece, refused)))
    for lines in (piece.rejected, None if refused is None else piece.numbered(refused)):
        if lines is not None and lines.num_rows:
            nothing = [pa.nulls(lines.num_rows, kind) for kind in target.columns.values()]
            schema = pa.schema([*target.columns.items(), (LINE, LINE_ARROW)])
            yield pa.RecordBatch.from_arrays([*nothing, lines_of_refused(file, lines)], schema=schema)


def _numbers(piece: ReadBatch, refused: pa.RecordBatch | None) -> np.ndarray:
    numbers = piece.numbers
    if numbers is None:
        numbers = np.arange(piece.first_row, piece.first_row + piece.batch.num_rows, dtype=np.int64)
    return numbers if refused is None else np.delete(numbers, refused.column("row").to_numpy())


def check_case(spark: SparkSession, names: Sequence[str]) -> None:
    """Refuse names that Spark would take for one."""
    if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise DataError(
                f"columns {other!r} and {name!r} differ in capitals only, which Spark takes for one; rename "
                "one of them, or set spark.sql.caseSensitive to true"
            )


# -- one form for all files ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CommonColumns:
    """The columns that all files together have, in types of Spark that mean the same to the gate."""

    columns: Mapping[str, pa.DataType]
    were: Mapping[str, pa.DataType]
    """What the columns are in the (first) file: errors name this type."""

    @classmethod
    def over(cls, schemas: Sequence[pa.Schema]) -> CommonColumns:
        """Find the types that hold what several files have."""
        kinds_of: dict[str, set[pa.DataType]] = {}
        were: dict[str, pa.DataType] = {}
        for schema in schemas:
            _check_twice(schema)
            unit = _unit(schema)
            for field in schema:
                if pa.types.is_null(field.type) and field.name not in RESERVED_COLUMNS:
                    continue  # without a value there is no type, and nothing to say
                kind = _kind(field.name, field.type, unit)
                kinds_of.setdefault(field.name, set()).add(kind)
                if not pa.types.is_null(field.type):
                    were.setdefault(field.name, field.type)
        kinds = {name: _joined(name, kinds) for name, kinds in kinds_of.items()}
        return cls(kinds, {name: were.get(name, kinds[name]) for name in kinds})

    def spark_schema(self, line: sql.StructField) -> sql.StructType:
        """Describe the same columns as Spark has them, with the hidden one."""
        fields = [
            sql.StructField(name, spark_type(kind), metadata=said_arrow(self.were[name]))
            for name, kind in self.columns.items()
        ]
        return sql.StructType([*fields, line])

    def convert(self, piece: ReadBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """Convert a piece to these columns; return the rows, and those that do not fit (by position)."""
        batch, faults = piece.batch, Faults(piece.batch.num_rows)
        times = TimeReading(_unit(batch.schema))
        columns = [
            _converted(name, batch.column(name), kind, times, faults)
            if name in batch.schema.names
            else pa.nulls(batch.num_rows, kind)
            for name, kind in self.columns.items()
        ]
        converted = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(self.columns.items())))
        if not faults:
            return converted, None
        return converted.filter(faults.good()), faults.rejected(batch, 0)


def spark_type(kind: pa.DataType) -> sql.DataType:
    """Look up Spark's name for a type of a target."""
    known: dict[pa.DataType, sql.DataType] = {
        pa.bool_(): sql.BooleanType(),
        pa.int64(): sql.LongType(),
        pa.float64(): sql.DoubleType(),
        pa.string(): sql.StringType(),
        columns_of.INSTANT: sql.TimestampType(),
        NAIVE: sql.TimestampNTZType(),
    }
    return known.get(kind, sql.BinaryType())


def _check_twice(schema: pa.Schema) -> None:
    twice = sorted(name for name in set(schema.names) if schema.names.count(name) > 1)
    if twice:
        raise DataError(f"column {twice[0]!r} occurs more than once; rename one of them")


def _unit(schema: pa.Schema) -> str | None:
    """Determine the unit of whole numbers in the time columns, if the file says it."""
    said = (schema.metadata or {}).get(TIME_UNIT_KEY, b"").decode(errors="replace")
    return said if said in TIME_UNITS else None


def _kind(name: str, kind: pa.DataType, unit: str | None) -> pa.DataType:
    """Choose the type in which a column travels: one that the gate takes for the same values."""
    plain = columns_of.decoded(pa.nulls(0, kind)).type
    if columns_of.is_text(plain) or pa.types.is_null(plain) or pa.types.is_boolean(plain):
        return pa.string() if pa.types.is_null(plain) else plain
    if pa.types.is_time(plain):
        return pa.string()  # a time of day, which may be a part of a time
    if pa.types.is_timestamp(plain) or pa.types.is_date(plain):
        # A time without a zone stays one: the gate knows which zone is meant.
        return columns_of.INSTANT if pa.types.is_timestamp(plain) and plain.tz is not None else NAIVE
    if pa.types.is_integer(plain):
        if name in _TIMES and unit:
            return columns_of.INSTANT
        return pa.string() if name in _NAMES else pa.float64() if name in _NUMBERS else pa.int64()
    if pa.types.is_floating(plain) or pa.types.is_decimal(plain):
        return pa.float64()
    return pa.binary()


def _joined(name: str, kinds: set[pa.DataType]) -> pa.DataType:
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds == {pa.int64(), pa.float64()} and name not in _TIMES:
        return pa.float64()
    if kinds == {NAIVE, columns_of.INSTANT} and not _may_be_time(name):
        return columns_of.INSTANT
    return pa.string()


def _may_be_time(name: str) -> bool:
    return name in _TIMES or usual_role(name) in _TIMES


def _converted(
    name: str, column: pa.Array, kind: pa.DataType, times: TimeReading, faults: Faults
) -> pa.Array:
    plain = columns_of.decoded(column)
    if plain.type == kind:
        return plain
    if pa.types.is_null(plain.type):
        return plain.cast(kind)
    if pa.types.is_time(plain.type):
        return plain.cast(kind)
    if name == "geometry":
        return _wkt(plain) if kind == pa.string() else _bytes(plain)
    if kind in (columns_of.INSTANT, NAIVE):
        shown = name if name in _TIMES else f"attribute {name!r}"
        return columns_of.as_instants(shown, plain, times, faults).view(kind)
    if kind == pa.binary():
        return _bytes(plain)
    if name in _NUMBERS and kind == pa.float64():
        return columns_of.as_numbers(name, plain, faults)
    if kind == pa.string() and _may_be_time(name) and pa.types.is_temporal(plain.type):
        # What does not say its zone still does not.
        micros = columns_of.as_instants(name, plain, replace(times, zone=None), faults)
        return micros.view(columns_of.INSTANT if getattr(plain.type, "tz", None) else NAIVE).cast(kind)
    natural = columns_of.natural(name, plain, faults)
    return columns_of.declared(name, natural, columns_of.type_of(kind) or Type.STRING, times, faults)


def _bytes(column: pa.Array) -> pa.Array:
    """Pass bytes on; of values that no event can have, only the type is told."""
    return column if pa.types.is_binary(column.type) else pa.nulls(len(column), pa.binary())


def _wkt(column: pa.Array) -> pa.Array:
    import shapely

    shapes = shapely.from_wkb(column.to_numpy(zero_copy_only=False), on_invalid="ignore")
    return pa.array(shapely.to_wkt(shapes, rounding_precision=-1), pa.string())
