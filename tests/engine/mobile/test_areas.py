"""Areas of interests hold what the naive reference says, border cases included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.mobile.random_areas import (
    DEGREE_M,
    FAR,
    LONLAT,
    NEAR_POLES,
    PLACES,
    PLANE,
    built,
    event,
    expected,
    interests,
    samples,
    wrapped,
)
from tests.reference.mobile import query as naive
from tests.reference.mobile.areas import lies_in
from tests.reference.mobile.areas import snapped as naively_snapped

from whimbrel.engine.mobile.areas import (
    NOWHERE,
    AreaSet,
    ObjectPlaces,
    areas_at,
    areas_of_shapes,
    circles,
    covers,
    holds,
    nowhere,
    snapped,
)
from whimbrel.engine.shapes import lay_out
from whimbrel.engine.snapshot import Blocks
from whimbrel.errors import QueryError
from whimbrel.graph.mobile import CircleInterest, FunctionInterest, SectorInterest
from whimbrel.model.antimeridian import unwrapped
from whimbrel.space.kernels.exact import BOX, CIRCLE

BOTH = pytest.mark.parametrize("coordinates", [PLANE, LONLAT])
LARGE = [(0, 0), (3, 0), (3, 3), (0, 3)]
HOLE = [(1, 1), (2, 1), (2, 2), (1, 2)]


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    one = np.ones(1)
    places = ObjectPlaces(one, one, 0 * one, one, np.nan * one)
    areas = areas_at(SectorInterest(1.0, 90.0), places, PLANE)
    assert holds(areas, np.zeros(1, np.int64), one, one).all()
    snapped(one, one, 1.0, PLANE)


def unit(coordinates):
    return 1.0 if coordinates is PLANE else DEGREE_M


def at(places):
    x, y = np.array(places, np.float64).reshape(-1, 2).T
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


@BOTH
@given(data=st.data())
def test_interests_hold_the_points_that_the_reference_says(coordinates, data):
    interest = data.draw(interests(unit(coordinates)))
    tracks = data.draw(st.lists(samples(coordinates), min_size=1, max_size=3))
    points = data.draw(st.lists(PLACES[coordinates], min_size=1, max_size=30))
    areas = built(interest, tracks, coordinates)
    for number, track in enumerate(tracks):
        here = expected(interest, track, coordinates)
        near = [
            (track[-1].x + dx, track[-1].y + dy) for dx in (-0.5, 0.0, 0.25, 1.0) for dy in (-1.0, 0.0, 0.5)
        ]
        if coordinates is LONLAT:
            near = [(wrapped(x), y) for x, y in near]
        inside = holds(areas, np.full(len(points + near), number), *at(points + near))
        assert inside.tolist() == [lies_in(event(place), here, coordinates) for place in points + near]


@given(
    st.one_of(FAR, NEAR_POLES, PLACES[LONLAT]), st.floats(0.1, 2.1e7), st.lists(st.one_of(FAR, NEAR_POLES))
)
def test_circles_are_round_on_the_globe_wherever_they_are(centre, radius_m, points):
    query = naive.Circle(radius_m)
    areas = built(query, [[event(centre)]], LONLAT)
    here = expected(query, [event(centre)], LONLAT)
    inside = holds(areas, np.zeros(len(points), np.int64), *at(points))
    assert inside.tolist() == [lies_in(event(place), here, LONLAT) for place in points]


@given(st.one_of(FAR, NEAR_POLES), st.one_of(FAR, NEAR_POLES))
def test_the_border_of_a_circle_is_told_to_the_last_bit(centre, point):
    from tests.reference.functions import great_circle

    away = great_circle(*centre, *point)
    x, y = at([centre] * 3)
    radii = np.array([np.nextafter(away, 0.0), away, np.nextafter(away, np.inf)])
    areas = circles(x, y, radii, LONLAT)
    assert holds(areas, np.arange(3), *at([point] * 3)).tolist() == [away <= 0.0, True, True]


@BOTH
@given(data=st.data())
def test_events_with_shapes_lie_in_an_area_if_all_of_them_does(coordinates, data):
    interest = data.draw(interests(unit(coordinates)))
    track = data.draw(samples(coordinates))
    here = expected(interest, track, coordinates)
    areas = built(interest, [track], coordinates)
    shape = data.draw(st.sampled_from(([(0, 0), (1, 0), (0, 1)], [(0, 0), (2, 0), (1, 0.5), (2, 2)], LARGE)))
    scale, (x, y) = data.draw(st.sampled_from((0.25, 0.5, 1.0))), data.draw(PLACES[PLANE])
    corners = [(track[-1].x + x - 1.5 + scale * dx, track[-1].y + y - 1.5 + scale * dy) for dx, dy in shape]
    if coordinates is LONLAT:
        corners = [(wrapped(lon), lat) for lon, lat in corners]
    (laid_out,) = lay_out([shapely.to_wkb(shapely.Polygon(corners))], coordinates is LONLAT)
    polygon = replace(event(None), polygon=tuple(corners))
    found = covers(areas, np.zeros(1, np.int64), laid_out, np.zeros(1, np.int64))
    assert found.tolist() == [lies_in(polygon, here, coordinates)]


@BOTH
@given(data=st.data())
def test_places_are_snapped_as_the_reference_says(coordinates, data):
    places = data.draw(st.lists(st.one_of(FAR, PLACES[coordinates])))
    grid_m = data.draw(st.sampled_from((0.25, 0.5, 1.0, 100.0, 50_000.0)))
    found = np.stack(snapped(*at(places), grid_m, coordinates), axis=1).tolist()
    assert [tuple(place) for place in found] == [
        naively_snapped(each, grid_m, coordinates) for each in places
    ]


@BOTH
@given(data=st.data())
def test_some_areas_are_taken_put_together_and_saved(coordinates, data):
    lots = [
        built(
            data.draw(interests(unit(coordinates))),
            data.draw(st.lists(samples(coordinates), min_size=1)),
            coordinates,
        )
        for _ in range(3)
    ]
    points = data.draw(st.lists(PLACES[coordinates], min_size=1, max_size=10))
    everything = AreaSet.concat([*lots, nowhere(2, coordinates)])
    rows = np.array(data.draw(st.lists(st.integers(0, len(everything) - 1))), np.int64)
    blocks = Blocks()
    everything.take(rows).save(blocks, "some")
    some = AreaSet.load(Blocks.from_bytes(blocks.to_bytes()), "some")
    offsets = np.cumsum([0, *map(len, lots)])
    for place, row in enumerate(rows.tolist()):
        lot = int(np.searchsorted(offsets, row, side="right")) - 1
        inside = holds(some, np.full(len(points), place), *at(points)).tolist()
        if lot == len(lots):
            assert not any(inside)
        else:
            number = np.full(len(points), row - offsets[lot])
            assert inside == holds(lots[lot], number, *at(points)).tolist()


def test_shapes_of_functions_may_have_holes_parts_and_be_nowhere():
    with_hole = shapely.Polygon(LARGE, [HOLE])
    two = shapely.union(shapely.box(5, 0, 6, 1), shapely.box(8, 0, 9, 1))
    areas = areas_of_shapes([with_hole, two.wkt, None, "CIRCLE (0 0 1)", shapely.Polygon()], PLANE)
    points = [(0.5, 0.5), (1.5, 1.5), (1, 1), (5, 0), (7, 0.5), (8.5, 0.5), (0, 1)]
    inside = [holds(areas, np.full(len(points), n), *at(points)).tolist() for n in range(len(areas))]
    assert inside[0] == [bool(with_hole.covers(shapely.Point(place))) for place in points]
    assert inside[1] == [bool(two.covers(shapely.Point(place))) for place in points]
    assert not any(inside[2])
    assert not any(inside[4])
    assert inside[3] == [True, False, False, False, False, False, True]
    texts = areas.texts().to_pylist()
    assert shapely.equals(shapely.from_wkt(texts[0]), with_hole)
    assert shapely.equals(shapely.from_wkt(texts[1]), two)
    assert texts[2] is None
    assert areas.kind[4] == NOWHERE
    inner = lay_out(
        [shapely.to_wkb(each) for each in (shapely.box(0, 0, 1, 1), shapely.box(0.5, 0, 2, 2))], False
    )
    data, places = np.concatenate(inner), np.array([0, len(inner[0])])
    assert covers(areas, np.zeros(2, np.int64), data, places).tolist() == [True, False]


@pytest.mark.parametrize("shape", [shapely.Point(1, 2), "LINESTRING (0 0, 1 1)", 5, "POLYGON ((", "nothing"])
def test_what_is_no_polygon_is_refused(shape):
    with pytest.raises(QueryError, match="the area of an interest"):
        areas_of_shapes([None, shape], PLANE)


def test_shapes_that_cross_themselves_are_refused():
    with pytest.raises(QueryError, match="not a simple polygon"):
        areas_of_shapes(["POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"], PLANE)


def test_interests_of_functions_have_no_area_at_a_place():
    one = np.ones(1)
    with pytest.raises(QueryError, match="areas_of_shapes"):
        areas_at(FunctionInterest("f", len), ObjectPlaces(one, one, one, one, one), PLANE)


def test_an_object_may_have_a_radius_of_its_own():
    x = np.zeros(2)
    places = ObjectPlaces(x, x, x, x, np.array([np.nan, 7.0]))
    areas = areas_at(CircleInterest(2.0), places, PLANE)
    assert holds(areas, np.array([0, 1]), np.full(2, 5.0), x).tolist() == [False, True]


def test_routes_that_cannot_be_read_lead_nowhere():
    tracks = [[event((1.0, 1.0), route=text)] for text in ("LINESTRING (0 1, 9 1)", "rubbish", "POINT (1 1)")]
    tracks.append([event((1.0, 1.0))])
    areas = built(naive.Along("route", 0.5), tracks, PLANE)
    assert holds(areas, np.arange(4), np.full(4, 5.0), np.full(4, 1.5)).tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_a_point_without_a_place_lies_nowhere():
    areas = areas_of_shapes(["CIRCLE (0 0 30000000)", shapely.box(-9, -9, 9, 9)], LONLAT)
    x, y = at([(np.nan, 0), (0, np.nan), (np.nan, np.nan), (0, 0)])
    for number in (0, 1):
        assert holds(areas, np.full(4, number), x, y).tolist() == [False, False, False, True]


@BOTH
@given(data=st.data())
def test_texts_and_bounds_are_around_what_an_area_holds(coordinates, data):
    interest = data.draw(interests(unit(coordinates)))
    areas = built(interest, [data.draw(samples(coordinates))], coordinates)
    (text,) = areas.texts().to_pylist()
    if areas.kind[0] == NOWHERE:
        assert text is None
        assert np.isnan(areas.bounds()).all()
        return
    shape = shapely.from_wkt(text)
    assert shape.geom_type == "Polygon"
    points = np.array(data.draw(st.lists(PLACES[coordinates], min_size=1, max_size=20)))
    inside = holds(areas, np.zeros(len(points), np.int64), *at(points))
    x0, y0, x1, y1 = areas.bounds()[0]
    turns = (0.0,) if coordinates is PLANE else (0.0, 360.0, -360.0)
    for (x, y), is_inside in zip(points.tolist(), inside, strict=True):
        if is_inside:
            assert any(x0 <= x + turn <= x1 for turn in turns)
            assert y0 <= y <= y1
        if areas.kind[0] == CIRCLE or coordinates is LONLAT:
            continue  # the polygon that is shown for it is a little smaller, or crosses the antimeridian
        assert is_inside == shape.covers(shapely.Point(x, y))


def test_circles_are_shown_as_polygons_around_poles_and_the_antimeridian_too():
    x, y = at([(10, 50), (179.999, 0), (30, 89.9), (30, -89.9), (0, 0)])
    areas = circles(x, y, np.array([1e3, 1e3, 1e5, 1e5, 3e7]), LONLAT)
    shown = [shapely.from_wkt(text) for text in areas.texts().to_pylist()]
    assert all(shape.is_valid for shape in (shown[0], *shown[2:]))
    assert np.abs([shape.bounds for shape in shown]).max() <= 180.0
    assert shown[1].bounds[0] < -179.9
    assert shown[1].bounds[2] > 179.9
    assert shown[2].bounds[3] == 90.0
    assert shown[3].bounds[1] == -90.0
    assert shown[4].area == 360.0 * 180.0
    assert areas.texts().take([0]).to_pylist() == areas.take(np.array([0])).texts().to_pylist()
    ring = shapely.get_coordinates(shown[0])
    assert len(ring) == 33
    away = np.hypot((ring[:, 0] - 10) * np.cos(np.radians(50)), ring[:, 1] - 50) * DEGREE_M
    assert away == pytest.approx(1e3, rel=1e-3)


@BOTH
@given(data=st.data())
def test_areas_are_written_as_they_are_laid_out(coordinates, data):
    lots = [
        built(data.draw(interests(unit(coordinates))), [data.draw(samples(coordinates))], coordinates)
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    with_hole = areas_of_shapes([shapely.Polygon(LARGE, [HOLE]), None, shapely.box(0, 0, 1, 1)], coordinates)
    areas = AreaSet.concat([with_hole, *lots])
    areas = areas.take(np.array(data.draw(st.permutations(range(len(areas))))))
    read = shapely.from_wkb(areas.wkb().to_numpy(zero_copy_only=False))
    for kind, laid_out, shown in zip(areas.kind, areas.shapes(), read, strict=True):
        if laid_out is None:
            assert (shown is None) == (kind == NOWHERE)
            continue
        points = shapely.get_coordinates(shown)
        assert coordinates is PLANE or np.abs(points[:, 0]).max() <= 180.0
        turns = (points - shapely.get_coordinates(laid_out)) / (360.0, 1.0)
        if kind == BOX:
            assert np.abs(shapely.bounds(laid_out) - shapely.bounds(unwrapped(shown))).max() < 1e-9
        else:
            assert np.abs(turns - turns.round()).max() < 1e-12
            assert not turns[:, 1].any()
