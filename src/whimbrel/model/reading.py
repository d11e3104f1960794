"""How the rows of an input are read as events: which column is what, and what times mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

from whimbrel.errors import DataError
from whimbrel.model.naming import NamedColumns, carried, parts_of, resolve, usual_role
from whimbrel.model.schema import RESERVED_COLUMNS, Columns, EventSchema
from whimbrel.model.times import TimeReading


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
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, str) for each in given):
        raise DataError(f"the column of {name!r} is {given!r}; write its name, or several: ['date', 'clock']")
    return given[0] if len(given) == 1 else tuple(given)
