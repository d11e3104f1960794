"""Event files that arrive in a folder, as a stream."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from whimbrel.errors import DataError, did_you_mean
from whimbrel.spark.sources._json import read_schema, set_misfits_aside, with_raw

_OPTIONS: dict[str, dict[str, str]] = {
    "parquet": {},
    "csv": {"header": "true"},
    "json": {},
}
FORMATS = tuple(_OPTIONS)


def read_folder(
    spark: SparkSession,
    path: str,
    *,
    format: str = "parquet",  # noqa: A002 - the name that users of every reader know
    schema: str | StructType | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read the event files in a folder, and those that come later, as a stream.

    A row of a CSV or JSON file that does not fit the schema becomes one in which only `_raw` is set, with its
    text: Whimbrel rejects it and shows it among the rejected events.

    Parameters
    ----------
    path
        A folder, in any file system that Spark reads. Files must appear in it whole, by renaming.
    format
        "parquet", "csv" (with a header) or "json" (JSON lines).
    schema
        The columns, as "type STRING, time TIMESTAMP, ..." or as a StructType; by default what the files that
        are there now hold.
    options
        More options of Spark's file source, such as {"maxFilesPerTrigger": "10"}.

    Raises
    ------
    DataError
        If the format is not known, or no schema is given and there are no files to find one from.
    """
    if format not in _OPTIONS:
        raise DataError(f"format {format!r} is not known; {did_you_mean(format, FORMATS)}")
    settings = {**_OPTIONS[format], **(options or {})}
    columns = read_schema(spark, schema) if schema else _found_schema(spark, path, format, settings)
    if format == "parquet":
        return spark.readStream.format(format).schema(columns).options(**settings).load(path)
    settings |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_raw"}
    frame = spark.readStream.format(format).schema(with_raw(columns)).options(**settings).load(path)
    return set_misfits_aside(frame, columns)


def _found_schema(spark: SparkSession, path: str, form: str, settings: Mapping[str, str]) -> StructType:
    inferring = {} if form == "parquet" else {"inferSchema": "true", "columnNameOfCorruptRecord": "_raw"}
    try:
        found = spark.read.format(form).options(**settings, **inferring).load(path).schema
    except AnalysisException as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(
            f"{path}: no {form} file tells which columns the events have; put one there first, or give a "
            f"schema ({reason})"
        ) from error
    if not found.fields:
        raise DataError(
            f"{path}: the {form} files there are empty; put one with rows there, or give a schema"
        )
    return StructType([field for field in found.fields if field.name != "_raw"])
