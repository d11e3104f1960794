"""The same queries on Spark: batch and streaming DataFrames in, DataFrames of detections out."""

from __future__ import annotations

from whimbrel.spark.batch import OnePartition
from whimbrel.spark.detecting import detect, outcomes
from whimbrel.spark.live import detect_live, outcomes_live
from whimbrel.spark.routing import Routed, SetAside
from whimbrel.spark.session import local_session

__all__ = [
    "OnePartition",
    "Routed",
    "SetAside",
    "detect",
    "detect_live",
    "local_session",
    "outcomes",
    "outcomes_live",
]
