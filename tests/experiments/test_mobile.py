"""Traffic for mobile queries, and what is measured of it without an engine."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.mobile.event_index import Boxes, EventIndex
from experiments.mobile.following import Followed, Interests, Lasting, every, follow, moved
from experiments.mobile.traffic import (
    BLOCK_M,
    TOWN,
    accident_events,
    drive,
    drive_streets,
    positions,
    speed_events,
    video_events,
)
from experiments.scenarios import simulate
from whimbrel.errors import SimulationError
from whimbrel.graph.mobile import Quality

lattice = st.integers(0, 4).map(float)
events = st.lists(st.tuples(st.integers(0, 5), lattice, lattice), max_size=30)
boxes = st.lists(
    st.tuples(lattice, lattice, lattice, lattice, st.integers(-1, 6), st.integers(-1, 7)),
    min_size=1,
    max_size=6,
)


def columns(rows, kinds):
    return [
        np.array(column, kind)
        for column, kind in zip(list(zip(*rows, strict=True)) or [()] * len(kinds), kinds, strict=True)
    ]


@given(events, boxes)
def test_events_in_boxes_are_those_that_lie_in_them(rows, wanted):
    index = EventIndex(*columns(rows, (np.int64, float, float)))
    asked = Boxes(*columns(wanted, (float, float, float, float, np.int64, np.int64)))
    expected = [
        sorted((t, x, y) for t, x, y in rows if x0 <= x <= x1 and y0 <= y <= y1 and since <= t < until)
        for x0, y0, x1, y1, since, until in wanted
    ]
    box, event = index.inside(asked)
    found = [
        sorted(
            zip(
                index.second[event[box == n]], index.x[event[box == n]], index.y[event[box == n]], strict=True
            )
        )
        for n in range(len(wanted))
    ]
    assert found == expected
    assert index.count(asked).tolist() == list(map(len, expected))


def test_vehicles_keep_to_the_streets_of_the_town_and_to_what_is_possible():
    traffic = drive_streets(200, 60, 1, breakdowns=5)
    assert len(traffic) == 200 * 60
    assert min(traffic.x.min(), traffic.y.min()) >= 0
    assert traffic.x.max() <= TOWN[0]
    assert traffic.y.max() <= TOWN[1]
    off_street = np.minimum(
        np.abs(traffic.x / BLOCK_M - np.rint(traffic.x / BLOCK_M)),
        np.abs(traffic.y / BLOCK_M - np.rint(traffic.y / BLOCK_M)),
    )
    assert off_street.max() < 1e-9
    x, y = traffic.x.reshape(60, 200), traffic.y.reshape(60, 200)
    assert (np.abs(np.diff(x, axis=0)) + np.abs(np.diff(y, axis=0))).max() <= 16.0 + 1e-6
    assert 0.05 < (traffic.speed == 0).mean() < 0.7  # at lights, and behind who broke down


def test_the_same_seed_drives_the_same_way():
    drive_streets.cache_clear()
    one = drive_streets(50, 20, 3)
    drive_streets.cache_clear()
    other = drive("streets", 50, 20, 3)
    assert one.x.tolist() == other.x.tolist()
    assert one.x.tolist() != drive_streets(50, 20, 4).x.tolist()
    with pytest.raises(SimulationError, match="sumo or streets"):
        drive("horses", 50, 20, 3)


def test_events_of_the_applications_have_ids_of_their_own_and_come_in_order():
    traffic = drive_streets(300, 60, 0)
    for table, types in (
        (positions(traffic), {"Position"}),
        (accident_events(traffic), {"SpeedChange", "LaneChange"}),
        (speed_events(traffic), {"Speed"}),
        (video_events(traffic), {"Frame"}),
    ):
        assert set(pc.unique(table.column("type")).to_pylist()) == types
        assert pc.count_distinct(table.column("id")).as_py() == table.num_rows
        assert (np.diff(table.column("time").to_numpy().astype(np.int64)) >= 0).all()
    changes = accident_events(traffic)
    change = changes.filter(pc.equal(changes.column("type"), "SpeedChange")).column("change").to_numpy()
    assert np.abs(change).min() > 2.0
    frames = video_events(traffic, friends=1.0)
    assert frames.num_rows == 60 * 31 * 15
    assert frames.column("friends").to_pylist() == frames.column("vehicles").to_pylist()
    assert 0 < pc.sum(frames.column("vehicles")).as_py() < len(traffic)


@pytest.mark.slow
def test_sumo_drives_through_the_town_too():
    traffic = drive("sumo", 100, 80, 2)
    assert set(np.unique(traffic.lane)) <= {-1, 0, 1}
    assert 0 <= traffic.second.min() <= traffic.second.max() < 80
    assert traffic.x.max() <= TOWN[0] + 60
    assert traffic.y.max() <= TOWN[1] + 60
    assert len(follow(traffic, 3)) > 0


def a_drive(places):
    """One vehicle that is at some places, second after second."""
    x, y = np.array(places, float).T
    return Followed(np.zeros(len(x), np.int64), np.arange(len(x)), x, y)


drives = st.lists(st.tuples(lattice, lattice), min_size=1, max_size=6)


@given(events, drives, st.sampled_from((0.25, 0.5, 0.9)))
def test_no_way_to_switch_that_keeps_the_quality_streams_less_than_the_optimum(rows, places, quality):
    followed = a_drive(places)
    interests = Interests(EventIndex(*columns(rows, (np.int64, float, float))), followed, 3.0, 2)
    lasting = Lasting.of(interests, Quality(quality, quality), 2)
    history = interests.history()
    best = lasting.best(followed.begins, history)
    greedy = lasting.greedy(followed.begins)
    allowed = []
    for rest in product((False, True), repeat=len(followed) - 1):
        switches = np.array([True, *rest])
        starts = np.flatnonzero(switches)
        ends = [*starts[1:], len(followed)]
        if all(end <= lasting.until[start] for start, end in zip(starts, ends, strict=True)):
            allowed.append(interests.streamed(switches))
    assert interests.streamed(best) == min(allowed)
    assert interests.streamed(greedy) in allowed


def test_conditions_switch_where_they_say():
    followed = a_drive([(0, 0), (3, 0), (6, 0), (9, 0), (12, 0)])
    assert moved(followed, 5.0).tolist() == [True, False, True, False, True]
    assert every(followed, 1.0).tolist() == [True, False, True, False, True]
    assert every(followed, 2.0).tolist() == [True, False, False, True, False]


@given(events, drives)
def test_a_switch_at_each_update_has_quality_one(rows, places):
    followed = a_drive(places)
    interests = Interests(EventIndex(*columns(rows, (np.int64, float, float))), followed, 3.0, 2)
    precision, recall = interests.quality(np.ones(len(followed), bool))
    assert min(precision.min(), recall.min()) == 1
    assert (interests.new_history() <= interests.history()).all()


SMALL = {"traffic": "streets", "vehicles": 800, "seconds": 120, "followed": 4, "runs": 1}


@pytest.mark.slow
def test_no_condition_that_keeps_the_quality_streams_less_than_the_optimum():
    rows = simulate("mobile-conditions", {**SMALL, "edges": (300.0,)}).rows
    shares = {row["condition"]: row["share of events"] for row in rows}
    assert shares["optimum"] <= shares["quality"] <= shares["always"] == 1.0


@pytest.mark.slow
def test_what_the_store_counts_is_found_without_an_average_in_vain():
    rows = simulate("mobile-initialization", {**SMALL, "counts": (5.0, 20.0)}).rows
    for row in rows:
        if row["begins at"] == "count in the store":
            assert (row["found"], row["in vain"]) == (1.0, 0.0)
            assert row["replayed"] < 1.0
        assert 0.0 <= row["found"] <= 1.0


@pytest.mark.slow
def test_runs_that_are_prepared_earlier_are_less_late_and_less_precise():
    rows = simulate("mobile-prediction-lead", {**SMALL, "leads_s": (1.0, 5.0), "event_ms": 50.0}).rows
    early, late = (
        next(row for row in rows if row["lead s"] == lead and row["way"] == "prepared, complete")
        for lead in (5.0, 1.0)
    )
    assert early["late s"] < late["late s"] < rows[2]["late s"]
    assert early["precision"] < late["precision"] <= 1.0


@pytest.mark.slow
def test_more_places_give_a_better_one_and_the_budget_is_kept():
    rows = simulate("mobile-candidates", {**SMALL, "numbers": (1.0, 10.0), "lead_s": 4}).rows
    by = {(row["what"], row["places"]): row for row in rows}
    assert by["threshold 0.9", 1]["precision"] < by["threshold 0.9", 10]["precision"]
    assert by["threshold 0.25", 10]["runs"] <= by["threshold 0.9", 10]["runs"]
