"""The same queries on Spark: batch and streaming DataFrames in, DataFrames of detections out.

What is here loads when it is first used: Spark's workers need only a part of it, and start the sooner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whimbrel.spark.batch import OnePartition
    from whimbrel.spark.detecting import detect, outcomes
    from whimbrel.spark.live import detect_live, outcomes_live
    from whimbrel.spark.reading import read_events
    from whimbrel.spark.routing import Routed, SideOutputFiles
    from whimbrel.spark.running import run
    from whimbrel.spark.session import local_session
    from whimbrel.spark.shadow import differences, outcomes_shadow
    from whimbrel.spark.warming import warm

_HOMES = {
    "OnePartition": "batch",
    "Routed": "routing",
    "SideOutputFiles": "routing",
    "detect": "detecting",
    "detect_live": "live",
    "differences": "shadow",
    "local_session": "session",
    "outcomes": "detecting",
    "outcomes_live": "live",
    "outcomes_shadow": "shadow",
    "read_events": "reading",
    "run": "running",
    "warm": "warming",
}

__all__ = [
    "OnePartition",
    "Routed",
    "SideOutputFiles",
    "detect",
    "detect_live",
    "differences",
    "local_session",
    "outcomes",
    "outcomes_live",
    "outcomes_shadow",
    "read_events",
    "run",
    "warm",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'whimbrel.spark' has no attribute {name!r}")
    handed_on: object = getattr(import_module(f"whimbrel.spark.{home}"), name)
    globals()[name] = handed_on
    return handed_on


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
