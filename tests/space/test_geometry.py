"""Geometries are read, written and measured."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import DataError
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import (
    centroid,
    distance_m,
    geojson_to_wkt,
    invalid_reason,
    parse,
    points_in_region,
    to_wkb,
    to_wkt,
    wkt_column,
)

SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
finite = st.floats(-1e9, 1e9)


@pytest.mark.parametrize("text", ["POINT (1 2)", "POLYGON ((0 0, 1 0, 1 1, 0 0))", "POINT (0.1 -2.5)"])
def test_wkt_is_written_in_its_shortest_form(text: str) -> None:
    assert to_wkt(parse(text)) == text
    assert to_wkt(to_wkb(text)) == text


@given(finite, finite)
def test_no_digit_is_lost_in_wkt(x: float, y: float) -> None:
    again = parse(to_wkt(shapely.Point(x, y)))
    assert (again.x, again.y) == (x, y)


def test_a_digit_that_the_library_drops_is_kept() -> None:
    assert to_wkt(shapely.Point(0.014277343750000001, -1e-7)) == "POINT (0.014277343750000001 -1e-07)"


def test_a_column_keeps_its_nulls() -> None:
    column = np.array([to_wkb("POINT (1 2)"), None], dtype=object)
    assert wkt_column(column).tolist() == ["POINT (1 2)", None]


@pytest.mark.parametrize("text", ["POINT (1", "", b"", b"\x01\x02", "x" * 1000])
def test_what_is_no_geometry_is_an_error(text: str | bytes) -> None:
    with pytest.raises(DataError, match="is not a geometry; write WKT such as 'POINT"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SQUARE, None),
        ("POINT (1 2)", None),
        ("LINESTRING (0 0, 1 1)", "it is a LineString, not a point or a polygon"),
        ("POINT EMPTY", "it is empty"),
        ("POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))", "it is not a simple polygon: Self-intersection[0.5 0.5]"),
        ("POINT (nan 1)", "it has a coordinate that is not a finite number"),
    ],
)
def test_a_location_is_a_point_or_a_simple_polygon(text: str, reason: str | None) -> None:
    assert invalid_reason(text) == reason


def test_the_centre_of_a_square_is_in_its_middle() -> None:
    assert centroid(SQUARE) == (2.0, 2.0)


def test_distances_in_the_plane_are_euclidean() -> None:
    assert distance_m([0, 1], [0, 1], [3, 1], [4, 1], Coordinates.PLANE).tolist() == [5.0, 0.0]


@pytest.mark.parametrize(
    ("points", "metres"),
    [
        ((0, 0, 0, 90), 10_007_557.2),
        ((0, 0, 180, 0), 20_015_114.4),
        ((179.5, 0, -179.5, 0), 111_195.1),
        ((13.4050, 52.5200, 2.3522, 48.8566), 877_464.6),
        ((10, 50, 10, 50.000001), 0.1112),
    ],
)
def test_distances_on_the_earth_follow_the_great_circle(points: tuple[float, ...], metres: float) -> None:
    assert float(distance_m(*points, Coordinates.LONLAT)) == pytest.approx(metres, rel=1e-3)


def test_borders_belong_to_a_region() -> None:
    x, y = [0, 4, 2, 4.0001, np.nan], [0, 2, 2, 2, 1]
    assert points_in_region(x, y, SQUARE).tolist() == [True, True, True, False, False]
    assert points_in_region(x, y, to_wkb(SQUARE)).tolist() == [True, True, True, False, False]


def test_a_circle_reaches_as_far_as_its_radius() -> None:
    assert points_in_region([3, 3.1], [4, 4], ("circle", 0, 0, 5)).tolist() == [True, False]
    near = points_in_region([0, 0], [0.008, 0.010], ("circle", 0, 0, 1000), Coordinates.LONLAT)
    assert near.tolist() == [True, False]


def test_geojson_becomes_wkt() -> None:
    assert geojson_to_wkt({"type": "Point", "coordinates": [1, 2, 3]}) == "POINT (1 2)"
    for wrong in ({}, {"type": "Point"}, {"type": "Point", "coordinates": "x"}, [], 3):
        with pytest.raises(DataError, match="not a GeoJSON geometry"):
            geojson_to_wkt(wrong)
