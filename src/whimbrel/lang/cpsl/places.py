"""Regions and distances of CPSL, as the Whimbrel language writes them."""

from __future__ import annotations

from whimbrel.errors import QueryError
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.predicates import number
from whimbrel.lang.wbl import tree as t
from whimbrel.model.length import LENGTHS

TOLERANCE_M = 1
"""How far a distance may be off and still count as equal."""

_CORNERS = "write at least three corners, in the order of the border"


def polygon(region: c.CpslRegion) -> str:
    """Write a region as WKT.

    Raises
    ------
    QueryError
        If the corners are too few, lie on a line, or make a border that crosses itself.
    """
    corners = list(region.corners)
    if len(corners) > 1 and corners[0] == corners[-1]:
        corners.pop()
    if len(set(corners)) < 3:
        raise QueryError("a region needs at least three different corners", region.at, _CORNERS)
    import shapely  # slow to import, and most subscriptions have no region

    shape = shapely.Polygon(corners)
    if not shape.is_valid:
        raise QueryError(
            "the border of this region crosses or touches itself",
            region.at,
            "give the corners in the order of the border",
        )
    listed = ", ".join(f"{x!r} {y!r}" for x, y in [*corners, corners[0]])
    return f"POLYGON (({listed}))"


def point_at(x: int | float, y: int | float) -> t.Expression:
    """Write a point as an argument of `distance`."""
    return t.Apply("point", (number(x), number(y)))


def distance_test(left: t.Expression, right: t.Expression, sub: c.Distance) -> t.Expression:
    """Compare the distance between two places with a length; `=` allows for the tolerance."""
    distance = t.Apply("distance", (left, right))
    if sub.operator != "=":
        return t.Compare((distance, _length(sub.length)), (sub.operator,), at=sub.at)
    metres = _metres(sub.length)
    low, high = max(metres - TOLERANCE_M, 0), metres + TOLERANCE_M
    return t.BetweenNode(distance, t.Constant(low), t.Constant(high), at=sub.at)


def _length(length: c.Amount) -> t.Expression:
    if length.unit is None:
        return t.Constant(length.number, at=length.at)
    return t.QuantityNode(((length.number, length.unit),), at=length.at)


def _metres(length: c.Amount) -> int | float:
    return length.number if length.unit is None else length.number * LENGTHS[length.unit]
