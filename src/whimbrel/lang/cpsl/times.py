"""Time points and amounts of time of CPSL, as the Whimbrel language writes them."""

from __future__ import annotations

from whimbrel.errors import QueryError
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.wbl import tree as t
from whimbrel.model.time import SECOND, UNITS, format_instant, time_point
from whimbrel.model.time import instant as moment


def quantity(amount: c.Amount) -> t.QuantityNode:
    """Write an amount of time; without a unit, it is in seconds."""
    return t.QuantityNode(((amount.number, amount.unit or "s"),), at=amount.at)


def instant(point: c.CpslInstant) -> t.InstantNode:
    """Write a time point."""
    return _instant(round(point.seconds * SECOND), point)


def point_type(point: c.CpslInstant) -> str:
    """Determine the type of what happens at a time point."""
    return time_point(moment(instant(point).text))


def later(point: c.CpslInstant, time: c.Amount) -> t.InstantNode:
    """Write the time point that lies an amount of time after another."""
    return _instant(round(point.seconds * SECOND) + round(time.number * UNITS[time.unit or "s"]), point)


def _instant(microseconds: int, point: c.CpslInstant) -> t.InstantNode:
    try:
        text = format_instant(microseconds)
    except OverflowError:
        raise QueryError(
            "this time point lies outside the calendar", point.at, "give seconds since 1970-01-01 UTC"
        ) from None
    return t.InstantNode(text.replace(".000000Z", "Z"), at=point.at)
