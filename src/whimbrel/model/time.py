"""Time as the whole project keeps it: int64 microseconds since 1970-01-01 UTC.

Two rules decide every boundary, here and nowhere else:

* a *distance* in time is closed: "within 5 s" holds for exactly 5 s;
* a *cell of the time grid* is half open: [0 s, 5 s) owns its start and not its end.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from whimbrel.errors import DataError

Moment: TypeAlias = datetime | str | int
"""A point in time as people give it: aware, ISO 8601 text, or microseconds since 1970 UTC."""
Duration: TypeAlias = timedelta | str | int
"""A length of time as people give it: `timedelta`, text such as "10s", or microseconds."""

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

BEGINNING_OF_TIME = -(2**62)
END_OF_TIME = 2**62
"""Sentinels well inside int64, so that adding a window to either cannot overflow."""

UNITS: dict[str, int] = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), MICROSECOND),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), MILLISECOND),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), WEEK),
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def duration(value: Duration) -> int:
    """Turn a `timedelta`, text such as "10s" or "1h 30 min", or microseconds into microseconds.

    >>> duration("1h 30 min") // MINUTE
    90
    """
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, int):
        return value
    total, position = 0, 0
    while position < len(value):
        term = _DURATION.match(value, position)
        if term is None or term[2].lower() not in UNITS:
            raise DataError(f"{value!r} is not a duration; write for example '10s', '5 min' or '1h 30 min'")
        total += round(float(term[1]) * UNITS[term[2].lower()])
        position = term.end()
    if not value.strip():
        raise DataError("an empty text is not a duration; write for example '10s' or '5 min'")
    return total


def format_duration(microseconds: int) -> str:
    """Write a duration in the largest units that keep it exact.

    >>> format_duration(5_400_000_000)
    '1 h 30 min'
    """
    if microseconds == 0:
        return "0 s"
    sign, rest, parts = ("-" if microseconds < 0 else ""), abs(microseconds), []
    for name, size in (
        ("d", DAY),
        ("h", HOUR),
        ("min", MINUTE),
        ("s", SECOND),
        ("ms", MILLISECOND),
        ("us", 1),
    ):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}")
    return sign + " ".join(parts)


def instant(value: Moment) -> int:
    """Turn an aware `datetime`, ISO 8601 text, or microseconds into microseconds UTC.

    Text without an offset is UTC; a naive `datetime` is refused, because its zone is unknown.
    """
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise DataError(f"{value!r} is not an ISO 8601 time such as 2024-05-01T12:00:00Z") from error
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
    if value.tzinfo is None:
        raise DataError(f"{value!r} has no time zone; use datetime(..., tzinfo=UTC)")
    return (value - _EPOCH) // timedelta(microseconds=1)


def format_instant(microseconds: int) -> str:
    """Write an instant as ISO 8601 with microseconds and Z.

    >>> format_instant(0)
    '1970-01-01T00:00:00.000000Z'
    """
    return (_EPOCH + timedelta(microseconds=microseconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


TIME_POINT = "@time:"
"""With this begin the types of time points, which no event that comes in can have."""


def time_point(at: int) -> str:
    """Name a time point: the type and the id of the event that happens then, which nobody sends.

    >>> time_point(0)
    '@time:1970-01-01T00:00:00.000000Z'
    """
    return TIME_POINT + format_instant(at)


def written_time_point(event_type: str) -> str:
    """Write the type of a time point as people do.

    >>> written_time_point("@time:1970-01-01T00:00:00.000000Z")
    "time '1970-01-01T00:00:00Z'"
    """
    return f"time '{event_type.removeprefix(TIME_POINT).replace('.000000Z', 'Z')}'"
