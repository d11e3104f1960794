"""Overlaps of a region with itself elsewhere, against areas that Shapely measures."""

from __future__ import annotations

import math

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.mobile.quality import lens, printed_distance

from whimbrel.errors import QueryError
from whimbrel.graph.mobile import (
    BoxInterest,
    CircleInterest,
    OutlineInterest,
    Quality,
    SectorInterest,
    distance_for_quality,
)
from whimbrel.space.overlap import box_distance, box_share, circle_distance, circle_share

shares = st.floats(0.01, 0.99)
sides = st.floats(1.0, 500.0)


@given(sides, st.floats(0.0, 1100.0))
def test_what_is_covered_of_a_circle_is_the_lens_that_the_thesis_prints(radius, distance):
    assert circle_share(distance, radius) == pytest.approx(lens(radius, distance), abs=1e-9)


@given(sides, shares)
def test_a_circle_at_the_distance_for_a_share_covers_just_that_and_the_printed_distance_is_less(
    radius, share
):
    distance = circle_distance(radius, share)
    assert lens(radius, distance) == pytest.approx(share, abs=1e-9)
    assert printed_distance(radius, share) < distance


def test_nine_tenths_of_a_circle_allow_half_as_much_again_as_printed():
    assert circle_distance(1.0, 0.9) == pytest.approx(0.157, abs=5e-4)
    assert printed_distance(1.0, 0.9) == pytest.approx(0.103, abs=5e-4)


@given(sides, sides, st.floats(-600, 600), st.floats(-600, 600))
def test_what_is_covered_of_a_box_is_what_shapely_measures(width, height, east, north):
    one, other = shapely.box(0, 0, width, height), shapely.box(east, north, east + width, north + height)
    assert box_share(east, north, width, height) == pytest.approx(one.intersection(other).area / one.area)


@given(sides, sides, shares, st.floats(0.0, 360.0))
def test_a_box_may_go_as_far_in_every_direction_and_farther_in_most(width, height, share, degrees):
    always = box_distance(width, height, share)
    towards = box_distance(width, height, share, degrees)
    angle = math.radians(degrees)
    moved = towards * math.cos(angle), towards * math.sin(angle)
    assert box_share(*moved, width, height) == pytest.approx(share, abs=1e-6)
    assert always <= towards * (1 + 1e-6)
    around = [box_distance(width, height, share, 90 * n / 2000) for n in range(2001)]
    assert always == pytest.approx(min(around), rel=1e-4)


def test_along_a_side_a_square_loses_its_share_of_the_edge():
    square = BoxInterest(500.0, 500.0)
    assert distance_for_quality(square, 0.9, degrees=90) == pytest.approx(50.0)
    assert distance_for_quality(square, Quality(0.5, 0.9)) == pytest.approx(
        500 * math.sqrt(2) * (1 - math.sqrt(0.9))
    )


def test_an_outline_is_measured_by_its_area():
    outline = OutlineInterest(((-50, -20), (50, -20), (50, 20), (-50, 20)))
    box = BoxInterest(100.0, 40.0)
    for degrees in (0.0, 30.0, 90.0):
        expected = distance_for_quality(box, 0.8, degrees)
        assert distance_for_quality(outline, 0.8, degrees) == pytest.approx(expected)
    assert distance_for_quality(outline, 0.8) == pytest.approx(distance_for_quality(box, 0.8), rel=1e-2)


def test_quality_one_allows_no_way_and_none_all_of_it():
    assert distance_for_quality(CircleInterest(500.0), 1.0) == 0.0
    assert distance_for_quality(CircleInterest(500.0), 0.0) == pytest.approx(1000.0)
    assert distance_for_quality(BoxInterest(30.0, 40.0), 1.0) == 0.0
    assert distance_for_quality(BoxInterest(30.0, 40.0), 0.0) == pytest.approx(30.0)


def test_no_distance_follows_from_a_quality_where_the_interest_depends_on_more_than_the_place():
    with pytest.raises(QueryError, match="circles, boxes and outlines"):
        distance_for_quality(SectorInterest(100.0, 60.0), 0.9)
