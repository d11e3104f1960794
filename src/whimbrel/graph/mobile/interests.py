"""Interests: the region around a focal object that a mobile query watches.

All lengths are metres, on the plane that touches the globe at the object; circles are round on the globe.
They may be given as text: `CircleInterest("1 nmi")`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from whimbrel.errors import QueryError
from whimbrel.model.length import Length, metres

Sample = Mapping[str, object]
"""A location update, as a function that makes interests sees it: `time` (microseconds UTC), `x`, `y`
(`lon`, `lat` on the globe), `source` and the attributes."""


def _length(name: str, given: Length) -> float:
    length = metres(given)
    if length <= 0:
        raise QueryError(
            f"the {name} of an interest has to be more than 0 m, not {length:g} m",
            hint="write for example '500 m'",
        )
    return length


@dataclass(frozen=True, slots=True, init=False)
class CircleInterest:
    """All that lies at most `radius_m` from the focal object."""

    radius_m: float

    def __init__(self, radius_m: Length) -> None:
        object.__setattr__(self, "radius_m", _length("radius", radius_m))


@dataclass(frozen=True, slots=True, init=False)
class BoxInterest:
    """A box with the focal object in its middle, its sides along the axes."""

    width_m: float
    height_m: float

    def __init__(self, width_m: Length, height_m: Length) -> None:
        object.__setattr__(self, "width_m", _length("width", width_m))
        object.__setattr__(self, "height_m", _length("height", height_m))


@dataclass(frozen=True, slots=True)
class OutlineInterest:
    """A polygon around the focal object, its corners in metres east and north of it."""

    corners: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if len(set(self.corners)) < 3:
            raise QueryError(
                "an outline needs at least three different corners",
                hint="write for example 'POLYGON ((-50 0, 50 0, 0 200, -50 0))': metres east and north",
            )
        if not all(isfinite(number) for corner in self.corners for number in corner):
            raise QueryError(
                "the corners of an outline have to be finite numbers of metres", hint="give smaller ones"
            )


@dataclass(frozen=True, slots=True, init=False)
class SectorInterest:
    """The sector in front of the focal object, as it last moved; before it has moved, the whole circle."""

    distance_m: float
    degrees: float

    def __init__(self, distance_m: Length, degrees: float) -> None:
        object.__setattr__(self, "distance_m", _length("distance", distance_m))
        object.__setattr__(self, "degrees", float(degrees))
        if not 0 < degrees <= 360:
            raise QueryError(
                f"the angle of a sector lies between 0 and 360 degrees; {degrees:g} does not",
                hint="write for example 'ahead 2 km, 60 degrees'",
            )


@dataclass(frozen=True, slots=True, init=False)
class CorridorInterest:
    """All that lies at most `distance_m` from the route that an attribute of the updates has as WKT."""

    attribute: str
    distance_m: float

    def __init__(self, attribute: str, distance_m: Length) -> None:
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "distance_m", _length("distance", distance_m))


@dataclass(frozen=True, slots=True)
class FunctionInterest:
    """What a Python function makes of the location updates so far; None where there is no interest.

    It gives a Shapely polygon or its WKT, and is told apart from others by its name.
    """

    name: str
    function: Callable[[Sequence[Sample]], object] = field(compare=False, repr=False)


Interest = (
    CircleInterest | BoxInterest | OutlineInterest | SectorInterest | CorridorInterest | FunctionInterest
)


def depends_on_place_alone(interest: Interest) -> bool:
    """Tell whether objects at one place have one interest, however they came there."""
    return isinstance(interest, CircleInterest | BoxInterest | OutlineInterest)
