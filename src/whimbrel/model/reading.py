"""How the rows of an input are read as events: which column is what, and what times mean.

Which column of an input is what of an event, when the input names its columns in its own way.

A name is settled by the first of these that says something:

1. the mapping that was given (`--column time=BaseDateTime`, `columns={"time": "BaseDateTime"}`);
2. the clause `from columns` of the query, where the input has the column it names;
3. the names that events have (`time`, `lon`, ...), exactly;
4. usual names (`timestamp`, `Latitude`, `MMSI`, ...), whatever their case, blanks and dashes;
5. for attributes that a query reads: a column of that name but for case, blanks and dashes.

It is decided from the names of the columns alone, so that it is the same for every batch and on every
backend. A time may stand in several columns, such as the date and the time of day (`time=date+clock`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypedDict, cast

import pyarrow as pa

from whimbrel.errors import DataError, did_you_mean
from whimbrel.model.schema import MADE_OF_SEVERAL, RESERVED_COLUMNS, Columns, EventSchema, shown
from whimbrel.model.times import TimeReading

# fmt: off
TIMES = (
    "time", "timestamp", "datetime", "t", "ts", "utc", "timeutc", "utctime", "timestamputc", "utctimestamp",
    "datetimeutc", "utcdatetime", "basedatetime", "positiontime", "postime", "positiontimestamp",
    "lastpositionupdate", "timeposition", "gpstime", "gpstimestamp", "gpsdatetime", "eventtime", "fixtime",
    "recordedat", "recordedattime", "recordtime", "observedat", "observationtime", "epoch", "unixtime",
    "unixtimestamp", "epochtime", "timestampms", "timems", "epochms",
)
LONGITUDES = (
    "lon", "longitude", "lng", "long", "londeg", "longitudedeg", "decimallongitude", "gpslon", "gpslng",
    "gpslongitude", "positionlon", "positionlongitude", "locationlong", "locationlon",
)
LATITUDES = (
    "lat", "latitude", "latdeg", "latitudedeg", "decimallatitude", "gpslat", "gpslatitude", "positionlat",
    "positionlatitude", "locationlat",
)
MOVERS = (
    "mmsi", "icao24", "vehicleid", "objectid", "deviceid", "taxiid", "busid", "shipid", "vesselid", "truckid",
    "carid", "bikeid", "tramid", "trainid", "aircraftid", "imei", "hex", "moverid", "movingobjectid",
    "individuallocalidentifier", "taglocalidentifier", "animalid", "personid", "userid", "driverid",
    "entityid", "assetid", "unitid", "vehicleref", "medallion",
)
"""In the order in which one is chosen, if there are several."""
# fmt: on

USUAL: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "time": TIMES,
        "start": ("start", "starttime", "startdatetime", "begintime", "timestart"),
        "end": ("end", "endtime", "enddatetime", "timeend"),
        "lon": LONGITUDES,
        "lat": LATITUDES,
        "x": ("x",),
        "y": ("y",),
        "geometry": ("geometry", "geom", "thegeom", "wkt", "wkb", "geometrywkt"),
        "source": ("source", *MOVERS),
        "type": ("eventtype",),
        "id": ("eventid",),
    }
)
"""What columns are usually called, in the form that `plain_name` gives."""

PART = "@"
"""What the names of the fields begin with where the columns of a time stand in one column, as a struct."""

MANY = 12
"""How many columns an error lists."""


_ROLES = {name: role for role, names in USUAL.items() for name in names}
_PAIRS = (("lon", "lat"), ("x", "y"))
_GROUPS = (("time", "start", "end"), ("lon", "lat", "x", "y"), ("geometry",), ("source",), ("type",), ("id",))
"""Roles of which one or two are enough: who names one of a group has settled the group."""


@lru_cache(maxsize=4096)
def plain_name(column: str) -> str:
    """Write the name of a column without case, blanks and punctuation.

    >>> plain_name("# Timestamp"), plain_name("Base_DateTime")
    ('timestamp', 'basedatetime')
    """
    return re.sub(r"[\s#_.:/()-]+", "", column).lower()


def usual_role(column: str) -> str | None:
    """Tell what of an event a column of this name usually is; None if the name does not tell."""
    return _ROLES.get(plain_name(column))


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """What was taken for what in an input."""

    taken: Mapping[str, str]
    """The column behind each name, where it is another: roles such as `time`, and attributes."""
    dropped: frozenset[str] = frozenset()
    """Columns left out, because another was named for what they would be."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column behind each role that the input has; of several that make one: `date+clock`."""
    notes: tuple[str, ...] = ()
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns behind times that stand in several."""

    @property
    def is_as_it_was(self) -> bool:
        """Whether nothing is renamed or left out."""
        return not self.taken and not self.dropped and not self.joined

    @property
    def keeps_attributes(self) -> bool:
        """Whether the attributes are all columns that no role was settled by, under their own names."""
        columns = {name: column for name, column in self.columns.items() if name not in self.joined}
        return not self.dropped and all(
            columns.get(name) == column and name != "source" for name, column in self.taken.items()
        )

    @property
    def used(self) -> frozenset[str]:
        """The columns behind the roles, which are no attributes."""
        whole = [column for role, column in self.columns.items() if role not in self.joined]
        return frozenset(whole).union(*self.joined.values())

    def names(self, columns: Iterable[str]) -> list[tuple[str, str]]:
        """List (name, column) for all columns that remain, a column with several names several times.

        A column that is taken as the source stays an attribute, too.
        """
        renamed = {column for name, column in self.taken.items() if name != "source"}
        renamed = renamed.union(*self.joined.values())
        if self.taken.get("source") in RESERVED_COLUMNS:
            renamed.add(self.taken["source"])
        gone = renamed.union(self.dropped, self.taken, self.joined)
        kept = [(column, column) for column in columns if column not in gone]
        return [*kept, *self.taken.items()]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rename the columns of a batch as events name them."""
        if self.is_as_it_was:
            return batch
        pairs = self.names(batch.schema.names)
        fields = [batch.schema.field(column).with_name(name) for name, column in pairs]
        arrays = [batch.column(column) for _, column in pairs]
        for name, parts in self.joined.items():
            together = joined(batch, parts)
            fields.append(pa.field(name, together.type))
            arrays.append(together)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=batch.schema.metadata))

    def shown(self) -> dict[str, str]:
        """Show what every name is taken from, where it is another."""
        others: dict[str, Columns] = {**self.joined, **self.taken}
        return {name: shown(column) for name, column in others.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name} from {column}" for name, column in self.shown().items())


def joined(batch: pa.RecordBatch, parts: tuple[str, ...]) -> pa.Array:
    """Put the columns of a time into one, to be read where it is known how times are written."""
    fields = [batch.schema.field(part).with_name(f"{PART}{part}") for part in parts]
    return pa.StructArray.from_arrays([batch.column(part) for part in parts], fields=fields)


def carried(schemas: Iterable[EventSchema]) -> dict[str, Columns]:
    """Collect the columns that the clauses of several event types name together."""
    columns: dict[str, Columns] = {}
    for schema in schemas:
        for name, column in schema.columns.items():
            if columns.setdefault(name, column) != column:
                raise DataError(
                    f"two queries take {name!r} from different columns, {shown(columns[name])} and "
                    f"{shown(column)}; say which: {option(name, column)}"
                )
    return columns


def option(name: str, column: Columns = "COLUMN") -> str:
    """Show how to say which column is what, on the command line and in Python."""
    text = column if isinstance(column, str) else "+".join(column)
    said = column if isinstance(column, str) else list(column)
    quoted = f"{name}={text}" if re.fullmatch(r"[\w.+-]+", text) else f"{name}='{text}'"
    return f"--column {quoted} (in Python, columns={{{name!r}: {said!r}}})"


def parts_of(column: Columns) -> tuple[str, ...]:
    """List the columns that a text may mean: `date+clock` is a column of that name, or two."""
    if not isinstance(column, str):
        return column
    parts = tuple(part.strip() for part in column.split("+"))
    return parts if len(parts) > 1 and all(parts) else (column,)


def resolve(
    columns: Iterable[str],
    *,
    given: Mapping[str, Columns] | None = None,
    said: Mapping[str, Columns] | None = None,
    read: Iterable[str] = (),
    are_events: bool = False,
) -> NamedColumns:
    """Settle which of the columns is what.

    Parameters
    ----------
    columns
        The names of the columns.
    given
        The mapping that was given: what events call it, and the column. A time may have several: a tuple, or
        a text such as `date+clock` if no column is called so.
    said
        What the query says in its clauses `from columns`.
    read
        The attributes that queries read.
    are_events
        Whether the columns are those of events already: then only attributes are given other names.

    Raises
    ------
    DataError
        If a column that was given is not there, or only some of those that make a time; or several could be
        the time or the location.
    """
    return _resolve(
        tuple(columns),
        tuple((given or {}).items()),
        tuple((said or {}).items()),
        tuple(sorted(read)),
        are_events,
    )


@lru_cache(maxsize=256)
def _resolve(
    columns: tuple[str, ...],
    given: tuple[tuple[str, Columns], ...],
    said: tuple[tuple[str, Columns], ...],
    read: tuple[str, ...],
    are_events: bool,
) -> NamedColumns:
    settling = _Settling(columns)
    if are_events:
        settling.take_said(_of_attributes(said) | _of_attributes(given))
        settling.take_attributes(read)
        return settling.named()
    settling.take_given(dict(given))
    settling.take_said(dict(said))
    settling.take_exact()
    settling.take_usual()
    settling.refuse_halves()
    settling.take_attributes(read)
    return settling.named()


def _of_attributes(mapping: tuple[tuple[str, Columns], ...]) -> dict[str, Columns]:
    pairs = dict(mapping).items()
    return {name: column for name, column in pairs if not {name, *parts_of(column)} & RESERVED_COLUMNS}


class _Settling:
    """The work of `resolve`, step by step."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.taken: dict[str, Columns] = {}
        self.halves: list[tuple[str, tuple[str, ...]]] = []
        """Times that the query takes from several columns of which only some are there."""
        self.dropped: list[str] = []
        self.notes: list[str] = []

    def take_given(self, given: Mapping[str, Columns]) -> None:
        for name, column in given.items():
            parts = (column,) if column in self.columns else parts_of(column)
            if len(parts) > 1 and name not in MADE_OF_SEVERAL:
                raise DataError(
                    f"{name!r} cannot be made of {shown(parts)}: only {', '.join(MADE_OF_SEVERAL)} may stand "
                    "in several columns"
                )
            self._check_parts(name, parts)
            self.taken[name] = parts if len(parts) > 1 else parts[0]

    def _check_parts(self, name: str, parts: tuple[str, ...]) -> None:
        """Refuse a column that is not there, and one that is named twice."""
        for part in parts:
            if part not in self.columns:
                use = "to be used as" if len(parts) == 1 else f"which with {_others(parts, part)} would be"
                raise DataError(f"no column is named {part!r}, {use} {name!r}{self._near(part)}")
        if len(set(parts)) < len(parts):
            raise DataError(f"{name!r} is made of {shown(parts)}: the same column twice")

    def _used(self) -> set[str]:
        """List the columns that have been taken."""
        return {part for column in self.taken.values() for part in _flat(column)}

    def _near(self, column: str) -> str:
        hint = did_you_mean(column, self.columns)
        listed = _listed(self.columns)
        return f"; {hint}" if hint and hint.startswith("did you mean") else f" (columns found: {listed})"

    def take_said(self, said: Mapping[str, Columns]) -> None:
        """Take what the query says, unless it was overruled or the input has its own way."""
        settled = {group for group in _GROUPS if any(name in self.taken for name in group)}
        claimed = self._used()
        for name, column in said.items():
            group = _group(name)
            if name in self.taken or (group and group in settled):
                continue
            if column in claimed and name not in RESERVED_COLUMNS:
                continue
            parts = _flat(column)
            missing = [part for part in parts if part not in self.columns]
            if not missing and (name in RESERVED_COLUMNS or name not in self.columns):
                self._check_parts(name, parts)
                self.taken[name] = column
            elif missing and len(missing) < len(parts):
                self.halves.append((name, parts))
            elif name not in self.columns:
                such = "such column" if len(parts) == 1 else "such columns"
                verb = "is" if len(parts) == 1 else "are"
                self.notes.append(
                    f"the query takes {name!r} from {shown(column)}, and there {verb} no {such}"
                )

    def refuse_halves(self) -> None:
        """Refuse a time of which a part is missing, unless the input has another."""
        for name, parts in self.halves:
            if not any(self._has(role) for role in _group(name) or ()):
                self._check_parts(name, parts)

    def take_exact(self) -> None:
        """Leave out the columns that are called what another column was named for."""
        for group in _GROUPS:
            named = [name for name in group if name in self.taken]
            if not named:
                continue
            partner = _partner(named)
            for name in group:
                free = name in self.columns and name not in self._used()
                if free and name not in self.taken and name == partner:
                    continue  # `lat` was named, and `lon` is called so
                if free and self.taken.get(name) != name:
                    self.dropped.append(name)
                    whole = shown(self.taken[named[0]])
                    self.notes.append(f"column {name!r} is left out: {named[0]} is {whole}")
            if partner is not None and partner not in self.taken and partner not in self.columns:
                self._take_one(partner)

    def _has(self, name: str) -> bool:
        """Tell whether a role is settled, by a mapping or by the name of a column."""
        is_free = name in self.columns and name not in self._used() and name not in self.dropped
        return name in self.taken or is_free

    def take_usual(self) -> None:
        if not any(self._has(name) for name in ("time", "start", "end")):
            self._take_time()
        if not any(self._has(name) for name in ("x", "y", "geometry")):
            self._take_location()
        for name in ("id", "type"):
            if not self._has(name):
                self._take_one(name)
        if not self._has("source"):
            self._take_source()

    def _candidates(self, role: str) -> list[str]:
        used = self._used()
        free = [c for c in self.columns if c not in used and c not in RESERVED_COLUMNS]
        return [column for column in free if usual_role(column) == role]

    def _take_one(self, role: str) -> None:
        candidates = self._candidates(role)
        if len(candidates) > 1:
            raise self._unsettled(role, candidates)
        if candidates:
            self.taken[role] = candidates[0]

    def _take_time(self) -> None:
        if not self._candidates("time") and self._candidates("start") and self._candidates("end"):
            self._take_one("start")
            self._take_one("end")
        else:
            self._take_one("time")

    def _take_location(self) -> None:
        """Take both of a pair, or none: a latitude alone is an attribute."""
        for pair in _PAIRS:
            if all(self._has(name) or self._candidates(name) for name in pair):
                for name in pair:
                    if not self._has(name):
                        self._take_one(name)
                return
        if not any(self._has(name) for name in ("lon", "lat")):
            self._take_one("geometry")

    def _take_source(self) -> None:
        candidates = sorted(self._candidates("source"), key=lambda c: USUAL["source"].index(plain_name(c)))
        if candidates:
            self.taken["source"] = candidates[0]
        if len(candidates) > 1:
            others = " or ".join(repr(column) for column in candidates[1:])
            choice = option("source", candidates[1])
            self.notes.append(f"source is {candidates[0]!r}, and could be {others}: {choice} takes that")

    def take_attributes(self, read: Iterable[str]) -> None:
        for name in read:
            if name in self.columns or name in self.taken or name in RESERVED_COLUMNS:
                continue
            same = [column for column in self._attributes() if plain_name(column) == plain_name(name)]
            if len(same) == 1:
                self.taken[name] = same[0]

    def _attributes(self) -> list[str]:
        own = {part for name, column in self.taken.items() if name != "source" for part in _flat(column)}
        return [c for c in self.columns if c not in own and c not in RESERVED_COLUMNS]

    def _unsettled(self, role: str, candidates: list[str]) -> DataError:
        which = " or ".join(repr(column) for column in candidates)
        return DataError(f"{role} could be column {which}; say which: {option(role, candidates[0])}")

    def named(self) -> NamedColumns:
        joined = {name: column for name, column in self.taken.items() if not isinstance(column, str)}
        whole = {name: column for name, column in self.taken.items() if isinstance(column, str)}
        texts = {**whole, **{name: "+".join(parts) for name, parts in joined.items()}}
        roles = {name: texts.get(name, name) for group in _GROUPS for name in group if self._has(name)}
        taken = {name: column for name, column in whole.items() if name != column}
        return NamedColumns(taken, frozenset(self.dropped), roles, tuple(self.notes), joined)


def _flat(column: Columns) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else column


def _others(parts: tuple[str, ...], missing: str) -> str:
    return shown(tuple(part for part in parts if part != missing))


def _group(name: str) -> tuple[str, ...] | None:
    return next((group for group in _GROUPS if name in group), None)


def _partner(named: list[str]) -> str | None:
    """Name the other one of a pair of which one was named."""
    for pair in (*_PAIRS, ("start", "end")):
        if len(there := [name for name in pair if name in named]) == 1:
            return pair[1 - pair.index(there[0])]
    return None


def _listed(columns: Iterable[str]) -> str:
    names = list(columns)
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return ", ".join(names[:MANY]) + more or "none"


class ReadSettings(TypedDict, total=False):
    """The settings of every function that reads events; each may be left out."""

    columns: Mapping[str, Any] | None
    """Which column is what: `{"time": "BaseDateTime", "source": "MMSI"}`; other names are attributes. A time
    may stand in several columns: `{"time": ["date", "clock"]}`."""
    time_unit: str | None
    """The unit of times that are plain numbers: "s", "ms", "us" or "ns"; None tells it by their size."""
    time_format: str | None
    """How times are written, as for `strptime`: "%d.%m.%Y %H:%M:%S"; None takes ISO 8601 and the like."""
    day_first: bool | None
    """Whether 03/01/2022 is in January (True) or in March (False)."""
    time_zone: str | None
    """The zone of times that do not say theirs, such as "Europe/Berlin"; None is UTC."""
    default_type: str | None
    """The type of all events, for an input without the column `type`."""


def read_settings(settings: Mapping[str, Any]) -> ReadSettings:
    """Pick those settings that say how events are read."""
    names = settings.keys() & ReadSettings.__annotations__.keys()
    return cast("ReadSettings", {name: settings[name] for name in names})


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read an input."""

    columns: Mapping[str, Columns] = field(default_factory=dict)
    times: TimeReading = TimeReading()
    default_type: str | None = None
    types: frozenset[str] = frozenset()
    """The types that queries read: if it is one, events without a type are of it."""
    is_settled: bool = False
    """Whether the rows are events already, so that only attributes may have other names."""

    @classmethod
    def of(
        cls,
        *,
        columns: Mapping[str, Any] | None = None,
        time_unit: str | None = None,
        time_format: str | None = None,
        day_first: bool | None = None,
        time_zone: str | None = None,
        default_type: str | None = None,
    ) -> Reading:
        """Make one from the settings that people give."""
        times = TimeReading(time_unit, time_format, day_first, time_zone)
        named = {name: _columns(name, column) for name, column in (columns or {}).items()}
        return cls(named, times, default_type)

    def named(
        self,
        columns: Iterable[str],
        schemas: Mapping[str, EventSchema],
        read: Iterable[str] = (),
        *,
        are_events: bool = False,
    ) -> NamedColumns:
        """Settle which of the columns is what, for queries with these schemas that read these attributes.

        `are_events` says that rows were events before, so that only attributes may have other names.
        """
        declared = {name for schema in schemas.values() for name in schema.attributes}
        said = carried(schemas.values())
        wanted = declared.union(read)
        return resolve(
            columns, given=self.columns, said=said, read=wanted, are_events=are_events or self.is_settled
        )

    def may_take(self, column: str, schemas: Mapping[str, EventSchema]) -> str | None:
        """Tell which role a column of this name may have, whatever the other columns are; None: no role."""
        for mapping in (self.columns, carried(schemas.values())):
            for name, given in mapping.items():
                if name in RESERVED_COLUMNS and (given == column or column in parts_of(given)):
                    return name
        return column if column in RESERVED_COLUMNS else usual_role(column)


def _columns(name: str, given: Any) -> Columns:
    """Take a name as it is, and a list of names as the columns that make a time together."""
    if isinstance(given, str):
        return given
    if not isinstance(given, list | tuple) or not given or not all(isinstance(part, str) for part in given):
        raise DataError(f"the column of {name!r} is {given!r}; write its name, or several: ['date', 'clock']")
    return given[0] if len(given) == 1 else tuple(given)
