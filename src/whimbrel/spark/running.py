"""A whole batch job in one call: files in, detections and counts out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Unpack
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as sql

from whimbrel.engine.ingest import Counts
from whimbrel.engine.input_notes import InputNotes
from whimbrel.engine.report import ATTRIBUTES_KEY, COORDINATES_KEY
from whimbrel.engine.result import Detections, events_table
from whimbrel.graph.mobile.reading import selections_of
from whimbrel.graph.query import Query
from whimbrel.io.detections import sorted_detections
from whimbrel.io.rejected import RejectedWriter
from whimbrel.lang.outputs import output_types
from whimbrel.model.columns import INSTANT
from whimbrel.model.deliveries import DELIVERIES_KEY
from whimbrel.model.reading import read_settings
from whimbrel.model.schema import Coordinates
from whimbrel.spark.batch import outcomes
from whimbrel.spark.errors import plain_errors
from whimbrel.spark.frames import coordinates_of, named, place_of
from whimbrel.spark.lines import PLACED_SCHEMA, arrow_type_said, file_said, write_placed
from whimbrel.spark.rows import COUNTED, DETECTION, DUPLICATE, HIDDEN, PROGRESS, REJECTED
from whimbrel.spark.settings import BatchSettings
from whimbrel.spark.types import attributes_of

_TIMESTAMPS = (sql.TimestampType, sql.TimestampNTZType)


@plain_errors()
def run(
    query: Query, frame: DataFrame, *, rejected: Path | None = None, **settings: Unpack[BatchSettings]
) -> Detections:
    """Run a query over a static frame and bring everything that comes of it here, as `whimbrel.run` gives it.

    The detections are in the order (end, start, type, events). `rejected` is a file for rows that are no
    events, each with its reason; made only if there are any. The other settings are those of `detect`.
    """
    rows = outcomes(query, frame, **settings).toArrow()
    kinds = rows.column("kind")
    progress = rows.filter(pc.equal(kinds, PROGRESS))
    counts = _counts(progress.column("progress").to_pylist())
    refused = rows.filter(pc.equal(kinds, REJECTED))
    counts.reasons = Counter(refused.column("reason").to_pylist())
    with RejectedWriter(rejected) as writer:
        _write_rejected(refused, writer, _naming(frame))
    repeated = rows.filter(pc.equal(kinds, DUPLICATE)).column("event")
    names = [name for name in rows.column_names if name not in HIDDEN]
    detections = sorted_detections(rows.filter(pc.equal(kinds, DETECTION)).select(names))
    renamed, reading, noticed = named(frame, query, **read_settings(settings))
    _take_seen(noticed, progress.column("event").to_pylist(), renamed)
    metadata = _metadata(query, renamed, settings)
    types = frozenset(selections_of(query))
    warnings = noticed.warnings(counts, [query.graph], types, reading, detections.num_rows)
    return Detections(
        detections.replace_schema_metadata(metadata),
        counts,
        noticed.lines(),
        warnings,
        noticed.columns,
        duplicates=_events(repeated.to_pylist(), metadata[COORDINATES_KEY]),
        rejected=writer.table(),
    )


def _counts(progress: Sequence[Mapping[str, int | None]]) -> Counts:
    """Add up what workers have counted."""
    counts = Counts()
    for name in COUNTED:
        setattr(counts, name, sum(row[name] or 0 for row in progress))
    return counts


def _take_seen(noticed: InputNotes, texts: Sequence[str | None], frame: DataFrame) -> None:
    """Take note of what workers have seen in the rows, and of what only the frame tells."""
    for text in texts:
        if text is not None:
            noticed.take_seen(json.loads(text))
    noticed.are_timestamps = any(
        pa.types.is_timestamp(arrow_type_said(field) or pa.null())
        or (arrow_type_said(field) is None and isinstance(field.dataType, _TIMESTAMPS))
        for field in frame.schema.fields
        if field.name in ("time", "end")
    )


def _events(texts: list[str], coordinates: bytes) -> pa.Table:
    """Read events that workers wrote as JSON; there are none that came too late in a static frame."""
    table = pa.Table.from_pylist([json.loads(text) for text in texts])
    for name in {"start", "end"} & set(table.column_names):
        moments = table[name].cast(INSTANT)
        table = table.set_column(table.schema.get_field_index(name), name, moments)
    said = coordinates.decode()
    return events_table(table, None if said == "none" else Coordinates(said))


def _write_rejected(refused: pa.Table, writer: RejectedWriter, named: Callable[[str], str]) -> None:
    if not refused.num_rows:
        return
    lines = refused.column("@line").combine_chunks()
    files, rows = (pc.struct_field(lines, index) for index in range(2))
    names = pa.array([None if file is None else named(file) for file in files.to_pylist()], pa.string())
    columns = [rows, refused.column("reason"), refused.column("event"), names]
    write_placed(writer, pa.table(columns, schema=PLACED_SCHEMA))


def _naming(frame: DataFrame) -> Callable[[str], str]:
    """Make the function that names a file as the user does: by its way from here, if the first one is."""
    is_relative = not Path(file_said(frame.schema) or "/").is_absolute()

    def named(file: str) -> str:
        # Spark writes addresses where Whimbrel's readers write paths.
        path = Path(unquote(urlsplit(file).path) if file.startswith("file:") else file)
        return str(path.relative_to(Path.cwd()) if is_relative and path.is_relative_to(Path.cwd()) else path)

    return named


def _metadata(query: Query, frame: DataFrame, settings: BatchSettings) -> dict[bytes, bytes]:
    """Say which type has which attributes, and in which coordinates places are, as the engine does."""
    types = output_types(query, attributes_of(frame.schema))
    owned = {kind: list(attributes) for kind, attributes in types.items()}
    said = place_of(frame, settings.get("coordinates")) or query.graph.coordinates or coordinates_of(frame)
    coordinates = said or (Coordinates.PLANE if "geometry" in frame.columns else None)
    told = {DELIVERIES_KEY: b"1"} if query.mobile else {}
    return told | {
        ATTRIBUTES_KEY: json.dumps(owned).encode(),
        COORDINATES_KEY: str(
            coordinates.value if isinstance(coordinates, Coordinates) else coordinates or "none"
        ).encode(),
    }
