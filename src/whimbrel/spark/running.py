"""A whole batch job in one call: files in, detections and counts out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from whimbrel.engine.intake import Counts
from whimbrel.engine.report import ATTRIBUTES_KEY, COORDINATES_KEY
from whimbrel.engine.result import Detections, events_table
from whimbrel.errors import DataError
from whimbrel.graph.query import Query
from whimbrel.io.detections import sorted_detections
from whimbrel.io.files import find_files
from whimbrel.io.rejected import RejectedWriter
from whimbrel.lang.outputs import output_types
from whimbrel.model.batch import REJECTED_SCHEMA
from whimbrel.model.columns import INSTANT
from whimbrel.model.schema import Coordinates
from whimbrel.spark.batch import outcomes
from whimbrel.spark.rows import COUNTED, DETECTION, DUPLICATE, PROGRESS, REJECTED
from whimbrel.spark.types import attributes_of

READERS = {
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
}
"""The endings of files that Spark reads, and what it calls them."""

ISO_8601 = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]"


def run(query: Query, frame: DataFrame, *, rejected: Path | None = None, **settings: Any) -> Detections:
    """Run a query over a static frame and bring everything that comes of it here, as `whimbrel.run` gives it.

    The detections are in the order (end, start, type, events). `rejected` is a file for rows that are no
    events, each with its reason; made only if there are any. The other settings are those of `detect`.
    """
    found = outcomes(query, frame, **settings).toArrow()
    kinds = found.column("kind")
    progress = found.filter(pc.equal(kinds, PROGRESS)).column("progress").to_pylist()
    counts = Counts()
    for name in COUNTED:
        setattr(counts, name, sum(row[name] or 0 for row in progress))
    refused = found.filter(pc.equal(kinds, REJECTED))
    counts.reasons = Counter(refused.column("reason").to_pylist())
    with RejectedWriter(rejected) as writer:
        _write_rejected(refused, writer)
    repeated = found.filter(pc.equal(kinds, DUPLICATE)).column("event")
    hidden = ("kind", "event", "reason", "progress")
    names = [name for name in found.column_names if name not in hidden]
    detections = sorted_detections(found.filter(pc.equal(kinds, DETECTION)).select(names))
    metadata = _metadata(query, frame, settings)
    return Detections(
        detections.replace_schema_metadata(metadata),
        counts,
        duplicates=_events(repeated.to_pylist(), metadata[COORDINATES_KEY]),
        rejected=writer.table(),
    )


def _events(texts: list[str], coordinates: bytes) -> pa.Table:
    """Read events that workers wrote as JSON; there are none that came too late in a static frame."""
    table = pa.Table.from_pylist([json.loads(text) for text in texts])
    for name in {"start", "end"} & set(table.column_names):
        moments = table[name].cast(INSTANT)
        table = table.set_column(table.schema.get_field_index(name), name, moments)
    said = coordinates.decode()
    return events_table(table, None if said == "none" else Coordinates(said))


def _write_rejected(refused: pa.Table, writer: RejectedWriter) -> None:
    rows = pa.array([None] * refused.num_rows, REJECTED_SCHEMA.field("row").type)  # a frame has no order
    columns = {"row": rows, "reason": refused.column("reason"), "event": refused.column("event")}
    for batch in pa.table(columns).cast(REJECTED_SCHEMA).to_batches():
        writer.write(batch, "")


def _metadata(query: Query, frame: DataFrame, settings: dict[str, Any]) -> dict[bytes, bytes]:
    """Say which type has which attributes, and in which coordinates places are, as the engine does."""
    types = output_types(query, attributes_of(frame.schema))
    owned = {kind: list(attributes) for kind, attributes in types.items()}
    said = settings.get("coordinates") or query.graph.coordinates
    by_name = Coordinates.LONLAT if "lon" in frame.columns else None
    place = said or by_name or (Coordinates.PLANE if {"x", "geometry"} & set(frame.columns) else None)
    return {
        ATTRIBUTES_KEY: json.dumps(owned).encode(),
        COORDINATES_KEY: str(place.value if isinstance(place, Coordinates) else place or "none").encode(),
    }


def read_files(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Read event files (Parquet, CSV, JSON lines) into a frame; folders and patterns too.

    Raises
    ------
    DataError
        If there are none, of several kinds, or of a kind that Spark does not read.
    """
    files = [file for path in paths for file in find_files(path)]
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise DataError(f"Spark reads files of one kind at a time, not {' and '.join(sorted(kinds))}")
    kind = kinds.pop()
    reader = spark.read.format(kind)
    if kind == "csv":
        # Left to itself, Spark takes a text such as T1 for one o'clock.
        reader = reader.options(header=True, inferSchema=True, timestampFormat=ISO_8601)
    frame = reader.load([str(file) for file in files])
    if not frame.columns:
        raise DataError(f"{', '.join(paths)}: the file is empty; its first line must name the columns")
    return frame


def _kind(file: Path) -> str:
    ending = Path(str(file).lower().removesuffix(".gz")).suffix
    if ending not in READERS:
        known = ", ".join(READERS)
        raise DataError(
            f"{file}: Spark does not read {ending or 'such'} files (it reads {known}); "
            f"leave --engine out to read it here"
        )
    return READERS[ending]
