"""Where detections go: the console, folders, tables, Kafka and web addresses, each also by a line of text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from time import perf_counter
from typing import Protocol
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from whimbrel.errors import DataError
from whimbrel.model.time import SECOND, duration
from whimbrel.spark.checkpoints import settle_shards, without_shards
from whimbrel.spark.errors import plain_errors
from whimbrel.spark.sinks._form import DetectionForm
from whimbrel.spark.sinks.console import ConsoleSink
from whimbrel.spark.sinks.folder import FolderSink
from whimbrel.spark.sinks.kafka import KafkaSink
from whimbrel.spark.sinks.table import TableSink
from whimbrel.spark.sinks.webhook import WebhookSink
from whimbrel.spark.sources._spec import Spec, address, parse_spec

__all__ = [
    "ConsoleSink",
    "DetectionForm",
    "FolderSink",
    "KafkaSink",
    "Sink",
    "TableSink",
    "WebhookSink",
    "open_sink",
    "start",
]

_LOG = logging.getLogger(__name__)

SINKS = {
    "console": "console:",
    "folder": "folder:found/?format=parquet",
    "table": "table:detections",
    "kafka": "kafka://127.0.0.1:9092/detections",
    "webhook": "webhook:http://127.0.0.1:8080/hook",
}
"""The kinds of sinks, each with an example."""


class Sink(Protocol):
    """Takes detections, one micro-batch after another.

    Writing a micro-batch again, with the same number, must have the effect of writing it once. A sink is sent
    to where the query runs, so it is plain data: it holds no session and no connection.
    """

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a micro-batch; what it raises fails the query, which repeats the micro-batch on restart."""


@plain_errors()
def start(
    frame: DataFrame,
    sinks: Sink | str | Sequence[Sink | str],
    *,
    checkpoint: str | PathLike[str],
    trigger: str | None = None,
    available_now: bool = False,
    name: str | None = None,
    output_mode: str = "append",
) -> StreamingQuery:
    """Start a query that writes a streaming frame of detections to one or more sinks.

    Parameters
    ----------
    sinks
        Sinks, or their text forms as `open_sink` takes them.
    checkpoint
        The folder of the query's progress and state; the query goes on from there when it is started again.
    trigger
        How often a micro-batch begins, such as "5 seconds"; by default as soon as the one before is done.
    available_now
        Process what is there now, in as many micro-batches as it takes, and end.
    name
        The name of the query, for the lists of the session and for logs.
    output_mode
        "append", or what else the query of `frame` can do.

    Raises
    ------
    StateError
        If the checkpoint was made with another number of shards.
    """
    if trigger and available_now:
        raise DataError("give either a trigger or available_now, not both")
    given = [sinks] if isinstance(sinks, str) or hasattr(sinks, "write") else list(sinks)
    opened = [open_sink(sink) if isinstance(sink, str) else sink for sink in given]
    if not opened:
        raise DataError("no sink is given; 'console:' shows the detections")
    settle_shards(frame, checkpoint)
    writer = frame.writeStream.foreachBatch(_writing(opened, trigger)).outputMode(output_mode)
    writer = writer.option("checkpointLocation", fspath(checkpoint))
    every = "all there is, then end" if available_now else f"every {trigger}" if trigger else "at once"
    sinks_named = ", ".join(type(sink).__name__ for sink in opened)
    _LOG.info("stream starts: checkpoint %s, to %s, micro-batches %s", checkpoint, sinks_named, every)
    if name:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()


def _writing(sinks: Sequence[Sink], trigger: str | None) -> Callable[[DataFrame, int], None]:
    def write(frame: DataFrame, batch_id: int) -> None:
        began = perf_counter()
        frame = without_shards(frame)
        # With several sinks, each would run the whole query again.
        kept = frame.persist() if len(sinks) > 1 else None
        try:
            for sink in sinks:
                sink.write(frame, batch_id)
        finally:
            if kept is not None:
                kept.unpersist()
        _log_batch(batch_id, perf_counter() - began, trigger)

    return write


def _log_batch(batch_id: int, took_s: float, trigger: str | None) -> None:
    """Say how long a micro-batch took, and warn where the next one was due before."""
    _LOG.debug("micro-batch %d was found and written in %.2f s", batch_id, took_s)
    due_s = _seconds(trigger)
    if due_s is not None and took_s > due_s:
        _LOG.warning(
            "micro-batch %d took %.1f s, and one is due every %s: events come faster than they are processed",
            batch_id, took_s, trigger,
        )  # fmt: skip


def _seconds(trigger: str | None) -> float | None:
    """Read an interval as Spark writes them; None where it is written in another way."""
    try:
        return None if trigger is None else duration(trigger.replace(" ", "")) / SECOND
    except DataError:
        return None


def open_sink(text: str, *, form: DetectionForm | None = None) -> Sink:
    """Open a sink that is given as one line of text: `kind:place?option=value&option=value`.

    The kinds are `console:`, `folder:PATH`, `table:NAME`, `kafka://SERVER:PORT/TOPIC` and `webhook:URL`; the
    documentation has their options. Those of a webhook follow a `#`, because `?` belongs to its address.

    Parameters
    ----------
    form
        Which attributes each type of detection has, and in which coordinates they are.

    Raises
    ------
    DataError
        If the text names no sink, or an option is unknown or wrong; the message says what would do.
    """
    spec = parse_spec(text, SINKS)
    return _OPENERS[spec.kind](spec, form or DetectionForm())


def _console(spec: Spec, form: DetectionForm) -> Sink:
    spec.check_options(("rows",))
    if spec.place:
        raise spec.fail("the console has no place", "write console: or console:?rows=10")
    return ConsoleSink(spec.whole("rows", 100), form)


def _folder(spec: Spec, form: DetectionForm) -> Sink:
    spec.check_options(("format",))
    path = unquote(spec.place)
    if "://" not in path:
        path = str(Path(path).absolute())
    return FolderSink(path, spec.options.get("format", "parquet"), form)


def _table(spec: Spec, _form: DetectionForm) -> Sink:
    spec.check_options(("format",))
    return TableSink(unquote(spec.place), spec.options.get("format", "parquet"))


def _kafka(spec: Spec, form: DetectionForm) -> Sink:
    spec.check_options((), prefix="kafka.")
    broker = address(spec)
    return KafkaSink(broker.servers, broker.topic, dict(spec.options), form)


def _webhook(spec: Spec, form: DetectionForm) -> Sink:
    spec.check_options(("size", "retries", "wait", "timeout", "token_variable"))
    return WebhookSink(
        spec.place,
        spec.whole("size", 500),
        spec.whole("retries", 5, least=0),
        spec.number("wait", 0.5),
        spec.number("timeout", 10, least=0.1),
        spec.options.get("token_variable"),
        form,
    )


_OPENERS: dict[str, Callable[[Spec, DetectionForm], Sink]] = {
    "console": _console,
    "folder": _folder,
    "table": _table,
    "kafka": _kafka,
    "webhook": _webhook,
}
