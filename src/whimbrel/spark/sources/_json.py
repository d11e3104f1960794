"""Events from JSON texts: what every message of Kafka or MQTT goes through."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from whimbrel.errors import DataError
from whimbrel.spark.sources._replay_cache import RAW
from whimbrel.spark.types import quoted

__all__ = ["RAW", "events_from_json", "read_schema", "set_misfits_aside", "with_raw"]

_ITEM, _PARSED = "__item", "__parsed"


def read_schema(spark: SparkSession, schema: str | StructType) -> StructType:
    """Read a schema given as text, such as "type STRING, time TIMESTAMP, x DOUBLE, y DOUBLE"."""
    if isinstance(schema, StructType):
        return schema
    try:
        # StructType.fromDDL would want a SparkContext, which Spark Connect does not have.
        return spark.createDataFrame([], schema).schema
    except PySparkException as error:
        raise DataError(
            f"the schema {schema!r} cannot be read; write it like 'type STRING, time TIMESTAMP, x DOUBLE, "
            f"y DOUBLE' ({str(error).strip().splitlines()[0]})"
        ) from error


def with_raw(schema: StructType) -> StructType:
    """Add the column for texts that do not fit the schema."""
    if RAW in schema.fieldNames():
        return schema
    return StructType([*schema.fields, StructField(RAW, StringType())])


def events_from_json(frame: DataFrame, text: Column, schema: StructType, keep: list[Column]) -> DataFrame:
    """Read each text as one event or as a list of events.

    A text that is no JSON, or does not fit the schema, gives a row in which only `_raw` is set, with the
    text: Whimbrel rejects it for its missing type, and shows it among the rejected events. An empty list
    gives no row.

    Parameters
    ----------
    keep
        Other columns of `frame` for the events.
    """
    # A list is first taken apart into texts, so that one bad event does not spoil its neighbours.
    listed = fn.from_json(text, "array<string>")
    items = fn.when(fn.ltrim(text).startswith("["), fn.coalesce(listed, fn.array(text))).otherwise(
        fn.array(text)
    )
    names = [field.name for field in with_raw(schema).fields]
    permissive = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW}
    parsed = frame.select(*keep, fn.explode(items).alias(_ITEM)).select(
        "*", fn.from_json(_ITEM, with_raw(schema), permissive).alias(_PARSED)
    )
    kept = [name for name in parsed.columns if name not in (_ITEM, _PARSED)]
    members = [fn.col(f"{_PARSED}.{quoted(name)}").alias(name) for name in names]
    return set_misfits_aside(parsed.select(*members, *(fn.col(quoted(name)) for name in kept)), schema)


def set_misfits_aside(frame: DataFrame, schema: StructType) -> DataFrame:
    """Leave nothing but the text of a row that did not fit the schema."""
    fits = fn.col(RAW).isNull()
    cleared = {name: fn.when(fits, fn.col(quoted(name))) for name in schema.fieldNames() if name != RAW}
    return frame.withColumns(cleared)
