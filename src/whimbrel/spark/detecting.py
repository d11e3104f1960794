"""One call for both kinds of DataFrames."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from whimbrel.graph.query import Query
from whimbrel.spark import batch, stream


def detect(query: Query, frame: DataFrame, **settings: Any) -> DataFrame:
    """Find all detections of a query in a DataFrame of events.

    A static frame gives a static one, a streaming frame a streaming one, with the columns `id`, `type`,
    `start`, `end`, `geometry` (WKB), the attributes of the detections, and `events` (ids). The settings are
    those of `whimbrel.spark.batch.outcomes` or `whimbrel.spark.stream.outcomes`.
    """
    return (stream if frame.isStreaming else batch).detect(query, frame, **settings)


def outcomes(query: Query, frame: DataFrame, **settings: Any) -> DataFrame:
    """Find all detections, and also give the events that were set aside, and counts.

    The column `kind` says what a row is: `detection`; `late`, `duplicate` or `rejected` with the event as
    JSON in `event` and a `reason`; `progress` with counts in `progress`. The settings are those of
    `whimbrel.spark.batch.outcomes` or `whimbrel.spark.stream.outcomes`.
    """
    return (stream if frame.isStreaming else batch).outcomes(query, frame, **settings)
