"""Whimbrel detects situations around things that move.

One declarative query says what happened, where and when; it runs over files, tables and live streams
with the same answer on each.

>>> import whimbrel as wb
>>> query = wb.compile('''
... define Stopped(vehicle)
...   detect Position(speed > 10) as a then Position(speed < 1) as b within 5 s
...   assign vehicle = group.source
...   group by source
... ''')
>>> events = [
...     {"type": "Position", "time": 0, "source": "truck-1", "speed": 14.0},
...     {"type": "Position", "time": 3, "source": "truck-1", "speed": 0.0},
... ]
>>> wb.detect(query, events).to_pydict()["vehicle"]
['truck-1']

Heavy parts load when they are first used.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())  # quiet until someone listens

if TYPE_CHECKING:
    from whimbrel.api import detect
    from whimbrel.backtesting.backtest import Backtest, backtest
    from whimbrel.backtesting.shadow import Shadow
    from whimbrel.engine.bounded import run
    from whimbrel.engine.result import Detections
    from whimbrel.engine.session import Session
    from whimbrel.errors import DataError, QueryError, WhimbrelError
    from whimbrel.graph.custom import CustomOperator
    from whimbrel.graph.explain import explain
    from whimbrel.graph.functions import Function, function
    from whimbrel.graph.mobile import (
        BoxInterest,
        CircleInterest,
        CorridorInterest,
        FocalObjects,
        FunctionInterest,
        ListedObject,
        MobilePolicy,
        MobileQuery,
        OutlineInterest,
        Prediction,
        Quality,
        RefreshAlways,
        RefreshEvery,
        RefreshWhenMoved,
        RefreshWhenQualityFalls,
        SectorInterest,
    )
    from whimbrel.graph.query import Query
    from whimbrel.io.frames import show, to_geopandas, to_pandas, to_polars
    from whimbrel.lang.cpsl.compile import compile_text as cpsl
    from whimbrel.lang.custom import custom_query
    from whimbrel.lang.following import focal, follow
    from whimbrel.lang.reading import read
    from whimbrel.lang.steps import Pattern, either
    from whimbrel.lang.wbl.compile import compile_text as compile
    from whimbrel.safe_regions.client import SafeRegionFilter
    from whimbrel.safe_regions.regions import SafeRegions
    from whimbrel.space.places import box, circle
    from whimbrel.subscriptions import Subscriptions
    from whimbrel.warming import warm
    from whimbrel.whynot import Explanation, why

_HOMES = {
    "Backtest": "whimbrel.backtesting.backtest",
    "BoxInterest": "whimbrel.graph.mobile",
    "CircleInterest": "whimbrel.graph.mobile",
    "CorridorInterest": "whimbrel.graph.mobile",
    "CustomOperator": "whimbrel.graph.custom",
    "DataError": "whimbrel.errors",
    "Detections": "whimbrel.engine.result",
    "Explanation": "whimbrel.whynot",
    "FocalObjects": "whimbrel.graph.mobile",
    "Function": "whimbrel.graph.functions",
    "FunctionInterest": "whimbrel.graph.mobile",
    "ListedObject": "whimbrel.graph.mobile",
    "MobilePolicy": "whimbrel.graph.mobile",
    "MobileQuery": "whimbrel.graph.mobile",
    "OutlineInterest": "whimbrel.graph.mobile",
    "Pattern": "whimbrel.lang.steps",
    "Prediction": "whimbrel.graph.mobile",
    "Quality": "whimbrel.graph.mobile",
    "Query": "whimbrel.graph.query",
    "QueryError": "whimbrel.errors",
    "RefreshAlways": "whimbrel.graph.mobile",
    "RefreshEvery": "whimbrel.graph.mobile",
    "RefreshWhenMoved": "whimbrel.graph.mobile",
    "RefreshWhenQualityFalls": "whimbrel.graph.mobile",
    "SafeRegionFilter": "whimbrel.safe_regions.client",
    "SafeRegions": "whimbrel.safe_regions.regions",
    "SectorInterest": "whimbrel.graph.mobile",
    "Session": "whimbrel.api",
    "Shadow": "whimbrel.backtesting.shadow",
    "Subscriptions": "whimbrel.subscriptions",
    "WhimbrelError": "whimbrel.errors",
    "backtest": "whimbrel.backtesting.backtest",
    "box": "whimbrel.space.places",
    "circle": "whimbrel.space.places",
    "compile": "whimbrel.lang.wbl.compile:compile_text",
    "cpsl": "whimbrel.lang.cpsl.compile:compile_text",
    "custom_query": "whimbrel.lang.custom",
    "detect": "whimbrel.api",
    "either": "whimbrel.lang.steps",
    "explain": "whimbrel.graph.explain",
    "focal": "whimbrel.lang.following",
    "follow": "whimbrel.lang.following",
    "function": "whimbrel.graph.functions",
    "read": "whimbrel.lang.reading",
    "run": "whimbrel.engine.bounded",
    "show": "whimbrel.io.frames",
    "to_geopandas": "whimbrel.io.frames",
    "to_pandas": "whimbrel.io.frames",
    "to_polars": "whimbrel.io.frames",
    "warm": "whimbrel.warming",
    "why": "whimbrel.whynot",
}

__all__ = [
    "Backtest",
    "BoxInterest",
    "CircleInterest",
    "CorridorInterest",
    "CustomOperator",
    "DataError",
    "Detections",
    "Explanation",
    "FocalObjects",
    "Function",
    "FunctionInterest",
    "ListedObject",
    "MobilePolicy",
    "MobileQuery",
    "OutlineInterest",
    "Pattern",
    "Prediction",
    "Quality",
    "Query",
    "QueryError",
    "RefreshAlways",
    "RefreshEvery",
    "RefreshWhenMoved",
    "RefreshWhenQualityFalls",
    "SafeRegionFilter",
    "SafeRegions",
    "SectorInterest",
    "Session",
    "Shadow",
    "Subscriptions",
    "WhimbrelError",
    "backtest",
    "box",
    "circle",
    "compile",
    "cpsl",
    "custom_query",
    "detect",
    "either",
    "explain",
    "focal",
    "follow",
    "function",
    "read",
    "run",
    "show",
    "to_geopandas",
    "to_pandas",
    "to_polars",
    "warm",
    "why",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'whimbrel' has no attribute {name!r}")
    module, _, attribute = home.partition(":")
    found: object = getattr(import_module(module), attribute or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
