"""One call for both kinds of DataFrames."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from whimbrel.graph.query import Query
from whimbrel.spark import batch, stream


def detect(query: Query, frame: DataFrame, **settings: Any) -> DataFrame:
    """Find all detections of a query in a DataFrame of events."""
    return (stream if frame.isStreaming else batch).detect(query, frame, **settings)


def outcomes(query: Query, frame: DataFrame, **settings: Any) -> DataFrame:
    """Find all detections, and also give the events that were set aside, and counts."""
    return (stream if frame.isStreaming else batch).outcomes(query, frame, **settings)
