"""Parquet files that Spark's own reader reads as Whimbrel's does, also with times in nanoseconds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql import types as sql

from whimbrel.io._parquet import ParquetFile
from whimbrel.io._pieces import EventFile
from whimbrel.model.schema import RESERVED_COLUMNS
from whimbrel.spark.lines import LINE, LINE_SPARK, line_field, said_arrow
from whimbrel.spark.types import quoted

CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
"""What Spark unpacks wherever it runs; others need libraries that it does not bring."""
OWN_METADATA = (b"geo", b"whimbrel.coordinates", b"whimbrel.time_unit")
"""What a file says about itself that Spark would not read."""

_SIMPLE: dict[pa.DataType, sql.DataType] = {
    pa.bool_(): sql.BooleanType(),
    pa.int8(): sql.ByteType(),
    pa.int16(): sql.ShortType(),
    pa.int32(): sql.IntegerType(),
    pa.int64(): sql.LongType(),
    pa.uint8(): sql.ShortType(),
    pa.uint16(): sql.IntegerType(),
    pa.uint32(): sql.LongType(),
    pa.float32(): sql.FloatType(),
    pa.float64(): sql.DoubleType(),
    pa.string(): sql.StringType(),
    pa.large_string(): sql.StringType(),
    pa.binary(): sql.BinaryType(),
    pa.large_binary(): sql.BinaryType(),
    pa.date32(): sql.DateType(),
}


def read_plain(
    spark: SparkSession,
    files: Sequence[EventFile],
    columns: Collection[str] | None,
    given: Mapping[str, str],
) -> DataFrame | None:
    """Let Spark read Parquet files; None if it would not see in them what Whimbrel's reader sees.

    The schema is read here and given to Spark, which then takes times in nanoseconds for whole numbers
    instead of refusing the file; they are made into times again. No setting of the session is needed.
    """
    if not all(type(file) is ParquetFile for file in files):
        return None
    paths = [file.path for file in files]
    schema = _common_schema(paths)
    if schema is None:
        return None
    kept = [
        field
        for field in schema
        if field.name in RESERVED_COLUMNS or columns is None or field.name in columns
    ]
    reading = sql.StructType([sql.StructField(field.name, _read_as(field.type)) for field in kept])
    frame = spark.read.schema(reading).parquet(*(_address(path) for path in paths))
    line = line_field(given[str(paths[0])], None)
    return frame.select(*(_column(field) for field in kept), _lines().alias(LINE, metadata=line.metadata))


def _common_schema(paths: Sequence[Path]) -> pa.Schema | None:
    """List the columns that all files have, if Spark can read them."""
    common: pa.Schema | None = None
    for path in paths:
        metadata = pq.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        said = schema.metadata or {}
        if (
            any(key in said for key in OWN_METADATA)
            or not _codecs(metadata) <= CODECS
            or _has_int96(metadata)
        ):
            return None
        if common is not None and not common.equals(schema, check_metadata=False):
            return None
        common = schema
    if common is None or not all(_is_plain(field) for field in common):
        return None
    folded = {name.lower() for name in common.names}
    return common if len(folded) == len(common.names) else None


def _codecs(metadata: pq.FileMetaData) -> set[str]:
    groups = range(metadata.num_row_groups)
    return {metadata.row_group(g).column(c).compression for g in groups for c in range(metadata.num_columns)}


def _has_int96(metadata: pq.FileMetaData) -> bool:
    """Tell whether times are in the old form, which Arrow shows as nanoseconds, too."""
    return any(metadata.schema.column(c).physical_type == "INT96" for c in range(metadata.num_columns))


def _is_plain(field: pa.Field) -> bool:
    kind = _values(field.type)
    # A whole number as a name becomes text by rules that are not Spark's.
    if field.name in ("id", "source", "type") and kind not in (pa.string(), pa.large_string()):
        return False
    return kind in _SIMPLE or pa.types.is_timestamp(kind) or pa.types.is_decimal128(kind)


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _read_as(kind: pa.DataType) -> sql.DataType:
    kind = _values(kind)
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            return sql.LongType()
        return sql.TimestampType() if kind.tz else sql.TimestampNTZType()
    if pa.types.is_decimal128(kind):
        return sql.DecimalType(kind.precision, kind.scale)
    return _SIMPLE[kind]


def _column(field: pa.Field) -> Column:
    column = fn.col(quoted(field.name))
    kind = _values(field.type)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        # Rounded down, also before 1970, as the embedded engine does; floats would not be exact.
        name = quoted(field.name)
        micros = f"({name} div 1000 - if({name} % 1000 < 0, 1, 0))"
        # A time without a zone stays one: the gate knows which zone is meant.
        local = f"timestampadd(MICROSECOND, {micros}, timestamp_ntz'1970-01-01 00:00:00')"
        column = fn.expr(f"timestamp_micros({micros})" if kind.tz else local)
    return column.alias(field.name, metadata=said_arrow(field.type))


def _lines() -> Column:
    file_and_row = (
        fn.col("_metadata.file_path").alias("file"),
        (fn.col("_metadata.row_index") + 1).alias("row"),
    )
    return fn.struct(*file_and_row, fn.lit(None).cast("string").alias("refused")).cast(LINE_SPARK)


def _address(path: Path) -> str:
    """Write a path as Spark takes it: characters that would be a pattern stand for themselves."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))
