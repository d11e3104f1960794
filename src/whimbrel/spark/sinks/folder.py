"""Write detections into a folder, one file for each micro-batch, whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from whimbrel.errors import DataError, did_you_mean
from whimbrel.io import write_detections
from whimbrel.spark.sinks._form import DetectionForm

_ENDINGS = {"parquet": "parquet", "json": "jsonl", "jsonl": "jsonl", "csv": "csv", "geojson": "geojson"}
FORMATS = tuple(_ENDINGS)
_NAME = re.compile(r"batch-(\d+)\.\w+")


@dataclass(frozen=True)
class FolderSink:
    """Write each micro-batch as one file, named for its number; one without detections writes none.

    The file gets its name when it is complete, so that a reader of the folder sees whole micro-batches only.
    A micro-batch that is written again replaces its file: after a crash nothing is lost and nothing twice.

    Parameters
    ----------
    path
        A folder on a file system that the driver and all workers share.
    format
        "parquet", "json" (JSON lines), "csv" or "geojson", as `whimbrel.io.write_detections` writes them.
    """

    path: str
    format: str = "parquet"
    form: DetectionForm = field(default_factory=DetectionForm)
    _checked: list[bool] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.format not in _ENDINGS:
            raise DataError(f"format {self.format!r} is not known; {did_you_mean(self.format, FORMATS)}")
        if "://" in self.path:
            raise DataError(
                f"{self.path}: a folder must be a path; other file systems are written by 'table:'"
            )

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a micro-batch."""
        folder = Path(self.path)
        folder.mkdir(parents=True, exist_ok=True)
        if not self._checked:
            self._check(folder, batch_id)
            self._checked.append(True)
        target = self.file(batch_id)
        for part in folder.glob(f".{target.name}.*.part"):
            # Left by a process that died while it wrote this micro-batch.
            part.unlink(missing_ok=True)
        writing = partial(_write_file, target=str(target), format=_ENDINGS[self.format], form=self.form)
        # One file can appear in one step, many cannot. The shuffle keeps what comes before it parallel.
        frame.repartition(1).mapInArrow(writing, "detections LONG").collect()

    def file(self, batch_id: int) -> Path:
        """Return the file of a micro-batch."""
        return Path(self.path) / f"batch-{batch_id:012d}.{_ENDINGS[self.format]}"

    def _check(self, folder: Path, batch_id: int) -> None:
        numbers = [int(match[1]) for entry in os.scandir(folder) if (match := _NAME.fullmatch(entry.name))]
        if numbers and max(numbers) > batch_id:
            raise DataError(
                f"{folder}: holds micro-batches up to {max(numbers)}, and this is number {batch_id}: the "
                "folder belongs to a query with another checkpoint; write to an empty folder, or go on from "
                "the old checkpoint"
            )


def _write_file(
    batches: Iterator[pa.RecordBatch],
    target: str,
    format: str,  # noqa: A002 - the name that users of every writer know
    form: DetectionForm,
) -> Iterator[pa.RecordBatch]:
    table = form.table(batches)
    if table is not None:
        write_detections(table, target, format)
        _sync(Path(target))
        _sync(Path(target).parent)
    count = 0 if table is None else table.num_rows
    yield pa.RecordBatch.from_pydict({"detections": pa.array([count], pa.int64())})


def _sync(path: Path) -> None:
    """Have the disk hold what was written, before Spark notes that the micro-batch is done."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
