"""Events from Kafka, by Spark's own connector."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from whimbrel.errors import WhimbrelError
from whimbrel.spark.sources._json import events_from_json, read_schema

KAFKA_PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""The Maven coordinates of the connector for the Spark that is installed."""


def read_kafka(
    spark: SparkSession,
    servers: str,
    topic: str,
    *,
    schema: str | StructType | None = None,
    starting: str = "earliest",
    key: str | None = None,
    stream: bool = True,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read a Kafka topic of JSON events, each message one event or a list of them.

    A message that is no JSON or does not fit the schema becomes a row in which only `_raw` is set, with its
    text: Whimbrel rejects it and shows it among the rejected events.

    Parameters
    ----------
    servers
        One or more servers, as "host:port,host:port".
    schema
        The columns of the events: "type STRING, time TIMESTAMP, x DOUBLE, y DOUBLE", or a StructType. Without
        one the frame has the columns `key`, `value` (text), `topic`, `partition`, `offset` and `timestamp`.
    starting
        Where a new query begins: "earliest", "latest", or offsets as JSON. A restarted one goes on.
    key
        The column that takes the message's key, for instance "source"; None leaves the key out.
    stream
        False gives a static frame of all that is there now.
    options
        More options of Spark's connector, such as {"maxOffsetsPerTrigger": "10000"}.

    Raises
    ------
    WhimbrelError
        If this Spark session lacks the connector; the message says which package to set.
    """
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": starting}
    reader = spark.readStream if stream else spark.read
    try:
        raw = reader.format("kafka").options(**given, **(options or {})).load()
        texts = [fn.make_valid_utf8(fn.col(name).cast("string")).alias(name) for name in ("key", "value")]
        raw = raw.select(*texts, "topic", "partition", "offset", "timestamp")
        _ = raw.columns  # over Spark Connect nothing is looked at before
    except AnalysisException as error:
        raise missing_connector(error) from error
    if schema is None:
        return raw
    kept = [fn.col("key").alias(key)] if key else []
    columns = read_schema(spark, schema)
    if key in columns.fieldNames():
        columns = StructType([field for field in columns.fields if field.name != key])
    return events_from_json(raw, fn.col("value"), columns, kept)


def missing_connector(error: Exception) -> Exception:
    """Make the error that says how to get the connector, or `error` itself if it is about something else."""
    if "kafka" not in str(error).lower() or "find" not in str(error).lower():
        return error
    return WhimbrelError(
        "this Spark session has no Kafka connector; set spark.jars.packages to "
        f"{KAFKA_PACKAGE} before the first session starts, for instance "
        f"local_session(settings={{'spark.jars.packages': '{KAFKA_PACKAGE}'}})"
    )
