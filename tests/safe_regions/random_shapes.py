"""Random shapes, positions and walks to try safe regions on, in the plane and on the globe."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Map:
    """A square to put things in: its middle and width; a unit is one thousandth of the width."""

    coordinates: str
    x: float
    y: float
    metres: float

    @property
    def unit_x(self) -> float:
        if self.coordinates == "plane":
            return self.metres / 1000
        return self.metres / 1000 / 111_195 / math.cos(math.radians(self.y))

    @property
    def unit_y(self) -> float:
        return self.metres / 1000 / (1 if self.coordinates == "plane" else 111_195)

    def at(self, right: float, up: float) -> tuple[float, float]:
        """The place so many units from the middle."""
        x, y = self.x + right * self.unit_x, self.y + up * self.unit_y
        if self.coordinates == "lonlat":
            x = (x + 180) % 360 - 180 if abs(x) > 180 else x
        return x, y


MAPS = [
    Map("plane", 0.0, 0.0, 1000.0),
    Map("plane", 4.2e6, -7.7e5, 20_000.0),
    Map("lonlat", 10.0, 54.0, 5_000.0),
    Map("lonlat", -70.0, -33.0, 400_000.0),
    Map("lonlat", 180.0, 10.0, 50_000.0),
    Map("lonlat", 30.0, 85.0, 90_000.0),
]
STEP = st.integers(-500, 500) | st.floats(-500, 500).map(lambda n: round(n, 3))
PLACES = st.tuples(STEP, STEP)


@st.composite
def circles(draw, where: Map) -> tuple:
    x, y = where.at(*draw(PLACES))
    return ("circle", x, y, draw(st.floats(1, 300)) * where.metres / 1000)


@st.composite
def boxes(draw, where: Map) -> tuple:
    right, up = draw(PLACES)
    x1, y1 = where.at(right, up)
    wide, high = draw(st.integers(1, 300)), draw(st.integers(1, 300))
    x2, y2 = x1 + wide * where.unit_x, y1 + high * where.unit_y
    if where.coordinates == "lonlat" and x2 > 180:
        x1, x2 = 180 - wide * where.unit_x, 180.0
    return ("box", x1, y1, x2, y2)


@st.composite
def polygons(draw, where: Map) -> tuple:
    """Stars round a point, some with a smaller star as a hole."""
    x, y = where.at(*draw(PLACES))
    corners = draw(st.integers(3, 9))
    reaches = draw(st.lists(st.floats(20, 250), min_size=corners, max_size=corners))
    ring = [corner(where, x, y, reach, n / corners) for n, reach in enumerate(reaches)]
    if not draw(st.booleans()):
        return ("polygon", ring)
    # All corners of the hole are nearer than the nearest side can be to the middle.
    inner = min(reaches) * max(0.05, math.cos(math.pi / corners)) / 4
    return ("polygon", ring, [corner(where, x, y, inner, n / 5) for n in range(5)])


def corner(where: Map, x: float, y: float, reach: float, part: float) -> tuple[float, float]:
    far_x = x + reach * math.cos(2 * math.pi * part) * where.unit_x
    far_y = y + reach * math.sin(2 * math.pi * part) * where.unit_y
    return (max(-180.0, min(180.0, far_x)) if where.coordinates == "lonlat" else far_x), far_y


@st.composite
def shape_sets(draw, where: Map, most: int = 7) -> dict[str, tuple]:
    kinds = circles(where) | boxes(where) | polygons(where)
    return {f"s{n}": shape for n, shape in enumerate(draw(st.lists(kinds, max_size=most)))}


@st.composite
def walks(draw, where: Map, most: int = 12) -> list[tuple[float, float]]:
    """Short and long steps, and now and then a jump."""
    right, up = draw(PLACES)
    walk = [where.at(right, up)]
    for _ in range(draw(st.integers(1, most))):
        reach = draw(st.sampled_from([2, 20, 100, 600]))
        right += draw(st.integers(-reach, reach))
        up += draw(st.integers(-reach, reach))
        right, up = max(-600, min(600, right)), max(-600, min(600, up))
        walk.append(where.at(right, up))
    return walk


def given_form(shape: tuple) -> object:
    """A shape as users write it."""
    if shape[0] != "polygon":
        return shape
    rings = [", ".join(f"{x!r} {y!r}" for x, y in [*ring, ring[0]]) for ring in shape[1:]]
    return "POLYGON (" + ", ".join(f"({ring})" for ring in rings) + ")"


def is_valid(shape: tuple) -> bool:
    """Clamping at the date line can make a star touch itself."""
    import shapely

    return shape[0] != "polygon" or shapely.from_wkt(given_form(shape)).is_valid
