"""What lies in a shape, said slowly and plainly: fractions in the plane, vectors on the sphere."""

from __future__ import annotations

import math
from fractions import Fraction

EARTH_RADIUS_M = 6_371_008.8


def matches(shapes: dict[str, tuple], x: float, y: float, coordinates: str) -> set[str]:
    """Shapes are ("circle", x, y, radius), ("box", x1, y1, x2, y2) or ("polygon", ring, hole, hole...)."""
    return {name for name, shape in shapes.items() if contains(shape, x, y, coordinates)}


def contains(shape: tuple, x: float, y: float, coordinates: str) -> bool:
    kind, *rest = shape
    if kind == "circle":
        centre_x, centre_y, radius = rest
        if coordinates == "lonlat":
            return metres((x, y), (centre_x, centre_y)) <= radius
        return (Fraction(x) - Fraction(centre_x)) ** 2 + (Fraction(y) - Fraction(centre_y)) ** 2 <= Fraction(
            radius
        ) ** 2
    if kind == "box":
        x1, y1, x2, y2 = rest
        return min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2)
    outside, *holes = rest
    where = place(outside, x, y)
    return where == "border" or (where == "in" and all(place(hole, x, y) != "in" for hole in holes))


def place(ring: list[tuple[float, float]], x: float, y: float) -> str:
    """Count how often a ray to the right crosses the ring."""
    if not min(a for a, _ in ring) <= x <= max(a for a, _ in ring):
        return "out"
    if not min(b for _, b in ring) <= y <= max(b for _, b in ring):
        return "out"
    px, py = Fraction(x), Fraction(y)
    corners = [(Fraction(a), Fraction(b)) for a, b in ring]
    is_in = False
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        turn = (x2 - x1) * (py - y1) - (y2 - y1) * (px - x1)
        if turn == 0 and min(x1, x2) <= px <= max(x1, x2) and min(y1, y2) <= py <= max(y1, y2):
            return "border"
        if (y1 > py) != (y2 > py):
            is_in ^= px < x1 + (py - y1) * (x2 - x1) / (y2 - y1)
    return "in" if is_in else "out"


def metres(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The angle between two vectors from the middle of the earth, by their cross product."""
    p, q = vector(*a), vector(*b)
    cross = (p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0])
    return EARTH_RADIUS_M * math.atan2(math.hypot(*cross), sum(s * t for s, t in zip(p, q, strict=True)))


def vector(lon: float, lat: float) -> tuple[float, float, float]:
    turn, rise = math.radians(lon), math.radians(lat)
    return math.cos(rise) * math.cos(turn), math.cos(rise) * math.sin(turn), math.sin(rise)


def border_points(shape: tuple, coordinates: str, number: int = 16) -> list[tuple[float, float]]:
    """Points on (or within rounding of) the border of a shape."""
    kind, *rest = shape
    if kind == "circle":
        x, y, radius = rest
        return [point_at(x, y, radius, 2 * math.pi * n / number, coordinates) for n in range(number)]
    if kind == "box":
        x1, y1, x2, y2 = rest
        rest = [[(x1, y1), (x2, y1), (x2, y2), (x1, y2)]]
    points = []
    for ring in rest:
        for (xa, ya), (xb, yb) in zip(ring, ring[1:] + ring[:1], strict=True):
            points += [(xa + (xb - xa) * n / 6, ya + (yb - ya) * n / 6) for n in range(6)]
    return points


def point_at(x: float, y: float, far: float, bearing: float, coordinates: str) -> tuple[float, float]:
    """Go from a point so many metres in a direction."""
    if coordinates == "plane":
        return x + far * math.sin(bearing), y + far * math.cos(bearing)
    lat, angle = math.radians(y), far / EARTH_RADIUS_M
    sine = math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(bearing)
    east = math.sin(bearing) * math.sin(angle) * math.cos(lat)
    turn = math.atan2(east, math.cos(angle) - math.sin(lat) * sine)
    lon = (x + math.degrees(turn) + 180) % 360 - 180
    return lon, math.degrees(math.asin(max(-1.0, min(1.0, sine))))
