"""Detection over a streaming DataFrame: events packed by shard, an engine with state for each shard."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from typing import Any, Unpack

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from whimbrel.graph.mobile.reading import read_of, selections_of
from whimbrel.graph.mobile.sharding import farthest
from whimbrel.graph.operators import ANY
from whimbrel.graph.operators.step_pattern import walks
from whimbrel.graph.policies import Key
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import (
    ByInterests,
    ByKeys,
    ByMeetings,
    BySpace,
    SinglePartition,
    sharding_words,
)
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import format_duration
from whimbrel.space.partitioning import Cells
from whimbrel.spark.batch import MOST_THAT_FOLLOW, OnePartition
from whimbrel.spark.checkpoints import with_shards
from whimbrel.spark.followed import FollowingProcessor, check_followed, packed_orders
from whimbrel.spark.frames import Prepared, coordinates_of, place_of, prepare
from whimbrel.spark.packing import PACKED_SPARK, Packing, pack_partition
from whimbrel.spark.processor import ANSWER, ShardProcessor, StreamJob, unpack_partition
from whimbrel.spark.retelling import HANDED_ON, RetellingJob, RetellingProcessor, hands_on
from whimbrel.spark.rows import COUNTED, DETECTION, HIDDEN, outcome_schema
from whimbrel.spark.session import ROCKSDB
from whimbrel.spark.settings import FollowingSettings, StreamPlan
from whimbrel.spark.types import quoted
from whimbrel.spark.warming import begin
from whimbrel.spark.worker import IS_UPDATE

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_LOG = logging.getLogger(__name__)
METRICS = "whimbrel"
"""The name under which counts stand in the progress of a streaming query (`observedMetrics`)."""


def detect(query: Query, frame: DataFrame, **settings: Unpack[FollowingSettings]) -> DataFrame:
    """Find detections of a query in a streaming DataFrame as events come; see `outcomes` for the settings."""
    detections = outcomes(query, frame, **settings).where(fn.col("kind") == DETECTION)
    return detections.select([fn.col(quoted(name)) for name in detections.columns if name not in HIDDEN])


def outcomes(query: Query, frame: DataFrame, **settings: Unpack[FollowingSettings]) -> DataFrame:
    """Find detections as events come, and also give the events that were set aside, and counts.

    The settings are `whimbrel.spark.settings.FollowingSettings`: `lateness`, `shards`, `heartbeat`,
    `coordinates`, how events are read (`columns`, `time_unit`, ...), and `followed` and `reach` for queries
    that follow the objects of a list.
    """
    plan = StreamPlan.of(settings, "outcomes", FollowingSettings)
    check_followed(query, plan.followed)
    begun = begin(query, frame)
    coordinates_name = place_of(frame, plan.coordinates)
    prepared = prepare(
        query,
        frame,
        coordinates=coordinates_name,
        filtered=False,
        lists_change=plan.followed is not None,
        **plan.read,
    )
    if isinstance(prepared.sharding, ByInterests):
        reach_m = max(farthest(each, plan.reach_m) for each in query.mobile)
        prepared = replace(prepared, sharding=replace(prepared.sharding, reach_m=reach_m))
    if isinstance(prepared.sharding, ByMeetings):
        why = f"what {', '.join(prepared.sharding.streams)} finds is followed in one place on a stream"
        prepared = replace(prepared, sharding=SinglePartition(why))
    # Workers see parts of the stream, of which some may not tell.
    coordinates = (
        Coordinates(coordinates_name)
        if coordinates_name
        else query.graph.coordinates or coordinates_of(prepared.frame)
    )
    packing = Packing(
        prepared.sharding,
        _shards(prepared, plan.shards),
        plan.lateness,
        schemas=query.schemas,
        coordinates=coordinates,
        reading=prepared.reading,
        columns=columns_read(query),
        types=types_read(query),
        numbered=walks(prepared.graph.operators),
    )
    job = StreamJob(
        query,
        prepared.attributes,
        plan.lateness,
        packing.shards,
        by_space=isinstance(prepared.sharding, BySpace | ByInterests),
        told=prepared.told,
        cells=_cells(prepared, packing),
        hands_on=hands_on(query, prepared.sharding),
        coordinates=coordinates,
    )
    _LOG.info(
        "%s: %s; %d shards, lateness %s, heartbeat %s",
        ", ".join(query.types), sharding_words(prepared.sharding), packing.shards,
        format_duration(plan.lateness), "none" if plan.heartbeat is None else format_duration(plan.heartbeat),
    )  # fmt: skip
    packed = prepared.frame.mapInArrow(pack_partition(packing), PACKED_SPARK)
    if plan.heartbeat is not None:
        packed = packed.unionByName(heartbeats(frame, plan.heartbeat, packing.shards))
    if plan.followed is not None:
        packed = packed.unionByName(packed_orders(plan.followed, packing.shards))
    if begun is not None:
        begun.wait()  # so that the first micro-batch is as fast as the others
    processor = ShardProcessor if plan.followed is None else FollowingProcessor
    return run_packed(packed, job, processor(job))


def _cells(prepared: Prepared, packing: Packing) -> Cells | None:
    """Part places among the shards, where interests are told of by place."""
    plan = prepared.sharding
    return Cells(plan.reach_m, packing.shards) if isinstance(plan, ByInterests) else None


def run_packed(packed: DataFrame, job: StreamJob, processor: ShardProcessor) -> DataFrame:
    """Run the engines over packed events."""
    _use_rocksdb(packed)
    answers = _stateful(packed, processor, HANDED_ON if job.hands_on else ANSWER)
    if job.hands_on:
        assert job.query is not None
        compared = RetellingJob(job.query, job.rows, job.rows, job.shards)
        answers = _stateful(answers, RetellingProcessor(compared), ANSWER)
    rows = answers.mapInArrow(unpack_partition, outcome_schema(job.attributes, job.told))
    return with_shards(rows.observe(METRICS, *_metrics()), job.shards)


def _stateful(frame: DataFrame, processor: StatefulProcessor, answer: str) -> DataFrame:
    """Run a stateful operator, shard by shard."""
    return frame.groupBy("shard").transformWithStateInPandas(
        processor, answer, outputMode="append", timeMode="none"
    )


def heartbeats(frame: DataFrame, behind: int, shards: int) -> DataFrame:
    """Send the time on the wall once a second, as packed rows without events."""
    ticks = frame.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).load()
    watermark = fn.unix_micros(fn.col("timestamp")) - fn.lit(behind)
    shard = fn.explode(fn.sequence(fn.lit(0), fn.lit(shards - 1))).alias("shard")
    none = [fn.lit(0).cast("long").alias(name) for name in ("received", "unread")]
    beats = ticks.select(shard, watermark.alias("watermark"), *none)
    nothing = [fn.lit(None).cast("binary").alias(name) for name in ("events", "rejected")]
    return beats.select("*", *nothing, fn.lit(None).cast("string").alias("control"))


def _metrics() -> list[Any]:
    """Say what is counted over a micro-batch."""
    progress = fn.col("progress")
    sums = [fn.sum(progress[name]).alias(name) for name in (*COUNTED, "detections", "state_bytes")]
    return [*sums, fn.max(progress["watermark"]).alias("watermark")]


def _shards(prepared: Prepared, shards: int | None) -> int:
    why = _why_one(prepared)
    if why is None:
        chosen = default_shards(prepared.frame, shards)
        follows = shards is None and isinstance(prepared.sharding, ByInterests)
        return min(chosen, MOST_THAT_FOLLOW) if follows else chosen
    if shards != 1:
        warnings.warn(
            f"all events go to one shard, so that one core does all the work: {why}",
            OnePartition,
            stacklevel=5,
        )
    return 1


def _why_one(prepared: Prepared) -> str | None:
    """Say why events cannot be partitioned, if that is so."""
    match prepared.sharding:
        case SinglePartition(why):
            return why
        case ByKeys(keys) if not any(_has_key(key, prepared) for key in keys):
            return f"the events have no column for {', '.join(map(str, keys))}"
    return None


def _has_key(key: Key, prepared: Prepared) -> bool:
    if key.kind == "cell":
        return True
    names = ["source"] if key.kind == "source" else [key.name, *(["source"] if key.name == "srcid" else [])]
    return any(prepared.kind(name) is not None for name in names)


def default_shards(frame: DataFrame, shards: int | None) -> int:
    """Look up the number of shards: what was asked for, or a few for each partition of Spark's."""
    if shards is not None:
        return shards
    partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 8)
    return min(4 * partitions, 256)


def types_read(query: Query) -> frozenset[str] | None:
    """Name the types of events that a query reads; None: all."""
    types = frozenset(selections_of(query))
    return None if ANY in types else types


def columns_read(query: Query) -> frozenset[str] | None:
    """Name the attributes of events that a query reads; None: all."""
    needs = read_of(query)
    return None if needs.all_atoms else needs.atoms | {IS_UPDATE}


def _use_rocksdb(frame: DataFrame) -> None:
    """Choose the state store that stateful Python needs; streams that run already keep theirs."""
    session = frame.sparkSession
    if session.conf.get(STATE_STORE, None) != ROCKSDB:
        session.conf.set(STATE_STORE, ROCKSDB)
