"""One call for both kinds of DataFrames."""

from __future__ import annotations

from typing import Unpack, cast

from pyspark.sql import DataFrame

from whimbrel.graph.query import Query
from whimbrel.spark import batch, stream
from whimbrel.spark.settings import BatchSettings, DetectSettings, FollowingSettings

__all__ = ["DataFrame", "detect", "outcomes"]


def detect(query: Query, frame: DataFrame, **settings: Unpack[DetectSettings]) -> DataFrame:
    """Find all detections of a query in a DataFrame of events.

    A static frame gives a static one, a streaming frame a streaming one, with the columns `id`, `type`,
    `start`, `end`, `geometry` (WKB), the attributes of the detections, and `events` (ids). The settings are
    `whimbrel.spark.settings.BatchSettings` or `FollowingSettings`.
    """
    if frame.isStreaming:
        return stream.detect(query, frame, **cast("FollowingSettings", settings))
    return batch.detect(query, frame, **cast("BatchSettings", settings))


def outcomes(query: Query, frame: DataFrame, **settings: Unpack[DetectSettings]) -> DataFrame:
    """Find all detections, and also give the events that were set aside, and counts.

    The column `kind` says what a row is: `detection`; `late`, `duplicate` or `rejected` with the event as
    JSON in `event` and a `reason`; `progress` with counts in `progress`. The settings are those of `detect`.
    """
    if frame.isStreaming:
        return stream.outcomes(query, frame, **cast("FollowingSettings", settings))
    return batch.outcomes(query, frame, **cast("BatchSettings", settings))
