"""Places that are none, or lie where the coordinates do not reach: each is refused, and said why."""

from __future__ import annotations

import math

import pytest

import whimbrel as wb

SQUARE = "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"
ROUND_A_POLE = "POLYGON ((0 80, 90 80, 180 80, -90 80, 0 80))"


@pytest.mark.parametrize(
    ("coordinates", "region", "message"),
    [
        ("plane", "'POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))'", "no simple polygon"),
        ("plane", "'POLYGON EMPTY'", "not nothing"),
        ("plane", "'POLYGON ((0 0, nan 0, 2 2, 0 0))'", "a coordinate that is no number"),
        ("plane", "'POLYGON ((0 0, inf 0, 2 2, 0 0))'", "a coordinate that is no number"),
        ("plane", "'POLYGON ((0 0, 1e300 0, 1e300 1e300, 0 0))'", "too large"),
        ("plane", "circle(1e15, 0, 5 m)", "too large"),
        ("plane", "circle(0, 0, 0)", "a radius above zero"),
        ("lonlat", "'POLYGON ((500 0, 501 0, 501 1, 500 0))'", "outside of the globe"),
        ("lonlat", "'POLYGON ((500000 5700000, 501000 5700000, 501000 5701000, 500000 5700000))'", "outside"),
        ("lonlat", "box(500, 0, 501, 1)", "outside of the globe"),
        ("lonlat", "box(0, 50, 1, 99)", "outside of the globe"),
        ("lonlat", "circle(500, 0, 5 m)", "no longitude and latitude"),
        ("lonlat", f"'{ROUND_A_POLE}'", "goes round a pole"),
    ],
)
def test_bad_regions_are_refused(coordinates, region, message):
    with pytest.raises(wb.QueryError, match=message) as error:
        wb.compile(f"coordinates {coordinates} define D detect A(this in {region})")
    assert error.value.hint


@pytest.mark.parametrize(
    ("coordinates", "place", "reason"),
    [
        ("plane", {"geometry": "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"}, "not a simple polygon"),
        ("plane", {"geometry": "POLYGON EMPTY"}, "geometry is empty"),
        ("plane", {"geometry": "POLYGON ((0 0, nan 0, 2 2, 0 0))"}, "Invalid Coordinate"),
        ("plane", {"x": math.nan, "y": 0.0}, "x is not finite"),
        ("plane", {"x": 0.0, "y": math.inf}, "y is not finite"),
        ("lonlat", {"lon": 500.0, "lat": 0.0}, "lon is out of range"),
        ("lonlat", {"lon": 500_000.0, "lat": 5_700_000.0}, "lon is out of range"),
        ("lonlat", {"geometry": "POLYGON ((500 0, 501 0, 501 1, 500 0))"}, "geometry is out of range"),
        ("lonlat", {"geometry": ROUND_A_POLE}, "geometry goes round a pole"),
    ],
)
def test_events_in_bad_places_are_rejected(coordinates, place, reason):
    session = wb.Session(wb.compile(f"coordinates {coordinates} define D detect A"))
    session.push([{"type": "A", "time": 0, **place}])
    assert session.counts.rejected == 1
    assert reason in next(iter(session.counts.reasons))


def test_the_other_coordinates_are_refused_as_a_whole():
    for coordinates, place in (("lonlat", {"x": 1.0, "y": 2.0}), ("plane", {"lon": 1.0, "lat": 2.0})):
        session = wb.Session(wb.compile(f"coordinates {coordinates} define D detect A"))
        with pytest.raises(wb.DataError, match="coordinates are mixed"):
            session.push([{"type": "A", "time": 0, **place}])


def inside(region: str, coordinates: str = "plane", **place: object) -> bool:
    query = wb.compile(f"coordinates {coordinates} define D detect A(this in '{region}')")
    return bool(wb.detect(query, [{"type": "A", "time": 0, **place}]).num_rows)


def test_borders_may_run_either_way_and_have_many_corners():
    clockwise = "POLYGON ((0 0, 0 2, 2 2, 2 0, 0 0))"
    assert inside(SQUARE, x=1.0, y=1.0)
    assert inside(clockwise, x=1.0, y=1.0)
    assert inside(SQUARE, geometry=clockwise)
    angles = [2 * math.pi * n / 10_000 for n in range(10_000)]
    corners = [(9 * math.cos(angle), 9 * math.sin(angle)) for angle in angles]
    large = "POLYGON ((" + ", ".join(f"{x} {y}" for x, y in [*corners, corners[0]]) + "))"
    assert inside(large, x=8.99, y=0.0)
    assert not inside(large, x=9.01, y=0.0)


def test_a_region_may_be_larger_than_a_hemisphere():
    wide = "POLYGON ((-100 -60, 0 -60, 100 -60, 100 60, 0 60, -100 60, -100 -60))"
    assert inside(wide, "lonlat", lon=90.0, lat=50.0)
    assert inside(wide, "lonlat", lon=-99.0, lat=0.0)
    assert not inside(wide, "lonlat", lon=179.0, lat=0.0)
