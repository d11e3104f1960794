"""Frames of events: which columns are which, which of them a query reads, and which rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as sql

from whimbrel.engine.identity import CONTENT
from whimbrel.engine.intake import ARRIVAL
from whimbrel.engine.needs import Needs
from whimbrel.errors import DataError, did_you_mean
from whimbrel.graph.operators import Graph
from whimbrel.graph.passes import rewrite
from whimbrel.graph.query import Query
from whimbrel.graph.sequence import walks
from whimbrel.graph.sharding import SOURCE, Anyhow, ByKeys, ByMeetings, BySpace, Sharding, Together, sharding
from whimbrel.lang.outputs import Types, merged, output_types
from whimbrel.model.batch import COORDINATES_KEY, conform
from whimbrel.model.columns import natural
from whimbrel.model.faults import Faults
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates, Type
from whimbrel.spark.lines import LINE, arrow_type_said, coordinates_said, file_said
from whimbrel.spark.pushdown import rows_wanted, selections
from whimbrel.spark.types import attributes_of, quoted, type_of

Columns = Mapping[str, "str | Column"]


@dataclass(frozen=True)
class Prepared:
    """A frame of events that has the columns a query reads, and what the query asks of it."""

    frame: DataFrame
    graph: Graph
    types: dict[str, Type]
    """The attributes of the events."""
    attributes: Types
    """Those of the detections."""
    sharding: Sharding
    has_content: bool = False
    """Whether events without ids are told apart by a hash of all their columns."""

    @property
    def has_id(self) -> bool:
        """Whether the events bring ids of their own."""
        return "id" in self.frame.columns

    def kind(self, name: str) -> sql.DataType | None:
        """Give the Spark type of a column; None if there is none."""
        return next((each.dataType for each in self.frame.schema.fields if each.name == name), None)


def prepare(
    query: Query,
    frame: DataFrame,
    *,
    columns: Columns | None = None,
    coordinates: str | None = None,
    time_unit: str = "s",
    default_type: str | None = None,
    filtered: bool = True,
) -> Prepared:
    """Rename columns, leave out what the query does not read, and check that the rest makes events.

    `filtered` also leaves out the rows that no part of the query reads.
    """
    frame = renamed(frame, columns or {})
    graph = rewrite(query.graph)
    types = attributes_of(frame.schema)
    dealt = _dealt(graph, frame)
    with _naming_file(frame):
        read = _read(graph, query, frame)
        _check(frame, read, query, coordinates, time_unit, default_type)
    has_content = _splits_sources(dealt, frame)
    if has_content:
        frame = with_content(frame)
        read = [*read, CONTENT.name]
    # Whoever wants an account of all events also learns in which line a rejected one stood.
    frame = _of_columns(frame, [*read, LINE] if LINE in frame.columns and not filtered else read)
    if walks(graph.operators) and not frame.isStreaming:
        # A shuffle forgets in which order rows came; on streams the tasks that pack events note it.
        frame = frame.withColumn(ARRIVAL, fn.monotonically_increasing_id())
    if filtered:
        has_type = "type" in frame.columns
        wanted = rows_wanted(
            selections(graph), types, query.schemas, has_type=has_type, default_type=default_type
        )
        frame = frame if wanted is None else frame.where(wanted)
    declared = {name: kind for schema in query.schemas.values() for name, kind in schema.attributes.items()}
    attributes = merged(output_types(query, types | declared))
    return Prepared(frame, graph, types, attributes, dealt, has_content)


def _dealt(graph: Graph, frame: DataFrame) -> Sharding:
    """Decide how events are dealt out; shapes may reach farther than places that are dealt out by."""
    dealt = sharding(graph)
    if isinstance(dealt, BySpace | ByMeetings) and "geometry" in frame.columns:
        return Together("locations in a 'geometry' column may be of any size; give points as x and y instead")
    return dealt


def place_of(frame: DataFrame, coordinates: Coordinates | str | None) -> str | None:
    """Give the coordinates that were asked for, or else those that the files of a frame say they have."""
    found = coordinates_said(frame.schema) if coordinates is None else Coordinates(coordinates)
    return None if found is None else found.value


def coordinates_of(frame: DataFrame) -> Coordinates | None:
    """Tell by the names of its columns how the locations of a frame are given; None if they do not tell."""
    if "lon" in frame.columns:
        return Coordinates.LONLAT
    return Coordinates.PLANE if "x" in frame.columns else None


def with_content(frame: DataFrame) -> DataFrame:
    """Add a hash of all that a row says, to tell events without ids apart."""
    simple = [f.name for f in frame.schema.fields if is_simple(f.dataType)]
    return frame.withColumn(CONTENT.name, fn.xxhash64(*(fn.col(quoted(name)) for name in sorted(simple))))


def is_simple(kind: sql.DataType) -> bool:
    """Tell whether a column of this type can be part of an event."""
    return type_of(kind) is not None or isinstance(kind, sql.BinaryType)


def _splits_sources(dealt: Sharding, frame: DataFrame) -> bool:
    """Tell whether events of one source and time may be parted without an id to tell them by."""
    if "id" in frame.columns or isinstance(dealt, Anyhow | Together):
        return False
    return not (isinstance(dealt, ByKeys) and SOURCE in dealt.keys and "source" in frame.columns)


def _of_columns(frame: DataFrame, names: list[str]) -> DataFrame:
    return frame.select([fn.col(quoted(name)) for name in names])


def renamed(frame: DataFrame, columns: Columns) -> DataFrame:
    """Give columns the names that events have: `{"source": "vehicle_id", "time": "ts"}`.

    A value is the name of a column or an expression over columns. The column keeps its old name no longer.
    """
    if not columns:
        return frame
    taken = set()
    for name, column in columns.items():
        if isinstance(column, str) and column not in frame.columns:
            hint = did_you_mean(column, frame.columns)
            hint = hint or f"it has {', '.join(frame.columns)}"
            raise DataError(f"no column of the frame is named {column!r}, to be used as {name!r}; {hint}")
        taken |= {column} if isinstance(column, str) else set()
    made = [
        (fn.col(quoted(column)) if isinstance(column, str) else column).alias(name)
        for name, column in columns.items()
    ]
    kept = [name for name in frame.columns if name not in taken and name not in columns]
    return frame.select(*(fn.col(quoted(name)) for name in kept), *made)


def _read(graph: Graph, query: Query, frame: DataFrame) -> list[str]:
    """Name the columns that a query reads, in their order."""
    needs = Needs(graph, query.functions)
    usable = {field.name for field in frame.schema.fields if type_of(field.dataType) is not None}
    wanted = usable if needs.all_atoms else needs.atoms
    read_files = {field.name for field in frame.schema.fields if arrow_type_said(field) is not None}
    read = read_files if needs.all_atoms else needs.atoms
    refused = sorted(read & set(frame.columns) - usable - RESERVED_COLUMNS)
    if refused:
        _refuse_as_read(frame.schema[refused[0]])
        kind = frame.schema[refused[0]].dataType.simpleString()
        raise DataError(
            f"column {refused[0]!r} has the type {kind}, which no attribute of an event can have; "
            f"take the values you need out of it first"
        )
    return [name for name in frame.columns if name in RESERVED_COLUMNS or name in wanted & usable]


@contextmanager
def _naming_file(frame: DataFrame) -> Iterator[None]:
    """Say in errors which file a frame was read from, if it was."""
    file = file_said(frame.schema)
    try:
        yield
    except DataError as error:
        if file is None:
            raise
        raise DataError(f"{file}: {error}") from error


def _refuse_as_read(field: sql.StructField) -> None:
    """Refuse a column of a file in the words of the embedded engine."""
    kind = arrow_type_said(field)
    if kind is not None:
        natural(field.name, pa.nulls(0, kind), Faults(0))


def _check(
    frame: DataFrame,
    read: list[str],
    query: Query,
    coordinates: str | None,
    time_unit: str,
    default_type: str | None,
) -> None:
    """Refuse columns that cannot make events before any job starts."""
    conform(
        empty_batch(frame.drop(LINE), coordinates_said(frame.schema)),
        schemas=query.schemas,
        coordinates=Coordinates(coordinates) if coordinates else query.graph.coordinates,
        time_unit=time_unit,
        default_type=default_type,
        columns=read,
    )


def empty_batch(frame: DataFrame, coordinates: Coordinates | None = None) -> pa.RecordBatch:
    """Give a batch without rows that has the columns of a frame, as they were in its files if it has any."""
    fields = [
        pa.field(field.name, arrow_type_said(field) or _arrow_type(field.dataType))
        for field in frame.schema.fields
    ]
    said = {COORDINATES_KEY: coordinates.value.encode()} if coordinates else None
    schema = pa.schema(fields, metadata=said)
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=schema)


def _arrow_type(kind: sql.DataType) -> pa.DataType:
    simple = {
        Type.BOOL: pa.bool_(),
        Type.INT: pa.int64(),
        Type.FLOAT: pa.float64(),
        Type.STRING: pa.string(),
        Type.TIMESTAMP: pa.timestamp("us", "UTC"),
    }
    known = type_of(kind)
    if known is not None:
        return simple[known]
    return pa.binary() if isinstance(kind, sql.BinaryType) else pa.null()
