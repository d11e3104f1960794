"""The one form in which events travel, and the gate that brings any table of events into it.

Columns, in this order:

| column | Arrow type | |
|---|---|---|
| `id` | string | absent if the input has none |
| `type` | dictionary of string | |
| `source` | dictionary of string | absent if the input has none; null for an event without a source |
| `start`, `end` | int64 | microseconds UTC; one and the same array for point events |
| `x`, `y` | float64 | absent if no event of the input has a location; null for an event without a point |
| `geometry` | binary | WKB polygons; absent if there are none; where it is given, `x` and `y` are null |
| attributes | bool, int64, float64, string or dictionary of string, timestamp[us, UTC] | in the order given |

The schema's metadata says which coordinates are meant (`whimbrel.coordinates`: plane, lonlat or none), and
that whole numbers in `start` and `end` are microseconds, so a normalised batch can be normalised again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.errors import DataError, did_you_mean
from whimbrel.model import _locations as locations
from whimbrel.model import columns as columns_of
from whimbrel.model.faults import REJECTED_SCHEMA, Faults, no_rejects
from whimbrel.model.reading import NamedColumns, Reading, option, plain_name
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates, EventSchema, Type
from whimbrel.model.time import TIME_POINT
from whimbrel.model.times import UNIT_NAMES, TimeReading

__all__ = [
    "COORDINATES_KEY",
    "REJECTED_SCHEMA",
    "TIME_UNIT_KEY",
    "Normalised",
    "Normaliser",
    "no_rejects",
    "normalise",
]

COORDINATES_KEY = b"whimbrel.coordinates"
"""Schema metadata: plane, lonlat or none. Readers set it where a file says which coordinates it has."""
TIME_UNIT_KEY = b"whimbrel.time_unit"
"""Schema metadata: the unit of whole numbers in the time columns; it outweighs `time_unit`."""

_NO_SCHEMAS: Mapping[str, EventSchema] = MappingProxyType({})
AS_NAMED = NamedColumns({})
FEW = 64
"""Rows up to which looking at the values costs less than asking Arrow to."""


@dataclass(frozen=True)
class Normalised:
    """A batch of events in the common form, and the rows that could not be brought into it.

    `rejected` has the columns `row` (number in the input), `reason` and `event` (the row as JSON text).
    """

    events: pa.RecordBatch
    rejected: pa.RecordBatch
    coordinates: Coordinates | None
    named: NamedColumns = AS_NAMED
    """Which column was taken for what."""
    notes: tuple[str, ...] = ()
    """What was taken on trust, in words."""
    is_as_given: bool = False
    """Whether the attributes are all that the input has, under its names and in their own types."""


@dataclass(frozen=True)
class Layout:
    """What follows from the schema of a batch alone, worked out once for all batches that share it."""

    schema: pa.Schema
    named: NamedColumns
    names: frozenset[str]
    """The columns, named as events name them."""
    kept: list[int] | None
    """The columns that have a type, where some have none; None: all."""
    times: TimeReading
    coordinates: Coordinates | None
    attributes: tuple[tuple[str, Type | None, frozenset[str]], ...]
    """The attributes to keep, each with the type that the schemas declare and the event types that do so."""
    is_as_given: bool


class Normaliser:
    """Brings batches of events into the common form, and sets aside the rows that cannot be events.

    A row is rejected for the first of these reasons that applies: its type is missing; its time, or its start
    and then its end, is unreadable, not finite, out of range or missing; it ends before it starts; its
    location is unreadable, not finite, out of range, incomplete, or not a point or a simple polygon; an
    attribute is not of the type that the schema of the row's type declares (in the order of the columns); its
    id is missing.

    An attribute that some schema declares has the declared type in the whole batch. A row of a type that does
    not declare it is not rejected for it: what cannot be converted is null there.

    Clean columns that already have the right type are passed on without a copy.

    Parameters
    ----------
    schemas
        Declared attributes, by event type. Attributes that no schema declares keep the type they have.
    coordinates
        The coordinates that the query asks for; None takes what the columns say.
    reading
        Which column is what, how times are written, the type of events that do not say theirs.
    columns
        The attributes to keep; None keeps all.
    read
        The attributes that queries read: a column whose name differs in case or blanks only is taken for one.
    keep_untyped
        Whether attributes without any value in the batch, which have no type, are kept as texts.
    """

    def __init__(
        self,
        schemas: Mapping[str, EventSchema] = _NO_SCHEMAS,
        coordinates: Coordinates | None = None,
        reading: Reading | None = None,
        *,
        columns: Collection[str] | None = None,
        read: Collection[str] = (),
        keep_untyped: bool = True,
    ) -> None:
        self.schemas = schemas
        self.coordinates = coordinates
        self.reading = reading or Reading()
        self.columns = columns
        self.read = read
        self.keep_untyped = keep_untyped
        self._layout: Layout | None = None
        self._form: tuple[list[str], list[pa.DataType]] | None = None
        self._schema = pa.schema([])
        """Columns, their types and the whole schema of the events made last."""

    def normalise(self, batch: pa.RecordBatch, first_row: int = 0) -> Normalised:
        """Bring a batch into the common form; `first_row` is the number of its first row in the input.

        Raises
        ------
        DataError
            If the columns cannot make events whatever the rows say: no time, coordinates mixed, a column of
            an unsupported type.
        """
        layout = self._layout_of(batch)
        raw, batch = batch, layout.named.apply(batch)
        batch = batch if layout.kept is None else batch.select(layout.kept)
        faults, notes = Faults(batch.num_rows), list(layout.named.notes)

        columns: dict[str, pa.Array] = {"type": _types(batch, self.reading, faults, notes)}
        columns["start"], columns["end"] = _times(batch, layout, faults, notes)
        location = _location(batch, layout, faults)
        attributes = _attributes(batch, columns["type"], layout, faults)
        if "id" in layout.names:
            columns["id"] = _ids(batch, faults)
        if "source" in layout.names:
            columns["source"] = columns_of.as_text_dictionary("source", batch.column("source"))
        located = {"x": location.x, "y": location.y, "geometry": location.polygons}
        columns |= {name: column for name, column in located.items() if column is not None}
        columns = {name: columns[name] for name in _ORDER if name in columns} | attributes
        arrays = list(columns.values())
        if faults:
            arrays = _kept(arrays, faults.good())
        schema = self._schema_of(list(columns), arrays, layout.coordinates)
        events = pa.RecordBatch.from_arrays(arrays, schema=schema)
        rejected = faults.rejected(raw, first_row)
        return Normalised(
            events, rejected, layout.coordinates, layout.named, tuple(notes), layout.is_as_given
        )

    def _layout_of(self, batch: pa.RecordBatch) -> Layout:
        layout = self._layout
        if layout is None or not layout.schema.equals(batch.schema, check_metadata=True):
            layout = self._layout = self._new_layout(batch)
        return layout

    def _new_layout(self, batch: pa.RecordBatch) -> Layout:
        metadata = batch.schema.metadata or {}
        # What was normalised before has its names.
        are_events = metadata.get(TIME_UNIT_KEY) == b"us" and COORDINATES_KEY in metadata
        named = self.reading.named(batch.schema.names, self.schemas, self.read, are_events=are_events)
        renamed = named.apply(batch).schema
        kept = None if self.keep_untyped else _typed(renamed)
        listed = renamed.names if kept is None else [renamed.names[number] for number in kept]
        names = _check_names(listed, batch.schema.names)
        own = [name for name in listed if name not in RESERVED_COLUMNS]
        wanted = [name for name in own if self.columns is None or name in self.columns]
        attributes = tuple((name, *declared_type(name, self.schemas)) for name in wanted)
        is_as_given = len(wanted) == len(own) and not any(kind for _, kind, _ in attributes)
        return Layout(
            batch.schema,
            named,
            names,
            kept,
            _times_of(metadata, self.reading),
            _coordinates(names, metadata, self.coordinates),
            attributes,
            is_as_given and named.keeps_attributes,
        )

    def _schema_of(
        self, names: list[str], arrays: list[pa.Array], coordinates: Coordinates | None
    ) -> pa.Schema:
        """Describe events; those of most batches are like those of the batch before."""
        form = (names, [array.type for array in arrays])
        if form != self._form:
            fields = [pa.field(name, kind) for name, kind in zip(*form, strict=True)]
            said = {COORDINATES_KEY: (coordinates or "none").encode(), TIME_UNIT_KEY: b"us"}
            self._form, self._schema = form, pa.schema(fields, metadata=said)
        return self._schema


_ORDER = ("id", "type", "source", "start", "end", "x", "y", "geometry")


def normalise(
    batch: pa.RecordBatch,
    *,
    schemas: Mapping[str, EventSchema] = _NO_SCHEMAS,
    coordinates: Coordinates | None = None,
    reading: Reading | None = None,
) -> Normalised:
    """Bring one batch into the common form; see `Normaliser`."""
    return Normaliser(schemas, coordinates, reading).normalise(batch)


def _typed(schema: pa.Schema) -> list[int] | None:
    """List the columns but the attributes that have no value and so no type; None: all have one."""
    kept = [
        number
        for number, field in enumerate(schema)
        if field.name in RESERVED_COLUMNS or not pa.types.is_null(field.type)
    ]
    return None if len(kept) == len(schema) else kept


def _kept(arrays: list[pa.Array], good: pa.Array) -> list[pa.Array]:
    # Keyed by identity, so that the one array behind start and end stays one.
    kept = {id(array): array.filter(good) for array in arrays}
    return [kept[id(array)] for array in arrays]


def _check_names(listed: Sequence[str], raw: Sequence[str]) -> frozenset[str]:
    """Refuse columns that cannot make events, and return their names."""
    names = frozenset(listed)
    if len(names) != len(listed):
        twice = sorted(name for name in names if listed.count(name) > 1)
        raise DataError(f"column {twice[0]!r} occurs more than once; rename one of them")
    if "time" in names and names & {"start", "end"}:
        raise _bad_columns(
            raw, f"give either 'time' or 'start' and 'end', not both; say which: {option('time', 'time')}"
        )
    for pair in (("start", "end"), ("x", "y"), ("lon", "lat")):
        if len(names & set(pair)) == 1:
            there, missing = pair if pair[0] in names else pair[::-1]
            raise _bad_columns(raw, f"there is {there!r} but no {missing!r}", missing)
    if not names & {"time", "start"}:
        raise _bad_columns(raw, "no column says when: give 'time', or 'start' and 'end'", "time")
    if names & {"x", "y"} and names & {"lon", "lat"}:
        both = f"{option('lon', 'lon')} and the same for lat"
        raise _bad_columns(
            raw, f"give either 'x' and 'y' or 'lon' and 'lat', not both; to take degrees: {both}"
        )
    return names


def _bad_columns(columns: Sequence[str], problem: str, missing: str | None = None) -> DataError:
    names = ", ".join(sorted(columns)) or "none"
    how = ""
    if missing is not None:
        near = _nearest(missing, [name for name in columns if name not in RESERVED_COLUMNS])
        how = f"; say which column it is: {option(missing, near) if near else option(missing)}"
    return DataError(f"these columns do not make events: {problem} (columns found: {names}){how}")


def _nearest(role: str, columns: Sequence[str]) -> str | None:
    """Name the column that is most likely meant for a role."""
    words = {"time": ("time", "date", "stamp"), "lon": ("lon", "lng"), "lat": ("lat",)}.get(role, (role,))
    for word in words:
        if alike := [column for column in columns if word in plain_name(column)]:
            return alike[0]
    hint = did_you_mean(role, columns)
    return next((c for c in columns if hint and hint == f"did you mean {c!r}?"), None)


def _times_of(metadata: Mapping[bytes, bytes], reading: Reading) -> TimeReading:
    said = metadata.get(TIME_UNIT_KEY)
    return reading.times if said is None else replace(reading.times, unit=said.decode(), format=None)


def _coordinates(
    names: frozenset[str], metadata: Mapping[bytes, bytes], wanted: Coordinates | None
) -> Coordinates | None:
    """Decide which coordinates the batch has: what it says itself, then its columns, then what is wanted."""
    if not names & {"x", "lon", "geometry"}:
        return None
    stated = metadata.get(COORDINATES_KEY, b"none").decode(errors="replace")
    by_name = locations.coordinates_of(names)
    if stated in ("plane", "lonlat"):
        own: Coordinates | None = Coordinates(stated)
        if own is Coordinates.PLANE and by_name is Coordinates.LONLAT:
            raise DataError("the input says its coordinates are plane, but has the columns 'lon' and 'lat'")
    else:
        own = by_name
    if own and wanted and own is not wanted:
        rename = (
            "; if they are degrees, say --column lon=x --column lat=y "
            "(in Python, columns={'lon': 'x', 'lat': 'y'})"
            if wanted is Coordinates.LONLAT
            else ""
        )
        raise DataError(
            f"coordinates are mixed: the events have {own} coordinates, the query wants {wanted}{rename}"
        )
    return own or wanted or Coordinates.PLANE


def _types(batch: pa.RecordBatch, reading: Reading, faults: Faults, notes: list[str]) -> pa.Array:
    if "type" not in batch.schema.names:
        name = reading.default_type
        if name is None and len(reading.types) == 1:
            name = next(iter(reading.types))
            notes.append(f"type is {name!r} for all events, the only one that the query reads")
        if name is None:
            raise _no_type(batch.schema.names, reading.types)
        return _all_of_type(name, batch.num_rows)
    column = batch.column("type")
    if not (columns_of.is_text(column.type) or pa.types.is_null(column.type)):
        raise columns_of.fail_type("type", column.type, "text")
    column = columns_of.as_text_dictionary("type", column)
    if column.null_count:
        faults.add(columns_of.nulls_of(column), "type is missing")
    if len(column) <= FEW and not any(map(_is_no_type, column.to_pylist())):
        return column
    if pc.index(column.dictionary, "").as_py() >= 0:
        empty = pc.fill_null(pc.equal(column.dictionary_decode(), ""), False)
        faults.add(empty.to_numpy(zero_copy_only=False), "type is missing")
    if pc.any(pc.starts_with(column.dictionary, TIME_POINT)).as_py():
        reserved = pc.fill_null(pc.starts_with(column.dictionary_decode(), TIME_POINT), False)
        faults.add(
            reserved.to_numpy(zero_copy_only=False), f"types that begin with {TIME_POINT!r} are time points"
        )
    return column


def _is_no_type(name: str | None) -> bool:
    return name == "" or (name is not None and name.startswith(TIME_POINT))


def _all_of_type(name: str, rows: int) -> pa.Array:
    """Give events one type; those without any have no different types either."""
    texts = pa.array([name] if rows else [], pa.string())
    return pa.DictionaryArray.from_arrays(columns_of.from_values(np.zeros(rows, np.int32)), texts)


def _no_type(columns: Sequence[str], types: Collection[str]) -> DataError:
    listed = ", ".join(sorted(columns)) or "none"
    names = sorted(types)
    which = f" (the query reads {', '.join(names[:8])})" if names else ""
    example = names[0] if names else "NAME"
    near = _nearest("type", [name for name in columns if name not in RESERVED_COLUMNS]) or "COLUMN"
    return DataError(
        f"these columns do not make events: no column 'type', and no type is given for all (columns found: "
        f"{listed}); say it: --type {example}{which}, or which column it is: {option('type', near)}"
    )


def _times(
    batch: pa.RecordBatch, layout: Layout, faults: Faults, notes: list[str]
) -> tuple[pa.Array, pa.Array]:
    times = layout.times
    if "time" in layout.names:
        time = _time(batch, "time", times, faults, notes)
        return time, time
    start, end = (_time(batch, name, times, faults, notes) for name in ("start", "end"))
    if start is end or _same_memory(start, end):
        return start, start
    starts, ends = columns_of.values_of(start, "i8"), columns_of.values_of(end, "i8")
    reversed_ = ends < starts
    if reversed_.any():
        reversed_ &= ~columns_of.nulls_of(start) & ~columns_of.nulls_of(end)
        faults.add(reversed_, "the event ends before it starts")
    return start, end


def _same_memory(start: pa.Array, end: pa.Array) -> bool:
    # Point events that were normalised before: keep the one array behind both columns.
    one, other = start.buffers()[1], end.buffers()[1]
    return bool(one and other and one.address == other.address and start.offset == end.offset)


def _time(batch: pa.RecordBatch, name: str, times: TimeReading, faults: Faults, notes: list[str]) -> pa.Array:
    given = columns_of.as_one_text(name, batch.column(name), times)
    columns_of.ask_for_day(name, given, times)
    if unit := columns_of.unit_taken(name, given, times):
        notes.append(f"{name} in {UNIT_NAMES[unit]}, by the size of its numbers")
    column = columns_of.as_instants(name, given, times, faults)
    if column.null_count:
        faults.add(columns_of.nulls_of(column), f"{name} is missing")
    return column


def _location(batch: pa.RecordBatch, layout: Layout, faults: Faults) -> locations.LocationColumns:
    names, lonlat = layout.names, layout.coordinates is Coordinates.LONLAT
    points = shapes = locations.LocationColumns()
    pair = ("lon", "lat") if "lon" in names else ("x", "y")
    if pair[0] in names:
        points = locations.read_point_columns(batch, pair, lonlat, faults)
    if "geometry" in names:
        shapes = locations.read_geometry_column(batch, lonlat, faults)
    return locations.merge(points, shapes, faults)


def _ids(batch: pa.RecordBatch, faults: Faults) -> pa.Array:
    column = columns_of.as_text("id", batch.column("id"))
    if column.null_count:
        faults.add(columns_of.nulls_of(column), "id is missing")
    if len(column) and (pc.min(pc.binary_length(column)).as_py() or 0) == 0:
        empty = pc.fill_null(pc.equal(pc.binary_length(column), 0), False)
        faults.add(empty.to_numpy(zero_copy_only=False), "id is missing")
    return column


def _attributes(
    batch: pa.RecordBatch, types: pa.Array, layout: Layout, faults: Faults
) -> dict[str, pa.Array]:
    attributes: dict[str, pa.Array] = {}
    for name, wanted, declaring in layout.attributes:
        own = Faults(batch.num_rows)
        column = columns_of.natural(name, batch.column(name), own)
        if wanted is not None:
            column = columns_of.declared(name, column, wanted, layout.times, own)
        if own:
            _report(own, types, declaring if wanted else None, faults)
        attributes[name] = column
    return attributes


def declared_type(name: str, schemas: Mapping[str, EventSchema]) -> tuple[Type | None, frozenset[str]]:
    """Return the type that the schemas give an attribute, and the event types that declare it.

    int and float together make float. Other differences are an error, because events of all types share the
    columns of a batch.
    """
    by_type = {
        event: schema.attributes[name] for event, schema in schemas.items() if name in schema.attributes
    }
    kinds = set(by_type.values())
    if kinds == {Type.INT, Type.FLOAT}:
        kinds = {Type.FLOAT}
    if len(kinds) > 1:
        said = ", ".join(f"{kind} in {event!r}" for event, kind in sorted(by_type.items()))
        raise DataError(f"attribute {name!r} is declared with different types ({said}); rename one of them")
    return (kinds.pop() if kinds else None), frozenset(by_type)


def _report(own: Faults, types: pa.Array, declaring: frozenset[str] | None, faults: Faults) -> None:
    def reason(row: int) -> str | None:
        applies = declaring is None or types[row].as_py() in declaring
        return own.reason(row) if applies else None

    faults.add(own.bad(), reason)


def convert_attribute(name: str, column: pa.Array, kind: Type) -> pa.Array:
    """Convert a whole attribute column to `kind`; what cannot be converted is null."""
    ignored = Faults(len(column))
    return columns_of.declared(
        name, columns_of.natural(name, column, ignored), kind, columns_of.MICROSECONDS, ignored
    )
