"""A changed query beside the live one on a stream: what it finds otherwise, told while the stream runs.

Events are brought into the common form once for each query, because each may declare them differently, and
partitioned in a way that suits both. A shard runs both engines and compares what they find: detections
that are the same finding rest on the same events, and so come up in the same shard.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Unpack, cast

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from whimbrel.backtesting.compare import difference_texts
from whimbrel.backtesting.shadow import CANDIDATE, Shadow
from whimbrel.engine.session import Session
from whimbrel.engine.snapshot import Blocks
from whimbrel.errors import DataError, QueryError
from whimbrel.graph.operators.step_pattern import walks
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import AnyPartition, ByKeys, ByMeetings, BySpace, Sharding, SinglePartition
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import BEGINNING_OF_TIME
from whimbrel.spark.batch import OnePartition
from whimbrel.spark.checkpoints import shards_of, with_shards
from whimbrel.spark.frames import Prepared, coordinates_of, named, prepare
from whimbrel.spark.packing import (
    PACKED_SPARK,
    ROWS_AT_ONCE,
    Packing,
    blocks_to_batches,
    from_block,
    pack,
)
from whimbrel.spark.processor import ShardProcessor, StreamJob
from whimbrel.spark.rows import OutcomeRows
from whimbrel.spark.settings import StreamPlan, StreamSettings
from whimbrel.spark.stream import columns_read, default_shards, heartbeats, run_packed, types_read
from whimbrel.spark.types import quoted
from whimbrel.spark.worker import PRIMARY, Batches, larger

DIFFERENCE = "difference"
"""The kind of a row that says what the candidate finds otherwise: the change in `reason`, all in `event`."""

_DIFFERENCE = (
    "change string, id string, type string, `start` timestamp, `end` timestamp, geometry string, "
    "attributes string, before string, events array<string>"
)


def differences(
    live: Query, candidate: Query, frame: DataFrame, **settings: Unpack[StreamSettings]
) -> DataFrame:
    """Tell what a candidate finds otherwise than the live query in a streaming DataFrame, as it is settled.

    Gives the columns `change` (added, dropped or changed), `id`, `type`, `start`, `end`, `geometry` (WKT),
    `attributes` and `before` (JSON objects: the queries may have different attributes), and `events`. The
    settings are those of `outcomes_shadow`.
    """
    rows_of_both = outcomes_shadow(live, candidate, frame, **settings).where(fn.col("kind") == DIFFERENCE)
    rows = rows_of_both.select(fn.from_json("event", _DIFFERENCE).alias("row")).select("row.*")
    return with_shards(rows, shards_of(rows_of_both))


def outcomes_shadow(
    live: Query,
    candidate: Query,
    frame: DataFrame,
    **settings: Unpack[StreamSettings],
) -> DataFrame:
    """Run a live query on a stream as `whimbrel.spark.outcomes` does, with a candidate in its shadow.

    All rows are those of the live query, as they are without a shadow; rows of the kind `difference` come on
    top, with the change in `reason` and everything, as JSON, in `event`. So `whimbrel.spark.Routed` sends
    detections to their sinks as before, and differences to where events go that were set aside. If the
    candidate fails, a row of the kind `refused` says why, and the live query goes on.

    Parameters
    ----------
    live, candidate
        The query that is relied on, and the one that might replace it; see `whimbrel.Shadow`.
    lateness, shards, heartbeat, coordinates, and how events are read (columns, time_unit, ...)
        As for `whimbrel.spark.detect` on a stream. Events are partitioned in a way that suits both queries:
        into one shard, if there is no other.
    """
    if not frame.isStreaming:
        raise DataError("this frame is static; over history, whimbrel.backtest compares two queries")
    if live.mobile or candidate.mobile:
        raise QueryError(
            "a query that follows objects cannot run in a shadow on a stream, nor have one",
            hint="run each on a stream of its own, and compare what they tell",
        )
    plan = StreamPlan.of(settings, "outcomes_shadow")
    frame, reading, _ = named(frame, live, **plan.read)
    said = None if plan.coordinates is None else Coordinates(plan.coordinates)
    coordinates = said or coordinates_of(frame)
    prepared = [
        prepare(query, frame, coordinates=said and said.value, filtered=False, reading=reading)
        for query in (live, candidate)
    ]
    chosen = suits_both(prepared[0].sharding, prepared[1].sharding)
    count = _shards(frame, chosen, plan.shards)
    packings = [
        Packing(
            chosen,
            count,
            plan.lateness,
            schemas=query.schemas,
            coordinates=query.graph.coordinates or coordinates,
            columns=columns_read(query),
            types=types_read(query),
            numbered=walks(each.graph.operators),
            reading=reading,
        )
        for query, each in zip((live, candidate), prepared, strict=True)
    ]
    job = ShadowJob(
        live,
        prepared[0].attributes,
        plan.lateness,
        count,
        by_space=isinstance(chosen, BySpace),
        coordinates=live.graph.coordinates or coordinates,
        candidate=candidate,
    )
    packed = _of_both(frame, prepared).mapInArrow(pack_for_both(*packings), PACKED_SPARK)
    if plan.heartbeat is not None:
        beats = heartbeats(frame, plan.heartbeat, count)
        packed = packed.unionByName(beats).unionByName(beats.withColumn("control", fn.lit(CANDIDATE)))
    return run_packed(packed, job, ShadowProcessor(job))


def _shards(frame: DataFrame, chosen: Sharding, shards: int | None) -> int:
    if not isinstance(chosen, SinglePartition):
        return default_shards(frame, shards)
    if shards != 1:
        words = f"all events go to one shard, so that one core does all the work: {chosen.why}"
        warnings.warn(words, OnePartition, stacklevel=4)
    return 1


def suits_both(one: Sharding, other: Sharding) -> Sharding:
    """Choose a way of partitioning events that is right for two queries.

    >>> from whimbrel.graph.sharding import SOURCE
    >>> str(suits_both(ByKeys((SOURCE,)), AnyPartition()))
    "ByKeys(keys=(Key(kind='source', name='source', cell_m=0.0),))"
    """
    if isinstance(one, AnyPartition) or one == other:
        return _followed(other)
    if isinstance(other, AnyPartition):
        return _followed(one)
    if isinstance(one, ByKeys) and isinstance(other, ByKeys):
        keys = tuple(key for key in one.keys if key in other.keys)
        return ByKeys(keys) if keys else SinglePartition("the two queries group by different things")
    if isinstance(one, BySpace) and isinstance(other, BySpace):
        return BySpace(max(one.reach_m, other.reach_m))
    return SinglePartition("the two queries need their events partitioned in different ways")


def _followed(chosen: Sharding) -> Sharding:
    """On a stream, meetings are followed in one place."""
    if isinstance(chosen, ByMeetings):
        return SinglePartition(f"what {', '.join(chosen.streams)} finds is followed in one place on a stream")
    return chosen


def _of_both(frame: DataFrame, prepared: list[Prepared]) -> DataFrame:
    """List the columns that either query reads, and where events have no ids, what tells them apart."""
    names = dict.fromkeys(name for each in prepared for name in each.frame.columns)
    return frame.select([fn.col(quoted(name)) for name in names])


def pack_for_both(live: Packing, candidate: Packing) -> Callable[[Batches], Batches]:
    """Make the function that packs one partition of events for each query."""

    def run(batches: Batches) -> Batches:
        for batch in larger(batches, ROWS_AT_ONCE):
            yield pack(batch, live)
            packed = pack(batch, candidate)
            index = packed.schema.names.index("control")
            yield packed.set_column(index, packed.schema.field(index), pa.repeat(CANDIDATE, packed.num_rows))

    return run


# -- on the workers ---------------------------------------------------------------------------------------


class ShadowRows(OutcomeRows):
    """Writes differences, too."""

    def differences(self, table: pa.Table | None) -> Iterator[pa.RecordBatch]:
        """Write what a candidate finds otherwise."""
        if table is not None and table.num_rows:
            changes = table.column("change").combine_chunks()
            columns = {"event": difference_texts(table), "reason": changes}
            yield self._batch(DIFFERENCE, columns, table.num_rows)


@dataclass(frozen=True)
class ShadowJob(StreamJob):
    """Two queries over a stream."""

    candidate: Query | None = None

    @property
    def rows(self) -> ShadowRows:
        """How results are written."""
        return ShadowRows(self.attributes)

    def session(self, shard: int) -> Session:
        """Open what runs in a shard: it is kept, saved and restored as a session is."""
        theirs = Session(
            self.candidate,
            lateness=self.lateness,
            follows_events=False,
            owned=PRIMARY if self.by_space else None,
            coordinates=self.coordinates,
        )
        return cast("Session", ShadowedSession(Shadow(super().session(shard), theirs)))


class ShadowedSession:
    """The session of a live query in a shard; when it is fed, the candidate is fed, too."""

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow
        self.theirs: list[pa.RecordBatch] = []
        """What comes next for the candidate."""
        self.their_watermark = BEGINNING_OF_TIME
        self.settled: pa.Table | None = None
        """What came of the last step: taken at once, so that no snapshot holds it and none tells it again."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shadow.live, name)

    def feed(self, events: Iterable[pa.RecordBatch], watermark: int) -> list[pa.Table]:
        """Feed both."""
        theirs, self.theirs = self.theirs, []
        detections = self.shadow.feed(list(events), theirs, (watermark, self.their_watermark))
        self.settled = self.shadow.take_differences()
        return detections

    def state(self) -> Blocks:
        """Save the state of both."""
        return self.shadow.state()

    def take_up(self, blocks: Blocks) -> None:
        """Go on with both."""
        self.shadow.take_up(blocks)


class ShadowProcessor(ShardProcessor):
    """Runs both queries of each shard, and tells what is different."""

    job: ShadowJob

    def _run(self, shard: int, session: Session, packed: pd.DataFrame) -> Iterator[pa.RecordBatch]:
        both = cast("ShadowedSession", session)
        shadow = both.shadow
        failed_before = shadow.failure is not None
        is_live = packed["control"].isna()
        others = packed[~is_live]
        for block in others["rejected"].dropna():
            shadow.candidate.ingest.count_rejected(from_block(bytes(block)))
        both.theirs = blocks_to_batches(others["events"].dropna())
        if len(others):
            both.their_watermark = int(others["watermark"].max())
        yield from super()._run(shard, session, packed[is_live])
        yield from self.job.rows.differences(both.settled)
        if shadow.failure is not None and not failed_before:
            yield from self.job.rows.refused([json.dumps({"query": CANDIDATE})], [shadow.failure])
