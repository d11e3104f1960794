"""How two locations lie to each other, against GEOS: the kernel decides as it does, borders and all."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from whimbrel.engine.kernels import shapes as k
from whimbrel.engine.shapes import PREFIX, ShapeLayout
from whimbrel.model.schema import Coordinates

pytestmark = pytest.mark.property

_CORNERS = st.tuples(st.integers(0, 6), st.integers(0, 6))
_THOUSANDTHS = st.integers(0, 6000).map(lambda n: n / 1000)
_ANYWHERE = st.tuples(_THOUSANDTHS, _THOUSANDTHS)


@st.composite
def shapes(draw: st.DrawFn) -> shapely.Geometry:
    """Points, lines, polygons, and polygons with holes or in pieces, often with corners on a grid."""
    corner = draw(st.sampled_from((_CORNERS, _ANYWHERE)))
    points = draw(st.lists(corner, min_size=1, max_size=7, unique=True))
    made = shapely.MultiPoint(points).convex_hull
    if len(points) > 3:
        polygon = shapely.Polygon(points)
        assume(polygon.is_valid)
        made = draw(st.sampled_from((made, polygon, shapely.box(0, 0, 6, 6).difference(polygon))))
    assume(not made.is_empty and made.is_valid)
    return made


def ask(asked: int, one: shapely.Geometry, two: shapely.Geometry, coordinates=Coordinates.PLANE) -> float:
    layout = ShapeLayout(coordinates)
    texts = [None if s.geom_type == "Point" else PREFIX + shapely.to_wkb(s, hex=True) for s in (one, two)]
    places = layout.places(texts)
    middles = [(s.centroid.x, s.centroid.y) for s in (one, two)]
    return k.related(
        asked, layout.on_sphere, layout.data, places[0], *middles[0], places[1], *middles[1]
    )  # fmt: skip


@given(shapes(), shapes())
def test_any_two_shapes_lie_as_geos_says(one, two):
    assert ask(k.MEET, one, two) == one.intersects(two)
    assert ask(k.INSIDE, one, two) == two.covers(one)
    assert ask(k.APART, one, two) == pytest.approx(one.distance(two), rel=1e-9, abs=1e-12)


@given(shapes())
def test_a_shape_lies_in_itself(one):
    assert ask(k.MEET, one, one) == ask(k.INSIDE, one, one) == 1
    assert ask(k.APART, one, one) == 0


@given(shapes())
def test_the_parts_of_a_shape_lie_as_geos_says(one):
    """What fills a hole, or is one piece of several, shares sides with the whole."""
    for piece in shapely.get_parts(one):
        rings = [piece] if piece.geom_type != "Polygon" else [piece, *map(shapely.Polygon, piece.interiors)]
        for ring in rings:
            assert ask(k.INSIDE, ring, one) == one.covers(ring)
            assert ask(k.INSIDE, one, ring) == ring.covers(one)
            assert ask(k.MEET, ring, one) == one.intersects(ring)


@given(shapes(), shapes(), st.floats(150, 180), st.floats(-60, 60))
def test_a_turn_of_the_globe_changes_nothing(one, two, lon, lat):
    """Shapes near the antimeridian lie to each other as they would anywhere else on the same parallels."""

    def moved(shape: shapely.Geometry, east: float) -> shapely.Geometry:
        def change(points: np.ndarray) -> np.ndarray:
            x = points[:, 0] + east
            return np.column_stack([np.where(x > 180, x - 360, x), points[:, 1] + lat])

        return shapely.transform(shape, change)

    here = [ask(asked, moved(one, 0), moved(two, 0), Coordinates.LONLAT) for asked in (k.APART, k.MEET)]
    there = [ask(asked, moved(one, lon), moved(two, lon), Coordinates.LONLAT) for asked in (k.APART, k.MEET)]
    assume(here[0] == 0 or here[0] > 1)  # moving rounds
    assume(here[0] > 0 or shapely.intersection(one, two).area > 1e-6)
    assert there[0] == pytest.approx(here[0], rel=1e-6, abs=1e-3)
    assert there[1] == here[1]


def test_a_sliver_of_which_no_inner_point_can_be_told_has_its_place():
    sliver = shapely.Polygon([(0, 0), (0, 1), (5e-324, 0)])
    assert ask(k.INSIDE, sliver, shapely.box(-1, -1, 1, 1)) == 1
    assert ask(k.MEET, sliver, shapely.Point(0, 0.5)) == 1
