"""Experiments on reuse: the fewest selections, towns and windows, and what must come out of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.mobile.query import Quality
from tests.reference.mobile.reuse import fewest

from experiments.reuse_optimum import fewest_processed
from experiments.reuse_world import SECOND, Town, Windows, streams_of
from experiments.scenarios import simulate
from experiments.scenarios.reuse_speed import averages
from whimbrel.engine.mobile.reuse import (
    EventSets,
    Selections,
    Tolerance,
    box_overlaps,
    coverable,
    everybody,
    maximum_neighbour_cover,
    maximum_similarity_cover,
    priorities,
)
from whimbrel.errors import SimulationError

SMALL = {"mobility": "streets", "vehicles": 80, "seconds": 20, "repeats": 1, "window": 10, "cars": 4}


@given(
    st.lists(st.frozensets(st.integers(0, 6), max_size=5), min_size=1, max_size=6),
    st.sampled_from((0.2, 0.5, 0.7)),
)
def test_the_program_finds_the_fewest_and_heuristics_find_no_fewer(sets, threshold):
    size = len(sets)
    pairs = coverable(Selections(np.arange(size), EventSets.of(sets)), Tolerance.same(size, threshold))
    least = fewest(
        {str(n): atoms for n, atoms in enumerate(sets)},
        {str(n): Quality(threshold, threshold) for n in range(size)},
    )
    found = fewest_processed(pairs)
    assert len(found) == least
    assert maximum_similarity_cover(pairs).may_process.sum() >= least
    assert maximum_neighbour_cover(pairs, np.zeros(size)).may_process.sum() >= least
    heavy = np.ones(size)
    heavy[found] = 100.0
    lightest = fewest_processed(pairs, heavy)
    assert heavy[lightest].sum() <= heavy[found].sum()


def test_events_of_a_town_lie_in_the_squares_around_consumers():
    town = Town.drive("streets", vehicles=30, consumers=3, seconds=5, seed=2)
    held = town.held(1500.0)
    assert (np.diff(town.time) >= 0).all()
    assert len(town.time) <= 30 * 5
    for second in range(5):
        boxes = town.boxes(second, 1500.0)
        for event in np.flatnonzero(town.time // SECOND == second):
            x, y = town.x[event], town.y[event]
            inside = (boxes[:, 0] <= x) & (x <= boxes[:, 2]) & (boxes[:, 1] <= y) & (y <= boxes[:, 3])
            assert held[:, event].tolist() == inside.tolist()


def test_a_larger_number_of_consumers_has_those_of_a_smaller_one():
    few, many = (Town.drive("streets", 30, count, 3, 0, grow=6) for count in (2, 6))
    assert (few.where == many.where[:, :2]).all()


def test_a_town_without_enough_cars_says_so():
    with pytest.raises(SimulationError, match=r"\d of 5 cars drive all 3 s, too few for 9 consumers"):
        Town.drive("streets", 5, 9, 3, 0)
    with pytest.raises(SimulationError, match="neither sumo nor streets"):
        Town.drive("boats", 5, 9, 3, 0)


def test_windows_have_so_many_events_in_a_row():
    held = np.array([[True, False, True, True, True], [True, True, False, False, False]])
    windows = Windows.over(streams_of(held), np.arange(5) * 10, length=2, slide=1)
    atoms = windows.selections.atoms
    assert [atoms.ids[atoms.rows == n].tolist() for n in range(len(atoms))] == [
        [0, 2],
        [2, 3],
        [3, 4],
        [0, 1],
    ]
    assert windows.selections.owner.tolist() == [0, 0, 0, 1]
    assert windows.end.tolist() == [20, 30, 40, 10]
    some, rows = windows.ending(20, 40)
    assert rows.tolist() == [0, 1]
    assert some.end.tolist() == [20, 30]


def test_averages_are_averages_however_often():
    values, sets = np.array([1.0, 2.0, 4.0]), EventSets.of([{0, 1}, {1, 2}])
    for times in (1, 7):
        found = averages(values, sets.offsets, sets.ids, np.array([1, 0]), times)
        assert found.tolist() == pytest.approx([3.0, 1.5])


@pytest.mark.slow
def test_what_is_reused_is_more_similar_than_it_must_be_and_the_fewest_are_fewest():
    rows = simulate(
        "reuse-batches", {**SMALL, "sides_m": (2000.0, 5000.0), "thresholds": (0.2, 0.5, 0.8)}
    ).rows
    assert len(rows) == 6
    for row in rows:
        assert row["fewest"] <= row["MSH"] + 1e-9
        assert row["fewest"] <= row["MNH"] + 1e-9
        for how in ("MSH", "MNH"):
            reused = row[f"similarity of reused {how}"]
            assert reused is None or reused > row["threshold"]


@pytest.mark.slow
def test_who_has_more_neighbours_reuses_no_less_than_nothing_and_disparity_is_a_share():
    rows = simulate(
        "reuse-neighbours", {**SMALL, "slide": 5, "neighbours": (0.0, 3.0), "distances_m": (100.0, 5000.0)}
    ).rows
    for row in rows:
        assert 0.0 <= row["disparity"] <= 1.0
        if row["neighbours"] == 0:
            assert (row["processed"], row["disparity"], row["similarity"]) == (1.0, 0.0, 1.0)
    assert min(row["processed"] for row in rows) < 1.0


def test_priority_counts_what_interests_have_in_common():
    boxes = Town.drive("streets", 20, 3, 2, 1).boxes(0, 4000.0)
    found = priorities(box_overlaps(boxes), everybody(3))
    assert (found <= 2 * 4000.0**2).all()
