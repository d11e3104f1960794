"""Mobile queries: what is asked of a query that follows moving objects, as frozen data.

docs/meaning.md says what such a query finds; `whimbrel.engine.mobile` finds it.
"""

from __future__ import annotations

from whimbrel.graph.mobile.interests import (
    BoxInterest,
    CircleInterest,
    CorridorInterest,
    FunctionInterest,
    Interest,
    OutlineInterest,
    SectorInterest,
)
from whimbrel.graph.mobile.policy import (
    MobilePolicy,
    Prediction,
    Quality,
    Refresh,
    RefreshAlways,
    RefreshEvery,
    RefreshWhenMoved,
    RefreshWhenQualityFalls,
)
from whimbrel.graph.mobile.quality_distance import distance_for_quality
from whimbrel.graph.mobile.query import FocalObjects, ListedObject, MobileQuery

__all__ = [
    "BoxInterest",
    "CircleInterest",
    "CorridorInterest",
    "FocalObjects",
    "FunctionInterest",
    "Interest",
    "ListedObject",
    "MobilePolicy",
    "MobileQuery",
    "OutlineInterest",
    "Prediction",
    "Quality",
    "Refresh",
    "RefreshAlways",
    "RefreshEvery",
    "RefreshWhenMoved",
    "RefreshWhenQualityFalls",
    "SectorInterest",
    "distance_for_quality",
]
