"""Queries about what happens between objects: first find which events meet, then follow each meeting.

`two ships within 500 m of each other, ten times in a row` compares all ships, but only those that are close;
and what it then follows is one pair at a time. So the meetings are found with nearby events partitioned
together; then the events that take part in any go, pair by pair, to where the whole query runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from whimbrel.graph.functions import Function
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import ByMeetings, among
from whimbrel.model.schema import Type
from whimbrel.spark.packing import hashed
from whimbrel.spark.types import quoted
from whimbrel.spark.worker import SHARD, Batches

MINE = "@mine"
"""A test that only the worker knows: whether it is the one that a meeting goes to."""


def first_query(query: Query, plan: ByMeetings) -> Query:
    """Make the query that finds the meetings."""
    return replace(query, graph=replace(query.rewritten, outputs=plan.streams))


def query_of_shard(query: Query, plan: ByMeetings, shard: int, shards: int) -> Query:
    """Make the whole query as one shard runs it: blind to the meetings of all others."""

    def is_mine(*keys: np.ndarray) -> np.ndarray:
        return shard_of_keys([pa.array(key, from_pandas=True) for key in keys], shards) == shard

    mine = Function(MINE, is_mine, Type.BOOL, vectorised=True)
    graph = among(query.rewritten, plan.streams, MINE, plan.keys)
    return replace(query, graph=graph, functions={**query.functions, MINE: mine})


def shard_of_keys(keys: list[pa.Array], shards: int) -> np.ndarray:
    """Select the shards that meetings go to."""
    return (hashed(keys) % np.uint64(shards)).astype(np.int64)


def events_of_meetings(frame: DataFrame, meetings: DataFrame, plan: ByMeetings, shards: int) -> DataFrame:
    """Select the events that take part in any meeting, once for every shard that follows one of theirs."""
    schema = f"id string, {quoted(SHARD)} int"
    members = meetings.select(*(fn.col(quoted(key)) for key in plan.keys), "events")
    pairs = members.mapInArrow(_members(plan.keys, shards), schema).distinct()
    return frame.withColumn("id", fn.col("id").cast("string")).join(pairs, "id")


def _members(keys: tuple[str, ...], shards: int) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            shard = shard_of_keys([batch.column(key) for key in keys], shards)
            lists: Any = batch.column("events")
            sizes = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
            numbers = pa.array(np.repeat(shard, sizes).astype(np.int32))
            yield pa.RecordBatch.from_arrays([lists.flatten(), numbers], names=["id", SHARD])

    return run
