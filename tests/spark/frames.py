"""What the tests of Spark share: frames, streams that end, and what comes out of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ARROW = {"string": pa.string(), "double": pa.float64(), "long": pa.int64()}
Rows = Sequence[Mapping[str, Any]]


def ids(frame: Any) -> list[str]:
    """The ids of the detections in a frame or a table, in order."""
    table = frame.toArrow() if hasattr(frame, "toArrow") else pa.table(frame)
    return sorted(table.column("id").to_pylist())


class Folder:
    """A folder of event files that a stream reads one by one, in the order in which they were put there."""

    def __init__(self, spark: Any, path: Path, schema: str) -> None:
        self.spark, self.path, self.schema = spark, path, schema
        self.count = 0
        path.mkdir()

    def put(self, rows: Rows) -> None:
        """Add a file, which will be a micro-batch of its own."""
        kinds = dict(part.split() for part in self.schema.split(", "))
        table = pa.table(
            {n: pa.array([row.get(n) for row in rows], ARROW[kind]) for n, kind in kinds.items()}
        )
        hidden = self.path / f".{self.count:03}"
        pq.write_table(table, hidden)
        os.utime(hidden, (1_700_000_000 + self.count,) * 2)
        hidden.rename(self.path / f"{self.count:03}.parquet")
        self.count += 1

    def stream(self) -> Any:
        """The files as a stream."""
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.path))


def run_to_end(frame: Any, checkpoint: Path) -> tuple[pa.Table, list[Any]]:
    """Everything that a stream gives for what is there now, and the progress of its micro-batches."""
    tables: list[pa.Table] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: tables.append(batch.toArrow()))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return pa.concat_tables(tables), list(query.recentProgress)


def cut(rows: Rows, sizes: Iterable[int]) -> list[Rows]:
    """Rows in pieces of the given sizes, and the rest."""
    pieces, begin = [], 0
    for size in sizes:
        pieces.append(rows[begin : begin + size])
        begin += size
    return [*pieces, rows[begin:]]
