"""Events whose location is a polygon: they lie in an interest if all of it does, wherever their centre is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.mobile.comparing import as_told, compiled, in_batches, sorted_told, with_snapshots
from tests.engine.mobile.random_areas import LONLAT, PLANE, event, wrapped
from tests.reference import Event
from tests.reference import mobile as reference
from tests.reference.mobile import deliveries
from tests.reference.mobile.areas import lies_in
from tests.reference.strategies import cuts

from whimbrel.engine.mobile.areas import areas_of_shapes
from whimbrel.engine.mobile.atom_places import AtomPlaces
from whimbrel.engine.shapes import NO_SHAPE, lay_out
from whimbrel.lang.wbl import compile_text
from whimbrel.model.time import SECOND

POINT = ((1.0, 1.0),)
HOOK = ((0.0, 0.0), (3.0, 0.0), (3.0, 1.0), (1.0, 1.0), (1.0, 3.0), (0.0, 3.0))
"""Its centre lies close to the corner at (1, 1): another hook holds it, but not its centre."""
SMALL = ((0.25, 0.25), (0.5, 0.25), (0.5, 0.5))
LOCATIONS = st.sampled_from((POINT, HOOK, SMALL, ((2.0, 0.5),), ((-1.0, -1.0), (4.0, -1.0), (4.0, 4.0))))


def atoms_of(detections, coordinates):
    """Places of the events of some detections, as they would be read from events."""
    locations = [corners for detection in detections for corners in detection]
    shapes = [shapely.Polygon(corners) for corners in locations if len(corners) > 1]
    pieces = lay_out(shapely.to_wkb(np.array(shapes, dtype=object)), coordinates is LONLAT)
    begins = iter(np.cumsum([0, *map(len, pieces)]).tolist())
    shape = [next(begins) if len(corners) > 1 else NO_SHAPE for corners in locations]
    x, y = np.array([corners[0] for corners in locations]).T
    return AtomPlaces(
        np.cumsum([0, *map(len, detections)]), x.copy(), y.copy(), np.zeros(len(x), np.bool_),
        np.full(len(x), -1), np.array(shape), np.concatenate([np.zeros(0), *pieces]),
    )  # fmt: skip


@pytest.mark.parametrize("coordinates", [PLANE, LONLAT])
@given(data=st.data())
def test_a_detection_lies_in_an_area_if_all_of_all_its_events_does(coordinates, data):
    lots = data.draw(st.lists(st.lists(st.lists(LOCATIONS, min_size=1, max_size=3), min_size=1), min_size=1))
    if coordinates is LONLAT:  # across the antimeridian
        lots = [[[_moved(each) for each in one] for one in lot] for lot in lots]
    areas = [shapely.Polygon(HOOK), shapely.box(0, 0, 3, 3), shapely.box(-9, -9, 9, 9)]
    if coordinates is LONLAT:
        areas = [shapely.Polygon(_moved(area.exterior.coords)) for area in areas]
    everything = [detection for lot in lots for detection in lot]
    rows = np.array(data.draw(st.lists(st.integers(0, len(everything) - 1), min_size=1)))
    atoms = AtomPlaces.concat([atoms_of(lot, coordinates) for lot in lots]).take(rows)
    atoms = AtomPlaces(**atoms.arrays())
    laid_out = areas_of_shapes(areas, coordinates)
    for number, area in enumerate(areas):
        expected = [all(lies_in(_event(each), area, coordinates) for each in everything[row]) for row in rows]
        assert atoms.all_in(laid_out, np.full(len(rows), number), None).tolist() == expected


def _moved(corners):
    return tuple((wrapped(x + 179.0), y) for x, y in corners)


def _event(corners):
    return event(corners[0]) if len(corners) == 1 else replace(event(None), polygon=corners)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "define D detect A as a",
        "define D detect A as a then B as b within 9 s",
        "define D detect A as a then not B as b for 2 s",
        "define D(n) over 4 s every 1 s detect A as a assign n = count(a)",
    ],
)
@given(data=st.data())
def test_interests_tell_of_polygons_what_the_reference_tells(text, data):
    graph = compile_text(text).graph
    around = data.draw(
        st.sampled_from((reference.Outline(HOOK), reference.Circle(2.5), reference.Box(6.0, 6.0)))
    )
    query = reference.MobileQuery(graph, reference.Focal("F"), around, lifetime=5 * SECOND)
    events = [event((x, 0.0), 2 * n * SECOND) for n, x in enumerate((0.0, 0.25, -1.0))]
    for number, corners in enumerate(data.draw(st.lists(LOCATIONS, min_size=1, max_size=6))):
        kind, time = data.draw(st.sampled_from("AAB")), data.draw(st.integers(0, 6)) * SECOND
        where = {"x": corners[0][0], "y": corners[0][1]} if len(corners) == 1 else {"polygon": corners}
        events.append(Event(f"{kind}{number}", kind, time, time, **where))
    answer = sorted_told([as_told(each) for each in deliveries(query, events, limit=5_000)])
    batches = data.draw(cuts(sorted(events, key=lambda each: each.end)))
    for run in (in_batches, with_snapshots):
        assert sorted_told(run(compiled(query), batches, SECOND)) == answer
