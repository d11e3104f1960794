"""What is new or changes for an object, after its interests were told of in different shards.

A shard tells everything of the interests in its own cells, and which these are. Then all that concerns an
object goes to one place, where it is compared: in a second step over a static frame, by a second stateful
operator on a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from whimbrel.engine.mobile.deliveries import INTERESTS
from whimbrel.engine.mobile.retelling import Retelling
from whimbrel.engine.snapshot import Blocks
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import ByInterests, Sharding
from whimbrel.model.time import END_OF_TIME
from whimbrel.spark.checkpoints import other_shards
from whimbrel.spark.packing import from_block, hashed, to_block
from whimbrel.spark.rows import DETECTION, INTEREST, OutcomeRows
from whimbrel.spark.worker import Batches, spare_modules

HANDED_ON = "shard int, watermark long, block binary"
"""What a shard hands on to where objects are compared: outcomes as Arrow blocks, and the watermark."""


def hands_on(query: Query, sharding: Sharding) -> bool:
    """Tell whether what shards tell is compared afterwards."""
    compares = any(each.policy.deliver != "all" for each in query.mobile)
    return compares and isinstance(sharding, ByInterests)


@dataclass(frozen=True)
class RetellingJob:
    """A query, and how what is told of it is written: plain data that is sent to the workers."""

    query: Query
    told: OutcomeRows
    """How shards have written it."""
    rows: OutcomeRows
    """How it is written in the end."""
    shards: int = 1

    def start(self) -> dict[str, Retelling]:
        """Open what compares, for each mobile query that needs it."""
        return {each.name: Retelling(each) for each in self.query.mobile if each.policy.deliver != "all"}


class _Retold:
    """One step of comparing."""

    def __init__(self, job: RetellingJob, compared: Mapping[str, Retelling]) -> None:
        self.job = job
        self.compared = compared

    def step(self, told: pa.Table, watermark: int) -> Batches:
        """Let all else pass, and give what is new or changes."""
        queries, kinds = told.column("query"), told.column("kind")
        ours = pc.fill_null(pc.is_in(queries, pa.array(list(self.compared), pa.string())), False)
        rest = told.filter(pc.invert(ours))
        count = pc.sum(pc.equal(rest.column("kind"), DETECTION)).as_py() or 0
        yield from self.job.rows.again(rest)
        for name, retelling in self.compared.items():
            mine = told.filter(pc.equal(queries, name)) if told.num_rows else told
            kinds = mine.column("kind")
            detections = mine.filter(pc.equal(kinds, DETECTION)).select(self.job.told.detection_columns)
            found = retelling.step(detections, _interests(mine.filter(pc.equal(kinds, INTEREST))), watermark)
            if found is not None:
                count += found.num_rows
                yield from self.job.rows.detections(found)
        yield from self.job.rows.progress({"detections": count})


def _interests(rows: pa.Table) -> pa.Table:
    return rows.select([*INTERESTS.names, "focal"])


# -- static frames ----------------------------------------------------------------------------------------


def retold(frame: DataFrame, job: RetellingJob, partitions: int) -> DataFrame:
    """Compare what all shards have told of a static frame, object by object."""
    parted = frame.repartition(partitions, fn.col("query"), fn.col("focal"))
    return parted.mapInArrow(_retell(job), from_arrow_schema(job.rows.schema))


def _retell(job: RetellingJob) -> Any:
    def run(batches: Batches) -> Batches:
        told = pa.Table.from_batches([_timed(batch, job.told.schema) for batch in batches], job.told.schema)
        if told.num_rows:
            yield from _Retold(job, job.start()).step(told, END_OF_TIME)
        spare_modules()

    return run


def _timed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Bring what Spark gives back to the schema that was given to it: it names time zones otherwise."""
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)], schema=schema
    )


# -- streams ----------------------------------------------------------------------------------------------


def handed_on(batches: Iterable[pa.RecordBatch], shard: int, shards: int, watermark: int) -> pd.DataFrame:
    """Pack what a shard tells for where it goes: by object; what concerns none stays where it is."""
    rows: list[tuple[int, int, bytes]] = []
    for batch in batches:
        focal = batch.column("focal")
        if focal.null_count:
            rows.append((shard, watermark, to_block(batch)))
            continue
        numbers = (hashed([focal]) % np.uint64(shards)).astype(np.int64)
        order = np.argsort(numbers, kind="stable")
        begins = [0, *(np.flatnonzero(np.diff(numbers[order])) + 1).tolist(), len(order)]
        chosen = batch.take(pa.array(order))
        for low, high in pairwise(begins):
            if high > low:
                block = to_block(chosen.slice(low, high - low))
                rows.append((int(numbers[order[low]]), watermark, block))
    return pd.DataFrame(rows, columns=["shard", "watermark", "block"])


class RetellingProcessor(StatefulProcessor):
    """Compares what is told of the objects of one shard, and keeps in Spark's state store what was told."""

    def __init__(self, job: RetellingJob) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("told", "shards int, snapshot binary")

    def handleInputRows(  # noqa: N802, Spark's name
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Take in what a micro-batch has for a shard."""
        packed = pd.concat(list(rows), ignore_index=True)
        compared = self._restored()
        blocks = [from_block(bytes(block)) for block in sorted(packed["block"])]
        step = _Retold(self.job, compared).step(pa.Table.from_batches(blocks), int(packed["watermark"].max()))
        answers = [to_block(batch) for batch in step]
        self._keep(compared)
        yield pd.DataFrame({"block": answers})
        spare_modules()

    def close(self) -> None:
        """Nothing to let go of: the state is Spark's."""

    def _restored(self) -> dict[str, Retelling]:
        compared, kept = self.job.start(), self._state.get()
        if kept is None:
            return compared
        if kept[0] != self.job.shards:
            raise other_shards(kept[0], self.job.shards)
        blocks = Blocks.from_bytes(bytes(kept[1]))
        for name, retelling in compared.items():
            retelling.load(blocks, name)
        return compared

    def _keep(self, compared: Mapping[str, Retelling]) -> None:
        blocks = Blocks()
        for name, retelling in compared.items():
            retelling.save(blocks, name)
        self._state.update((self.job.shards, blocks.to_bytes()))
