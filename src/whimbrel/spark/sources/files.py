"""Event files that arrive in a folder, as a stream.

Spark finds the files and remembers which it has had; Whimbrel's readers read them, so that a file means the
same to a stream, a batch job and the embedded engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql

from whimbrel.errors import DataError, did_you_mean
from whimbrel.io.files import FORMATS as READ_FORMATS
from whimbrel.io.files import find_files, is_event_file, read_events
from whimbrel.model.columns import ARROW_TYPES
from whimbrel.spark.lines import line_field
from whimbrel.spark.reading import CommonColumns, check_case, look_at_files, rows_of
from whimbrel.spark.sources._json import read_schema
from whimbrel.spark.types import type_of
from whimbrel.spark.worker import Batches, spare_modules

FORMATS = READ_FORMATS
OPTIONS = (
    "maxFilesPerTrigger", "maxBytesPerTrigger", "latestFirst", "maxFileAge", "maxCachedFiles",
    "fileNameOnly", "cleanSource", "sourceArchiveDir", "pathGlobFilter", "recursiveFileLookup",
)  # fmt: skip
"""Options of Spark's search for files."""
_FILES = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"


def read_folder(
    spark: SparkSession,
    path: str,
    *,
    format: str | None = None,  # noqa: A002 - the name that users of every reader know
    schema: str | sql.StructType | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read the event files in a folder, and those that come later, as a stream.

    A line that is no row, or a row that does not fit the schema, is rejected, with file, row and reason.
    Columns that are not in the schema are left out.

    Parameters
    ----------
    path
        A folder, in any file system that Spark reads. Files must appear in it whole, by renaming.
    format
        "parquet", "csv", "jsonl", "json" or any other format that Whimbrel reads; by default the endings of
        the files tell, and files with other endings are passed by.
    schema
        The columns, as "type STRING, time TIMESTAMP, ..." or as a StructType; by default what the files that
        are there now hold.
    options
        Options of Spark's search for files, such as {"maxFilesPerTrigger": "10"}.

    Raises
    ------
    DataError
        If the format is not known, or no schema is given and there are no files to find one from.
    """
    if format is not None and format not in FORMATS:
        raise DataError(f"format {format!r} is not known; {did_you_mean(format, FORMATS)}")
    for name in options or {}:
        if name.lower() not in {each.lower() for each in OPTIONS}:
            raise DataError(f"a folder of files has no option {name!r}; {did_you_mean(name, OPTIONS)}")
    target, said = (_declared(read_schema(spark, schema)), None) if schema else _found(path, format)
    schema_read = target.spark_schema(line_field(path, said))
    check_case(spark, schema_read.names)
    is_local = "://" not in path or path.startswith("file:")
    finding = spark.readStream.format("binaryFile").schema(_FILES).options(**(options or {}))
    files = finding.load(path).where("length > 0")
    # What a file holds is brought here by Spark only where it cannot be opened.
    wanted = files.select("path") if is_local else files.select("path", "content")
    return wanted.mapInArrow(_reading(target, format), schema_read)


def _declared(schema: sql.StructType) -> CommonColumns:
    """List the columns of a schema, in the types in which they travel."""
    columns: dict[str, pa.DataType] = {}
    for field in schema.fields:
        kind = type_of(field.dataType)
        if kind is None and not isinstance(field.dataType, sql.BinaryType):
            raise DataError(
                f"column {field.name!r} has the type {field.dataType.simpleString()}, which no attribute of "
                "an event can have; leave it out of the schema"
            )
        columns[field.name] = pa.binary() if kind is None else ARROW_TYPES[kind]
    return CommonColumns(columns, columns)


def _found(path: str, format: str | None) -> tuple[CommonColumns, str | None]:  # noqa: A002
    """Find the columns and the coordinates from the files that are there."""
    try:
        if "://" in path:
            raise DataError("Whimbrel looks into folders of this machine only")
        return look_at_files(find_files(path, format), format)
    except DataError as error:
        kind = f"{format} file" if format else "file"
        raise DataError(
            f"{path}: no {kind} tells which columns the events have; put one there first, or give a schema "
            f"({error})"
        ) from error


def _reading(target: CommonColumns, format: str | None) -> Callable[[Batches], Batches]:  # noqa: A002
    def run(batches: Batches) -> Batches:
        for batch in batches:
            contents = batch.column("content") if "content" in batch.schema.names else None
            for row, address in enumerate(batch.column("path").to_pylist()):
                name = Path(unquote(urlsplit(address).path))
                if format is None and not is_event_file(name):
                    continue
                if contents is None:
                    yield from _rows(name, str(name), target, format)
                else:
                    yield from _rows_of_content(contents[row].as_py(), name, address, target, format)
        spare_modules()

    return run


def _rows(path: Path, shown: str, target: CommonColumns, format: str | None) -> Iterator[pa.RecordBatch]:  # noqa: A002
    for piece in read_events(path, format=format).pieces():
        yield from rows_of(piece, target, shown)


def _rows_of_content(
    content: bytes,
    name: Path,
    address: str,
    target: CommonColumns,
    format: str | None,  # noqa: A002
) -> Iterator[pa.RecordBatch]:
    """Read a file of another file system, which Spark has brought here whole."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / name.name
        copy.write_bytes(content)
        yield from _rows(copy, address, target, format)
