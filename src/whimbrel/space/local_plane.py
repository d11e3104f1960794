"""Ways between near places in metres: on the plane, or on the one that touches the globe where they begin."""

from __future__ import annotations

import numpy as np

from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import METRES_PER_DEGREE, Floats

_POLE = 1e-9
"""At a pole no way leads east; the cosine of its latitude is taken to be so much."""


def way(
    x0: Floats, y0: Floats, x: Floats, y: Floats, coordinates: Coordinates | None
) -> tuple[Floats, Floats]:
    """Return how many metres east and north of the first places the others are, the short way round."""
    if coordinates is not Coordinates.LONLAT:
        return x - x0, y - y0
    east = (x - x0 + 180.0) % 360.0 - 180.0
    return east * METRES_PER_DEGREE * _across(y0), (y - y0) * METRES_PER_DEGREE


def gone(
    x0: Floats, y0: Floats, east: Floats, north: Floats, coordinates: Coordinates | None
) -> tuple[Floats, Floats]:
    """Return the places so many metres east and north of others; the opposite of `way`."""
    if coordinates is not Coordinates.LONLAT:
        return x0 + east, y0 + north
    lon = x0 + east / (METRES_PER_DEGREE * _across(y0))
    lat = np.clip(y0 + north / METRES_PER_DEGREE, -90.0, 90.0)
    return (lon + 180.0) % 360.0 - 180.0, lat


def _across(lat: Floats) -> Floats:
    return np.maximum(np.cos(np.radians(lat)), _POLE)


def mean_velocity(
    seconds: Floats, x: Floats, y: Floats, coordinates: Coordinates | None = None
) -> tuple[Floats, Floats]:
    """Return the mean velocity over some reports in m/s, a row for each object; 0 if no time has passed.

    >>> east, north = mean_velocity(np.array([[0.0, 2.0]]), np.array([[0.0, 6.0]]), np.array([[1.0, 1.0]]))
    >>> east.tolist(), north.tolist()
    ([3.0], [0.0])
    """
    passed = seconds[:, -1] - seconds[:, 0]
    east, north = way(x[:, 0], y[:, 0], x[:, -1], y[:, -1], coordinates)
    passed = np.where(passed > 0, passed, np.inf)
    return east / passed, north / passed
