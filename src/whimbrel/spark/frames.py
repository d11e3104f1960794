"""Frames of events: which columns are which, which of them a query reads, and which rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as sql

from whimbrel.engine.identity import ATTRIBUTES
from whimbrel.engine.input_notes import InputNotes, types_named
from whimbrel.engine.total_order import ARRIVAL
from whimbrel.errors import DataError
from whimbrel.graph.expressions import Expr
from whimbrel.graph.mobile.reading import Selections, read_of, selections_of
from whimbrel.graph.mobile.sharding import sharding_of
from whimbrel.graph.operators import Graph
from whimbrel.graph.operators.base import Types
from whimbrel.graph.operators.step_pattern import walks
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import ByInterests, ByMeetings, BySpace, Sharding, SinglePartition
from whimbrel.lang.outputs import merged, output_types
from whimbrel.model.batch import AS_NAMED, COORDINATES_KEY, Normaliser
from whimbrel.model.columns import ARROW_TYPES, natural
from whimbrel.model.faults import Faults
from whimbrel.model.reading import PART, Reading, ReadSettings
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates, Type, Value
from whimbrel.spark.contents import with_contents
from whimbrel.spark.lines import LINE, arrow_type_said, coordinates_said, file_said, is_attribute
from whimbrel.spark.pushdown import rows_wanted
from whimbrel.spark.types import DeliveryColumns, attributes_of, quoted, type_of
from whimbrel.spark.worker import IS_UPDATE

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
    told: DeliveryColumns | None = None
    """What deliveries have besides detections, if the query follows objects."""
    reading: Reading = Reading()
    """How the engine reads the rows; the columns have their names already."""
    notes: tuple[str, ...] = ()
    """Which columns were taken for what."""

    @property
    def has_id(self) -> bool:
        """Whether the events bring ids of their own."""
        return "id" in self.frame.columns

    def kind(self, name: str) -> sql.DataType | None:
        """Determine the Spark type of a column; None if there is none."""
        return next((field.dataType for field in self.frame.schema.fields if field.name == name), None)


def prepare(
    query: Query,
    frame: DataFrame,
    *,
    coordinates: str | None = None,
    filtered: bool = True,
    lists_change: bool = False,
    reading: Reading | None = None,
    **how: Unpack[ReadSettings],
) -> Prepared:
    """Rename columns, leave out what the query does not read, and check that the rest makes events.

    `filtered` also leaves out the rows that no part of the query reads; `lists_change` says that objects may
    be put on the lists of those that are followed. With a `reading`, the columns have
    their names already.
    """
    graph = query.rewritten
    noticed = InputNotes()
    if reading is None:
        with _naming_file(frame):
            frame, reading, noticed = named(frame, query, **how)
    default_type = reading.default_type
    types = attributes_of(frame.schema)
    partitioning = _sharding_of(query, frame)
    with _naming_file(frame):
        read = _read(query, frame)
        _check(frame, read, query, coordinates, reading)
    # Whoever wants an account of all events also learns in which line a rejected one stood.
    hidden = [ATTRIBUTES] if filtered else [ATTRIBUTES, LINE]
    frame = _of_columns(frame, [*read, *(name for name in hidden if name in frame.columns)])
    if walks(graph.operators) and not frame.isStreaming:
        # A shuffle forgets in which order rows came; on streams the tasks that pack events note it.
        frame = frame.withColumn(ARRIVAL, fn.monotonically_increasing_id())
    if filtered:
        wanted = _rows(selections_of(query), query, frame, types, default_type)
        frame = frame if wanted is None else frame.where(wanted)
    if isinstance(partitioning, ByInterests):
        frame = frame.withColumn(IS_UPDATE, _is_update(query, frame, types, default_type, lists_change))
    declared = {name: kind for schema in query.schemas.values() for name, kind in schema.attributes.items()}
    attributes = merged(output_types(query, types | declared))
    told = _delivery_columns(query, types | declared)
    return Prepared(frame, graph, types, attributes, partitioning, told, reading, noticed.lines())


def _delivery_columns(query: Query, types: Mapping[str, Type]) -> DeliveryColumns | None:
    """Say what deliveries have besides detections; keys of several types are written as text."""
    keys = {each.focal.key for each in query.mobile}
    kinds = {Type.STRING if key == "source" else types.get(key, Type.STRING) for key in keys}
    if not kinds:
        return None
    predicts = any(each.policy.prediction is not None for each in query.mobile)
    reuses = any(each.policy.reuse == "similar" for each in query.mobile)
    return DeliveryColumns(kinds.pop() if len(kinds) == 1 else Type.STRING, predicts, reuses)


def _rows(
    wanted: Selections, query: Query, frame: DataFrame, types: Mapping[str, Type], default_type: str | None
) -> Column | None:
    """Say which rows are read as one of some selections; None: any may be."""
    has_type = "type" in frame.columns
    return rows_wanted(wanted, types, query.schemas, has_type=has_type, default_type=default_type)


def _is_update(
    query: Query,
    frame: DataFrame,
    types: Mapping[str, Type],
    default_type: str | None,
    lists_change: bool,
) -> Column:
    """Say which rows may be location updates of objects that are followed; all of these are among them."""
    cases = []
    for (event_type, condition, key), known in _followed(query, lists_change).items():
        case = _rows({event_type: [condition]}, query, frame, types, default_type)
        cases.append((fn.lit(True) if case is None else case) & _has_key(key, known, frame))
    named = fn.col("type").isNotNull() if "type" in frame.columns else fn.lit(True)
    return fn.coalesce(named & reduce(or_, cases), fn.lit(False))


def _followed(
    query: Query, lists_change: bool
) -> dict[tuple[str, Expr | None, str], frozenset[Value] | None]:
    """Say whose location updates matter, by their type, condition and attribute; None: everybody's."""
    found: dict[tuple[str, Expr | None, str], frozenset[Value] | None] = {}
    for each in query.mobile:
        focal, kind = each.focal, (each.focal.type, each.focal.condition, each.focal.key)
        known = focal.only
        if known is None and focal.listed is not None and not lists_change:
            known = frozenset(one.key for one in focal.listed)
        others = found.get(kind, frozenset())
        found[kind] = None if known is None or others is None else others | known
    return found


def _has_key(key: str, known: frozenset[Value] | None, frame: DataFrame) -> Column:
    """Say which rows may be of some objects; text is compared where both are text."""
    if key not in frame.columns:
        return fn.lit(True)  # the engine says what it makes of events without a key
    column = fn.col(quoted(key))
    is_text = isinstance(frame.schema[key].dataType, sql.StringType)
    if known is None or not is_text or not all(isinstance(each, str) for each in known):
        return column.isNotNull()
    return column.isin(sorted(map(str, known)))


def _sharding_of(query: Query, frame: DataFrame) -> Sharding:
    """Decide how events are partitioned; shapes may reach farther than places that are partitioned by."""
    chosen = sharding_of(query)
    if isinstance(chosen, BySpace | ByMeetings | ByInterests) and "geometry" in frame.columns:
        return SinglePartition(
            "locations in a 'geometry' column may be of any size; give points as x and y instead"
        )
    return chosen


def place_of(frame: DataFrame, coordinates: Coordinates | str | None) -> str | None:
    """Choose the coordinates that were asked for, or else those that the files of a frame say they have."""
    chosen = coordinates_said(frame.schema) if coordinates is None else Coordinates(coordinates)
    return None if chosen is None else chosen.value


def coordinates_of(frame: DataFrame) -> Coordinates | None:
    """Tell by the names of its columns how the locations of a frame are given; None if they do not tell."""
    if "lon" in frame.columns:
        return Coordinates.LONLAT
    return Coordinates.PLANE if "x" in frame.columns else None


def is_simple(kind: sql.DataType) -> bool:
    """Tell whether a column of this type can be part of an event."""
    return type_of(kind) is not None or isinstance(kind, sql.BinaryType)


def _of_columns(frame: DataFrame, names: list[str]) -> DataFrame:
    return frame.select([fn.col(quoted(name)) for name in names])


def named(
    frame: DataFrame, query: Query | None = None, **how: Unpack[ReadSettings]
) -> tuple[DataFrame, Reading, InputNotes]:
    """Rename columns to those that events have; say how the engine is to read the rows, and what was taken.

    A value of `columns` is the name of a column or an expression over columns. What is not named is taken as
    everywhere else: by what the query says, and by usual names.
    """
    given = dict(how.get("columns") or {})
    expressions = {
        name: f"expression for {name}" for name, column in given.items() if isinstance(column, Column)
    }
    if expressions:  # under names of their own: an expression may read a column that has the name it makes
        frame = frame.withColumns({expressions[name]: given[name] for name in expressions})
    settings: ReadSettings = {**how, "columns": {**given, **expressions}}
    reading = Reading.of(**settings)
    schemas, read = ({}, frozenset[str]()) if query is None else (query.schemas, _named_by(query))
    naming = reading.named(frame.columns, schemas, read)
    columns = [
        (name, column) for name, column in naming.names(frame.columns) if name not in expressions.values()
    ]
    frame = with_contents(frame, naming)
    if ATTRIBUTES in frame.columns:
        columns = [*columns, (ATTRIBUTES, ATTRIBUTES)]
    whole = [fn.col(quoted(column)).alias(name) for name, column in columns]
    frame = frame.select(*whole, *(_together(name, parts) for name, parts in naming.joined.items()))
    noticed = InputNotes()
    noticed.take(naming, tuple(naming.notes))
    if "type" not in frame.columns and reading.default_type is None and query is not None:
        reading = _with_type(reading, query, noticed)
    return frame, replace(reading, columns={}, is_settled=True), noticed


def _together(name: str, parts: Iterable[str]) -> Column:
    """Put the columns of a time into one, as the embedded engine does; the gate reads them there."""
    return fn.struct(*(fn.col(quoted(part)).alias(f"{PART}{part}") for part in parts)).alias(name)


def notes_of(query: Query, frame: DataFrame, **how: Unpack[ReadSettings]) -> tuple[str, ...]:
    """Say which columns of a frame are taken for what."""
    return named(frame, query, **how)[2].lines()


def _named_by(query: Query) -> frozenset[str]:
    """Name the attributes that a query reads."""
    return read_of(query).atoms


def _with_type(reading: Reading, query: Query, noticed: InputNotes) -> Reading:
    """Take the type that the query reads, if it is one, for events that do not say theirs."""
    types = types_named(frozenset(selections_of(query)))
    if len(types) == 1:
        (only,) = types
        noticed.take(AS_NAMED, (f"type is {only!r} for all events, the only one that the query reads",))
        return replace(reading, default_type=only)
    return replace(reading, types=types)


def _read(query: Query, frame: DataFrame) -> list[str]:
    """Name the columns that a query reads, in their order."""
    needs = read_of(query)
    usable = {field.name for field in frame.schema.fields if is_attribute(field)}
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
    wanted = wanted & usable - {ATTRIBUTES}
    return [name for name in frame.columns if name in RESERVED_COLUMNS or name in wanted]


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
    reading: Reading,
) -> None:
    """Refuse columns that cannot make events before any job starts."""
    asked = Coordinates(coordinates) if coordinates else query.graph.coordinates
    normaliser = Normaliser(query.schemas, asked, reading, columns=read)
    normaliser.normalise(empty_batch(frame.drop(LINE, ATTRIBUTES), coordinates_said(frame.schema)))


def empty_batch(frame: DataFrame, coordinates: Coordinates | None = None) -> pa.RecordBatch:
    """Make a batch without rows that has the columns of a frame, as they were in its files if it has any."""
    fields = _arrow_fields(frame.schema)
    said = {COORDINATES_KEY: coordinates.value.encode()} if coordinates else None
    schema = pa.schema(fields, metadata=said)
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=schema)


def _arrow_fields(schema: sql.StructType) -> list[pa.Field]:
    return [
        pa.field(field.name, arrow_type_said(field) or _arrow_type(field.dataType)) for field in schema.fields
    ]


def _arrow_type(kind: sql.DataType) -> pa.DataType:
    if isinstance(kind, sql.StructType) and all(field.name.startswith(PART) for field in kind.fields):
        return pa.struct(_arrow_fields(kind))
    known = type_of(kind)
    if known is not None:
        return ARROW_TYPES[known]
    return pa.binary() if isinstance(kind, sql.BinaryType) else pa.null()
