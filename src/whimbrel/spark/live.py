"""Queries that come and go while the stream runs: a control stream says which ones run.

A change takes effect with the micro-batch in which it comes, before the events of that micro-batch, in every
shard alike. The state of all other queries stays as it is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from whimbrel.engine.session import Session
from whimbrel.errors import DataError, QueryError, WhimbrelError
from whimbrel.graph.mobile.sharding import sharding_of
from whimbrel.graph.policies import Key
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import AnyPartition, ByKeys, SinglePartition, sharding_words
from whimbrel.io.detections import attribute_texts
from whimbrel.lang.wbl.compile import compile_text
from whimbrel.model.schema import MADE_OF_SEVERAL, Coordinates, Type
from whimbrel.model.time import BEGINNING_OF_TIME, format_duration
from whimbrel.spark.frames import coordinates_of, is_simple, named
from whimbrel.spark.packing import PACKED_SPARK, Packing, pack_partition, to_packed
from whimbrel.spark.processor import ShardProcessor, StreamJob, value_of
from whimbrel.spark.rows import DETECTION
from whimbrel.spark.settings import StreamPlan, StreamSettings
from whimbrel.spark.stream import default_shards, heartbeats, run_packed
from whimbrel.spark.types import quoted
from whimbrel.spark.worker import Batches

ACTIONS = ("add", "replace", "remove")
_LOG = logging.getLogger(__name__)
_ATTRIBUTES = {"query": Type.STRING, "attributes": Type.STRING}


@dataclass(frozen=True)
class QueryChange:
    """A change of the running queries."""

    action: str
    name: str
    query: str | None = None
    number: int = 0
    """Orders of one micro-batch are carried out by number."""

    def to_text(self) -> str:
        """Write it as JSON."""
        return json.dumps(
            {"number": self.number, "action": self.action, "name": self.name, "query": self.query}
        )

    @classmethod
    def from_text(cls, text: str) -> QueryChange:
        """Read what `to_text` wrote."""
        return cls(**json.loads(text))


class LiveSettings(StreamSettings, total=False):
    """The settings of `detect_live`; each may be left out."""

    by: str | Sequence[str] | None
    """The attributes by which events are partitioned among the shards; see `outcomes_live`."""


def detect_live(frame: DataFrame, control: DataFrame, **settings: Unpack[LiveSettings]) -> DataFrame:
    """Find detections of queries that are added, replaced and removed while the stream runs.

    Gives the columns `query` (its name), `id`, `type`, `start`, `end`, `geometry`, `attributes` (a JSON
    object, because the queries are not known beforehand) and `events`. The settings are those of
    `outcomes_live`.
    """
    names = ("query", "id", "type", "start", "end", "geometry", "attributes", "events")
    rows = outcomes_live(frame, control, **settings)
    return rows.where(fn.col("kind") == DETECTION).select(*names)


def outcomes_live(
    frame: DataFrame,
    control: DataFrame,
    *,
    by: str | Sequence[str] | None = "source",
    **settings: Unpack[StreamSettings],
) -> DataFrame:
    """Do the same as `detect_live`, and give everything that comes of events and orders.

    Besides the kinds of `whimbrel.spark.outcomes`, rows of the kind `refused` hold orders that could not be
    carried out, with the reason.

    Parameters
    ----------
    control
        A streaming frame with the columns `action` (add, replace or remove), `name`, and `query` (the text of
        a query). A column `number` says in which order those of one micro-batch are carried out.
    lateness, shards, heartbeat, coordinates, and how events are read (columns, time_unit, ...)
        As for `whimbrel.spark.detect` on a stream.
    by
        The attributes by which events are partitioned, for good. Queries must group by all of them (or look
        at single events); others are refused. None puts all events into one shard, which allows any query.
    """
    plan = StreamPlan.of(settings, "outcomes_live")
    names = [by] if isinstance(by, str) else list(by or ())
    keys = tuple(Key("source" if name == "source" else "attribute", name) for name in names)
    frame, reading, _ = named(frame, **plan.read)
    usable = [f.name for f in frame.schema.fields if f.name in MADE_OF_SEVERAL or is_simple(f.dataType)]
    frame = frame.select(*(fn.col(quoted(name)) for name in usable))
    _check(frame, control, keys)
    coordinates = coordinates_of(frame) if plan.coordinates is None else Coordinates(plan.coordinates)
    packing = Packing(
        ByKeys(keys) if keys else SinglePartition("all queries are allowed"),
        default_shards(frame, plan.shards) if keys else 1,
        plan.lateness,
        coordinates=coordinates,
        reading=reading,
        numbered=True,
    )
    job = LiveJob(
        None, dict(_ATTRIBUTES), packing.lateness, packing.shards, coordinates=coordinates, keys=keys
    )
    _LOG.info(
        "queries by a control stream: %s; %d shards, lateness %s",
        sharding_words(packing.sharding), packing.shards, format_duration(plan.lateness),
    )  # fmt: skip
    events = frame.mapInArrow(pack_partition(packing), PACKED_SPARK)
    orders = _orders(control).mapInArrow(pack_orders(packing.shards), PACKED_SPARK)
    packed = events.unionByName(orders)
    if plan.heartbeat is not None:
        packed = packed.unionByName(heartbeats(frame, plan.heartbeat, packing.shards))
    return run_packed(packed, job, LiveProcessor(job))


def _check(frame: DataFrame, control: DataFrame, keys: tuple[Key, ...]) -> None:
    for key in keys:
        if key.name not in frame.columns:
            raise DataError(
                f"by={key.name!r}: the frame has no such column; it has {', '.join(frame.columns)}"
            )
    missing = [name for name in ("action", "name", "query") if name not in control.columns]
    if missing:
        raise DataError(
            f"the control stream has no column {missing[0]!r}; it needs action, name and query, "
            f"and may have number"
        )


def _orders(control: DataFrame) -> DataFrame:
    number = fn.col("number").cast("long") if "number" in control.columns else fn.lit(0).cast("long")
    texts = [fn.col(name).cast("string").alias(name) for name in ("action", "name", "query")]
    return control.select(*texts, number.alias("number"))


def pack_orders(shards: int) -> Callable[[Batches], Batches]:
    """Make the function that sends every order to every shard."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            rows = [_order(row) for row in batch.to_pylist()]
            yield to_packed([_packed(shard, order) for shard in range(shards) for order in rows])

    return run


def _packed(shard: int, order: QueryChange) -> dict[str, Any]:
    nothing = {"received": 0, "unread": 0, "events": None, "rejected": None}
    return {"shard": shard, "watermark": BEGINNING_OF_TIME, **nothing, "control": order.to_text()}


def _order(row: dict[str, Any]) -> QueryChange:
    return QueryChange(row["action"] or "", row["name"] or "", row["query"], row["number"] or 0)


# -- on the workers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LiveJob(StreamJob):
    """Queries that come and go over a stream."""

    keys: tuple[Key, ...] = field(default=())

    def session(self, shard: int) -> Session:
        """Open the session of a shard, without queries."""
        session = super().session(shard)
        session.name_queries()
        return session

    def compiled(self, order: QueryChange) -> Query:
        """Compile a query, and refuse it if its events are not partitioned as it needs them."""
        query = compile_text(order.query or "")
        needed = sharding_of(query)
        if not self.keys or isinstance(needed, AnyPartition):
            return query
        if query.mobile:
            raise QueryError(
                f"the events of this stream are partitioned by {', '.join(map(str, self.keys))}, and "
                f"{query.mobile[0].name} follows objects: it needs those around them",
                hint="start the stream with by=None",
            )
        shared = needed.keys if isinstance(needed, ByKeys) else ()
        missing = [str(key) for key in self.keys if key not in shared]
        if missing:
            raise QueryError(
                f"the events of this stream are partitioned by {', '.join(map(str, self.keys))}, "
                f"and the query does not group all its events by {missing[0]}",
                hint="add `group by`, or start the stream with by=None",
            )
        return query


class LiveProcessor(ShardProcessor):
    """Runs the queries of each shard, and carries out orders."""

    job: LiveJob

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state, which has the texts of the running queries too."""
        super().init(handle)
        self._queries = handle.getValueState("queries", "queries string")

    def _open(self, shard: int) -> Session:
        session = self.job.session(shard)
        for name, text in json.loads(value_of(self._queries)):
            session.add(compile_text(text), name=name)
        return session

    def _run(self, shard: int, session: Session, packed: pd.DataFrame) -> Iterator[pa.RecordBatch]:
        orders = [QueryChange.from_text(text) for text in packed["control"].dropna()]
        texts = dict(json.loads(value_of(self._queries))) if self._queries.exists() else {}
        refused = carry_out(sorted(orders, key=lambda o: (o.number, o.to_text())), session, texts, self.job)
        # In the order in which the session has them: its snapshot asks for that.
        self._queries.update((json.dumps([(name, texts[name]) for name in session.queries]),))
        if shard == 0:  # every shard carries out and refuses the same orders
            _log_orders(len(orders), refused, len(session.queries))
            yield from self.job.rows.refused([o.to_text() for o, _ in refused], [why for _, why in refused])
        yield from super()._run(shard, session, packed)

    def _written(self, found: pa.Table) -> pa.Table:
        if not found.num_rows:
            return found
        named = found.drop_columns(["@query"])
        texts = [attribute_texts(batch) for batch in named.combine_chunks().to_batches()]
        kept = found.select(["id", "type", "start", "end", "geometry", "events"])
        kept = kept.append_column("query", found.column("@query"))
        return kept.append_column("attributes", pa.chunked_array(texts, pa.string()))


def _log_orders(orders: int, refused: Sequence[tuple[QueryChange, str]], running: int) -> None:
    if orders:
        _LOG.info(
            "%d orders of the control stream, %d refused; %d queries run", orders, len(refused), running
        )
    for order, why in refused:
        _LOG.warning("the order to %s %r was refused: %s", order.action, order.name, why)


def carry_out(
    orders: Sequence[QueryChange], session: Session, texts: dict[str, str], job: LiveJob
) -> list[tuple[QueryChange, str]]:
    """Change the queries of a session; give the orders that could not be carried out, with the reason."""
    refused = []
    for order in orders:
        try:
            _carry_out(order, session, texts, job)
        except WhimbrelError as error:
            refused.append((order, str(error)))
    return refused


def _carry_out(order: QueryChange, session: Session, texts: dict[str, str], job: LiveJob) -> None:
    if order.action not in ACTIONS:
        raise DataError(f"{order.action!r} is no action; write {', '.join(ACTIONS)}")
    if not order.name:
        raise DataError("the order names no query")
    # What cannot be compiled must not cost the query that it was to replace.
    query = None if order.action == "remove" else job.compiled(order)
    if order.action == "remove" or (order.action == "replace" and order.name in session.queries):
        session.remove(order.name)
        texts.pop(order.name, None)
    if query is not None:
        session.add(query, name=order.name)
        texts[order.name] = query.text
