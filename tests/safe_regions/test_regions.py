"""No region holds a point with other matches than the position it answers, and no report is missed."""

from __future__ import annotations

import math
import random

import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.safe_regions.naive import border_points, matches, metres, point_at
from tests.safe_regions.random_shapes import MAPS, PLACES, given_form, is_valid, shape_sets, walks

import whimbrel as wb
from whimbrel.errors import DataError
from whimbrel.safe_regions import SafeRegion

METHODS = [{"method": "tight"}, {"method": "glr"}]


def regions_of(shapes, where, mode, method=METHODS[0]) -> wb.SafeRegions:
    assume(all(map(is_valid, shapes.values())))
    given_shapes = {name: given_form(shape) for name, shape in shapes.items()}
    if method["method"] == "glr":
        method = {**method, "cell_m": where.metres / 3}
    return wb.SafeRegions(given_shapes, coordinates=where.coordinates, mode=mode, **method)


def telling_points(region: SafeRegion, shapes: dict, where, seed: int) -> list[tuple[float, float]]:
    """Corners and sides of the region, points within, and borders of the shapes with points beside them."""
    chance = random.Random(seed)
    points = []
    if region.rectangle:
        left, low, right, high = region.rectangle
        left, right = (max(min(side, where.x + 600 * where.unit_x), where.x - 600 * where.unit_x)
                       for side in (left, right))  # fmt: skip
        low, high = (max(min(side, where.y + 600 * where.unit_y), where.y - 600 * where.unit_y)
                     for side in (low, high))  # fmt: skip
        across = [left, (left + right) / 2, right, *(chance.uniform(left, right) for _ in range(2))]
        along = [low, (low + high) / 2, high, *(chance.uniform(low, high) for _ in range(2))]
        points += [(x, y) for x in across for y in along]
        points += list(zip(region.rectangle[::2], region.rectangle[1::2], strict=True))
    if region.radius_m:
        for part in (0.3, 0.9, 1.0):
            far = min(part * region.radius_m, where.metres)
            bearings = [chance.uniform(0, 2 * math.pi) for _ in range(8)]
            points += [point_at(*region.at, far, bearing, where.coordinates) for bearing in bearings]
    for shape in shapes.values():
        for x, y in border_points(shape, where.coordinates):
            nudge = chance.choice([0, 1e-9, 1e-6, 1e-3])
            points += [(x, y), (x + nudge * where.unit_x, y - nudge * where.unit_y)]
    if where.coordinates == "lonlat":
        points = [(x, y) for x, y in points if abs(x) <= 180 and abs(y) <= 90]
    return points


@pytest.mark.parametrize("method", METHODS, ids=["tight", "glr"])
@pytest.mark.parametrize("mode", ["every match", "changes"])
@given(st.data())
def test_a_region_has_the_same_matches_everywhere(method, mode, data):
    where = data.draw(st.sampled_from(MAPS))
    shapes = data.draw(shape_sets(where))
    x, y = where.at(*data.draw(PLACES))
    safe = regions_of(shapes, where, mode, method)
    region = safe.region_for(x, y)
    at_position = matches(shapes, x, y, where.coordinates)
    for px, py in telling_points(region, shapes, where, data.draw(st.integers(0, 99))):
        if region.contains(px, py):
            wanted = at_position if mode == "changes" else set()
            assert matches(shapes, px, py, where.coordinates) == wanted


@pytest.mark.parametrize("mode", ["every match", "changes"])
@given(st.data())
def test_no_walk_has_a_match_or_a_change_that_is_not_reported(mode, data):
    where = data.draw(st.sampled_from(MAPS))
    shapes = data.draw(shape_sets(where))
    safe = regions_of(shapes, where, mode)
    device = wb.SafeRegionFilter()
    known = None
    for x, y in data.draw(walks(where)):
        now = matches(shapes, x, y, where.coordinates)
        if device.must_report(x, y):
            known = now
            region = safe.region_for(x, y)
            device.update(region.to_bytes() if data.draw(st.booleans()) else region.to_json())
        else:
            assert now == (known if mode == "changes" else set())


@given(st.data())
def test_matching_is_what_the_engine_says(data):
    where = data.draw(st.sampled_from(MAPS))
    shapes = data.draw(shape_sets(where))
    x, y = where.at(*data.draw(PLACES))
    safe = regions_of(shapes, where, "changes")
    assert set(safe.matching(x, y)) == matches(shapes, x, y, where.coordinates)


@given(st.data())
def test_the_disc_reaches_to_the_nearest_border_in_the_plane(data):
    where = MAPS[0]
    shapes = data.draw(shape_sets(where, most=6).filter(bool))
    x, y = where.at(*data.draw(PLACES))
    safe = regions_of(shapes, where, "changes")
    far = min(distance_to_border(shape, x, y) for shape in shapes.values())
    region = safe.region_for(x, y)
    assert (region.radius_m or 0.0) == pytest.approx(far, rel=1e-8, abs=1e-8)


def distance_to_border(shape: tuple, x: float, y: float) -> float:
    if shape[0] == "circle":
        return abs(math.hypot(x - shape[1], y - shape[2]) - shape[3])
    polygon = shapely.box(*shape[1:]) if shape[0] == "box" else shapely.from_wkt(given_form(shape))
    return polygon.boundary.distance(shapely.Point(x, y))


@given(st.data())
def test_the_disc_nearly_reaches_the_nearest_border_on_the_globe(data):
    where = MAPS[2]
    shapes = data.draw(shape_sets(where, most=6).filter(bool))
    x, y = where.at(*data.draw(PLACES))
    region = regions_of(shapes, where, "changes").region_for(x, y)
    sampled = min(
        metres((x, y), point)
        for shape in shapes.values()
        for point in border_points(shape, where.coordinates, number=48)
    )
    assert (region.radius_m or 0.0) <= sampled + 1e-6
    far = nearest_border_by_search(shapes, x, y)
    assert (region.radius_m or 0.0) >= far * 0.99 - 1e-3


def nearest_border_by_search(shapes: dict, x: float, y: float) -> float:
    """Circles exactly; along each straight side by ever finer steps."""
    best = math.inf
    for shape in shapes.values():
        if shape[0] == "circle":
            best = min(best, abs(metres((x, y), shape[1:3]) - shape[3]))
            continue
        rings = shape[1:] if shape[0] == "polygon" else [box_ring(*shape[1:])]
        for ring in rings:
            for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
                best = min(best, nearest_on_side(a, b, x, y))
    return best


def box_ring(x1: float, y1: float, x2: float, y2: float) -> list[tuple[float, float]]:
    return [(x1, y1), (x2, y1), (x2, y2), (x1, y2)]


def nearest_on_side(a, b, x: float, y: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(12):
        steps = [low + (high - low) * n / 6 for n in range(7)]
        far = [metres((x, y), (a[0] + (b[0] - a[0]) * s, a[1] + (b[1] - a[1]) * s)) for s in steps]
        nearest = far.index(min(far))
        low, high = steps[max(0, nearest - 1)], steps[min(6, nearest + 1)]
    return min(far)


def test_within_a_box_the_region_is_the_box():
    safe = wb.SafeRegions({"yard": ("box", 0, 0, 200, 100)}, mode="changes")
    assert safe.region_for(20, 30).rectangle == pytest.approx((0, 0, 200, 100), abs=1e-6)


def test_where_every_match_counts_there_is_no_region_within_a_shape():
    region = wb.SafeRegions({"yard": ("box", 0, 0, 200, 100)}).region_for(20, 30)
    assert (region.rectangle, region.radius_m) == (None, None)
    assert not region.contains(20, 30)


def test_on_a_border_there_is_no_region():
    region = wb.SafeRegions({"yard": ("box", 0, 0, 200, 100)}, mode="changes").region_for(200, 30)
    assert region.radius_m is None
    assert not region.contains(200.1, 30)
    assert not region.contains(199.9, 30)


def test_a_slanting_side_leaves_more_than_its_bounding_box():
    triangle = "POLYGON ((0 0, 400 0, 0 400, 0 0))"
    walls = {f"wall{n}": box for n, box in enumerate([("box", 500, 0, 510, 500), ("box", 0, 500, 510, 510)])}
    safe = wb.SafeRegions({"triangle": triangle, **walls})
    greedy = wb.SafeRegions({"triangle": triangle, **walls}, method="glr", cell_m=500)
    assert greedy.region_for(300, 300).rectangle is None, "it is in the bounding box"
    left, low, right, high = safe.region_for(300, 300).rectangle
    assert left + low >= 400
    assert (right - left) * (high - low) > 300 * 200


def test_a_region_reaches_far_in_the_direction_of_movement():
    walls = {f"w{n}": ("box", *box) for n, box in enumerate([(-100, 20, -30, 100), (30, 20, 100, 100)])}
    fences = {f"f{n}": ("box", *box) for n, box in enumerate([(-101, -5, -100, 5), (100, -5, 101, 5)])}
    caps = {"top": ("box", -50, 100, 50, 101), "bottom": ("box", -100, -11, 100, -10)}
    safe = wb.SafeRegions({**walls, **fences, **caps})
    across, along = (safe.region_for(0, 0, came_from=place).rectangle for place in [(-9, 0), (0, -9)])
    assert across == pytest.approx((-100, -10, 100, 20))
    assert along == pytest.approx((-30, -10, 30, 100))
    safe.region_for(0, -9, device="bus")
    assert safe.region_for(0, 0, device="bus").rectangle == along, "the last report tells it, too"


def test_a_region_ends_at_the_date_line():
    safe = wb.SafeRegions({"east": ("circle", 179.9, 0, 1000)}, coordinates="lonlat")
    region = safe.region_for(179.99, 0)
    assert not region.contains(-179.99, 0)
    assert region.radius_m == pytest.approx(0.01 * 111_195, rel=1e-3)


def test_a_circle_across_the_date_line_counts_on_both_sides():
    safe = wb.SafeRegions({"line": ("circle", 179.99, 0, 5000)}, coordinates="lonlat", mode="changes")
    assert safe.matching(-179.99, 0) == ("line",)
    assert not safe.region_for(-179.99, 0).contains(-179.95, 0)
    assert not safe.region_for(-179.9, 0).contains(-179.97, 0)


def test_without_subscriptions_nothing_needs_to_be_reported():
    assert wb.SafeRegions().region_for(3, 4).contains(1e9, -1e9)
    assert wb.SafeRegions(coordinates="lonlat").region_for(3, 4).contains(-170, -80)


def test_a_side_without_end_takes_nothing_from_the_others():
    region = wb.SafeRegions({"yard": ("box", 0, 0, 200, 100)}).region_for(250, 50)
    left, low, right, high = region.rectangle
    assert left == pytest.approx(200)
    assert low < -1e6
    assert right > 1e6 < high


def test_one_tiny_shape_far_away_leaves_room():
    region = wb.SafeRegions({"pin": ("circle", 1e6, 1e6, 1e-3)}).region_for(0, 0)
    assert region.radius_m == pytest.approx(math.hypot(1e6, 1e6))
    assert region.contains(-1e8, 5e5)


def test_among_many_shapes_only_the_near_ones_count():
    shapes = {f"{i}-{j}": ("circle", i * 10, j * 10, 2) for i in range(100) for j in range(100)}
    region = wb.SafeRegions(shapes).region_for(505, 505)
    assert region.radius_m == pytest.approx(math.hypot(5, 5) - 2)
    left, low, right, high = region.rectangle
    assert (right - left) * (high - low) > 6 * 50, "a street between rows of circles"


def test_shapes_on_top_of_each_other_are_no_problem():
    safe = wb.SafeRegions({f"s{n}": ("circle", 0, 0, 100 + n / 1000) for n in range(1000)}, mode="changes")
    assert len(safe.matching(0, 0)) == 1000
    assert safe.region_for(0, 0).radius_m == pytest.approx(100)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (("circle", 0, 0), "is no shape of finite numbers; write WKT, "),
        (("circle", 0, 0, math.inf), "is no shape of finite numbers"),
        (("circle", 0, 0, True), "is no shape of finite numbers"),
        (("circle", 0, 0, 0), "a circle needs a radius above zero, not 0"),
        (("square", 0, 0, 1), "is no shape of finite numbers"),
        ((), "is no shape of finite numbers"),
        (("box", 1, 1, 1, 2), "a box needs a width and a height above zero"),
        (17, "17 is no shape; write WKT"),
        ("POLYGON ((0 0", "subscription 'a': .* is not a geometry"),
        ("POINT (1 2)", "it is a Point, not a polygon"),
        ("LINESTRING (0 0, 1 1)", "it is a LineString"),
        ("POLYGON EMPTY", "it is empty"),
        ("POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))", "Self-intersection"),
    ],
)
def test_what_is_no_shape_is_refused(shape, message):
    with pytest.raises(DataError, match=message):
        wb.SafeRegions({"a": shape})


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (("circle", 190, 0, 10), r"\(190.0, 0.0\) is no longitude and latitude"),
        (("circle", 0, 89.8, 20_000), "must not reach beyond latitude 89.9; choose a smaller radius"),
        (("box", 170, 0, 190, 10), r"\('box', 170, 0, 190, 10\) leaves longitudes -180 to 180"),
        ("POLYGON ((0 80, 10 80, 0 95, 0 80))", "it leaves longitudes -180 to 180 or latitudes -90 to 90"),
    ],
)
def test_what_is_not_on_the_globe_is_refused(shape, message):
    with pytest.raises(DataError, match=message):
        wb.SafeRegions({"a": shape}, coordinates="lonlat")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"coordinates": "utm"}, "coordinates must be one of plane, lonlat, not 'utm'"),
        ({"mode": "all"}, "mode must be one of every match, changes, not 'all'"),
        ({"method": "best"}, "method must be one of tight, glr"),
        ({"method": "glr"}, "'glr' needs cell_m"),
        ({"method": "glr", "cell_m": -1}, "'glr' needs cell_m"),
        ({"cell_m": 5}, "'tight' has none"),
        ({"version": -1}, "version must be a whole number from 0 on, not -1"),
        ({"version": 1.5}, "version must be a whole number"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(DataError, match=message):
        wb.SafeRegions({}, **settings)


@pytest.mark.parametrize(
    ("coordinates", "x", "y", "message"),
    [
        ("plane", math.nan, 0, "is no position: coordinates must be finite numbers"),
        ("plane", 0, math.inf, "is no position"),
        ("lonlat", 181, 0, "is no longitude and latitude"),
        ("lonlat", 0, -91, "is no longitude and latitude"),
    ],
)
def test_what_is_no_position_is_refused(coordinates, x, y, message):
    with pytest.raises(DataError, match=message):
        wb.SafeRegions(coordinates=coordinates).region_for(x, y)


@pytest.mark.parametrize("expires", [math.nan, math.inf])
def test_a_time_to_end_is_a_number(expires):
    with pytest.raises(
        DataError, match="expires must be a time in seconds, or None for a region without end"
    ):
        wb.SafeRegions().region_for(0, 0, expires=expires)


def test_the_number_of_a_report_is_whole():
    with pytest.raises(DataError, match="report must be a whole number from 0 on, not -1"):
        wb.SafeRegions().region_for(0, 0, report=-1)


def test_names_of_subscriptions_are_texts():
    with pytest.raises(DataError, match="the name of a subscription is a text, not 7"):
        wb.SafeRegions({7: ("circle", 0, 0, 1)})
