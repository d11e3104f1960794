"""Predicted areas stand for interests only where the query allows it; then all that lies in them is told."""

from __future__ import annotations

from dataclasses import replace

import shapely
from hypothesis import given, reject
from hypothesis import strategies as st
from tests.engine.mobile.comparing import (
    as_told,
    compiled,
    in_batches,
    sorted_told,
    taking,
    told,
    with_snapshots,
)
from tests.reference.expressions import World
from tests.reference.matches import TooLarge
from tests.reference.mobile import Always, Box, Every, MobileQuery, timelines
from tests.reference.mobile.additional_time import additional_time
from tests.reference.mobile.areas import lies_in
from tests.reference.mobile.deliveries import Delivery, found_in
from tests.reference.mobile.prediction import Prepared, may_serve
from tests.reference.mobile.quality import read_by
from tests.reference.mobile.query import Quality
from tests.reference.mobile.strategies import ANCHORED, mobile_queries, moved_to, worlds_of_events
from tests.reference.strategies import FEATURES, arrivals, cuts
from tests.reference.tables import event_table

from whimbrel.engine.mobile.optimisations import Optimisations
from whimbrel.engine.session import Session
from whimbrel.graph import mobile
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND

WORLD = World(limit=5_000)
PLANE = Coordinates.PLANE
ENOUGH = Quality(0.5, 0.5)
queries = mobile_queries(FEATURES - ANCHORED, interest=Box(5.0, 5.0), excluding_itself=False).map(
    lambda query: replace(query, refresh=query.refresh if isinstance(query.refresh, Every) else Always())
)
predictions = st.sampled_from(
    (
        mobile.Prediction(),
        mobile.Prediction(steps=2, candidates=3),
        mobile.Prediction(steps=1, candidates=4, by="greedy"),
        mobile.Prediction(steps=3, candidates=2, by="resource"),
    )
)


def predicting(query, prediction, threshold=ENOUGH):
    quality = mobile.Quality(threshold.precision, threshold.recall)
    return compiled(query, prediction=prediction, quality=quality)


def check(query, events, table):
    """What is told of each interest is what lies in its area; if that was predicted, it is good enough."""
    interests = {(one.focal, one.number): one for line in timelines(query, events, WORLD) for one in line}
    window = query.lifetime + max(additional_time(query.graph).values(), default=0)
    found = dict.fromkeys(interests, ())
    for row, each in zip(table.to_pylist(), told(table), strict=True):
        found[row["focal"], row["interest"]] += ((row["predicted"], row["interest_area"], each),)
    for key, rows in found.items():
        if not rows:
            continue
        interest = interests[key]
        (is_predicted,), (area,) = ({row[place] for row in rows} for place in (0, 1))
        if is_predicted:
            used = replace(interest, area=_shape(area))
            assert may_serve(
                _prepared(query, events, used, window), _ids(query, events, interest, window), ENOUGH
            )
            interest = used
        expected = [_delivery(query, interest, each) for each in found_in(query, interest, events, WORLD)]
        assert sorted_told([row[2] for row in rows]) == sorted_told([as_told(each) for each in expected])


def _shape(area):
    return shapely.from_wkt(area) if isinstance(area, str) else shapely.from_wkb(area)


def _ids(query, events, interest, window):
    since = interest.start - window
    return {
        event.id
        for event in read_by(query.graph, events)
        if since <= event.end <= interest.start and lies_in(event, interest.area, PLANE)
    }


def _prepared(query, events, interest, window):
    return Prepared(frozenset(_ids(query, events, interest, window)), complete=True)


def _delivery(query, interest, each):
    return Delivery(
        query.name, interest.focal, interest.number, interest.start, interest.area,
        each.known >= interest.start, "added", each.detection, each.id, each.known,
    )  # fmt: skip


@given(queries, worlds_of_events(), predictions)
def test_what_is_told_is_what_lies_in_the_area_that_is_used(query, events, prediction):
    session = Session(predicting(query, prediction), lateness=None)
    session.push(event_table(events))
    try:
        check(query, events, session.close())
    except TooLarge:
        reject()


@given(st.data(), queries, worlds_of_events(), predictions, st.sampled_from([0, SECOND]))
def test_which_areas_are_used_does_not_depend_on_how_events_are_cut(
    data, query, events, prediction, lateness
):
    compiled_query = predicting(query, prediction)
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    whole = in_batches(compiled_query, [events], 100 * SECOND)
    assert sorted_told(in_batches(compiled_query, batches, lateness)) == sorted_told(whole)
    assert sorted_told(with_snapshots(compiled_query, batches, lateness)) == sorted_told(whole)


@given(st.data(), queries, worlds_of_events(), predictions)
def test_putting_prepared_runs_together_changes_nothing(data, query, events, prediction):
    compiled_query = predicting(query, prediction)
    batches = data.draw(cuts(data.draw(arrivals(events, 0))))
    apart = in_batches(compiled_query, batches)
    with taking(Optimisations(), many=0):
        assert sorted_told(in_batches(compiled_query, batches)) == sorted_told(apart)


def test_who_goes_on_as_before_is_expected_where_it_comes():
    from whimbrel.lang.wbl import compile_text

    query = MobileQuery(
        compile_text("define X detect A").graph, mobile_focal(), Box(10.0, 10.0), lifetime=5 * SECOND
    )
    updates = moved_to([(second, 2.0 * second, 0.0) for second in range(8)])
    cars = [replace(each, id=f"a{n}", type="A", source="a") for n, each in enumerate(updates)]
    table = Session(predicting(query, mobile.Prediction(), Quality(0.9, 0.9)), lateness=None)
    table.push(event_table([*updates, *cars]))
    rows = table.close().to_pylist()
    assert {row["interest"] for row in rows if row["predicted"]} == {3, 4, 5, 6, 7, 8}
    assert {row["interest"] for row in rows if not row["predicted"]} == {1, 2}


def mobile_focal():
    from tests.reference.mobile import Focal

    return Focal("F")
