"""Distances on the sphere, in metres, between points given in degrees."""

from __future__ import annotations

import math

from whimbrel.space.geometry import EARTH_RADIUS_M
from whimbrel.space.kernels.jit import kernel


@kernel
def sphere(lon1, lat1, lon2, lat2):
    """Great-circle distance in metres between two points in degrees.

    The haversine keeps its digits where points are near (Sinnott: "Virtues of the Haversine", Sky and
    Telescope 68(2), 1984), where the law of cosines loses them.
    """
    p1 = math.radians(lat1)
    p2 = math.radians(lat2)
    h = math.sin((p2 - p1) / 2) ** 2
    h += math.cos(p1) * math.cos(p2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(h)))
