"""The front door: one call, whatever the events are in."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

from whimbrel.engine.bounded import RunSettings, run
from whimbrel.engine.result import Detections
from whimbrel.engine.session import Session
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.model.frames import EventPaths, EventTable, is_spark_frame
from whimbrel.model.schema import Value
from whimbrel.model.settings import check_settings
from whimbrel.model.time import Duration, Moment

if TYPE_CHECKING:
    from whimbrel.spark.detecting import DataFrame
    from whimbrel.spark.settings import DetectSettings
    from whimbrel.store import Store
    from whimbrel.store.event_store import StoreRunSettings
    from whimbrel.whynot import Explanation


def _why(
    session: Session,
    *,
    key: Value | Mapping[str, Value],
    at: Moment | None,
    around: Duration | None,
    name: str | None,
    limit: int,
    effort: int,
) -> Explanation:
    """Load the explanations when a session is first asked for one."""
    from whimbrel.whynot import why_of_session

    return why_of_session(session, key=key, at=at, around=around, name=name, limit=limit, effort=effort)


Session.explainer = _why


# A frame of Spark can be a stream of Arrow, too: the first signature that fits is meant.
@overload
def detect(  # type: ignore[overload-overlap]
    query: Query | Compilable, events: DataFrame, **settings: Unpack[DetectSettings]
) -> DataFrame: ...
@overload
def detect(query: Query | Compilable, events: Store, **settings: Unpack[StoreRunSettings]) -> Detections: ...
@overload
def detect(
    query: Query | Compilable, events: EventTable | EventPaths, **settings: Unpack[RunSettings]
) -> Detections: ...


def detect(query: Query | Compilable, events: Any, **settings: Any) -> Any:
    """Find all detections of a query.

    Files, Arrow tables, pandas and polars frames and lists of dicts run on the embedded engine and give
    `Detections`, which are used as an Arrow table, and show themselves in a notebook; see `run` for the
    settings. A Spark DataFrame gives a Spark DataFrame: a static one for a static one, a streaming one for a
    streaming one; see `whimbrel.spark.detect`. Of an event store only what the query can use is read; see
    `whimbrel.store.Store.run` for the settings.

    The result has the columns `id`, `type`, `start`, `end`, `geometry` (WKB), the attributes of the
    detections, and `events` (the ids of the atomic events each depends on). All but those on Spark are in
    the order (end, start, type, events).

    Examples
    --------
    >>> import whimbrel as wb
    >>> query = wb.compile("define Warm detect Temp(val > 25)")
    >>> events = [{"type": "Temp", "time": 0, "val": 30.5}, {"type": "Temp", "time": 1, "val": 20.0}]
    >>> wb.detect(query, events).to_pydict()["val"]
    [30.5]
    """
    if is_spark_frame(events):
        from whimbrel.spark import detect as detect_on_spark

        return detect_on_spark(compiled(query), events, **settings)
    store = sys.modules.get("whimbrel.store")  # who has a store has loaded this
    if store is not None and isinstance(events, store.Store):
        return events.detect(compiled(query), **settings)
    from whimbrel.warming import compile_meanwhile

    check_settings(settings, RunSettings, "detect()")
    return run(query, events, ready=compile_meanwhile(query, events), **settings)
