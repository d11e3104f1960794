"""Interests: the region around a focal object that a mobile query watches.

All lengths are metres, on the plane that touches the globe at the object; circles are round on the globe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from whimbrel.errors import QueryError

Sample = Mapping[str, object]
"""A location update, as a function that makes interests sees it: `time` (microseconds UTC), `x`, `y`
(`lon`, `lat` on the globe), `source` and the attributes."""


def _check_length(name: str, metres: float) -> None:
    if not isfinite(metres) or metres <= 0:
        raise QueryError(f"the {name} of an interest has to be more than 0 m, not {metres:g} m")


@dataclass(frozen=True, slots=True)
class CircleInterest:
    """All that lies at most `radius_m` from the focal object."""

    radius_m: float

    def __post_init__(self) -> None:
        _check_length("radius", self.radius_m)


@dataclass(frozen=True, slots=True)
class BoxInterest:
    """A box with the focal object in its middle, its sides along the axes."""

    width_m: float
    height_m: float

    def __post_init__(self) -> None:
        _check_length("width", self.width_m)
        _check_length("height", self.height_m)


@dataclass(frozen=True, slots=True)
class OutlineInterest:
    """A polygon around the focal object, its corners in metres east and north of it."""

    corners: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if len(set(self.corners)) < 3:
            raise QueryError("an outline needs at least three different corners")
        if not all(isfinite(number) for corner in self.corners for number in corner):
            raise QueryError("the corners of an outline have to be finite numbers of metres")


@dataclass(frozen=True, slots=True)
class SectorInterest:
    """The sector in front of the focal object, as it last moved; before it has moved, the whole circle."""

    distance_m: float
    degrees: float

    def __post_init__(self) -> None:
        _check_length("distance", self.distance_m)
        if not 0 < self.degrees <= 360:
            raise QueryError(
                f"the angle of a sector lies between 0 and 360 degrees; {self.degrees:g} does not"
            )


@dataclass(frozen=True, slots=True)
class CorridorInterest:
    """All that lies at most `distance_m` from the route that an attribute of the updates has as WKT."""

    attribute: str
    distance_m: float

    def __post_init__(self) -> None:
        _check_length("distance", self.distance_m)


@dataclass(frozen=True, slots=True)
class FunctionInterest:
    """What a Python function makes of the location updates so far; None where there is no interest.

    It gives a Shapely polygon or its WKT, and is told apart from others by its name.
    """

    name: str
    function: Callable[[Sequence[Sample]], object] = field(compare=False)


Interest = (
    CircleInterest | BoxInterest | OutlineInterest | SectorInterest | CorridorInterest | FunctionInterest
)


def depends_on_place_alone(interest: Interest) -> bool:
    """Tell whether objects at one place have one interest, however they came there."""
    return isinstance(interest, CircleInterest | BoxInterest | OutlineInterest)
