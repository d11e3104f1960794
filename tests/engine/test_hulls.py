"""Where detections lie on the globe: hulls on both sides of the antimeridian, worked out by hand."""

from __future__ import annotations

import pytest
import shapely

import whimbrel as wb

TOGETHER = "coordinates lonlat define D detect A as a and B as b and C as c within 9 s"


def lying(*places: tuple[float, float]) -> list[dict]:
    return [
        {"type": kind, "id": kind, "time": n, "lon": lon, "lat": lat}
        for n, (kind, (lon, lat)) in enumerate(zip("ABC", places, strict=True))
    ]


def hull(*places: tuple[float, float]) -> str:
    (row,) = wb.detect(wb.compile(TOGETHER), lying(*places)).to_pylist()
    return shapely.from_wkb(row["geometry"]).wkt


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        # The widest gap is that over Greenwich, from -179 to 178.
        (((178, 0), (-179, 0), (180, 2)), "POLYGON ((178 0, -179 0, 180 2, 178 0))"),
        (((-170, 5), (170, 5), (175, 5)), "LINESTRING (170 5, -170 5)"),
        (((10, 0), (20, 0), (15, 5)), "POLYGON ((10 0, 20 0, 15 5, 10 0))"),
        # 180 degrees apart is not more than half the globe.
        (((-90, 0), (90, 0), (0, 5)), "POLYGON ((-90 0, 90 0, 0 5, -90 0))"),
        # The widest gap has 160 degrees, and a side of 200 degrees has a corner in its middle.
        (((-100, 0), (100, 0), (0, 9)), "POLYGON ((-100 0, 0 0, 100 0, 0 9, -100 0))"),
        (((-80, 0), (80, 0), (180, 9)), "POLYGON ((80 0, 180 0, -80 0, 180 9, 80 0))"),
    ],
)  # fmt: skip
def test_hulls_go_the_short_way_round(places, expected):
    assert hull(*places) == expected


def test_the_centre_of_a_hull_across_the_antimeridian_lies_near_it():
    text = TOGETHER + " define E detect D as d assign lon = d.lon, lat = d.lat"
    (row,) = wb.detect(wb.compile(text), lying((178, 0), (-179, 0), (-179, 3))).to_pylist()
    assert (row["lon"], row["lat"]) == pytest.approx((180.0, 1.0))
    (row,) = wb.detect(wb.compile(text), lying((-178, 0), (179, 0), (-178, 3))).to_pylist()
    assert (row["lon"], row["lat"]) == pytest.approx((-179.0, 1.0))


def test_conditions_see_such_a_hull_as_it_is():
    text = TOGETHER + " define E detect D as d and X as x within 9 s where x in d"
    for lon, inside in ((179.5, True), (-179.5, True), (0.0, False), (177.0, False)):
        rows = [
            *lying((178, -1), (-179, -1), (180, 9)),
            {"type": "X", "id": "x", "time": 4, "lon": lon, "lat": 0.0},
        ]
        assert wb.detect(wb.compile(text), rows).num_rows == inside, lon


def test_the_centre_of_a_polygon_across_the_antimeridian_lies_in_it():
    polygon = "POLYGON ((179 0, -179 0, -179 2, 179 2, 179 0))"
    text = "coordinates lonlat define D detect A as a assign lon = a.lon, near = same_place(a, '{}')"
    (row,) = wb.detect(
        wb.compile(text.format(polygon)), [{"type": "A", "time": 0, "geometry": polygon}]
    ).to_pylist()
    assert abs(row["lon"]) == pytest.approx(180.0)
    assert row["near"]


def test_in_the_plane_large_numbers_are_no_degrees():
    rows = [
        {"type": kind, "time": n, "x": x, "y": y}
        for n, (kind, x, y) in enumerate([("A", -300, 0), ("B", 300, 0), ("C", 0, 5)])
    ]
    (row,) = wb.detect(wb.compile(TOGETHER.replace("lonlat", "plane")), rows).to_pylist()
    assert shapely.from_wkb(row["geometry"]).wkt == "POLYGON ((-300 0, 300 0, 0 5, -300 0))"


def test_whether_a_polygon_is_simple_is_told_in_one_piece():
    """Torn apart at the antimeridian, the border of this angle would cross itself."""
    angle = "POLYGON ((179 0, -179 0, -179 1, 180 1, 180 2, 179 2, 179 0))"
    crossing = "POLYGON ((179 0, -179 1, -179 0, 179 1, 179 0))"
    session = wb.Session(wb.compile("coordinates lonlat define D detect A"))
    session.push([{"type": "A", "time": n, "geometry": text} for n, text in enumerate((angle, crossing))])
    assert (session.counts.received, session.counts.rejected) == (2, 1)
    assert "not a simple polygon" in next(iter(session.counts.reasons))
