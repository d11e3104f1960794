"""What comes of events, as rows: detections, events that were set aside, and counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import from_arrow_schema

from whimbrel.engine.ingest import Counts
from whimbrel.engine.session import Session
from whimbrel.engine.values import decoded
from whimbrel.graph.operators.base import Types
from whimbrel.model.time import format_instant
from whimbrel.spark.types import DeliveryColumns, arrow_schema

DETECTION, LATE, DUPLICATE, REJECTED, PROGRESS = "detection", "late", "duplicate", "rejected", "progress"
INTEREST = "interest"
"""An interest that begins or ends: for who compares what shards tell of an object."""
REFUSED = "refused"
"""A change of the queries that could not be made."""

COUNTED = ("received", "processed", "waiting", "late", "duplicate", "rejected")
"""The counts of a row of progress: what has become of the events since the row before."""
HIDDEN = ("kind", "event", "reason", "@line", "progress")
"""The columns of outcomes that detections do not have."""
PROGRESS_COLUMNS = (*COUNTED, "detections", "shard", "state_bytes", "watermark", "engine_us")

_PLACE = pa.struct([("file", pa.string()), ("row", pa.int64())])
_SIDE = pa.schema([("event", pa.string()), ("reason", pa.string()), ("@line", _PLACE)])
_PROGRESS = pa.struct([(name, pa.int64()) for name in PROGRESS_COLUMNS])


def outcome_schema(attributes: Types, told: DeliveryColumns | None = None) -> sql.StructType:
    """List the columns of outcomes: `kind`, those of detections, `event`, `reason`, `@line`, `progress`."""
    return from_arrow_schema(OutcomeRows(attributes, told=told).schema)


@dataclass(frozen=True)
class OutcomeRows:
    """Writes outcomes as record batches of one schema; `whole` adds everything besides detections."""

    attributes: Types
    whole: bool = True
    told: DeliveryColumns | None = None
    """What deliveries have besides detections, if the query follows objects."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches."""
        columns = list(arrow_schema(self.attributes, self.told))
        if not self.whole:
            return pa.schema(columns)
        return pa.schema([pa.field("kind", pa.string()), *columns, *_SIDE, pa.field("progress", _PROGRESS)])

    def detections(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Write detections."""
        for batch in table.to_batches():
            if batch.num_rows:
                columns = {name: batch.column(name) for name in batch.schema.names}
                yield self._batch(DETECTION, columns, batch.num_rows)

    def set_aside(self, session: Session, rejected: pa.Table | None = None) -> Iterator[pa.RecordBatch]:
        """Write the events that a session has set aside since the last time, as JSON with a reason.

        Where a `Gate` has taken what was rejected out of the session, that is given.
        """
        rejected = session.take_rejected() if rejected is None else rejected
        others = {LATE: session.take_late(), DUPLICATE: session.take_duplicates()}
        if not self.whole:
            return
        if rejected is not None:
            columns = {name: rejected.column(name).combine_chunks() for name in ("event", "reason")}
            columns |= {"@line": _places(rejected)} if "file" in rejected.column_names else {}
            yield self._batch(REJECTED, columns, rejected.num_rows)
        for kind, table in others.items():
            if table is not None:
                yield self._batch(kind, {"event": pa.array(_texts(table), pa.string())}, table.num_rows)

    @property
    def detection_columns(self) -> list[str]:
        """Name the columns of detections."""
        return arrow_schema(self.attributes, self.told).names

    def again(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Write outcomes that were written before."""
        if not self.whole:
            rows = rows.filter(pc.equal(rows.column("kind"), DETECTION)).select(self.detection_columns)
        yield from (batch for batch in rows.to_batches() if batch.num_rows)

    def interests(self, table: pa.Table | None) -> Iterator[pa.RecordBatch]:
        """Write interests that begin or end."""
        for batch in () if table is None else table.combine_chunks().to_batches():
            columns = {name: batch.column(name) for name in batch.schema.names}
            columns["interest_start"] = columns["start"]
            yield self._batch(INTEREST, columns, batch.num_rows)

    def refused(self, orders: Sequence[str], reasons: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Write changes of the queries that could not be made, and why."""
        if orders:
            columns = {"event": pa.array(orders, pa.string()), "reason": pa.array(reasons, pa.string())}
            yield self._batch(REFUSED, columns, len(orders))

    def progress(
        self, values: Mapping[str, int], seen: Mapping[str, Any] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Write one row of counts; `seen` is what was noticed about the events, which goes along as JSON."""
        if self.whole:
            columns = {"progress": pa.array([dict(values)], _PROGRESS)}
            columns |= {} if seen is None else {"event": pa.array([json.dumps(seen)], pa.string())}
            yield self._batch(PROGRESS, columns, 1)

    def _batch(self, kind: str, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
        arrays = []
        for field in self.schema:
            if self.whole and field.name == "kind":
                arrays.append(pa.repeat(kind, rows))
            elif field.name in columns:
                arrays.append(_cast(columns[field.name], field.type))
            else:
                arrays.append(pa.nulls(rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _places(rejected: pa.Table) -> pa.Array:
    """Write file and row of rejected rows; null for those that come from no file."""
    file, row = (rejected.column(name).combine_chunks() for name in ("file", "row"))
    return pa.StructArray.from_arrays([file, row], fields=list(_PLACE), mask=file.is_null())


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        is_text = pa.types.is_string(column.type.value_type)
        column = decoded(column) if is_text else column.dictionary_decode()
    return column if column.type == kind else column.cast(kind)


def counts_since(now: Counts, before: Counts) -> dict[str, int]:
    """Tell what has changed in the counts of a session."""
    return {name: getattr(now, name) - getattr(before, name) for name in COUNTED}


def _texts(table: pa.Table) -> list[str]:
    """Write events as JSON, times as ISO 8601."""
    return [json.dumps(_plain(row), default=_other) for row in table.to_pylist()]


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    kept = {name: value for name, value in row.items() if value is not None and not name.startswith("@")}
    for name in ("start", "end"):
        if isinstance(moment := kept.get(name), int):
            kept[name] = format_instant(moment)
    return kept


def _other(value: object) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
