"""Distances on the sphere between points given in degrees.

Both functions are the haversine, which keeps its digits where points are near (Sinnott: "Virtues of the
Haversine", Sky and Telescope 68(2), 1984), where the law of cosines loses them. `whimbrel.space.geometry` has
`sphere` over columns; the client of safe regions, which stands alone, has a copy.
"""

from __future__ import annotations

import math

from whimbrel.space.geometry import EARTH_RADIUS_M
from whimbrel.space.kernels.jit import inlined, kernel


@kernel
def sphere(lon1, lat1, lon2, lat2):
    """Great-circle distance in metres. It rounds as the same distance over columns does, to the last bit."""
    p1 = math.radians(lat1)
    p2 = math.radians(lat2)
    h = math.sin((p2 - p1) / 2) ** 2
    h += math.cos(p1) * math.cos(p2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(h)))


@inlined
def half_chord(lon1, lat1, lon2, lat2):
    """Compute the square of half the chord on a sphere of radius 1: enough to compare, and quicker."""
    north = math.sin(math.radians(lat2 - lat1) / 2)
    east = math.sin(math.radians(lon2 - lon1) / 2)
    return north * north + math.cos(math.radians(lat1)) * math.cos(math.radians(lat2)) * east * east
