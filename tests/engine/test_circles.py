"""Circles are round: on the plane and on the globe, borders included, for points, shapes and movers."""

from __future__ import annotations

import math

import pytest

import whimbrel as wb
from whimbrel.space.geometry import METRES_PER_DEGREE

SQUARE = "POLYGON ((3 0, 4 0, 4 3, 3 3, 3 0))"
"""Its nearest corner to the origin is 3 m away, its farthest 5 m."""


def values(text: str, row: dict, coordinates: str = "plane") -> dict:
    query = wb.compile(f"coordinates {coordinates}\ndefine D detect A as a assign v = {text}")
    return wb.detect(query, [{"type": "A", "time": 0, **row}]).to_pylist()[0]["v"]


def found(text: str, rows: list[dict], coordinates: str = "plane") -> list[dict]:
    query = wb.compile(f"coordinates {coordinates}\n{text}")
    return wb.detect(
        query, [{"type": "A", "id": str(n), "time": n, **row} for n, row in enumerate(rows)]
    ).to_pylist()


@pytest.mark.slow
def test_the_border_of_a_circle_belongs_to_it_in_every_direction():
    for n in range(1, 100):
        angle = 2 * math.pi * n / 256 + math.pi / 256  # half-way between the corners of a polygon
        x, y = 5 * math.cos(angle), 5 * math.sin(angle)
        assert values("a in circle(0, 0, 5 m)", {"x": x * 0.99999, "y": y * 0.99999})
        assert not values("a in circle(0, 0, 5 m)", {"x": x * 1.00001, "y": y * 1.00001})
    assert values("a in circle(0, 0, 5 m)", {"x": 3.0, "y": 4.0})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a in circle(0, 0, 5 m)", True),
        ("a in circle(0, 0, 4.999 m)", False),
        ("intersects(a, circle(0, 0, 3 m))", True),
        ("intersects(a, circle(0, 0, 2.999 m))", False),
        ("distance(a, circle(0, 0, 2 m))", 1.0),
        ("distance(a, circle(0, 0, 9 m))", 0.0),
        ("same_place(a, circle(3.5, 1.5, 9 m))", True),
    ],
)
def test_a_shape_and_a_circle_in_the_plane(text, expected):
    assert values(text, {"geometry": SQUARE}) == expected


def test_a_circle_across_the_antimeridian():
    # A degree along the equator is about 111 km.
    for lon, inside in ((179.0, True), (-179.5, True), (-178.4, False), (178.6, False)):
        assert values("a in circle(-180, 0, 150 km)", {"lon": lon, "lat": 0.0}, "lonlat") is inside, lon
    away = values("distance(a, circle(180, 0, 100 km))", {"lon": -178.0, "lat": 0.0}, "lonlat")
    assert away == pytest.approx(2 * METRES_PER_DEGREE - 100_000)


def test_a_circle_that_holds_a_pole():
    """Five degrees from a centre that lies two degrees from the pole: up to three degrees beyond it."""
    circle = f"circle(0, 88, {5 * METRES_PER_DEGREE:.3f} m)"
    for lon, lat, inside in (
        (180.0, 87.001, True),
        (180.0, 86.99, False),
        (0.0, 83.001, True),
        (77.0, 90.0, True),
    ):
        assert values(f"a in {circle}", {"lon": lon, "lat": lat}, "lonlat") is inside, (lon, lat)
    box = "POLYGON ((170 88.5, -170 88.5, -170 89, 170 89, 170 88.5))"
    assert values(f"a in {circle}", {"geometry": box}, "lonlat")
    assert not values("a in circle(0, 88, 100 km)", {"geometry": box}, "lonlat")


def test_a_side_may_bulge_out_of_a_circle_on_the_globe():
    """The corners lie 30 degrees from the pole, and so does the parallel between them."""
    circle = f"circle(0, 90, {30.001 * METRES_PER_DEGREE:.3f} m)"
    flat = "POLYGON ((-60 60, 60 60, 0 70, -60 60))"
    assert values(f"a in {circle}", {"geometry": flat}, "lonlat")
    # Seen from (0, 60), the middle of a side along the equator is nearer than its ends.
    south = "POLYGON ((-60 0, 60 0, 0 10, -60 0))"
    ends = math.degrees(math.acos(0.5 * math.cos(math.radians(60))))
    assert values(
        f"a in circle(0, 60, {(ends + 0.001) * METRES_PER_DEGREE:.3f} m)", {"geometry": south}, "lonlat"
    )
    assert not values(
        f"a in circle(0, 60, {(ends - 0.01) * METRES_PER_DEGREE:.3f} m)", {"geometry": south}, "lonlat"
    )


def test_half_the_globe_and_more():
    circle = f"circle(0, 0, {120 * METRES_PER_DEGREE:.3f} m)"
    for lon, inside in ((119.9, True), (120.1, False), (-119.9, True), (180.0, False)):
        assert values(f"a in {circle}", {"lon": lon, "lat": 0.0}, "lonlat") is inside, lon
    around_the_far_side = "POLYGON ((170 -5, -170 -5, -170 5, 170 5, 170 -5))"
    assert not values("a in circle(0, 0, 20000 km)", {"geometry": around_the_far_side}, "lonlat")


def test_a_mover_enters_and_leaves_a_circle_where_it_is():
    text = "region R = circle(0, 0, 5 m) define D detect A {} R between samples"
    (row,) = found(text.format("enters"), [{"x": -9.0, "y": 3.0}, {"x": 0.0, "y": 3.0}])
    assert row["at"].timestamp() == pytest.approx(5 / 9, abs=1e-6)  # it enters at (-4, 3)
    (row,) = found(text.format("leaves"), [{"x": 0.0, "y": 3.0}, {"x": 8.0, "y": 3.0}])
    assert row["at"].timestamp() == pytest.approx(0.5, abs=1e-6)
    touching = [{"x": -9.0, "y": 5.0}, {"x": 9.0, "y": 5.0}]
    assert len(found(text.format("crosses"), touching)) == 1
    assert not found(text.format("crosses"), [{**row, "y": 5.001} for row in touching])


def test_a_mover_and_a_circle_around_a_pole():
    text = f"region R = circle(0, 90, {METRES_PER_DEGREE:.3f} m) define D detect A "
    flight = [{"lon": 20.0, "lat": 88.0}, {"lon": 20.0, "lat": 89.5}, {"lon": -160.0, "lat": 89.5}]
    (row,) = found(text + "enters R", flight, "lonlat")
    assert row["at"].timestamp() == pytest.approx(2 / 3, abs=1e-5)
    assert (
        len(found(text + "comes within 60 km of R", [flight[0], {"lon": 20.0, "lat": 88.5}], "lonlat")) == 1
    )
    assert not found(text + "comes within 50 km of R", [flight[0], {"lon": 20.0, "lat": 88.5}], "lonlat")


def test_a_mover_crosses_a_circle_on_the_antimeridian():
    text = f"region R = circle(180, 0, {METRES_PER_DEGREE:.3f} m) define D detect A {{}} R between samples"
    way = [{"lon": 178.0, "lat": 0.0}, {"lon": -178.0, "lat": 0.0}]
    (row,) = found(text.format("crosses"), way, "lonlat")
    assert row["at"].timestamp() == pytest.approx(0.75, abs=1e-5)
    assert not found(text.format("crosses"), [{**place, "lat": 1.001} for place in way], "lonlat")


def test_many_circles_are_looked_up_together_and_found_exactly():
    lines = "\n".join(f"define D{n} detect A(this in circle({10 * n}, 0, 5 m))" for n in range(20))
    rows = [{"x": 33.0, "y": 4.0}, {"x": 55.0, "y": 0.0}, {"x": 34.0, "y": 4.0}]
    assert sorted(row["type"] for row in found(lines, rows)) == ["D3", "D5", "D6"]


def test_a_subscription_in_a_circle_is_the_same():
    places = wb.Subscriptions()
    places.add("s", "A(this in circle(0, 0, 5 m))")
    assert (
        places.match(
            [{"type": "A", "time": 0, "x": 3.0, "y": 4.0}, {"type": "A", "time": 0, "x": 3.1, "y": 4.0}]
        ).num_rows
        == 1
    )
