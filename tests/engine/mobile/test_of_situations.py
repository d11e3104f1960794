"""Mobile queries `of situations`: one run over all events, and what meets an interest is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.engine.mobile.comparing import (
    as_told,
    compiled,
    in_batches,
    is_taken,
    sorted_told,
    told,
    with_snapshots,
)
from tests.engine.mobile.random_areas import (
    DEGREE_M,
    LONLAT,
    PLACES,
    PLANE,
    built,
    expected,
    interests,
    samples,
    wrapped,
)
from tests.engine.test_custom_operators import policy
from tests.reference import mobile as reference
from tests.reference.data import Detection, hull
from tests.reference.matches import TooLarge
from tests.reference.mobile import deliveries
from tests.reference.mobile.areas import meets
from tests.reference.mobile.strategies import mobile_queries, worlds_of_events
from tests.reference.strategies import arrivals, cuts
from tests.reference.tables import event_table

from whimbrel.engine.mobile import place_index
from whimbrel.engine.mobile.areas import AreaSet, nowhere
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.mobile.located_rows import LocatedRows, own_locations
from whimbrel.engine.report import COORDINATES_KEY
from whimbrel.engine.session import Session
from whimbrel.engine.snapshot import Blocks
from whimbrel.graph.custom import CustomOperator, restriction, window
from whimbrel.graph.mobile import FocalObjects, MobileQuery
from whimbrel.lang.custom import custom_query
from whimbrel.model.time import SECOND
from whimbrel.testing import table

BOTH = pytest.mark.parametrize("coordinates", [PLANE, LONLAT])
TELLINGS = st.sampled_from(["all", "new", "changes"])
of_situations = mobile_queries(of="situations")


def answer(query, events):
    assume(is_taken(query))
    try:
        return sorted_told([as_told(each) for each in deliveries(query, events, limit=5_000)])
    except TooLarge:
        reject()


@given(of_situations, worlds_of_events())
def test_what_meets_an_interest_is_told(query, events):
    told_by_reference = answer(query, events)
    assert sorted_told(in_batches(compiled(query), [events])) == told_by_reference


@given(st.data(), of_situations, worlds_of_events(), st.sampled_from([0, SECOND, 3 * SECOND]), TELLINGS)
def test_batches_and_snapshots_change_nothing(data, query, events, lateness, deliver):
    query = replace(query, deliver=deliver)
    told_once = answer(query, events)
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    assert sorted_told(in_batches(compiled(query), batches, lateness)) == told_once
    assert sorted_told(with_snapshots(compiled(query), batches, lateness)) == told_once


@given(st.data(), of_situations, worlds_of_events())
def test_in_degrees_and_across_the_antimeridian(data, query, events):
    degrees = replace(query.graph, coordinates=LONLAT)
    query = replace(query, graph=degrees, interest=_in_degrees(query.interest), refresh=reference.Always())
    middle = data.draw(st.sampled_from((10.0, 178.5)))
    events = [_east_by(middle, each) for each in events]
    told_by_reference = answer(query, events)
    session = Session(compiled(query))
    table = event_table(events).replace_schema_metadata({COORDINATES_KEY: b"lonlat"})
    found = [each for some in (session.push(table), session.close()) for each in told(some)]
    assert sorted_told(found) == told_by_reference


def _east_by(lon, event):
    if event.polygon is not None:
        return replace(event, polygon=tuple((wrapped(x + lon), y) for x, y in event.polygon))
    return event if event.x is None else replace(event, x=wrapped(event.x + lon))


def _in_degrees(interest):
    match interest:
        case reference.Circle(radius):
            return reference.Circle(radius * DEGREE_M)
        case reference.Box(width, height):
            return reference.Box(width * DEGREE_M, height * DEGREE_M)
        case reference.Outline(corners):
            return reference.Outline(tuple((x * DEGREE_M, y * DEGREE_M) for x, y in corners))
        case reference.Ahead(distance, degrees):
            return reference.Ahead(distance * DEGREE_M, degrees)


# -- by place ----------------------------------------------------------------------------------------------


def located(lots, coordinates):
    """The hulls of some lots of points, as detections of the reference and as the engine reports them."""
    hulls = [hull(points, coordinates) for points in lots]
    shapes = [None if each is None else _shape(each) for each in hulls]
    wkb = pa.chunked_array([pa.array(shapely.to_wkb(np.array(shapes, dtype=object)), pa.binary())])
    return [Detection("D", 0, 0, (), hull=each) for each in hulls], own_locations(wkb, coordinates)


def _shape(corners):
    if len(corners) < 3:
        return shapely.Point(corners[0]) if len(corners) == 1 else shapely.LineString(corners)
    return shapely.Polygon(corners)


@st.composite
def lots_of_points(draw, coordinates, size):
    """Points near each other, lot by lot; in degrees all lots are in one part of the globe, or everywhere."""
    return draw(st.lists(st.lists(PLACES[coordinates], max_size=4), min_size=1, max_size=size))


@BOTH
@given(data=st.data())
def test_detections_meet_an_area_as_the_reference_says(coordinates, data):
    unit = 1.0 if coordinates is PLANE else DEGREE_M
    interest, track = data.draw(interests(unit)), data.draw(samples(coordinates))
    here, areas = expected(interest, track, coordinates), built(interest, [track], coordinates)
    offsets = data.draw(st.lists(st.lists(PLACES[PLANE], max_size=4), min_size=1, max_size=6))
    lots = [[(track[-1].x + x - 1.5, track[-1].y + y - 1.5) for x, y in lot] for lot in offsets]
    if coordinates is LONLAT:
        lots = [[(wrapped(x), y) for x, y in lot] for lot in lots]
    detections, places = located(lots, coordinates)
    found = places.meet(areas, np.zeros(len(lots), np.int64))
    assert found.tolist() == [meets(each, here, coordinates) for each in detections]


def of_areas(areas):
    numbers = np.zeros(len(areas), np.int64)
    return Interests(*[numbers] * 7, areas)


@BOTH
@given(data=st.data())
def test_looking_up_finds_what_a_look_at_every_detection_finds(coordinates, data):
    unit = 1.0 if coordinates is PLANE else DEGREE_M
    areas = AreaSet.concat(
        [
            built(data.draw(interests(unit)), [data.draw(samples(coordinates))], coordinates)
            for _ in range(data.draw(st.integers(1, 4)))
        ]
        + [nowhere(1, coordinates)]
    )
    rows, everything, first, forgotten = LocatedRows(coordinates), [], 0, 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(place_index, "IN_CELL", 3)
        for lot in data.draw(st.lists(lots_of_points(coordinates, 6), min_size=1, max_size=5)):
            _, places = located(lot, coordinates)
            times = np.sort(
                np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(lot), max_size=len(lot))))
            )
            times += 10 * len(everything)
            rows.append(first + np.arange(len(lot)), times, places)
            everything.append((first, times, places))
            first += len(lot)
            since = np.array(
                data.draw(st.lists(st.integers(0, 50), min_size=len(areas), max_size=len(areas)))
            )
            until = since + data.draw(st.sampled_from((1, 7, 100)))
            forgotten = max(forgotten, data.draw(st.sampled_from((0, 0, int(since.min())))))
            since = np.maximum(since, forgotten)
            rows.forget_before(forgotten)
            blocks = Blocks()
            rows.save(blocks, "rows")
            rows = LocatedRows(coordinates)
            rows.load(Blocks.from_bytes(blocks.to_bytes()), "rows")
            which, numbers = rows.find(of_areas(areas), since, until, excluding_own=False)
            assert (np.diff(numbers) >= 0).all()
            found = list(zip(which.tolist(), numbers.tolist(), strict=True))
            assert sorted(found) == sorted(_every_one(everything, areas, since, until))


def _every_one(everything, areas, since, until):
    for first, times, places in everything:
        for area in range(len(areas)):
            in_time = (times >= since[area]) & (times < until[area])
            meeting = places.meet(areas, np.full(len(times), area)) & in_time
            yield from ((area, first + row) for row in np.flatnonzero(meeting).tolist())


# -- what the reference has not ----------------------------------------------------------------------------


def test_operators_in_python_run_once_and_tell_when_they_found_it():
    chosen = policy(
        window("A", shift="none"),
        window("B", "3 s", shift="none"),
        within=restriction("3 s", input="A"),
        after=["start(B) > end(A)"],
        when=["|A| = 1", "|B| = 0", "|B| = all"],
    )
    alone = custom_query("X", Nothing, ["A", "B"], chosen)
    near = MobileQuery(alone, FocalObjects("Car"), 2.0, lifetime="10 s", of_situations=True)
    session = Session(near.compile())
    text = "A@1s#a1(0,0) B@2s#b(9,9) A@3s#a2(1,0) A@4s#a3(9,0) Car@8s#p!c(0,0) A@9s#a4(1,1)"
    found = [session.push(table(text)), session.advance(12 * SECOND - 1), session.advance(12 * SECOND)]
    rows = [[(row["events"], row["live"]) for row in each.to_pylist()] for each in found]
    assert rows == [[(["a2"], False)], [], [(["a4"], True)]]


class Nothing(CustomOperator):
    """Says that there was nothing."""

    def process(self, events):
        yield {"found": len(events)}
