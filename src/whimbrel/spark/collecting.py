"""The rows of a static DataFrame that can matter for one key and time, brought here to be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_, or_
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as sql

from whimbrel.errors import WhimbrelError
from whimbrel.graph.operators import ANY, Source
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import ByKeys
from whimbrel.model.reading import ReadSettings
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME, MILLISECOND, SECOND
from whimbrel.spark.frames import Prepared, named, prepare
from whimbrel.spark.types import quoted

_UNITS = {"s": SECOND, "ms": MILLISECOND, "us": 1, "ns": 0.001}
_SIZES = {"s": (0.0, 1e11), "ms": (1e11, 1e14), "us": (1e14, 1e17), "ns": (1e17, float("inf"))}


def rows_of(
    query: Query,
    frame: DataFrame,
    key: Mapping[str, Any],
    span: tuple[int, int],
    **how: Unpack[ReadSettings],
) -> pa.Table:
    """Collect the events that a query reads, of one key and from one stretch of time.

    Types, keys and times are said in Spark's words, so that Spark need not read other rows. A key is left to
    the engine where events of other keys may matter too.

    Raises
    ------
    WhimbrelError
        If the frame is a stream, which has no rows to look at.
    """
    if frame.isStreaming:
        raise WhimbrelError(
            "a streaming frame has no rows to look at; read its source as a static frame, and ask about that"
        )
    prepared = prepare(query, frame, filtered=False, **how)
    tests = [*_types(prepared), *_keys(prepared, key), *_times(prepared, span, how.get("time_unit"))]
    wanted = prepared.frame.where(reduce(and_, tests)) if tests else prepared.frame
    return wanted.toArrow()


def types_of(query: Query, frame: DataFrame, **how: Unpack[ReadSettings]) -> dict[str, int]:
    """Count the events of each type in a whole frame."""
    frame, _, _ = named(frame, query, **how)
    if "type" not in frame.columns:
        return {}
    rows = frame.groupBy("type").count().collect()
    return {row["type"]: row["count"] for row in rows if row["type"]}


def _types(prepared: Prepared) -> list[Column]:
    read = [op.event_type for op in prepared.graph.operators if isinstance(op, Source)]
    if "type" not in prepared.frame.columns or ANY in read:
        return []
    return [fn.col("type").isin(sorted(set(read)))]


def _keys(prepared: Prepared, key: Mapping[str, Any]) -> list[Column]:
    """Test the keys by which all that belongs together agrees."""
    if not isinstance(prepared.sharding, ByKeys):
        return []
    columns = {
        k.name: "source" if k.kind == "source" else k.name for k in prepared.sharding.keys if k.kind != "cell"
    }
    return [_equals(prepared, columns[name], value) for name, value in key.items() if name in columns]


def _equals(prepared: Prepared, name: str, value: Any) -> Column:
    column = fn.col(quoted(name))
    if value is None:
        return column.isNull()
    kind = prepared.kind(name)
    return column == (
        str(value) if isinstance(kind, sql.StringType) else fn.lit(value).cast(kind or "string")
    )


def _times(prepared: Prepared, span: tuple[int, int], time_unit: str | None) -> list[Column]:
    """Test the times, where the column has an order that Spark knows."""
    if span == (BEGINNING_OF_TIME, END_OF_TIME):
        return []
    start, end = ("time", "time") if "time" in prepared.frame.columns else ("start", "end")
    kind = prepared.kind(end)
    since, until = span
    if isinstance(kind, sql.TimestampType):
        return [fn.col(end) >= _instant(since), fn.col(start) <= _instant(until)]
    if isinstance(kind, sql.NumericType) and prepared.reading.times.format is None:
        if time_unit is not None:
            unit = _UNITS[time_unit]
            return [fn.col(end) >= since / unit, fn.col(start) <= until / unit]
        # Without a unit, each number is of that which its size tells; zero is of any.
        size = fn.abs(fn.col(end))
        cases = [
            (size >= least) & (size < most)
            & (fn.col(end) >= since / _UNITS[unit]) & (fn.col(start) <= until / _UNITS[unit])
            for unit, (least, most) in _SIZES.items()
        ]  # fmt: skip
        return [reduce(or_, cases)]
    return []


def _instant(microseconds: int) -> Column:
    return fn.lit(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds))
