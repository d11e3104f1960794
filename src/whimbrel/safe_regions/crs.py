"""Reference systems of positions, in the plane and on the globe: extent, scale, windows and grid cells."""

from __future__ import annotations

import math

from whimbrel.errors import DataError
from whimbrel.model.schema import Coordinates
from whimbrel.safe_regions.client import metres_to_meridian
from whimbrel.safe_regions.shapes import Bounds
from whimbrel.space.geometry import METRES_PER_DEGREE, in_units

_FARTHEST = 1e100
"""Of positions in the plane."""


class ProjectedCRS:
    """Positions in the plane, in metres."""

    is_sphere = False
    extent: Bounds = (-1e150, -1e150, 1e150, 1e150)
    """Its bounds: areas must stay finite."""

    def check(self, x: float, y: float) -> None:
        """Refuse what is no position."""
        if not (abs(x) <= _FARTHEST and abs(y) <= _FARTHEST):
            raise DataError(f"({x}, {y}) is no position: coordinates must be finite numbers")

    def scale(self, y: float) -> float:
        """Measure a unit of x in units of y."""
        del y
        return 1.0

    def units(self, metres: float) -> float:
        """Convert a length to units of y."""
        return metres

    def metres_to_sides(self, x: float, y: float, window: Bounds) -> float:
        """Measure the way from a position to the nearest side of a window round it."""
        left, low, right, high = window
        return min(x - left, right - x, y - low, high - y)

    def clipped(self, bounds: Bounds) -> Bounds:
        """Clip a box to the bounds of the system."""
        left, low, right, high = self.extent
        return max(bounds[0], left), max(bounds[1], low), min(bounds[2], right), min(bounds[3], high)

    def window(self, x: float, y: float, half: float) -> Bounds:
        """Make the square round a position whose sides are so many units of y away."""
        wide = half / self.scale(y)
        return self.clipped((x - wide, y - half, x + wide, y + half))

    def cell(self, x: float, y: float, side_m: float) -> Bounds:
        """Find the cell of a grid that a position lies in."""
        high = self.units(side_m)
        row = math.floor(y / high)
        wide = high / self.scale((row + 0.5) * high)
        column = math.floor(x / wide)
        # Rounding must not leave the position outside of its own cell.
        return self.clipped(
            (min(column * wide, x), min(row * high, y), max((column + 1) * wide, x), max((row + 1) * high, y))
        )


class GeographicCRS(ProjectedCRS):
    """Positions by longitude and latitude, in degrees."""

    is_sphere = True
    extent: Bounds = (-180.0, -90.0, 180.0, 90.0)

    def check(self, x: float, y: float) -> None:
        if not (abs(x) <= 180 and abs(y) <= 90):
            raise DataError(f"({x}, {y}) is no longitude and latitude")

    def scale(self, y: float) -> float:
        return max(math.cos(math.radians(y)), 1e-6)

    def units(self, metres: float) -> float:
        return in_units(metres, Coordinates.LONLAT)

    def metres_to_sides(self, x: float, y: float, window: Bounds) -> float:
        left, low, right, high = window
        upright = min(metres_to_meridian(x - left, y), metres_to_meridian(right - x, y))
        return min(upright, min(y - low, high - y) * METRES_PER_DEGREE)


def crs_of(coordinates: Coordinates) -> ProjectedCRS:
    """Choose the reference system of coordinates."""
    return GeographicCRS() if coordinates is Coordinates.LONLAT else ProjectedCRS()
