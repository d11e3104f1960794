"""Which column of an input is what of an event, when the input names its columns in its own way.

A name is settled by the first of these that says something:

1. the mapping that was given (`--column time=BaseDateTime`, `columns={"time": "BaseDateTime"}`);
2. the clause `from columns` of the query, where the input has the column it names;
3. the names that events have (`time`, `lon`, ...), exactly;
4. usual names (`timestamp`, `Latitude`, `MMSI`, ...), whatever their case, blanks and dashes;
5. for attributes that a query reads: a column of that name but for case, blanks and dashes.

It is decided from the names of the columns alone, so that it is the same for every batch and on every
backend.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import pyarrow as pa

from whimbrel.errors import DataError, did_you_mean
from whimbrel.model.schema import RESERVED_COLUMNS, EventSchema

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

MANY = 12
"""How many columns an error lists."""


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


_ROLES = {name: role for role, names in USUAL.items() for name in names}


@dataclass(frozen=True, slots=True)
class Named:
    """What was taken for what in an input."""

    taken: Mapping[str, str]
    """The column behind each name, where it is another: roles such as `time`, and attributes."""
    dropped: frozenset[str] = frozenset()
    """Columns left out, because another was named for what they would be."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column behind each role that the input has."""
    notes: tuple[str, ...] = ()

    @property
    def is_as_it_was(self) -> bool:
        """Whether nothing is renamed or left out."""
        return not self.taken and not self.dropped

    def names(self, columns: Iterable[str]) -> list[tuple[str, str]]:
        """List (name, column) for all columns that remain, a column with several names several times.

        A column that is taken as the source stays an attribute, too.
        """
        renamed = {column for name, column in self.taken.items() if name != "source"}
        if self.taken.get("source") in RESERVED_COLUMNS:
            renamed.add(self.taken["source"])
        kept = [
            (column, column)
            for column in columns
            if column not in renamed and column not in self.dropped and column not in self.taken
        ]
        return [*kept, *self.taken.items()]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Give a batch the names that events have."""
        if self.is_as_it_was:
            return batch
        pairs = self.names(batch.schema.names)
        fields = [batch.schema.field(column).with_name(name) for name, column in pairs]
        arrays = [batch.column(column) for _, column in pairs]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=batch.schema.metadata))

    def __str__(self) -> str:
        return ", ".join(f"{name} from {column!r}" for name, column in self.taken.items() if name != column)


def carried(schemas: Iterable[EventSchema]) -> dict[str, str]:
    """Give the columns that the clauses of several event types name together."""
    found: dict[str, str] = {}
    for schema in schemas:
        for name, column in schema.columns.items():
            if found.setdefault(name, column) != column:
                raise DataError(
                    f"two queries take {name!r} from different columns, {found[name]!r} and {column!r}; "
                    f"say which: {option(name, column)}"
                )
    return found


def option(name: str, column: str = "COLUMN") -> str:
    """Show how to say which column is what, on the command line and in Python."""
    quoted = f"{name}={column}" if re.fullmatch(r"[\w.-]+", column) else f"{name}='{column}'"
    return f"--column {quoted} (in Python, columns={{{name!r}: {column!r}}})"


def resolve(
    columns: Iterable[str],
    *,
    given: Mapping[str, str] | None = None,
    said: Mapping[str, str] | None = None,
    read: Iterable[str] = (),
    are_events: bool = False,
) -> Named:
    """Settle which of the columns is what.

    Parameters
    ----------
    columns
        The names of the columns.
    given
        The mapping that was given: what events call it, and the column.
    said
        What the query says in its clauses `from columns`.
    read
        The attributes that queries read.
    are_events
        Whether the columns are those of events already: then only attributes are given other names.

    Raises
    ------
    DataError
        If a column that was given is not there, or several could be the time or the location.
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
    given: tuple[tuple[str, str], ...],
    said: tuple[tuple[str, str], ...],
    read: tuple[str, ...],
    are_events: bool,
) -> Named:
    settling = _Settling(columns)
    if are_events:
        settling.take_said(_of_attributes(said) | _of_attributes(given))
        settling.take_attributes(read)
        return settling.named()
    settling.take_given(dict(given))
    settling.take_said(dict(said))
    settling.take_exact()
    settling.take_usual()
    settling.take_attributes(read)
    return settling.named()


def _of_attributes(mapping: tuple[tuple[str, str], ...]) -> dict[str, str]:
    pairs = dict(mapping).items()
    return {name: column for name, column in pairs if not {name, column} & RESERVED_COLUMNS}


_PAIRS = (("lon", "lat"), ("x", "y"))
_GROUPS = (("time", "start", "end"), ("lon", "lat", "x", "y"), ("geometry",), ("source",), ("type",), ("id",))
"""Roles of which one or two are enough: who names one of a group has settled the group."""


class _Settling:
    """The work of `resolve`, step by step."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.taken: dict[str, str] = {}
        self.dropped: list[str] = []
        self.notes: list[str] = []

    def take_given(self, given: Mapping[str, str]) -> None:
        for name, column in given.items():
            if column not in self.columns:
                raise DataError(f"no column is named {column!r}, to be used as {name!r}{self._near(column)}")
            self.taken[name] = column

    def _near(self, column: str) -> str:
        hint = did_you_mean(column, self.columns)
        found = _listed(self.columns)
        return f"; {hint}" if hint and hint.startswith("did you mean") else f" (columns found: {found})"

    def take_said(self, said: Mapping[str, str]) -> None:
        """Take what the query says, unless it was overruled or the input has its own way."""
        settled = {group for group in _GROUPS if any(name in self.taken for name in group)}
        claimed = set(self.taken.values())
        for name, column in said.items():
            group = _group(name)
            if name in self.taken or (group and group in settled):
                continue
            if column in claimed and name not in RESERVED_COLUMNS:
                continue
            if column in self.columns and (name in RESERVED_COLUMNS or name not in self.columns):
                self.taken[name] = column
            elif name not in self.columns:
                self.notes.append(f"the query takes {name!r} from {column!r}, and there is no such column")

    def take_exact(self) -> None:
        """Leave out the columns that are called what another column was named for."""
        for group in _GROUPS:
            named = [name for name in group if name in self.taken]
            if not named:
                continue
            partner = _partner(named)
            for name in group:
                free = name in self.columns and name not in self.taken.values()
                if free and name not in self.taken and name == partner:
                    continue  # `lat` was named, and `lon` is called so
                if free and self.taken.get(name) != name:
                    self.dropped.append(name)
                    self.notes.append(f"column {name!r} is left out: {named[0]} is {self.taken[named[0]]!r}")
            if partner is not None and partner not in self.taken and partner not in self.columns:
                self._take_one(partner)

    def _has(self, name: str) -> bool:
        """Tell whether a role is settled, by a mapping or by the name of a column."""
        is_free = name in self.columns and name not in self.taken.values() and name not in self.dropped
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
        free = [c for c in self.columns if c not in self.taken.values() and c not in RESERVED_COLUMNS]
        return [column for column in free if usual_role(column) == role]

    def _take_one(self, role: str) -> None:
        found = self._candidates(role)
        if len(found) > 1:
            raise self._unsettled(role, found)
        if found:
            self.taken[role] = found[0]

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
        found = sorted(self._candidates("source"), key=lambda c: USUAL["source"].index(plain_name(c)))
        if found:
            self.taken["source"] = found[0]
        if len(found) > 1:
            others = " or ".join(repr(column) for column in found[1:])
            self.notes.append(
                f"source is {found[0]!r}, and could be {others}: {option('source', found[1])} takes that"
            )

    def take_attributes(self, read: Iterable[str]) -> None:
        for name in read:
            if name in self.columns or name in self.taken or name in RESERVED_COLUMNS:
                continue
            same = [column for column in self._attributes() if plain_name(column) == plain_name(name)]
            if len(same) == 1:
                self.taken[name] = same[0]

    def _attributes(self) -> list[str]:
        own = {column for name, column in self.taken.items() if name != "source"}
        return [c for c in self.columns if c not in own and c not in RESERVED_COLUMNS]

    def _unsettled(self, role: str, found: list[str]) -> DataError:
        which = " or ".join(repr(column) for column in found)
        return DataError(f"{role} could be column {which}; say which: {option(role, found[0])}")

    def named(self) -> Named:
        taken = {name: column for name, column in self.taken.items() if name != column}
        roles = {name: self.taken.get(name, name) for group in _GROUPS for name in group if self._has(name)}
        return Named(taken, frozenset(self.dropped), roles, tuple(self.notes))


def _group(name: str) -> tuple[str, ...] | None:
    return next((group for group in _GROUPS if name in group), None)


def _partner(named: list[str]) -> str | None:
    """Give the other one of a pair of which one was named."""
    for pair in (*_PAIRS, ("start", "end")):
        if len(there := [name for name in pair if name in named]) == 1:
            return pair[1 - pair.index(there[0])]
    return None


def _listed(columns: Iterable[str]) -> str:
    names = list(columns)
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return ", ".join(names[:MANY]) + more or "none"
