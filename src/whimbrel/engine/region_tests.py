"""Tests of where an event lies, as places that a grid holds.

The grid only chooses which tests are tried on an event; what they ask is tested as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from whimbrel.graph.clauses import InRegion, NearPoint, read_clause
from whimbrel.graph.expressions import Expr
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import FARTHEST_M, as_circle, parse
from whimbrel.space.places import Circles, PlaceSet, Polygons

_MORE = 1 + 1e-6
"""Circles are made a little larger, as distances are rounded."""


@dataclass(frozen=True, slots=True)
class RegionTest:
    """Where an event has to be: in a region (well-known text), or so near to a point."""

    wkt: str
    radius_m: float | None = None

    @property
    def circle(self) -> tuple[float, float, float] | None:
        """Its centre and radius, if it is a circle."""
        circle = as_circle(self.wkt)
        if circle is not None:
            return circle[1:]
        if self.radius_m is None:
            return None
        point = parse(self.wkt)
        return point.x, point.y, self.radius_m


def region_test(clause: Expr) -> RegionTest | None:
    """Read `this in Region`, `intersects(this, Region)`, or `distance(this, point) < metres`.

    A point meets a region if it lies in it.
    """
    match read_clause(clause):
        case InRegion(region) if not region.startswith("POINT"):
            return RegionTest(region)
        case NearPoint(point, metres) if point.startswith("POINT") and metres > 0:
            return RegionTest(point, metres)
    return None


def place_kind(test: RegionTest, coordinates: Coordinates) -> Literal["circle", "polygon"] | None:
    """Tell what a test is in a grid; None if the grid cannot hold it.

    It holds circles on the globe, and polygons that are simple and do not cross the antimeridian. In the
    plane, neither may be out of proportion.
    """
    circle = test.circle
    if circle is not None:
        x, y, radius_m = circle
        if coordinates is Coordinates.LONLAT:
            return "circle" if abs(x) <= 180 and abs(y) <= 90 else None
        return "circle" if max(abs(x), abs(y)) + radius_m < FARTHEST_M else None
    shape = parse(test.wkt)
    return "polygon" if _fits(shape, coordinates) else None


def _fits(shape: Any, coordinates: Coordinates) -> bool:
    if shape.is_empty or not shape.is_valid:
        return False
    x0, y0, x1, y1 = shape.bounds
    if coordinates is Coordinates.LONLAT:
        return bool(x0 >= -180 and x1 <= 180 and x1 - x0 <= 180)
    return bool(max(-x0, -y0, x1, y1) < FARTHEST_M)


def places_of(tests: Sequence[RegionTest], kind: Literal["circle", "polygon"] | None) -> PlaceSet | None:
    """Make the places of tests that are of one kind; None for none."""
    if kind is None:
        return None
    if kind == "polygon":
        return Polygons(np.array([parse(test.wkt) for test in tests], dtype=object))
    x, y, radius_m = (np.array(column) for column in zip(*(test.circle or () for test in tests), strict=True))
    return Circles(x, y, radius_m * _MORE)
