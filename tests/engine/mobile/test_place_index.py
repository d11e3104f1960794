"""The index of rows by place finds what a look at every row finds."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
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
    interests,
    samples,
)
from tests.reference.mobile import query as naive

from whimbrel.engine.mobile import place_index
from whimbrel.engine.mobile.areas import AreaSet, areas_of_shapes, holds, nowhere
from whimbrel.engine.mobile.place_index import PlaceIndex
from whimbrel.engine.snapshot import Blocks

BOTH = pytest.mark.parametrize("coordinates", [PLANE, LONLAT])


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    index = PlaceIndex(PLANE)
    rows = np.arange(100)
    index.append(rows, rows, rows * 1.0, rows * 1.0)
    areas = areas_of_shapes(["POLYGON ((0 0, 9 0, 9 9, 0 0))"], PLANE)
    every = np.array([0]), np.array([1000])
    assert index.count(areas, *every)[0] == len(index.find(areas, *every)[1]) == 10


@contextmanager
def small_chunks():
    """Make chunks and cells small, so that few rows make many."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(place_index, "LARGEST", 40)
        patched.setattr(place_index, "IN_CELL", 3)
        yield


def pairs_of(which, rows):
    assert (np.diff(which) >= 0).all()
    found = list(zip(which.tolist(), rows.tolist(), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


class EveryRow:
    """Rows in lists, all of which are looked at."""

    def __init__(self):
        self.rows = []

    def append(self, *columns):
        self.rows += zip(*(column.tolist() for column in columns), strict=True)

    def forget_before(self, time):
        self.rows = [row for row in self.rows if row[1] >= time]

    def find(self, areas, since, until):
        if not self.rows or not len(areas):
            return set()
        number, time, x, y = (np.array(column) for column in zip(*self.rows, strict=True))
        which, row = (pairs.ravel() for pairs in np.indices((len(areas), len(number))))
        inside = holds(areas, which, x[row], y[row])
        inside &= (time[row] >= since[which]) & (time[row] < until[which])
        return set(zip(which[inside].tolist(), number[row][inside].tolist(), strict=True))


def places_of(coordinates):
    return PLACES[PLANE] if coordinates is PLANE else st.one_of(PLACES[LONLAT], FAR, NEAR_POLES)


@st.composite
def area_sets(draw, coordinates):
    unit = 1.0 if coordinates is PLANE else draw(st.sampled_from((DEGREE_M, 10 * DEGREE_M)))
    lots = [
        built(
            draw(interests(unit)), draw(st.lists(samples(coordinates), min_size=1, max_size=3)), coordinates
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    if coordinates is LONLAT:
        centre, radius_m = draw(places_of(LONLAT)), draw(st.floats(1.0, 2.1e7))
        lots.append(built(naive.Circle(radius_m), [[event(centre)]], LONLAT))
    return AreaSet.concat([*lots, nowhere(1, coordinates)])


def ask(index, naively, areas, since, until):
    wanted = naively.find(areas, since, until)
    assert pairs_of(*index.find(areas, since, until)) == wanted
    counts = np.bincount([which for which, _ in wanted], minlength=len(areas)) if wanted else 0 * since
    assert index.count(areas, since, until).tolist() == counts.tolist()


@BOTH
@given(data=st.data())
@small_chunks()
def test_it_finds_what_a_look_at_every_row_finds(coordinates, data):
    index, naively, time, number = PlaceIndex(coordinates), EveryRow(), 0, 0
    for _ in range(data.draw(st.integers(1, 8))):
        step = data.draw(st.sampled_from(("append", "append", "append", "ask", "forget", "save")))
        if step == "append":
            places = data.draw(st.lists(places_of(coordinates), max_size=data.draw(st.sampled_from((3, 90)))))
            x, y = np.array(places, np.float64).reshape(-1, 2).T
            times = time + np.arange(len(places)) // 3
            rows = number + np.array(data.draw(st.permutations(range(len(places)))), np.int64)
            for each in (index, naively):
                each.append(rows, times, x, y)
            time, number = time + len(places) // 3, number + len(places)
        elif step == "forget":
            forgotten = data.draw(st.integers(0, time))
            index.forget_before(forgotten)
            naively.forget_before(forgotten)
        elif step == "save":
            blocks = Blocks()
            index.save(blocks, "index")
            index = PlaceIndex(coordinates)
            index.load(Blocks.from_bytes(blocks.to_bytes()), "index")
        else:
            areas = data.draw(area_sets(coordinates))
            since = np.array(
                data.draw(st.lists(st.integers(0, time), min_size=len(areas), max_size=len(areas)))
            )
            ask(index, naively, areas, since, since + data.draw(st.integers(0, time + 1)))
    areas = data.draw(area_sets(coordinates))
    ask(index, naively, areas, np.zeros(len(areas), np.int64), np.full(len(areas), time + 1))


@BOTH
@pytest.mark.parametrize("crowd", ["even", "crowded", "one place", "a line", "far outlier"])
def test_it_finds_the_same_however_rows_crowd(coordinates, crowd):
    random = np.random.default_rng(5)
    x, y = random.uniform(0, 3, 20_000), random.uniform(0, 3, 20_000)
    if crowd == "crowded":
        x[:15_000], y[:15_000] = 1 + x[:15_000] / 1e4, 1 + y[:15_000] / 1e4
    elif crowd == "one place":
        x[:15_000], y[:15_000] = 1.0, 1.0
    elif crowd == "a line":
        y[:] = 1.5
    elif crowd == "far outlier":
        x[7], y[7] = 170.0, 80.0
    if coordinates is LONLAT:
        x = (x + 178.5 + 180.0) % 360.0 - 180.0
    index, naively = PlaceIndex(coordinates), EveryRow()
    times, rows = np.sort(random.integers(0, 1_000, 20_000)), random.permutation(20_000)
    for first in range(0, 20_000, 700):
        part = slice(first, first + 700)
        index.append(rows[part], times[part], x[part], y[part])
        index.count(nowhere(0, coordinates), rows[:0], rows[:0])
    naively.append(rows, times, x, y)
    unit = 1.0 if coordinates is PLANE else DEGREE_M
    middle = 1.0 if coordinates is PLANE else 179.5
    shapes = [
        naive.Circle(0.3 * unit),
        naive.Box(unit, 0.4 * unit),
        naive.Ahead(unit, 70.0),
        naive.Circle(9 * unit),
    ]
    track = [event((middle, 0.9)), event((middle, 1.0))]
    areas = AreaSet.concat([built(shape, [track], coordinates) for shape in shapes])
    ask(index, naively, areas, np.zeros(4, np.int64), np.full(4, 1_000))
    ask(index, naively, areas, np.full(4, 333), np.array([334, 340, 666, 999]))


def test_rows_without_a_place_are_left_out():
    index = PlaceIndex(PLANE)
    x = np.array([0.0, np.nan, 1.0, np.inf])
    index.append(np.arange(4), np.arange(4), x, x[::-1].copy())
    assert len(index) == 0
    index.append(np.arange(4), np.arange(4), x, np.zeros(4))
    assert len(index) == 2


@small_chunks()
def test_single_rows_do_not_pile_up_and_what_is_old_takes_no_room():
    index, areas = PlaceIndex(PLANE), areas_of_shapes(["CIRCLE (0 0 9)"], PLANE)
    for number in range(1_000):
        one = np.array([number])
        index.append(one, one, one * 0.0, one * 0.0)
        assert index.count(areas, one, one + 1).tolist() == [1]
        if number >= 500:
            index.forget_before(number - 500)
    assert len(index._chunks) < 30
    assert len(index) < 560
    size = index.nbytes
    index.forget_before(2_000)
    assert len(index) == 0
    assert index.nbytes < size / 100
    assert not len(index.find(areas, np.array([0]), np.array([5_000]))[0])
