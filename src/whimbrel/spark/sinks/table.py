"""Write detections to a table of Spark's catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import LongType, StructField, StructType

from whimbrel.errors import DataError
from whimbrel.spark.types import quoted

BATCH = "batch_id"
"""The partition column of Parquet tables."""
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_VIEW = "whimbrel_detections_of_batch"
_NAME = re.compile(r"(\w+|`[^`]+`)(\.(\w+|`[^`]+`)){0,2}")
_MERGING = ("delta", "iceberg")


@dataclass(frozen=True)
class TableSink:
    """Write each micro-batch to a table, once, however often it is written.

    A Parquet table is partitioned by `batch_id`, and a micro-batch replaces its partition. Tables whose
    format knows MERGE (Delta, Iceberg) take the detections whose ids they do not hold yet. A table that is
    not there is made.

    Parameters
    ----------
    name
        The name of the table, with its schema and catalog if need be.
    format
        What a new table is made as, and how the table is written: "parquet", "orc", "delta" or "iceberg".
    """

    name: str
    format: str = "parquet"
    _checked: list[bool] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DataError(
                f"{self.name!r} is no name of a table; write it like detections or town.detections"
            )

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a micro-batch."""
        if self.format in _MERGING:
            self._merge(frame)
        else:
            self._replace_partition(frame.withColumn(BATCH, fn.lit(batch_id).cast("long")), batch_id)

    def _replace_partition(self, frame: DataFrame, batch_id: int) -> None:
        self._make(frame, [BATCH])
        table = frame.sparkSession.table(self.name)
        if not self._checked:
            self._check(table, batch_id)
            self._checked.append(True)
        with _dynamic_overwrite(frame.sparkSession):
            frame.select(*self._columns(frame, table)).write.mode("overwrite").insertInto(self.name)

    def _merge(self, frame: DataFrame) -> None:
        self._make(frame, [])
        frame.createOrReplaceTempView(_VIEW)
        frame.sparkSession.sql(
            f"MERGE INTO {self.name} AS old USING {_VIEW} AS new ON old.id = new.id "
            "WHEN NOT MATCHED THEN INSERT *"
        )

    def _make(self, frame: DataFrame, partitions: list[str]) -> None:
        session = frame.sparkSession
        if session.catalog.tableExists(self.name):
            return
        fields = [StructField(field.name, field.dataType) for field in frame.schema.fields]
        empty = session.createDataFrame([], StructType(fields))
        empty.write.format(self.format).partitionBy(*partitions).saveAsTable(self.name)

    def _columns(self, frame: DataFrame, table: DataFrame) -> list[str]:
        """Return the table's columns in its own order, because Spark inserts by position."""
        missing = sorted(set(table.columns) ^ set(frame.columns))
        if missing:
            raise DataError(
                f"table {self.name}: the detections and the table differ in the column {missing[0]!r}; "
                "write to a new table, or alter this one"
            )
        return [quoted(name) for name in table.columns]

    def _check(self, table: DataFrame, batch_id: int) -> None:
        kinds = {field.name: field.dataType for field in table.schema.fields}
        if not isinstance(kinds.get(BATCH), LongType):
            raise DataError(f"table {self.name}: has no column {BATCH!r}, so it was not made by this sink")
        newest = table.agg(fn.max(BATCH)).first()
        last = newest[0] if newest else None
        if last is not None and last > batch_id:
            raise DataError(
                f"table {self.name}: holds micro-batches up to {last}, and this is number {batch_id}: it "
                "belongs to a query with another checkpoint; write to a new table, or go on from the old one"
            )


@contextmanager
def _dynamic_overwrite(session: SparkSession) -> Iterator[None]:
    """Have an overwrite replace only the partitions that are written, each aside first and then in one move.

    The writer's option of the same name has no effect on an insert: the whole table would be replaced.
    """
    before = session.conf.get(_OVERWRITE_MODE, None) or "static"
    session.conf.set(_OVERWRITE_MODE, "dynamic")
    try:
        yield
    finally:
        session.conf.set(_OVERWRITE_MODE, before)
