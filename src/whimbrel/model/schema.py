"""What attributes an event type has, and in which coordinates locations are given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | datetime | None
"""One value of an attribute."""


class Type(StrEnum):
    """The type of an attribute or of an expression."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    """A length of time in microseconds; expressions have it, event attributes do not."""
    TEXTS = "texts"
    """A list of texts, such as the ids of the events of a step; only detections have it."""

    @property
    def is_number(self) -> bool:
        """Whether arithmetic with plain numbers is defined."""
        return self in (Type.INT, Type.FLOAT)


TYPE_NAMES: dict[str, Type] = {
    **{kind.value: kind for kind in Type if kind not in (Type.DURATION, Type.TEXTS)},
    "boolean": Type.BOOL,
    "integer": Type.INT,
    "long": Type.INT,
    "double": Type.FLOAT,
    "real": Type.FLOAT,
    "str": Type.STRING,
    "text": Type.STRING,
    "time": Type.TIMESTAMP,
}
"""Names a query may use for a type, in lower case (`FLOAT` and `float` are the same)."""


class Coordinates(StrEnum):
    """How locations are given. A query uses one; mixing them is an error."""

    PLANE = "plane"
    """Metres in a plane; distances are Euclidean."""
    LONLAT = "lonlat"
    """WGS 84 longitude and latitude in degrees; distances are metres on the sphere."""


Columns = str | tuple[str, ...]
"""The column behind a name, or those that make it together."""

MADE_OF_SEVERAL = ("time", "start", "end")
"""What may stand in several columns."""


def shown(column: Columns) -> str:
    """Show a column, or those that make a time together.

    >>> shown("LAT"), shown(("date", "clock"))
    ("'LAT'", "'date' and 'clock'")
    """
    return repr(column) if isinstance(column, str) else " and ".join(map(repr, column))


@dataclass(frozen=True, slots=True)
class EventSchema:
    """The declared attributes of an event type, in order."""

    name: str
    attributes: dict[str, Type] = field(default_factory=dict)
    columns: dict[str, Columns] = field(default_factory=dict, repr=False)
    """Which columns of an input to take for what, as the clause `from columns` says it."""


RESERVED_COLUMNS = frozenset(
    {"id", "type", "source", "time", "start", "end", "x", "y", "lon", "lat", "geometry"}
)
"""Columns of an event file that are not attributes."""


BUILT_IN_ATTRIBUTES: dict[str, Type] = {
    "start": Type.TIMESTAMP,
    "end": Type.TIMESTAMP,
    "timestamp": Type.TIMESTAMP,
    "duration": Type.DURATION,
    "type": Type.STRING,
    "source": Type.STRING,
    "srcid": Type.STRING,
    "id": Type.STRING,
    "x": Type.FLOAT,
    "y": Type.FLOAT,
    "lon": Type.FLOAT,
    "lat": Type.FLOAT,
}
"""What every event can be asked for, whatever its type."""


def common_type(kinds: Iterable[Type | None]) -> Type | None:
    """Give the one type that all kinds have or can be read as; None if there is none."""
    known = {kind for kind in kinds if kind is not None}
    if len(known) == 1:
        return known.pop()
    return Type.FLOAT if known and all(kind.is_number for kind in known) else None
