"""Locations: where detections lie, distances, regions."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect, named, wkt

# Where a detection lies.


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("A@1s(1,2) B@2s(1,2)", "POINT (1 2)"),
        ("A@1s(0,0) B@2s(2,1)", "LINESTRING (0 0, 2 1)"),
        ("A@1s(0,0) B@2s", "POINT (0 0)"),
        ("A@1s B@2s", None),
    ],
)
def test_a_detection_lies_where_its_events_do(backend, data, place):
    found = backend.detect("define D detect A then B within 9 s", data)
    assert found.places == [place and wkt(place)]


def test_the_location_of_a_detection_is_the_hull_of_its_events(backend):
    found = backend.detect("define D detect A{4} within 9 s", "A@1s(0,0) A@2s(4,0) A@3s(1,1) A@4s(0,4)")
    assert found.places == [wkt("POLYGON ((0 0, 4 0, 0 4, 0 0))")]


def test_points_on_one_line_have_a_line_as_hull(backend):
    found = backend.detect("define D detect A{3} within 9 s", "A@1s(0,0) A@2s(2,2) A@3s(1,1)")
    assert found.places == [wkt("LINESTRING (0 0, 2 2)")]


def test_a_single_event_keeps_its_place(backend):
    assert backend.detect("define D detect A", "A@1s(3,4)").places == [wkt("POINT (3 4)")]


def test_a_definition_on_a_definition_lies_where_all_its_events_do(backend):
    text = "define Pair detect A then B within 9 s define D detect Pair then C within 9 s"
    found = backend.detect(text, "A@1s(0,0) B@2s(2,0) C@3s(0,2)")
    assert found.places == [wkt("POLYGON ((0 0, 2 0, 0 2, 0 0))")]


def test_a_polygon_keeps_its_shape(backend):
    found = backend.detect("define D detect A assign across = A.x, up = A.y", [polygon("a1", 1, 0, 0, 4, 2)])
    assert found == expect("D@1us:across=2,up=1: a1")
    assert found.places == [wkt("POLYGON ((0 0, 4 0, 4 2, 0 2, 0 0))")]


def polygon(name: str, time: int, x0: float, y0: float, x1: float, y1: float) -> dict:
    shape = f"POLYGON (({x0} {y0}, {x1} {y0}, {x1} {y1}, {x0} {y1}, {x0} {y0}))"
    return {"type": "A", "start": time, "end": time, "id": name, "geometry": shape}


# Distances.


def test_distance_is_in_metres(backend):
    data = "A@1s(0,0) B@2s(3,4) B@3s(6,8)"
    assert backend.pattern("A as a then B as b within 9 s where distance(a, b) = 5 m", data) == ["a1 b1"]
    assert backend.pattern("A as a then B as b within 9 s where distance(a, b) > 0.005 km", data) == ["a1 b2"]


def test_distance_may_be_reported(backend):
    text = "define D detect A as a then B as b within 9 s assign apart = distance(a, b)"
    assert backend.detect(text, "A@1s(0,0) B@2s(3,4)") == expect("D@1..2s:apart=5.0: a1 b1")


def test_distance_to_what_has_no_place_is_null(backend):
    data = "A@1s(0,0) B@2s C@3s(1,1)"
    assert backend.pattern("A as a then B as b within 9 s where distance(a, b) >= 0", data) == []
    assert backend.pattern("A as a then B as b within 9 s where distance(a, b) is null", data) == ["a1 b1"]


def test_distance_is_that_of_the_nearest_points(backend):
    text = "define Pair detect A then B within 9 s define D detect Pair as p then C as c within 9 s"
    # The pair lies on the line from (0, 0) to (2, 0).
    found = backend.detect(f"{text} assign apart = distance(p, c)", "A@1s(0,0) B@2s(2,0) C@3s(0.5,7)")
    assert found.values("apart") == [7]


def test_distance_between_polygons(backend):
    rows = [polygon("a1", 1, 0, 0, 2, 2), polygon("a2", 2, 4, 4, 6, 6), polygon("a3", 3, 5, 5, 9, 9)]
    found = backend.detect("define D detect A as a then A as b within 9 s assign d = distance(a, b)", rows)
    assert sorted(found.values("d")) == [0, pytest.approx(8**0.5), pytest.approx(18**0.5)]


PLACES = """
    define D detect A as a then B as b within 9 s
    assign meet = intersects(a, b), inside = b in a, same = same_place(a, b), close = same_place(a, b, 3 m),
        apart = distance(a, b)
"""


@pytest.mark.parametrize(
    ("corners", "meet", "inside", "same", "close", "apart"),
    [
        ((1, 1, 3, 3), True, True, True, True, 0),  # wholly inside, the same centre
        ((0, 0, 4, 4), True, True, True, True, 0),  # the same
        ((2, 2, 4, 4), True, True, False, True, 0),  # inside, along the border
        ((3, 3, 6, 6), True, False, False, False, 0),  # half inside
        ((4, 1, 6, 3), True, False, False, True, 0),  # touching from outside
        ((7, 8, 9, 9), False, False, False, False, 5),  # apart
        ((-1, -1, 5, 5), True, False, True, True, 0),  # around it
    ],
)
def test_how_two_polygons_lie(backend, corners, meet, inside, same, close, apart):
    rows = [polygon("a1", 1, 0, 0, 4, 4), polygon("b1", 2, *corners) | {"type": "B"}]
    found = backend.detect(PLACES, rows)
    assert (found.values("meet"), found.values("inside")) == ([meet], [inside])
    assert (found.values("same"), found.values("close")) == ([same], [close])
    assert found.values("apart") == [apart]


def test_the_steps_of_a_sequence_compare_places(backend):
    text = """
        define D detect A as a followed by B(intersects(this, a)) as b
            followed by C(this in a, distance(this, b) > 1) as c
            within 9 s
    """
    rows = [
        polygon("a1", 1, 0, 0, 4, 4),
        polygon("b1", 2, 5, 5, 6, 6) | {"type": "B"},
        polygon("b2", 3, 3, 3, 6, 6) | {"type": "B"},
        polygon("c1", 4, 1, 1, 3, 3) | {"type": "C"},
        polygon("c2", 5, 1, 1, 2, 2) | {"type": "C"},
    ]
    assert backend.detect(text, rows).events == ["a1 b2 c2"]


def test_distance_to_a_region(backend):
    text = """
        region Yard = box(0, 0, 10, 10)
        define D detect A(distance(this, Yard) <= 5 m)
        assign yard = distance(A, Yard), home = distance(A, point(0, 0)),
            corner = distance(A, 'POINT (13 14)')
    """
    found = backend.detect(text, "A@1s(13,14) A@2s(5,5) A@3s(16,5)")
    assert found.events == ["a1", "a2"]
    assert found.values("yard") == [5, 0]
    assert found.values("home") == [pytest.approx(365**0.5), pytest.approx(50**0.5)]
    assert found.values("corner") == [0, pytest.approx(145**0.5)]


def test_an_earlier_step_is_compared_with_a_region(backend):
    text = """
        region Yard = box(0, 0, 10, 10)
        define D detect A as a followed by A(distance(this, Yard) > distance(a, Yard) + 1) as b within 9 s
    """
    assert backend.detect(text, "A@1s(11,5) A@2s(11.5,5) A@3s(15,5)").events == ["a1 a3", "a2 a3"]


def test_an_assigned_x_does_not_move_an_event(backend):
    text = """
        define Moved detect A assign x = 100.0, y = 0.0
        define D detect Moved as m then B as b within 9 s assign apart = distance(m, b), x = m.x
    """
    found = backend.detect(text, "A@1s(0,0) B@2s(3,4)")
    assert (found.values("apart"), found.values("x")) == ([5], [100])


# Regions.

AROUND = "A@1s(0,0) A@2s(10,5) A@3s(10.001,5) A@4s(5,5) A@5s"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("this in box(0, 0, 10, 10)", ["a1", "a2", "a4"]),
        ("this not in box(0, 0, 10, 10)", ["a3"]),
        ("this in circle(5, 5, 5 m)", ["a2", "a4"]),
        ("this in 'POLYGON ((0 0, 10 0, 10 10, 0 0))'", ["a1", "a2", "a4"]),
        ("this in Yard", ["a4"]),
        ("this in Yard or x > 10", ["a3", "a4"]),
        ("x = 10 and y = 5", ["a2"]),
    ],
)
def test_a_region_includes_its_border(backend, condition, found):
    text = f"region Yard = box(1, 1, 9, 9) define D detect A({condition})"
    assert backend.detect(text, AROUND).events == found


def test_a_region_test_of_what_has_no_place_is_null(backend):
    assert backend.pattern("A(not this in box(0, 0, 1, 1))", "A@1s A@2s(9,9)") == ["a2"]


def test_leaving_a_region(backend):
    text = """
        region Depot = box(0, 0, 10, 10)
        define Left detect A(this in Depot) as a then A(this not in Depot) as b within 9 s group by source
    """
    data = "A@1s!t(5,5) A@2s!t(20,5) A@3s!u(5,5) A@4s!t(5,5)"
    assert backend.detect(text, data).events == ["a1 a2"]


def test_a_part_may_be_tested_in_where(backend):
    data = "A@1s(0,0) B@2s(1,1) B@3s(50,1)"
    assert backend.pattern("A as a then B as b within 9 s where b in box(0, 0, 9, 9)", data) == ["a1 b1"]


def test_all_of_a_detection_lies_in_a_region(backend):
    text = "define Pair detect A then B within 9 s define D detect Pair(this in box(4, 4, 6, 6))"
    assert backend.detect(text, "A@1s(0,0) B@2s(10,10)").events == []
    assert backend.detect(text, "A@1s(4,4) B@2s(6,5)").events == ["a1 b1"]


# On the sphere.

DEGREE_M = 111_195.08


def on_the_sphere(text: str) -> list[dict]:
    """Events whose points are longitude and latitude."""
    return [
        {{"x": "lon", "y": "lat"}.get(name, name): value for name, value in row.items()}
        for row in named(text)
    ]


@pytest.mark.parametrize(
    ("one", "other", "metres"),
    [("(0,0)", "(0,1)", DEGREE_M), ("(0,0)", "(1,0)", DEGREE_M), ("(10,60)", "(11,60)", 55_597.0),
     ("(179.5,0)", "(-179.5,0)", DEGREE_M), ("(0,89)", "(180,89)", 2 * DEGREE_M), ("(7,50)", "(7,50)", 0)],
)  # fmt: skip
def test_distance_follows_the_sphere(backend, one, other, metres):
    text = "coordinates lonlat define D detect A as a then B as b within 9 s assign d = distance(a, b)"
    found = backend.detect(text, on_the_sphere(f"A@1s{one} B@2s{other}"))
    assert found.values("d") == [pytest.approx(metres, rel=1e-5)]


def test_the_columns_tell_that_coordinates_are_degrees(backend):
    data = on_the_sphere("A@1s(0,0) B@2s(0,1)")
    assert backend.pattern("A as a then B as b within 9 s where distance(a, b) > 100 km", data) == ["a1 b1"]


def test_a_circle_on_the_sphere_has_its_radius_in_metres(backend):
    text = "coordinates lonlat region Port = circle(10, 60, 10 km) define D detect A(this in Port)"
    # 0.17 degrees of longitude are 9.5 km there, 0.17 of latitude 18.9 km.
    assert backend.detect(text, on_the_sphere("A@1s(10.17,60) A@2s(10,60.17) A@3s(10,60.08)")).events == [
        "a1",
        "a3",
    ]


def test_lon_and_lat_read_as_x_and_y(backend):
    found = backend.detect(
        "coordinates lonlat define D detect A(lat > 50) assign east = A.lon, north = A.y",
        on_the_sphere("A@1s(7,51)"),
    )
    assert found == expect("D@1s:east=7,north=51: a1")


def test_a_region_across_the_antimeridian(backend):
    text = """
        coordinates lonlat
        region Fiji = box(177, -20, -178, -15)
        region Same = 'POLYGON ((177 -20, -178 -20, -178 -15, 177 -15, 177 -20))'
        define D detect A
        assign fiji = A in Fiji, same = A in Same, apart = distance(A, Fiji)
    """
    data = on_the_sphere("A@1s(179,-17) A@2s(-179,-17) A@3s(0,-17) A@4s(-177,-17)")
    found = backend.detect(text, data)
    assert found.values("fiji") == found.values("same") == [True, True, False, False]
    assert found.values("apart")[:2] == [0, 0]
    assert found.values("apart")[3] == pytest.approx(106_336, rel=1e-3)


def test_a_box_may_be_wider_than_half_the_globe(backend):
    text = "coordinates lonlat define D detect A(this in box(-170, -80, 170, 80))"
    assert backend.detect(text, on_the_sphere("A@1s(0,0) A@2s(179,0) A@3s(-169,79)")).events == ["a1", "a3"]


def test_distance_to_a_side_on_the_sphere(backend):
    text = "coordinates lonlat define D detect A assign apart = distance(A, box(0, 40, 20, 50))"
    found = backend.detect(text, on_the_sphere("A@1s(10,60) A@2s(30,45) A@3s(-5,39)"))
    # North of the box the meridian is the shortest way; east of it no parallel is.
    north, east, corner = found.values("apart")
    assert north == pytest.approx(10 * DEGREE_M, rel=1e-6)
    assert 700_000 < east < 10 * DEGREE_M * 0.70711
    assert corner == pytest.approx(442_000, rel=0.02)
