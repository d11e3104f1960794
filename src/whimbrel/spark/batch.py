"""Detection over a static DataFrame: events of one shard in one partition, an engine in each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as sql

from whimbrel.engine.total_order import ARRIVAL
from whimbrel.errors import WhimbrelError
from whimbrel.graph.operators import Graph, Source
from whimbrel.graph.policies import Key
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import (
    AnyPartition,
    ByInterests,
    ByKeys,
    ByMeetings,
    BySpace,
    SinglePartition,
)
from whimbrel.model.batch import normalise
from whimbrel.model.reading import Reading, ReadSettings
from whimbrel.model.schema import Coordinates, Type
from whimbrel.model.settings import check_settings
from whimbrel.space.geometry import in_units
from whimbrel.space.partitioning import Cells, place_copies
from whimbrel.spark.contents import columns_of_equals
from whimbrel.spark.frames import Prepared, place_of, prepare
from whimbrel.spark.meetings import events_of_meetings, first_query, query_of_shard
from whimbrel.spark.packing import cells_per_reach, without_marks
from whimbrel.spark.retelling import RetellingJob, hands_on, retold
from whimbrel.spark.rows import DETECTION, HIDDEN, outcome_schema
from whimbrel.spark.settings import BatchSettings
from whimbrel.spark.types import detection_schema, quoted
from whimbrel.spark.warming import begin
from whimbrel.spark.worker import IS_EVENT, IS_UPDATE, PRIMARY, SHARD, Batches, WorkerJob, run_partition

MOST_THAT_FOLLOW = 32
"""Unless asked for more, interests are told of in so many shards at most: location updates go to all."""


class OnePartition(UserWarning):
    """All events go to one worker, because the query compares all of them."""


def detect(query: Query, frame: DataFrame, **settings: Unpack[BatchSettings]) -> DataFrame:
    """Find all detections of a query in a static DataFrame; see `outcomes` for the settings."""
    check_settings(settings, BatchSettings, "detect() on a static DataFrame")
    return _run(query, frame, whole=False, **settings)


def outcomes(query: Query, frame: DataFrame, **settings: Unpack[BatchSettings]) -> DataFrame:
    """Find all detections, and also give the events that were set aside, and counts.

    The column `kind` says what a row is: `detection`; `duplicate` or `rejected` with the event as JSON in
    `event` and a `reason`; `progress` with counts in `progress`. Every row of the frame is accounted for, so
    no filter is pushed down to the scan, as `detect` does.

    Parameters
    ----------
    columns
        Which column is what, in frames that name them otherwise: `{"source": "vehicle_id", "time": "ts"}`; a
        value may be an expression over columns. Usual names are known.
    partitions
        How many partitions the events are spread over; None leaves it to Spark.
    coordinates, time_unit, time_format, day_first, time_zone, default_type
        As for `whimbrel.run`.
    """
    check_settings(settings, BatchSettings, "outcomes() on a static DataFrame")
    return _run(query, frame, whole=True, **settings)


def _run(
    query: Query,
    frame: DataFrame,
    *,
    whole: bool,
    partitions: int | None = None,
    coordinates: Coordinates | str | None = None,
    reading: Reading | None = None,
    **how: Unpack[ReadSettings],
) -> DataFrame:
    if partitions is not None and partitions < 1:
        raise WhimbrelError(f"partitions is {partitions}; it must be at least 1")
    coordinates_given = place_of(frame, coordinates)
    # Whoever wants an account of all events gets one of all; otherwise rows that do not matter are not read.
    prepared = prepare(
        query, frame, coordinates=coordinates_given, filtered=not whole, reading=reading, **how
    )
    settings: dict[str, Any] = {"coordinates": coordinates_given, "reading": prepared.reading}
    job = WorkerJob(query, prepared.attributes, settings, whole=whole, told=prepared.told)
    if whole and isinstance(prepared.sharding, ByMeetings) and prepared.has_id:
        given = {"coordinates": coordinates_given, "reading": reading, **how}
        return _meetings_and_all_else(query, frame, prepared.sharding, partitions, given)
    begin(query, frame)  # workers that need it before it is there wait for it
    partitioned = partition_frame(prepared, partitions, job)
    sorted_ = partitioned.sorted()
    job = replace(
        job,
        is_sorted=sorted_.is_sorted,
        is_sharded=partitioned.is_sharded,
        by_space=partitioned.by_space,
        query_of=partitioned.query_of,
        cells=partitioned.cells,
    )
    if hands_on(query, prepared.sharding):
        job = replace(job, whole=True, hands_on=True)
        told = sorted_.frame.mapInArrow(run_partition(job), outcome_schema(job.attributes, job.told))
        compared = RetellingJob(query, job.rows, replace(job.rows, whole=whole))
        return retold(told, compared, _default_partitions(prepared, partitions))
    schema = (outcome_schema if whole else detection_schema)(job.attributes, job.told)
    return sorted_.frame.mapInArrow(run_partition(job), schema)


@dataclass(frozen=True)
class PartitionedFrame:
    """Events of which those that belong together are in one partition."""

    prepared: Prepared
    frame: DataFrame
    is_sharded: bool = False
    by_space: bool = False
    query_of: Callable[[int], Query] | None = None
    cells: Cells | None = None

    def sorted(self) -> Sorted:
        """Sort partitions by time, where Spark's order is that of event time."""
        time = _times(self.frame)
        if not all(_is_ordered(self.prepared.kind(name), self.prepared.reading) for name in time):
            order = [SHARD] if self.is_sharded else []
            return Sorted(_sorted(self.frame, order), is_sorted=False)
        order = [SHARD, *time] if self.is_sharded else time
        order += [ARRIVAL] if ARRIVAL in self.frame.columns else []
        return Sorted(_sorted(self.frame, order), is_sorted=True)


@dataclass(frozen=True)
class Sorted:
    """Partitions sorted as far as Spark can."""

    frame: DataFrame
    is_sorted: bool


def _times(frame: DataFrame) -> list[str]:
    return ["time"] if "time" in frame.columns else ["end", "start"]


def _sorted(frame: DataFrame, names: list[str]) -> DataFrame:
    return frame.sortWithinPartitions(*(fn.col(quoted(name)) for name in names)) if names else frame


def _is_ordered(kind: sql.DataType | None, reading: Reading) -> bool:
    if isinstance(kind, sql.NumericType):
        return reading.times.format is None  # else numbers are dates such as 31122024
    return isinstance(kind, sql.TimestampType | sql.TimestampNTZType)


def partition_frame(prepared: Prepared, partitions: int | None, job: WorkerJob) -> PartitionedFrame:
    """Put the events that a query compares into one partition."""
    frame = prepared.frame
    match prepared.sharding:
        case AnyPartition():
            # Events that were delivered twice must meet, and those that only their number tells apart.
            same = ["id"] if prepared.has_id else columns_of_equals(frame)
            return PartitionedFrame(prepared, _by(frame, partitions, [fn.col(quoted(name)) for name in same]))
        case ByKeys(keys):
            columns = [(key, key_column(key, prepared)) for key in keys]
            usable = [column for _, column in columns if column is not None]
            if usable:
                return PartitionedFrame(prepared, _by(frame, partitions, usable))
            why = f"the events have no column for {', '.join(str(key) for key, _ in columns)}"
        case BySpace(reach_m) | ByInterests(reach_m):
            if prepared.kind("geometry") is None:
                return _by_space(prepared, partitions, reach_m, job)
            why = "locations come as geometries, which Spark cannot partition; give points as columns"
        case ByMeetings() as plan:
            if prepared.has_id:
                return _by_meetings(prepared, partitions, plan, job)
            why = (
                "without ids, Spark cannot find the events of a meeting again; give the events a column 'id'"
            )
        case SinglePartition(why):
            frame = _with_a_row(frame) if prepared.graph.time_points else frame
    if partitions != 1:
        warnings.warn(
            f"all events go to one partition, so that one core does all the work: {why}",
            OnePartition,
            stacklevel=5,
        )
    return PartitionedFrame(prepared, frame.repartition(1))


def _with_a_row(frame: DataFrame) -> DataFrame:
    """Add a row that is no event: for a frame without rows, Spark would start no worker to tell the time."""
    row = frame.sparkSession.range(1).select(fn.lit(False).alias(IS_EVENT))
    return frame.withColumn(IS_EVENT, fn.lit(True)).unionByName(row, allowMissingColumns=True)


def _by(frame: DataFrame, partitions: int | None, columns: list[Column]) -> DataFrame:
    return frame.repartition(*columns) if partitions is None else frame.repartition(partitions, *columns)


def key_column(key: Key, prepared: Prepared) -> Column | None:
    """Compute a value that is equal wherever a key is; None if the frame has none."""
    if key.kind == "cell":
        return _cell_column(key, prepared)
    # Without an attribute of that name, `srcid` is the source.
    is_source = key.kind == "source" or (key.name == "srcid" and prepared.kind("srcid") is None)
    name = "source" if is_source else key.name
    kind = prepared.kind(name)
    if kind is None or (isinstance(kind, sql.StringType) and _is_declared_otherwise(name, prepared.graph)):
        return None
    column = fn.col(quoted(name))
    if isinstance(kind, sql.FloatType | sql.DoubleType):
        # To the engine NaN is a missing value, and -0.0 is 0.0.
        return fn.when(fn.isnan(column), fn.lit(None)).otherwise(column + fn.lit(0.0))
    return column


def _is_declared_otherwise(name: str, graph: Graph) -> bool:
    """Tell whether texts are to be read as something else, so that different texts may be equal values."""
    schemas = [op.schema for op in graph.operators if isinstance(op, Source) and op.schema is not None]
    declared = {schema.attributes[name] for schema in schemas if name in schema.attributes}
    return bool(declared - {Type.STRING})


def _cell_column(key: Key, prepared: Prepared) -> Column | None:
    """Tell the row of cells an event lies in: coarser than the cell, but the same for all its events."""
    y = "lat" if prepared.kind("lat") is not None else "y"
    if prepared.kind("geometry") is not None or prepared.types.get(y, Type.FLOAT) is not Type.FLOAT:
        return None
    if not isinstance(prepared.kind(y), sql.FloatType | sql.DoubleType):
        return None
    step = in_units(key.cell_m, Coordinates.LONLAT if y == "lat" else prepared.graph.coordinates)
    return fn.floor(fn.col(y).cast("double") / fn.lit(float(step)))


# -- by space ---------------------------------------------------------------------------------------------


def _by_space(prepared: Prepared, partitions: int | None, reach_m: float, job: WorkerJob) -> PartitionedFrame:
    """Send every event to the shards that have a cell within reach of it."""
    follows = isinstance(prepared.sharding, ByInterests)
    shards = _default_partitions(prepared, partitions, MOST_THAT_FOLLOW if follows else None)
    fields = [field for field in prepared.frame.schema.fields if field.name != IS_UPDATE]
    schema = sql.StructType(fields).add(SHARD, "integer").add(PRIMARY, "boolean")
    copies = prepared.frame.mapInArrow(
        copy_to_shards(job, reach_m, shards, cells_per_reach(prepared.sharding)), schema
    )
    partitioned = copies.repartition(shards, fn.col(quoted(SHARD)))
    cells = Cells(reach_m, shards) if follows else None
    return PartitionedFrame(prepared, partitioned, is_sharded=True, by_space=True, cells=cells)


def _by_meetings(
    prepared: Prepared, partitions: int | None, plan: ByMeetings, job: WorkerJob
) -> PartitionedFrame:
    """Find the meetings, then send their events to the shards that follow them."""
    shards = _default_partitions(prepared, partitions)
    meetings = _run(
        first_query(job.query, plan), prepared.frame, whole=False, partitions=partitions, **job.settings
    )
    events = events_of_meetings(prepared.frame, meetings, plan, shards)
    partitioned = events.repartition(shards, fn.col(quoted(SHARD)))
    return PartitionedFrame(
        prepared,
        partitioned,
        is_sharded=True,
        query_of=lambda shard: query_of_shard(job.query, plan, shard, shards),
    )


def _meetings_and_all_else(
    query: Query,
    frame: DataFrame,
    plan: ByMeetings,
    partitions: int | None,
    settings: dict[str, Any],
) -> DataFrame:
    """Select the detections, and the account of all events that the search for meetings gives."""
    detected = _run(query, frame, whole=False, partitions=partitions, **settings)
    first = _run(first_query(query, plan), frame, whole=True, partitions=partitions, **settings)
    account = first.where(fn.col("kind") != DETECTION).select(*HIDDEN)
    detections = detected.withColumn("kind", fn.lit(DETECTION))
    whole = detections.unionByName(account, allowMissingColumns=True)
    schema = outcome_schema(prepare(query, frame, **settings).attributes)
    return whole.select(*(fn.col(quoted(name)) for name in schema.names))


def _default_partitions(prepared: Prepared, partitions: int | None, most: int | None = None) -> int:
    setting = int(prepared.frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 8)
    return partitions or min(setting, most or setting)


def copy_to_shards(
    job: WorkerJob, reach_m: float, shards: int, per_reach: float
) -> Callable[[Batches], Batches]:
    """Make the function that adds to every event the shards it is for."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            x, y, coordinates = places(batch, job)
            everywhere, events = without_marks(batch)
            placed = place_copies(x, y, reach_m, shards, coordinates, everywhere, per_reach)
            copies = events.take(pa.array(placed.row))
            arrays = [*copies.columns, pa.array(placed.shard.astype(np.int32)), pa.array(placed.is_primary)]
            yield pa.RecordBatch.from_arrays(arrays, names=[*copies.schema.names, SHARD, PRIMARY])

    return run


def places(batch: pa.RecordBatch, job: WorkerJob) -> tuple[np.ndarray, np.ndarray, Coordinates | None]:
    """Read the points of a batch of raw events, NaN where a row has none or is no event."""
    point = ("lon", "lat") if "lon" in batch.schema.names else ("x", "y")
    plain = batch.select([name for name in point if name in batch.schema.names])
    times = pa.array(np.zeros(batch.num_rows, np.int64))
    probe = pa.RecordBatch.from_arrays([*plain.columns, times], names=[*plain.schema.names, "time"])
    x, y = np.full(batch.num_rows, np.nan), np.full(batch.num_rows, np.nan)
    wanted = job.settings["coordinates"]
    asked = Coordinates(wanted) if wanted else job.query.graph.coordinates
    normalised = normalise(probe, coordinates=asked, reading=Reading.of(default_type="probe"))
    bad = set(normalised.rejected.column("row").to_pylist())
    good = np.array([row not in bad for row in range(batch.num_rows)]) if bad else np.ones(len(x), np.bool_)
    if "x" in normalised.events.schema.names:
        x[good] = _floats(normalised.events.column("x"))
        y[good] = _floats(normalised.events.column("y"))
    return x, y, normalised.coordinates


def _floats(column: pa.Array) -> np.ndarray:
    values = column.to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64)
