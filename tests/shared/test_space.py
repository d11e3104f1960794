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


def test_distance_goes_by_the_centres(backend):
    text = "define Pair detect A then B within 9 s define D detect Pair as p then C as c within 9 s"
    # The centre of the pair is (1, 0).
    found = backend.detect(f"{text} assign apart = distance(p, c)", "A@1s(0,0) B@2s(2,0) C@3s(1,7)")
    assert found.values("apart") == [7]


def test_distance_goes_by_the_centres_of_polygons(backend):
    rows = [polygon("a1", 1, 0, 0, 2, 2), polygon("a2", 2, 4, 4, 6, 6)]
    found = backend.detect("define D detect A as a then A as b within 9 s assign d = distance(a, b)", rows)
    assert found.values("d") == [pytest.approx(32**0.5)]


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


def test_a_detection_lies_in_a_region_by_its_centre(backend):
    text = "define Pair detect A then B within 9 s define D detect Pair(this in box(4, 4, 6, 6))"
    assert backend.detect(text, "A@1s(0,0) B@2s(10,10)").events == ["a1 b1"]


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
