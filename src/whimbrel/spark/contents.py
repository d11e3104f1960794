"""What events without ids say, hashed by Spark before columns that nobody reads are left out.

Spark computes the part of the attributes, as `whimbrel.engine.identity` says it; the worker adds that
of the location, which every event keeps.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as sql

from whimbrel.engine.identity import ATTRIBUTES
from whimbrel.model.reading import NamedColumns
from whimbrel.spark.lines import is_attribute
from whimbrel.spark.types import quoted

_DAY = 86_400_000_000
_BEYOND_LONG = float(2**63)


def with_contents(frame: DataFrame, named: NamedColumns) -> DataFrame:
    """Add a hash of all attributes to events that bring no ids, so that ids can be made for them."""
    if "id" in named.columns or ATTRIBUTES in frame.columns:
        return frame
    aside = named.used
    counted = [
        _hash(field.name, field.dataType)
        for field in frame.schema.fields
        if field.name not in aside and is_attribute(field)
    ]
    nothing = fn.lit(0).cast("long")
    return frame.withColumn(ATTRIBUTES, reduce(lambda one, other: one.bitwiseXOR(other), counted, nothing))


def columns_of_equals(frame: DataFrame) -> list[str]:
    """Name columns that are the same for equal events: to number these, one worker must have them all.

    The same time can be written as different texts; then what else the events say must do.
    """
    times = ["time"] if "time" in frame.columns else ["end", "start"]
    texts = sql.StringType | sql.StructType  # a struct has the parts of a time, texts too
    is_text = any(isinstance(frame.schema[name].dataType, texts) for name in times)
    names = ["source", *([ATTRIBUTES] if is_text else times)]
    return [name for name in names if name in frame.columns]


def _hash(name: str, kind: sql.DataType) -> Column:
    """Hash a column with its name as seed; what is missing counts as nothing."""
    column = fn.col(quoted(name))
    if isinstance(kind, sql.FloatType | sql.DoubleType | sql.DecimalType):
        return _float_hash(name, column.cast("double"))
    if isinstance(kind, sql.ByteType | sql.ShortType | sql.IntegerType):
        column = column.cast("long")
    if isinstance(kind, sql.DateType):
        column = fn.unix_date(column).cast("long") * fn.lit(_DAY)
    return _seeded(name, column)


def _float_hash(name: str, column: Column) -> Column:
    """Hash floats; NaN is a missing value, and one that is whole and fits counts as the whole number."""
    is_whole = (fn.rint(column) == column) & (column >= -_BEYOND_LONG) & (column < _BEYOND_LONG)
    hashed = fn.when(is_whole, _seeded(name, column.cast("long"))).otherwise(_seeded(name, column))
    return fn.when(fn.isnan(column), fn.lit(0).cast("long")).otherwise(hashed)


def _seeded(name: str, column: Column) -> Column:
    return fn.when(column.isNotNull(), fn.xxhash64(fn.lit(name), column)).otherwise(fn.lit(0).cast("long"))
