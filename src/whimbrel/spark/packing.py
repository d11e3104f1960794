"""Packing events for the shuffle: one row for each shard, with all its events as one Arrow block.

A million events travel as a few dozen rows. Every row also carries the time up to which the packing task has
seen everything, and every shard gets one even if it has no events, so that time is the same in all shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from whimbrel.engine.identity import hashes
from whimbrel.engine.ingest import Ingest
from whimbrel.engine.streams import cell_names
from whimbrel.engine.total_order import ARRIVAL
from whimbrel.engine.values import Column, decoded, from_arrow
from whimbrel.graph.policies import Key
from whimbrel.graph.sharding import ByInterests, ByKeys, BySpace, Sharding, SinglePartition
from whimbrel.model.reading import Reading
from whimbrel.model.schema import Coordinates, EventSchema
from whimbrel.model.time import BEGINNING_OF_TIME
from whimbrel.space import geometry
from whimbrel.space.partitioning import CELLS_PER_INTEREST, CELLS_PER_REACH, place_copies
from whimbrel.spark.lines import normalise_lines
from whimbrel.spark.worker import IS_UPDATE, PRIMARY, Batches, larger, spare_modules

PACKED = pa.schema(
    [
        ("shard", pa.int32()),
        ("watermark", pa.int64()),
        ("received", pa.int64()),
        ("unread", pa.int64()),
        ("events", pa.binary()),
        ("rejected", pa.binary()),
        ("control", pa.string()),
    ]
)
PACKED_SPARK = from_arrow_schema(PACKED)

ROWS_AT_ONCE = 1_000_000
"""Events packed together: more would make blocks larger than Spark likes to move as one."""


ROWS_OF_A_TASK = 33
"""Two to the power of this is more than a task has events."""


@dataclass(frozen=True)
class Packing:
    """How events are brought into the common form and partitioned: plain data that is sent to the workers."""

    sharding: Sharding
    shards: int
    lateness: int
    schemas: Mapping[str, EventSchema] = field(default_factory=dict)
    coordinates: Coordinates | None = None
    reading: Reading = Reading()
    columns: frozenset[str] | None = None
    """The attributes that any query reads; None: all."""
    types: frozenset[str] | None = None
    """The types that any query reads; None: all. Events of others only say how late it is."""
    numbered: bool = False
    """Whether events get numbers in the order in which they came."""

    def ingest(self) -> Ingest:
        """Open the gate that events pass."""
        ingest = Ingest(
            lateness=self.lateness,
            schemas=self.schemas,
            coordinates=self.coordinates,
            reading=self.reading,
        )
        read = None if self.columns is None else set(self.columns)
        ingest.expect(read, (), only_these=True, exact=True)
        return ingest


def pack_partition(packing: Packing) -> Callable[[Batches], Batches]:
    """Make the function that packs one partition of a DataFrame of events."""

    def run(batches: Batches) -> Batches:
        first = _first_number() if packing.numbered else 0
        for batch in larger(batches, ROWS_AT_ONCE):
            yield pack(batch, packing, first)
            first += batch.num_rows
        spare_modules()

    return run


def _first_number() -> int:
    """Count up to the first event of a task: partitions follow each other as Spark numbers them."""
    task = TaskContext.get()
    return 0 if task is None else task.partitionId() << ROWS_OF_A_TASK


def pack(batch: pa.RecordBatch, packing: Packing, first: int = 0) -> pa.RecordBatch:
    """Pack events: one row for each shard; `first` is the number of the first in the order of arrival."""
    normalised = normalise_lines(packing.ingest().normalise, batch)
    events = normalised.events
    if packing.numbered:
        came = pa.array(np.arange(first, first + events.num_rows))
        events = events.append_column(ARRIVAL, came)
    watermark = BEGINNING_OF_TIME
    if events.num_rows:
        newest = int(events.column("end").to_numpy(zero_copy_only=False).max())
        watermark = newest - packing.lateness - 1
    read = _of_types_read(events, packing.types)
    blocks = dict(_partitioned(read, packing, normalised.coordinates)) if read.num_rows else {}
    rows = []
    for shard in range(packing.shards):
        piece = blocks.get(shard)
        rows.append(
            {
                "shard": shard,
                "watermark": watermark,
                "received": _count_primary(piece),
                "unread": 0,
                "events": None if piece is None else to_block(piece),
                "rejected": None,
                "control": None,
            }
        )
    rows[0]["unread"] = events.num_rows - read.num_rows
    rows[0]["received"] += events.num_rows - read.num_rows
    if normalised.rejected.num_rows:
        # Any shard will do: this one counts them and passes them on.
        rows[0]["rejected"] = to_block(normalised.rejected)
        rows[0]["received"] += normalised.rejected.num_rows
    return to_packed(rows)


def _of_types_read(events: pa.RecordBatch, types: frozenset[str] | None) -> pa.RecordBatch:
    """Leave out events of types that no query reads."""
    if types is None or not events.num_rows:
        return events
    column = events.column("type")
    read = np.array([name in types for name in decoded(column.dictionary).to_pylist()], np.bool_)
    if read.all():
        return events
    return events.take(pa.array(np.nonzero(read[column.indices.to_numpy(zero_copy_only=False)])[0]))


def to_packed(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Write rows as a batch."""
    return pa.RecordBatch.from_pylist(list(rows), schema=PACKED)


def _count_primary(events: pa.RecordBatch | None) -> int:
    """Count events; a copy for a neighbouring shard does not count."""
    if events is None:
        return 0
    if PRIMARY not in events.schema.names:
        return int(events.num_rows)
    return int(np.count_nonzero(events.column(PRIMARY).to_numpy(zero_copy_only=False)))


def _partitioned(
    events: pa.RecordBatch, packing: Packing, coordinates: Coordinates | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Part events by shard, those of a shard staying in their order."""
    everywhere, events = without_marks(events)
    if isinstance(packing.sharding, BySpace | ByInterests):
        x, y = centres(events, coordinates)
        per_reach = cells_per_reach(packing.sharding)
        reach_m = packing.sharding.reach_m
        placed = place_copies(x, y, reach_m, packing.shards, coordinates, everywhere, per_reach)
        events = events.take(pa.array(placed.row)).append_column(PRIMARY, pa.array(placed.is_primary))
        numbers = placed.shard
    else:
        numbers = shard_numbers(events, packing.sharding, packing.shards, coordinates)
    if packing.shards == 1:
        yield 0, events
        return
    order = np.argsort(numbers.astype(np.int16) if packing.shards < 32_768 else numbers, kind="stable")
    sizes = np.bincount(numbers, minlength=packing.shards)
    events, begin = events.take(pa.array(order)), 0
    for shard, size in enumerate(sizes.tolist()):
        if size:
            yield shard, events.slice(begin, size)
        begin += size


def without_marks(events: pa.RecordBatch) -> tuple[np.ndarray | None, pa.RecordBatch]:
    """Take the mark of location updates off events: they go to all shards."""
    if IS_UPDATE not in events.schema.names:
        return None, events
    marks = events.column(IS_UPDATE).to_numpy(zero_copy_only=False).astype(np.bool_)
    return marks, events.drop_columns([IS_UPDATE])


def cells_per_reach(sharding: Sharding) -> float:
    """Tell how many times as wide as the reach cells are."""
    return CELLS_PER_INTEREST if isinstance(sharding, ByInterests) else CELLS_PER_REACH


def shard_numbers(
    events: pa.RecordBatch, sharding: Sharding, shards: int, coordinates: Coordinates | None
) -> np.ndarray:
    """Assign every event to its shard: the same for all events that belong together."""
    if shards == 1 or isinstance(sharding, SinglePartition):
        return np.zeros(events.num_rows, np.int64)
    if isinstance(sharding, ByKeys):
        parts = [_key_hashes(events, key, coordinates) for key in sharding.keys]
    else:
        # Events that were delivered twice must meet, and those that only their number tells apart.
        names = ["id"] if "id" in events.schema.names else ["source", "start", "end"]
        parts = [_value_hashes(events.column(name)) for name in names if name in events.schema.names]
    return (_folded(parts, events.num_rows) % np.uint64(shards)).astype(np.int64)


def hashed(columns: Sequence[pa.Array]) -> np.ndarray:
    """Hash the values of several columns together."""
    return _folded([_value_hashes(column) for column in columns], len(columns[0]))


def _folded(parts: Sequence[np.ndarray], rows: int) -> np.ndarray:
    total = np.zeros(rows, np.uint64)
    for part in parts:
        total = total * np.uint64(31) + part
    return total ^ (total >> np.uint64(29))


def _key_hashes(events: pa.RecordBatch, key: Key, coordinates: Coordinates | None) -> np.ndarray:
    if key.kind == "cell":
        x, y = (pa.array(axis, from_pandas=True) for axis in centres(events, coordinates))
        names = cell_names(from_arrow(x), from_arrow(y), key.cell_m, coordinates)
        return _value_hashes(_arrow(names, events.num_rows))
    name = "source" if key.kind == "source" else key.name
    if name not in events.schema.names and name == "srcid":
        name = "source"
    if name not in events.schema.names:
        return np.zeros(events.num_rows, np.uint64)
    return _value_hashes(events.column(name))


def _arrow(column: Column, rows: int) -> pa.Array:
    if column.type is None:
        return pa.nulls(rows, pa.string())
    if column.null is None:
        return column.values
    return pa.compute.if_else(pa.array(~column.null), decoded(column.values), None)


_NULL = np.uint64(0x5BF03635)


def _value_hashes(column: pa.Array) -> np.ndarray:
    """Hash values so that equal ones, be they whole or not, have equal hashes."""
    if pa.types.is_dictionary(column.type):
        own = _value_hashes(decoded(column.dictionary))
        codes = column.indices
        missing = codes.is_null().to_numpy(zero_copy_only=False)
        if not len(own):
            return np.full(len(column), _NULL, np.uint64)
        return np.where(missing, _NULL, own[codes.fill_null(0).to_numpy(zero_copy_only=False)])
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_string(column.type):
        hashed_values = hashes(column)[0]
    else:
        numbers = column.cast(pa.int64()) if not pa.types.is_floating(column.type) else column
        values = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        bits = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        hashed_values = bits ^ (bits >> np.uint64(31))
    return np.where(missing, _NULL, hashed_values)


def centres(events: pa.RecordBatch, coordinates: Coordinates | None) -> tuple[np.ndarray, np.ndarray]:
    """Compute the centres of the locations of events in the common form, NaN for those without one."""
    x, y = (_floats(events, name) for name in ("x", "y"))
    if "geometry" in events.schema.names:
        middle = geometry.centres(events.column("geometry").to_numpy(zero_copy_only=False), coordinates)
        x, y = (np.where(np.isnan(own), centre, own) for own, centre in zip((x, y), middle, strict=True))
    return x, y


def _floats(events: pa.RecordBatch, name: str) -> np.ndarray:
    if name not in events.schema.names:
        return np.full(events.num_rows, np.nan)
    column = events.column(name)
    values = column.fill_null(np.nan) if column.null_count else column
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)


# -- blocks -----------------------------------------------------------------------------------------------


def to_block(batch: pa.RecordBatch) -> bytes:
    """Write a batch as one block of bytes (an Arrow stream)."""
    batch = _lean(batch)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def from_block(block: bytes) -> pa.RecordBatch:
    """Read what `to_block` wrote."""
    with pa.ipc.open_stream(block) as reader:
        return reader.read_next_batch()


def _lean(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out dictionaries that are longer than the columns they serve."""
    long = [
        index
        for index, column in enumerate(batch.columns)
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column)
    ]
    for index in long:
        name = batch.schema.names[index]
        batch = batch.set_column(index, name, decoded(batch.column(index)))
    return batch


def blocks_to_batches(blocks: Iterable[bytes | None]) -> list[pa.RecordBatch]:
    """Read blocks in an order that depends on their content alone, not on how they arrived."""
    return [from_block(block) for block in sorted(bytes(block) for block in blocks if block is not None)]
