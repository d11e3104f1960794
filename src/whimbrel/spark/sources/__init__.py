"""Streams of events: replayed files, folders, Kafka and MQTT, each also by one line of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Unpack
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from whimbrel.model.reading import ReadSettings
from whimbrel.model.schema import EventSchema
from whimbrel.spark.sources import mqtt, replay
from whimbrel.spark.sources._spec import Spec, address, parse_spec
from whimbrel.spark.sources.files import read_folder
from whimbrel.spark.sources.kafka import KAFKA_PACKAGE, read_kafka
from whimbrel.spark.sources.mqtt import MqttSource, read_mqtt
from whimbrel.spark.sources.replay import ReplaySource, read_replay

__all__ = [
    "KAFKA_PACKAGE",
    "check_source",
    "open_source",
    "read_folder",
    "read_kafka",
    "read_mqtt",
    "read_replay",
    "register",
]

SOURCES = {
    "replay": "replay:traffic.parquet?speed=60",
    "folder": "folder:incoming/?format=json",
    "kafka": "kafka://127.0.0.1:9092/events?schema=type STRING, time TIMESTAMP",
    "mqtt": "mqtt://127.0.0.1:1883/fleet/%23?spool=spool&schema=type STRING, time TIMESTAMP",
}
"""The kinds of sources, each with an example."""


def register(spark: SparkSession) -> None:
    """Let a session know the data sources `whimbrel-replay` and `whimbrel-mqtt`."""
    spark.dataSource.register(ReplaySource)
    spark.dataSource.register(MqttSource)


def check_source(text: str) -> None:
    """Refuse a text that names no source, before a session is there to open it."""
    parse_spec(text, SOURCES)


def open_source(
    spark: SparkSession,
    text: str,
    *,
    schema: str | StructType | None = None,
    schemas: Mapping[str, EventSchema] | None = None,
    **how: Unpack[ReadSettings],
) -> DataFrame:
    """Open a stream of events that is given as one line of text: `kind:place?option=value&option=value`.

    The kinds are `replay:PATH`, `folder:PATH`, `kafka://SERVER:PORT/TOPIC` and `mqtt://SERVER:PORT/TOPIC`;
    the documentation has their options. In a place or a value `%` and two digits stand for a character that
    means something else there: `%23` for `#`, `%3F` for `?`, `%26` for `&`.

    Parameters
    ----------
    schema
        The columns of the events, for kinds that need them; outweighs the option `schema`.
    schemas, columns, time_unit, time_format, day_first, time_zone
        How the events will be read, as for `detect`: a replay finds the times by it, unless the options in
        the text say otherwise.

    Raises
    ------
    DataError
        If the text names no source, or an option is unknown or wrong; the message says what would do.
    """
    spec = parse_spec(text, SOURCES)
    given = schema or spec.options.get("schema")
    if spec.kind == "replay":
        if given:
            raise spec.fail("a replay takes its columns from the files; leave the schema out")
        return _open_replay(spark, spec, schemas, how)
    return _OPENERS[spec.kind](spark, spec, given)


_REPLAY = ("format", "order", "speed", "rows_per_batch", "tick", "time_unit", "cache")
"""The options of a replay in one line of text; how rows are read is said beside it."""


def _open_replay(
    spark: SparkSession, spec: Spec, schemas: Mapping[str, EventSchema] | None, how: ReadSettings
) -> DataFrame:
    spec.check_options(_REPLAY)
    reading = how.copy()
    if "time_unit" in spec.options:
        reading["time_unit"] = spec.options["time_unit"]
    speed = 0 if spec.options.get("speed", "").lower() == "max" else spec.number("speed", 0)
    return read_replay(
        spark,
        _path(spec),
        speed=speed,
        rows_per_batch=spec.whole("rows_per_batch", replay.ROWS_PER_BATCH),
        order=spec.options.get("order", "time"),
        tick=spec.number("tick", 1, least=1e-3),
        format=spec.options.get("format"),
        cache=spec.options.get("cache"),
        schemas=schemas,
        **reading,
    )


def _open_folder(spark: SparkSession, spec: Spec, schema: str | StructType | None) -> DataFrame:
    spec.check_options(("format", "schema", "max_files"))
    options = {"maxFilesPerTrigger": str(spec.whole("max_files", 1))} if "max_files" in spec.options else {}
    return read_folder(spark, _path(spec), format=spec.options.get("format"), schema=schema, options=options)


def _open_kafka(spark: SparkSession, spec: Spec, schema: str | StructType | None) -> DataFrame:
    spec.check_options(("schema", "starting", "key", "max_per_batch"), prefix="kafka.")
    broker = address(spec)
    options = {name: text for name, text in spec.options.items() if name.startswith("kafka.")}
    if "max_per_batch" in spec.options:
        options["maxOffsetsPerTrigger"] = str(spec.whole("max_per_batch", 1))
    return read_kafka(
        spark,
        broker.servers,
        broker.topic,
        schema=schema,
        starting=spec.options.get("starting", "earliest"),
        key=spec.options.get("key"),
        options=options,
    )


def _open_mqtt(spark: SparkSession, spec: Spec, schema: str | StructType | None) -> DataFrame:
    known = [name for name in mqtt.OPTIONS if name not in ("host", "port", "topic")]
    spec.check_options([*known, "schema"])
    broker = address(spec)
    host, _, port = broker.servers.partition(":")
    if port and not port.isdecimal():
        raise spec.fail(f"the port must be a number, not {port!r}")
    if "spool" not in spec.options:
        raise spec.fail(
            "mqtt needs the option 'spool'", "name a folder that keeps messages until they are processed"
        )
    options = {name: text for name, text in spec.options.items() if name not in ("schema", "spool")}
    options |= {"username": broker.user} if broker.user else {}
    options |= {"password": broker.password} if broker.password else {}
    spool = str(Path(spec.options["spool"]).absolute())
    return read_mqtt(
        spark, host, broker.topic, spool=spool, port=int(port or 1883), schema=schema, options=options
    )


_OPENERS: dict[str, Callable[[SparkSession, Spec, str | StructType | None], DataFrame]] = {
    "folder": _open_folder,
    "kafka": _open_kafka,
    "mqtt": _open_mqtt,
}


def _path(spec: Spec) -> str:
    """Return a path that means the same in every process; the address of another file system stays."""
    path = unquote(spec.place)
    return path if "://" in path else str(Path(path).absolute())
