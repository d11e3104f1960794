"""Focal objects that come and go while a stream runs: rows put them on the lists of mobile queries.

An order takes effect with the micro-batch in which it comes, before the events of that micro-batch, in every
shard alike. The lists are part of the state of the sessions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from whimbrel.engine.session import Session
from whimbrel.errors import DataError, QueryError, WhimbrelError
from whimbrel.graph.mobile import ListedObject, MobileQuery
from whimbrel.graph.mobile.sharding import farthest
from whimbrel.graph.query import Query
from whimbrel.lang.listed import listed_objects
from whimbrel.model.schema import Type, Value
from whimbrel.model.time import BEGINNING_OF_TIME
from whimbrel.spark.packing import PACKED_SPARK, to_packed
from whimbrel.spark.processor import ShardProcessor
from whimbrel.spark.worker import Batches

FOLLOW, UNFOLLOW = "follow", "unfollow"
_COLUMNS = ("action", "query", "key", "radius", "lifetime")


@dataclass(frozen=True)
class FollowOrder:
    """An order to follow an object, or to follow it no longer."""

    action: str
    key: str | None
    query: str | None = None
    radius: str | None = None
    lifetime: str | None = None
    number: int = 0
    """Orders of one micro-batch are carried out by number."""

    def to_text(self) -> str:
        """Write it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> FollowOrder:
        """Read what `to_text` wrote."""
        return cls(**json.loads(text))


def check_followed(query: Query, control: DataFrame | None) -> None:
    """Refuse orders for a query without a list, and rows that are none, before the stream starts."""
    if control is None:
        return
    if not any(each.focal.listed is not None for each in query.mobile):
        raise QueryError(
            "no mobile query has a list of objects that rows could change",
            hint="give it one, which may be empty: whimbrel.focal('Position', listed=[])",
        )
    missing = [name for name in ("action", "key") if name not in control.columns]
    if missing:
        raise DataError(
            f"the rows of followed objects have no column {missing[0]!r}; they need action and key, and may "
            f"have query, radius, lifetime and number"
        )


def packed_orders(control: DataFrame, shards: int) -> DataFrame:
    """Send every order to every shard."""
    number = fn.col("number").cast("long") if "number" in control.columns else fn.lit(0).cast("long")
    texts = [
        (fn.col(name) if name in control.columns else fn.lit(None)).cast("string").alias(name)
        for name in _COLUMNS
    ]
    return control.select(*texts, number.alias("number")).mapInArrow(_pack(shards), PACKED_SPARK)


def _pack(shards: int) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            rows = [{**row, "number": row["number"] or 0} for row in batch.to_pylist()]
            orders = [FollowOrder(**{**row, "action": row["action"] or ""}) for row in rows]
            yield to_packed([_packed(shard, order) for shard in range(shards) for order in orders])

    return run


def _packed(shard: int, order: FollowOrder) -> dict[str, Any]:
    nothing = {"received": 0, "unread": 0, "events": None, "rejected": None}
    return {"shard": shard, "watermark": BEGINNING_OF_TIME, **nothing, "control": order.to_text()}


# -- on the workers ---------------------------------------------------------------------------------------


class FollowingProcessor(ShardProcessor):
    """Runs the query of each shard, and carries out orders to follow objects."""

    def _run(self, shard: int, session: Session, packed: pd.DataFrame) -> Iterator[pa.RecordBatch]:
        orders = [FollowOrder.from_text(text) for text in packed["control"].dropna()]
        orders.sort(key=lambda order: (order.number, order.to_text()))
        told = self.job.told
        reach = None if self.job.cells is None else self.job.cells.reach_m
        refused = carry_out(orders, session, None if told is None else told.focal, reach)
        if shard == 0:  # every shard carries out and refuses the same orders
            yield from self.job.rows.refused([o.to_text() for o, _ in refused], [why for _, why in refused])
        yield from super()._run(shard, session, packed)


def carry_out(
    orders: Sequence[FollowOrder], session: Session, kind: Type | None, reach_m: float | None
) -> list[tuple[FollowOrder, str]]:
    """Change the lists of a session; give the orders that could not be carried out, with the reason."""
    refused = []
    for order in orders:
        try:
            _carry_out(order, session, kind, reach_m)
        except WhimbrelError as error:
            refused.append((order, str(error)))
    return refused


def _carry_out(order: FollowOrder, session: Session, kind: Type | None, reach_m: float | None) -> None:
    if order.action not in (FOLLOW, UNFOLLOW):
        raise DataError(f"{order.action!r} is no action; write {FOLLOW} or {UNFOLLOW}")
    row = {"key": _key(order.key, kind), "radius": order.radius, "lifetime": order.lifetime}
    (wanted,) = listed_objects([row], kind)
    names = _lists(session, order.query)
    if order.action == UNFOLLOW:
        for name in names:
            session.unfollow([wanted.key], mobile=name)
        return
    for each in session.query().mobile:
        if each.name in names:
            _check_reach(wanted, each, reach_m)
    for name in names:
        session.follow([wanted], mobile=name)


def _lists(session: Session, name: str | None) -> list[str]:
    """Name the mobile queries whose lists an order changes: the one that it names, or all that have one."""
    if name is not None:
        return [name]
    return [each.name for each in session.query().mobile if each.focal.listed is not None]


def _key(text: str | None, kind: Type | None) -> Value | None:
    """Read a key as the attribute that tells objects apart has it."""
    if text is None or kind in (None, Type.STRING):
        return text
    try:
        return {Type.INT: int, Type.FLOAT: float}[kind](text)
    except (KeyError, ValueError):
        raise DataError(
            f"the key {text!r} is no {kind.value}, as the attribute is that tells objects apart"
        ) from None


def _check_reach(wanted: ListedObject, query: MobileQuery, reach_m: float | None) -> None:
    if reach_m is None or wanted.radius_m is None:
        return
    needed = farthest(query, wanted.radius_m)
    if needed > reach_m:
        raise QueryError(
            f"a radius of {wanted.radius_m:g} m needs events from {needed:g} m away, and they are sent over "
            f"{reach_m:g} m",
            hint="begin the stream with a larger reach, on a new checkpoint",
        )
