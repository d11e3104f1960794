"""Prediction for mobile queries: places, what is prepared, what is worth it, and what takes over."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.mobile import prediction as naive
from tests.reference.mobile.quality import falls_to, quality_of
from tests.reference.mobile.query import Quality as NaiveQuality

from whimbrel.engine.mobile.prediction import (
    NONE,
    AlongRoute,
    AreaEvents,
    CountedRuns,
    DeadReckoning,
    LastSamples,
    LastSwitches,
    LearnedPlaces,
    PlacePredictor,
    PreparedAreas,
    PreparedSteps,
    ProcessingTimes,
    SampleMemory,
    choose_candidates,
    expected_switches,
    names,
    predictor,
    register,
    taking_over,
)
from whimbrel.engine.mobile.prediction.registry import _of_packages
from whimbrel.engine.mobile.quality import quality_falls
from whimbrel.engine.snapshot import Blocks
from whimbrel.errors import DataError, QueryError
from whimbrel.graph.mobile import Quality, RefreshAlways, RefreshEvery, RefreshWhenMoved
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME, SECOND

ids = st.frozensets(st.sampled_from("abcdefgh"))
qualities = st.sampled_from((0.0, 0.25, 0.5, 0.9, 1.0))
places = st.tuples(st.integers(0, 400).map(float), st.integers(0, 400).map(float))


def samples(*tracks, coordinates=Coordinates.PLANE, routes=None):
    """Some tracks of as many (seconds, x, y) each."""
    array = np.array(tracks, float)
    routes = None if routes is None else np.array(routes, object)
    time = (array[..., 0] * SECOND).astype(np.int64)
    return LastSamples(time, array[..., 1], array[..., 2], coordinates, routes)


def seconds(*values):
    return np.array([round(value * SECOND) for value in values], np.int64)


def offsets(lists):
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


def check_form(found, rows, most):
    assert (np.diff(found.row) >= 0).all()
    assert sorted(set(found.row.tolist())) == list(range(rows))
    assert np.bincount(found.row).max(initial=0) <= most
    same = np.diff(found.row) == 0
    assert (np.diff(found.probability)[same] <= 1e-12).all()
    np.testing.assert_allclose(np.bincount(found.row, found.probability), 1.0)


# Places


@given(
    st.lists(st.tuples(places, places, st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=5),
    st.integers(1, 12),
)
def test_dead_reckoning_goes_straight_on_and_its_likeliest_place_is_there(rows, most):
    seen = samples(*([(0, *a), (passed, *b)] for a, b, passed, _ in rows))
    found = DeadReckoning().predict(seen, seconds(*(ahead for *_, ahead in rows)), most)
    check_form(found, len(rows), most)
    first = found.offsets(len(rows))[:-1]
    for row, (a, b, passed, ahead) in enumerate(rows):
        expected = naive.straight_on([(0.0, *a), (float(passed), *b)], ahead)
        assert (found.x[first[row]], found.y[first[row]]) == pytest.approx(expected)
        reach = 2 * (10.0 + 3.0 * ahead)
        mine = found.row == row
        assert (np.hypot(found.x[mine] - expected[0], found.y[mine] - expected[1]) <= reach + 1e-6).all()


def test_dead_reckoning_measures_in_metres_on_the_globe_and_passes_the_date_line():
    degrees = 1 / 111_195.08
    seen = samples([(0, 179.9999, 60.0), (1, 179.9999 + 20 * degrees, 60.0)], coordinates=Coordinates.LONLAT)
    found = DeadReckoning().predict(seen, seconds(10), 1)
    assert found.y[0] == pytest.approx(60.0)
    assert found.x[0] == pytest.approx(179.9999 + 220 * degrees - 360.0, abs=1e-7)


def test_along_a_route_round_the_corner_and_no_farther_than_its_end():
    seen = samples(
        [(0, 0, 1), (1, 10, 1)], [(0, 0, 1), (1, 10, 1)], [(0, 0, 0), (1, 10, 0)],
        routes=["LINESTRING (0 0, 30 0, 30 50)", "LINESTRING (0 0, 30 0, 30 50)", None],
    )  # fmt: skip
    found = AlongRoute().predict(seen, seconds(4, 60, 4), 1)
    assert list(zip(found.x.round(6), found.y.round(6), strict=True)) == [(30, 20), (30, 50), (50, 0)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), min_size=1, max_size=6), st.integers(1, 9))
def test_places_along_a_route_lie_on_it_and_have_one_together(rows, most):
    route = "LINESTRING (0 0, 100 0, 100 100, 300 100)"
    seen = samples(*([(0, 0, 0), (1, speed, 0)] for speed, _ in rows), routes=[route] * len(rows))
    found = AlongRoute().predict(seen, seconds(*(ahead for _, ahead in rows)), most)
    check_form(found, len(rows), most)
    for x, y in zip(found.x.round(9), found.y.round(9), strict=True):
        assert (y == 0 and x <= 100) or (x == 100 and 0 <= y <= 100) or (y == 100 and 100 <= x <= 300)
    assert len({(r, x, y) for r, x, y in zip(found.row, found.x, found.y, strict=True)}) == len(found)


def test_who_is_far_from_its_route_is_predicted_by_dead_reckoning():
    seen = samples([(0, 0, 500), (1, 10, 500)], routes=["LINESTRING (0 0, 300 0)"])
    assert AlongRoute().predict(seen, seconds(2), 1).y.tolist() == [500.0]


def test_a_route_that_is_no_line_is_refused():
    seen = samples([(0, 0, 0), (1, 10, 0)], routes=["POINT (3 4)"])
    with pytest.raises(DataError, match="not a route"):
        AlongRoute().predict(seen, seconds(2), 1)


walks = st.lists(
    st.lists(st.sampled_from([(-10.0, 0.0), (10.0, 0.0), (0.0, 10.0), (0.0, 0.0)]), min_size=1, max_size=8),
    min_size=1,
    max_size=4,
)


@given(walks, st.integers(0, 4))
def test_learned_places_are_those_of_a_markov_chain_of_second_order(moves, ahead):
    tracks = [np.cumsum([(5.0, 5.0), *walk], axis=0) for walk in moves]
    obj = np.repeat(np.arange(len(tracks)), list(map(len, tracks)))
    time = np.concatenate([np.arange(len(track)) for track in tracks]) * SECOND
    x, y = np.concatenate(tracks).T
    model = LearnedPlaces.learned(obj, time, x, y, cell_m=10.0)
    chain = naive.learned([list(map(tuple, track)) for track in tracks], 10.0)
    cells = [(math.floor(a / 10), math.floor(b / 10)) for a, b in tracks[0][-2:]]
    seen = samples([(0, *tracks[0][-2]), (1, *tracks[0][-1])])
    found = model.predict(seen, seconds(ahead), 50)
    check_form(found, 1, 50)
    expected = naive.after_steps(chain, *cells, ahead)
    got = {
        (math.floor(a / 10), math.floor(b / 10)): p
        for a, b, p in zip(found.x, found.y, found.probability, strict=True)
    }
    assert got == pytest.approx(expected)


def test_learned_places_split_where_others_split_and_know_where_one_comes_from():
    # Who comes from the west turns north in two of three cases; who comes from the east goes on west.
    ways = [[(5, 5), (15, 5), (15, 15)]] * 2 + [[(5, 5), (15, 5), (25, 5)]] + [[(25, 5), (15, 5), (5, 5)]] * 3
    obj = np.repeat(np.arange(6), 3)
    x, y = np.array(ways, float).reshape(-1, 2).T
    model = LearnedPlaces.learned(obj, np.tile(np.arange(3), 6) * SECOND, x, y, cell_m=10.0)
    found = model.predict(samples([(0, 5, 5), (1, 15, 5)], [(0, 25, 5), (1, 15, 5)]), seconds(1, 1), 2)
    assert found.row.tolist() == [0, 0, 1]
    assert list(zip(found.x.round(9), found.y, strict=True)) == [(15, 15), (25, 5), (5, 5)]
    np.testing.assert_allclose(found.probability, [2 / 3, 1 / 3, 1])


def test_where_nobody_was_seen_dead_reckoning_goes_on():
    nobody = np.zeros(0, np.int64)
    seen = samples([(0, 0, 0), (1, 10, 0)])
    for model in (
        LearnedPlaces.learned(nobody, nobody, np.zeros(0), np.zeros(0)),
        LearnedPlaces.learned(nobody, nobody, np.zeros(0), np.zeros(0), coordinates=Coordinates.LONLAT),
        LearnedPlaces.learned(np.array([0]), np.array([0]), np.array([900.0]), np.array([0.0])),
    ):
        assert model.predict(seen, seconds(3), 1).x.tolist() == [40.0]


def test_tracks_are_read_between_updates_but_not_across_gaps():
    model = LearnedPlaces.learned(
        np.zeros(4, np.int64), seconds(0, 3, 60, 61), np.array([0.0, 30, 500, 510]), np.zeros(4), cell_m=10.0
    )
    found = model.predict(samples([(0, 1, 0), (1, 11, 0)]), seconds(1), 5)
    assert found.x.tolist() == [21.0]
    assert len(model.cells) == 6  # those at 0, 10, 20, 30, 500 and 510


# Samples


updates = st.lists(
    st.lists(st.tuples(st.integers(0, 3), places), max_size=6), min_size=1, max_size=4
)  # steps of (object, place), in order of time


@given(updates, st.integers(2, 4))
def test_the_last_samples_are_remembered_however_updates_are_cut(steps, width):
    memory, clock, history = SampleMemory(width), 0, {}
    for step in steps:
        obj, time = [], []
        for who, place in step:
            clock += SECOND
            obj.append(who)
            time.append(clock)
            history.setdefault(who, []).append((clock, *place))
        x, y = np.array([place for _, place in step], float).reshape(-1, 2).T
        memory.take_in(np.array(obj, np.int64), np.array(time, np.int64), x, y)
        blocks = Blocks()
        memory.save(blocks, "memory")
        memory = SampleMemory(width)
        memory.load(blocks, "memory")
    for who, past in history.items():
        expected = ([past[0]] * width + past)[-width:]
        seen = memory.of(np.array([who]), Coordinates.PLANE)
        assert list(zip(seen.time[0], seen.x[0], seen.y[0], strict=True)) == expected


# Names


class Nowhere:
    """Says that nobody goes anywhere."""

    samples, route_attribute = 1, None

    def predict(self, seen, ahead, most):  # noqa: ARG002
        return DeadReckoning().predict(seen, ahead * 0, 1)


def test_predictors_are_known_by_name_and_programs_may_add_theirs(monkeypatch):
    monkeypatch.setattr("whimbrel.engine.mobile.prediction.registry._registered", {"stay": Nowhere})
    assert isinstance(predictor("stay"), PlacePredictor)
    register("stay", Nowhere)
    with pytest.raises(QueryError, match="is there already"):
        register("stay", DeadReckoning)
    with pytest.raises(QueryError, match="no predictor is named 'sty'") as caught:
        predictor("sty")
    assert "stay" in caught.value.hint
    register("list", list)
    with pytest.raises(QueryError, match="is no predictor"):
        predictor("list")


def test_packages_bring_predictors_as_entry_points(monkeypatch):
    class Point:
        name = "of a package"

        @staticmethod
        def load():
            return Nowhere

    monkeypatch.setattr("whimbrel.engine.mobile.prediction.registry.entry_points", lambda group: [Point])
    _of_packages.cache_clear()
    assert "of a package" in names()
    assert isinstance(predictor("of a package"), Nowhere)
    _of_packages.cache_clear()


# When


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 40)), min_size=1, max_size=5, unique_by=lambda p: p[0]
    ),
    st.lists(st.integers(0, 120), min_size=1, max_size=5),
)
def test_processing_times_lie_on_the_lines_between_what_was_measured(pairs, events):
    counts, took = sorted(count for count, _ in pairs), sorted(t for _, t in pairs)
    if counts == [0]:
        took = [0]
    profile = ProcessingTimes(tuple(map(float, counts)), tuple(map(float, took)))
    expected = [naive.processing_time(list(zip(counts, took, strict=True)), n) for n in events]
    np.testing.assert_allclose(profile.seconds_for(np.array(events)), expected, atol=1e-9)


def test_a_run_begins_as_long_before_the_switch_as_it_needs_but_not_before_now():
    begin = ProcessingTimes.each(0.005).begin(seconds(10, 10), np.array([400, 4000]), seconds(3, 3))
    assert begin.tolist() == seconds(8, 3).tolist()


@pytest.mark.parametrize(
    ("events", "took"),
    [
        ((), ()),
        ((1.0,), (1.0, 2.0)),
        ((2.0, 1.0), (1.0, 2.0)),
        ((1.0, 2.0), (2.0, 1.0)),
        ((-1.0,), (1.0,)),
    ],
)
def test_profiles_that_say_nothing_are_refused(events, took):
    with pytest.raises(QueryError):
        ProcessingTimes(events, took)


def switched(at, x=0.0):
    return LastSwitches(seconds(at), np.array([x]), np.zeros(1), seconds(0))


def test_switches_are_expected_at_the_first_updates_at_which_the_condition_will_hold():
    seen = samples([(8, 80, 0), (10, 100, 0)])  # an update every 2 s, 10 m/s
    expect = lambda refresh, last: (expected_switches(refresh, seen, last, 3)[0] / SECOND).tolist()  # noqa: E731
    assert expect(RefreshAlways(), switched(10, 100.0)) == [12, 14, 16]
    assert expect(RefreshEvery(4 * SECOND), switched(10, 100.0)) == [16, 22, 28]  # more than 4 s later
    assert expect(RefreshEvery(4 * SECOND), switched(8, 80.0)) == [14, 20, 26]
    assert expect(RefreshWhenMoved(50.0), switched(10, 100.0)) == [16, 22, 28]
    assert expect(RefreshWhenMoved(50.0), switched(6, 60.0)) == [12, 18, 24]


def test_nothing_is_expected_of_who_stands_or_was_seen_once():
    stands, once = samples([(0, 5, 5), (1, 5, 5)]), samples([(1, 5, 5), (1, 5, 5)])
    assert (expected_switches(RefreshWhenMoved(9.0), stands, switched(0), 2) == END_OF_TIME).all()
    assert (expected_switches(RefreshAlways(), once, switched(0), 2) == END_OF_TIME).all()


# What is prepared


class Told:
    """Says that objects go straight on, and nothing else."""

    samples, route_attribute = 2, None

    def predict(self, seen, ahead, most):  # noqa: ARG002
        return DeadReckoning(error_m_s=0.0).predict(seen, ahead, 1)


@given(
    st.lists(
        st.dictionaries(st.integers(0, 2), st.tuples(st.integers(0, 2), places, places, st.booleans())),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 3),
    st.sampled_from((0.0, 30.0, 150.0)),
)
def test_the_next_steps_stay_prepared_until_their_places_move(calls, eagerness, deviation):
    pipeline = PreparedSteps(Told(), eagerness, deviation_m=deviation)
    objects = {who: (naive.Ahead(eagerness, deviation), [0]) for who in range(3)}
    for call in calls:
        obj, current, tracks, times, expected = [], [], [], [], (set(), set())
        for who, (more, a, b, known) in call.items():
            ahead, number = objects[who]
            number[0] += more
            obj.append(who)
            current.append(number[0])
            tracks.append([(0, *a), (1, *b)])
            steps = range(1, eagerness + 1) if known else range(1, 2)
            times.append([(1 + n) * SECOND if n in steps else END_OF_TIME for n in range(1, eagerness + 1)])
            predicted = {number[0] + n: naive.straight_on([(0.0, *a), (1.0, *b)], n) for n in steps}
            for mine, theirs in zip(expected, ahead.update(number[0], predicted), strict=True):
                mine.update((who, step) for step in theirs)
        if not call:
            continue
        changes = pipeline.update(
            np.array(obj), np.array(current), samples(*tracks), np.array(times, np.int64)
        )
        got = [
            list(zip(each.obj.tolist(), each.number.tolist(), strict=True))
            for each in (changes.discard, changes.prepare)
        ]
        assert [len(each) for each in got] == [len(set(each)) for each in got]
        assert (set(got[0]), set(got[1])) == expected
        assert changes.places.offsets(len(changes.prepare)).tolist() == list(range(len(changes.prepare) + 1))
        blocks = Blocks()
        pipeline.save(blocks, "pipeline")
        pipeline = PreparedSteps(Told(), eagerness, deviation_m=deviation)
        pipeline.load(blocks, "pipeline")
    left = pipeline.end(np.arange(3))
    assert set(zip(left.obj.tolist(), left.number.tolist(), strict=True)) == {
        (who, step) for who, (ahead, _) in objects.items() for step in ahead.places
    }


runs_taken = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)), max_size=5),
        st.randoms(use_true_random=False),
    ),
    max_size=6,
)


@given(runs_taken)
def test_identical_runs_are_one_until_nobody_uses_them(steps):
    shared, users = CountedRuns(), []  # (what it is, its number) for each user
    for asked, random in steps:
        x, y, begin = np.array(asked, np.int64).reshape(-1, 3).T
        before = {what for what, _ in users}
        numbers, begins = shared.take(x.astype(float), y.astype(float), begin)
        assert {what for what, new in zip(asked, begins, strict=True) if new} == {*asked} - before
        assert begins.sum() == len({*asked} - before)
        users += zip(asked, numbers.tolist(), strict=True)
        assert len({*users}) == len({what for what, _ in users}) == len({number for _, number in users})
        gone = [user for user in users if random.random() < 0.5]
        for user in gone:
            users.remove(user)
        freed = shared.release(np.array([number for _, number in gone], np.int64))
        left = {number for _, number in users}
        assert freed.tolist() == sorted({number for _, number in gone} - left)


# What is worth it


@given(
    st.lists(st.lists(st.tuples(ids, st.sampled_from((0.5, 1.0, 2.0))), max_size=5), min_size=1, max_size=4),
    qualities, qualities,
    st.sampled_from((0.0, 1.0, 2.5, 100.0)),
    st.sampled_from(("greedy", "location", "resource")),
)  # fmt: skip
def test_candidates_are_chosen_as_the_algorithm_says(groups, precision, recall, limit, by):
    flat = [area for group in groups for area in group]
    numbers = [sorted(map("abcdefgh".index, events)) for events, _ in flat]
    recent = AreaEvents(offsets(numbers), np.array([n for each in numbers for n in each], np.int64))
    turn = choose_candidates(
        offsets(groups), recent, np.array([cost for _, cost in flat]), Quality(precision, recall), limit, by
    )
    for (begin, end), group in zip(pairwise(offsets(groups).tolist()), groups, strict=True):
        names_ = [str(n) for n in range(len(group))]
        events, costs = (
            dict(zip(names_, part, strict=True)) for part in (zip(*group, strict=True) if group else ((), ()))
        )
        chosen = naive.candidates(names_, events, NaiveQuality(precision, recall), costs, limit, by)
        mine = turn[begin:end]
        assert [str(n) for n in np.argsort(mine) if mine[n] >= 0] == chosen
        assert sorted(mine[mine >= 0].tolist()) == list(range(len(chosen)))


# What takes over


runs_prepared = st.lists(st.tuples(ids, st.booleans(), st.booleans()), max_size=4)


@given(
    st.lists(st.tuples(ids, runs_prepared), min_size=1, max_size=4),
    qualities, qualities,
    st.sampled_from(("precision", "recall")),
)  # fmt: skip
def test_the_best_prepared_run_takes_over_or_none(switches, precision, recall, by):
    flat = [(true, *one) for true, prepared in switches for one in prepared]
    groups = offsets([prepared for _, prepared in switches])
    array = lambda values, kind=np.int64: np.array(list(values), kind)  # noqa: E731
    found = taking_over(
        PreparedAreas(
            groups,
            array((complete for *_, complete, _ in flat), bool),
            array((same for *_, same in flat), bool),
            array(len(true & events) for true, events, *_ in flat),
            array(len(events) for _, events, *_ in flat),
            array(len(true) for true, *_ in flat),
        ),
        Quality(precision, recall),
        by,
    )
    for n, (true, prepared) in enumerate(switches):
        runs = [naive.Prepared(*one) for one in prepared]
        best = naive.best_prepared(runs, true, NaiveQuality(precision, recall), by)
        assert found[n] == (NONE if best is None else groups[n] + best)


def test_the_run_with_the_most_overlap_takes_over_if_that_is_asked_for():
    one = np.ones(3, np.int64)
    prepared = PreparedAreas(
        np.array([0, 3]),
        np.array([True, True, False]),
        np.zeros(3, bool),
        one,
        one,
        one,
        np.array([0.5, 0.7, 0.9]),
    )
    assert taking_over(prepared, Quality(0.9, 0.9), "overlap").tolist() == [1]


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=5), qualities, qualities)
def test_an_interest_follows_when_its_quality_is_down_to_the_threshold(pairs, precision, recall):
    threshold = Quality(precision, recall)
    counts = [
        np.array(values) for values in zip(*((len(a & b), len(a), len(b)) for a, b in pairs), strict=True)
    ]
    expected = [falls_to(quality_of(b, a), NaiveQuality(precision, recall)) for a, b in pairs]
    assert quality_falls(*counts, threshold).tolist() == expected
