"""Reuse of selections: the compiled algorithms against the naive ones, and what must always hold."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.mobile.quality import quality_of
from tests.reference.mobile.query import Quality
from tests.reference.mobile.reuse import (
    Bounds,
    Owner,
    Waiting,
    batch_quality,
    by_annotations,
    by_cells,
    coordinated,
    exact_at_least,
    fewest,
    greedy,
    in_turn,
    serves,
)
from tests.reference.mobile.reuse import disparity as naive_disparity

from whimbrel.engine.mobile.reuse import (
    EventSets,
    Reach,
    Selections,
    SpaceTimeGrid,
    Tolerance,
    all_or_none,
    batches_by_number,
    batches_by_time,
    box_overlaps,
    by_area,
    circle_overlaps,
    coordinated_neighbours,
    coverable,
    coverable_batches,
    coverable_by,
    disparity,
    everybody,
    joined,
    managers,
    maximum_neighbour_cover,
    maximum_neighbour_cover_of,
    maximum_similarity_cover,
    mean_of,
    per_neighbour,
    prediction,
    priorities,
    refined,
    similarity,
    stand_ins,
)

SHARES = st.sampled_from((0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1.0))
QUALITIES = st.builds(Quality, SHARES, SHARES)
ATOMS = st.frozensets(st.integers(0, 7), max_size=6)


@st.composite
def owners_and_selections(draw, most=9):
    count = draw(st.integers(1, 4))
    everyone = range(count)
    owners = [
        Owner(
            draw(QUALITIES),
            draw(st.frozensets(st.sampled_from(everyone), max_size=count)) - {owner},
            draw(st.booleans()),
        )
        for owner in everyone
    ]
    waiting = draw(st.lists(st.builds(Waiting, st.sampled_from(everyone), ATOMS), max_size=most))
    return owners, waiting


def as_arrays(owners, waiting):
    selections = Selections(
        np.array([each.owner for each in waiting], np.int64), EventSets.of([each.atoms for each in waiting])
    )
    agreed = Tolerance(
        np.array([each.threshold.precision for each in owners]),
        np.array([each.threshold.recall for each in owners]),
        np.array([each.exact for each in owners]),
    )
    may = np.array([[b in a.neighbours for b in range(len(owners))] for a in owners])
    return selections, agreed, may


def by_pair(pairs):
    """Give precision and recall by (covered, covering)."""
    measures = zip(pairs.precision.tolist(), pairs.recall.tolist(), strict=True)
    return dict(zip(zip(pairs.covered.tolist(), pairs.covering.tolist(), strict=True), measures, strict=True))


PRIORITY = st.lists(st.sampled_from((0.0, 1.0, 2.0)), min_size=4, max_size=4)


# Which pairs.


@given(owners_and_selections())
def test_pairs_are_those_that_the_definitions_allow(given):
    owners, waiting = given
    pairs = coverable(*as_arrays(owners, waiting))
    found = set(zip(pairs.covered.tolist(), pairs.covering.tolist(), strict=True))
    for i, one in enumerate(waiting):
        for j, other in enumerate(waiting):
            owner = owners[one.owner]
            quality = quality_of(one.atoms, other.atoms)
            good = quality.precision > owner.threshold.precision and quality.recall > owner.threshold.recall
            allowed = one.atoms == other.atoms or (good and not owner.exact)
            neighbours = one.owner in owners[other.owner].neighbours
            assert ((i, j) in found) == (i != j and neighbours and allowed)
    for i, j, precision, recall in zip(
        pairs.covered, pairs.covering, pairs.precision, pairs.recall, strict=True
    ):
        assert Quality(precision, recall) == quality_of(waiting[i].atoms, waiting[j].atoms)


@given(st.lists(ATOMS, min_size=1, max_size=6))
def test_similarity_of_given_pairs_is_that_of_the_equations(sets):
    size = len(sets)
    i, j = (each.ravel() for each in np.indices((size, size)))
    precision, recall = similarity(EventSets.of(sets), i, j)
    expected = [quality_of(sets[a], sets[b]) for a, b in zip(i, j, strict=True)]
    assert precision.tolist() == [each.precision for each in expected]
    assert recall.tolist() == [each.recall for each in expected]


# Covers.


def is_valid(cover, owners, waiting):
    names = [str(number) for number in range(len(waiting))]
    for exact in (False, True):
        chosen = {
            str(n): str(by)
            for n, by in enumerate(cover.by.tolist())
            if owners[waiting[n].owner].exact == exact
        }
        heads = {by: by for by in chosen.values()}
        atoms = {name: waiting[int(name)].atoms for name in names}
        thresholds = {name: owners[waiting[int(name)].owner].threshold for name in names}
        assert serves({**heads, **chosen}, atoms, thresholds, exact)
    for n, by in enumerate(cover.by.tolist()):
        assert cover.by[by] == by
        assert n == by or waiting[n].owner in owners[waiting[by].owner].neighbours
    assert cover.may_process.tolist() == [by == n for n, by in enumerate(cover.by.tolist())]
    readers = cover.readers
    told = sorted(readers.ids.tolist())
    assert told == list(range(len(waiting)))  # each gets one result
    assert all(by in np.flatnonzero(cover.may_process) for by in readers.rows)


@given(owners_and_selections())
def test_the_greedy_cover_is_valid_and_the_naive_one(given):
    owners, waiting = given
    cover = maximum_similarity_cover(coverable(*as_arrays(owners, waiting)))
    is_valid(cover, owners, waiting)
    naive = greedy(waiting, owners)
    assert (cover.by.tolist(), cover.compared) == (naive.by, naive.compared)


@given(owners_and_selections(), PRIORITY)
def test_the_cover_by_neighbours_is_valid_and_the_naive_one_compared_before_or_not(given, drawn):
    owners, waiting = given
    selections, agreed, may = as_arrays(owners, waiting)
    priority = np.array(drawn[: len(owners)])
    naive = in_turn(waiting, owners, drawn)
    before = maximum_neighbour_cover(coverable(selections, agreed, may), priority)
    directly = maximum_neighbour_cover_of(selections, agreed, priority, may)
    for cover in (before, directly):
        is_valid(cover, owners, waiting)
        assert (cover.by.tolist(), cover.compared) == (naive.by, naive.compared)


@given(owners_and_selections(), PRIORITY, st.lists(st.floats(0, 9), min_size=9, max_size=9))
def test_a_refined_cover_is_valid_and_has_nothing_that_is_not_needed(given, drawn, costs):
    owners, waiting = given
    pairs = coverable(*as_arrays(owners, waiting))
    before = maximum_neighbour_cover(pairs, np.array(drawn[: len(owners)]))
    cover = refined(pairs, before, np.array(costs[: len(waiting)]))
    is_valid(cover, owners, waiting)
    processed = set(np.flatnonzero(cover.may_process).tolist())
    assert processed <= set(np.flatnonzero(before.may_process).tolist())
    who = {n: {n} for n in range(len(waiting))}
    for i, j in zip(pairs.covered.tolist(), pairs.covering.tolist(), strict=True):
        who[i].add(j)
    for one in processed:
        assert any(not who[n] & (processed - {one}) for n in who)
    measures = by_pair(pairs)
    for n, by in enumerate(cover.by.tolist()):
        if n != by:
            assert sum(measures[n, by]) == max(sum(measures[n, other]) for other in who[n] & processed)


@given(owners_and_selections(most=6))
def test_the_greedy_cover_is_as_near_to_the_fewest_as_it_must_be(given):
    owners, waiting = given
    owners = [Owner(each.threshold, frozenset(range(len(owners))) - {n}) for n, each in enumerate(owners)]
    waiting = [Waiting(n % len(owners), each.atoms) for n, each in enumerate(waiting)][: len(owners)]
    pairs = coverable(*as_arrays(owners, waiting))
    found = int(maximum_similarity_cover(pairs).may_process.sum())
    atoms = {str(n): each.atoms for n, each in enumerate(waiting)}
    least = fewest(atoms, {str(n): owners[each.owner].threshold for n, each in enumerate(waiting)})
    largest = 1 + max(np.bincount(pairs.covering, minlength=1), default=0)
    assert least <= found <= ceil(least * (1 + np.log(largest)))


@given(owners_and_selections())
def test_exact_reuse_pairs_equal_selections_alone_as_does_quality_1(given):
    owners, waiting = given
    everyone = frozenset(range(len(owners)))
    choosy = [
        Owner(Quality(1.0, 1.0), everyone - {n}, each.exact)
        if each.exact
        else Owner(Quality(1.0, 1.0), everyone - {n})
        for n, each in enumerate(owners)
    ]
    arrays = as_arrays(choosy, waiting)
    for cover in (
        maximum_similarity_cover(coverable(*arrays)),
        maximum_neighbour_cover_of(arrays[0], arrays[1], np.zeros(len(owners)), arrays[2]),
    ):
        assert all(waiting[n].atoms == waiting[by].atoms for n, by in enumerate(cover.by.tolist()))


def test_the_threshold_is_that_of_the_covered_query():
    # Owner 0 is choosy, owner 1 is not; both selections are similar by two thirds.
    selections = Selections(np.array([0, 1]), EventSets.of([{1, 2, 3}, {1, 2, 4}]))
    agreed = Tolerance(np.array([0.9, 0.5]), np.array([0.9, 0.5]), np.zeros(2, np.bool_))
    assert maximum_similarity_cover(coverable(selections, agreed)).by.tolist() == [0, 0]
    assert maximum_neighbour_cover_of(selections, agreed, np.array([0.0, 1.0])).by.tolist() == [0, 1]


def test_what_was_covered_and_is_chosen_later_stands_for_itself():
    # 0 is like 1 to 3, 1 is like 4 and 5 as well: 1 is covered first, and needed after that.
    sets = [{1, 2, 3, 4}, {3, 4, 5, 6}, {1, 2, 3}, {1, 2, 4}, {5, 6, 3}, {5, 6, 4}, {1, 2}]
    agreed = Tolerance.same(7, 0.4)
    pairs = coverable(Selections(np.arange(7), EventSets.of(sets)), agreed)
    cover = maximum_similarity_cover(pairs)
    assert all(cover.by[by] == by for by in cover.by)
    assert cover.may_process.sum() == 2


def test_results_are_annotated_with_each_reader_once():
    selections = Selections(np.array([0, 0, 1, 1]), EventSets.of([{1}, {2}, {1}, {2}]))
    cover = maximum_similarity_cover(coverable(selections, Tolerance.same(2, 0.5)))
    owners = cover.reader_owners(selections.owner)
    assert [owners.ids[owners.rows == n].tolist() for n in np.flatnonzero(cover.may_process)] == [[0, 1]] * 2


# Disparity.


@given(
    st.lists(st.frozensets(st.integers(0, 4), max_size=5), min_size=1, max_size=5),
    st.lists(st.tuples(ATOMS, st.frozensets(st.integers(0, 4), max_size=4)), min_size=1, max_size=4),
)
def test_disparity_is_that_of_the_equation(held, rows):
    events = 8
    holders = EventSets.of([held[event % len(held)] for event in range(events)])
    found = disparity(EventSets.of([a for a, _ in rows]), EventSets.of([u for _, u in rows]), holders)
    areas = [lambda event, area=area: area in held[event % len(held)] for area in range(5)]
    expected = [naive_disparity(sorted(a), [areas[each] for each in sorted(u)]) for a, u in rows]
    assert found.tolist() == pytest.approx(expected)


def test_disparity_of_table_5_1():
    # e8 of Q2 depends on e1 to e3, e12 of Q3 on e6 and e7; Q2 (1) holds all but e6 and e7, Q3 (2) all.
    holders = EventSets.of([set(), {1, 2}, {1, 2}, {1, 2}, {2}, {2}, {2}, {2}])
    found = disparity(EventSets.of([{1, 2, 3, 6, 7}]), EventSets.of([{1, 2}]), holders)
    assert found.tolist() == pytest.approx([0.2])


# Groups and neighbours.


@given(
    st.lists(st.tuples(st.integers(0, 1), st.floats(-50, 50), st.floats(-50, 50)), max_size=30),
    st.integers(1, 5),
)
def test_managers_have_one_type_and_region_and_even_shares(operators, most):
    kind, x, y = (np.array([each[n] for each in operators], np.float64) for n in range(3))
    found = managers(kind.astype(np.int64), x, y, region_m=20.0, most=most)
    assert sorted(set(found.tolist())) == list(range(len(set(found.tolist()))))
    groups = {}
    for number, key in zip(
        found.tolist(), zip(kind, np.floor(x / 20), np.floor(y / 20), strict=True), strict=True
    ):
        groups.setdefault(key, []).append(number)
    for key, numbers in groups.items():
        sizes = [numbers.count(number) for number in set(numbers)]
        assert len(sizes) == ceil(len(numbers) / most)
        assert max(sizes) - min(sizes) <= 1
        assert all(set(numbers).isdisjoint(others) for other, others in groups.items() if other != key)


BOUNDS = st.builds(
    Bounds, st.sampled_from((0.0, 2.0, 5.0, 9.0)), st.sampled_from((0.0, 2.0, 5.0, 9.0)), st.integers(0, 4)
)
WHOLE = st.integers(0, 6).map(float)


@given(st.lists(st.tuples(WHOLE, WHOLE, BOUNDS), min_size=1, max_size=7))
def test_coordinated_neighbours_are_those_of_the_naive_algorithm(operators):
    places = [(x, y) for x, y, _ in operators]
    bounds = [each for _, _, each in operators]
    x, y = np.array(places).T
    overlaps = box_overlaps(np.column_stack((x - 2, y - 2, x + 2, y + 2)))
    reach = Reach(
        np.array([each.nearest for each in bounds]),
        np.array([each.apart for each in bounds]),
        np.array([each.most for each in bounds], np.int64),
    )
    found = coordinated_neighbours(x, y, overlaps, reach)
    reference, neighbours = coordinated(places, overlaps.tolist(), bounds)
    assert found.reference.tolist() == reference
    assert [set(np.flatnonzero(row).tolist()) for row in found.serves] == neighbours
    assert (found.serves.sum(axis=0) <= reach.most).all()  # at most k stand for each


def test_areas_in_common():
    boxes = np.array([[0.0, 0.0, 4.0, 2.0], [3.0, 1.0, 5.0, 3.0], [9.0, 9.0, 10.0, 10.0]])
    assert box_overlaps(boxes).tolist() == [[8.0, 1.0, 0.0], [1.0, 4.0, 0.0], [0.0, 0.0, 1.0]]
    shapely = pytest.importorskip("shapely")
    x, radius = np.array([0.0, 3.0, 1.0, 20.0]), np.array([4.0, 3.0, 1.0, 2.0])
    discs = [shapely.Point(a, 0).buffer(r, quad_segs=500) for a, r in zip(x, radius, strict=True)]
    found = circle_overlaps(np.abs(x[:, None] - x[None, :]), radius)
    expected = [[one.intersection(other).area for other in discs] for one in discs]
    assert found == pytest.approx(np.array(expected), rel=1e-4)


def test_priority_is_the_overlap_with_those_that_one_may_serve():
    boxes = np.array([[0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0], [2.0, 0.0, 4.0, 2.0]])
    assert priorities(box_overlaps(boxes), everybody(3)).tolist() == [2.0, 4.0, 2.0]


# Batches.


@given(owners_and_selections(), st.integers(1, 4), st.integers(1, 4))
def test_batches_part_the_selections_of_each_operator(given, number, length):
    owners, waiting = given
    waiting = sorted(waiting, key=lambda each: each.owner)
    selections, _, _ = as_arrays(owners, waiting)
    owner, end = selections.owner, np.arange(len(waiting))
    for batches in (
        batches_by_number(owner, number),
        batches_by_time(owner, end, length),
        all_or_none(owner),
    ):
        assert batches.offsets[0] == 0
        assert batches.offsets[-1] == len(waiting)
        assert (batches.owner[batches.of_selection] == owner).all()
        assert (np.diff(batches.offsets) > 0).all()
    assert np.diff(batches_by_number(owner, number).offsets).max(initial=0) <= number
    assert len(all_or_none(owner)) == len(set(owner.tolist()))
    by_time = batches_by_time(owner, end, length)
    for first, last in zip(by_time.offsets[:-1], by_time.offsets[1:], strict=True):
        assert len(set((end[first:last] // length).tolist())) == 1


@given(owners_and_selections(), st.integers(1, 3), st.data())
def test_batches_stand_for_others_by_average_similarity(given, number, data):
    owners, waiting = given
    waiting = sorted(waiting, key=lambda each: each.owner)
    selections, agreed, may = as_arrays(owners, waiting)
    size = len(waiting)
    ends = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    ends = [end for _, end in sorted(zip([each.owner for each in waiting], ends, strict=True))]
    batches = batches_by_number(selections.owner, number)
    pairs = coverable_batches(selections, np.array(ends, np.int64), batches, agreed, may)
    found = by_pair(pairs)
    content = [
        [(ends[n], waiting[n].atoms) for n in range(a, b)]
        for a, b in zip(batches.offsets[:-1], batches.offsets[1:], strict=True)
    ]
    for i, one in enumerate(content):
        for j, other in enumerate(content):
            owner = owners[batches.owner[i]]
            quality = batch_quality(one, other)
            # Sums of floats: only what is clearly on one side is decided.
            margin = min(
                abs(quality.precision - owner.threshold.precision),
                abs(quality.recall - owner.threshold.recall),
            )
            good = quality.precision > owner.threshold.precision and quality.recall > owner.threshold.recall
            equal = [atoms for _, atoms in one] == [atoms for _, atoms in other]
            neighbours = batches.owner[i] in owners[batches.owner[j]].neighbours
            if margin > 1e-9 or equal or owner.exact:
                assert ((i, j) in found) == (i != j and neighbours and (equal or (good and not owner.exact)))
            if (i, j) in found:
                assert found[i, j] == pytest.approx((quality.precision, quality.recall))
    cover = maximum_similarity_cover(pairs)
    by = stand_ins(batches, np.array(ends, np.int64), cover)
    precision, _ = similarity(selections.atoms, np.arange(size), by)
    for batch in np.flatnonzero(~cover.may_process):
        expected = batch_quality(content[batch], content[cover.by[batch]]).precision
        assert mean_of(precision, batches)[batch] == pytest.approx(expected)


# Estimates.


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=6), st.lists(st.integers(0, 5), max_size=6)),
             min_size=1, max_size=5),
    SHARES,
)  # fmt: skip
def test_a_grid_estimates_by_the_cells_of_actual_and_of_reused_events(rows, threshold):
    def counts(which):
        row = np.array([n for n, each in enumerate(rows) for _ in each[which]], np.int64)
        cell = np.array([cell for each in rows for cell in each[which]], np.int64)
        return EventSets.counted(row, cell, len(rows))

    agreed = Tolerance.same(len(rows), threshold)
    pairs = coverable_by(np.arange(len(rows)), counts(0), counts(1), agreed)
    found = by_pair(pairs)
    for i, (actual, _) in enumerate(rows):
        for j, (_, used) in enumerate(rows):
            quality = by_cells(actual, used)
            good = quality.precision > threshold and quality.recall > threshold
            assert ((i, j) in found) == (good and i != j and bool(actual) and bool(used))
            if (i, j) in found:
                assert found[i, j] == (quality.precision, quality.recall)


def test_cells_of_events_are_told_apart_by_place_and_time_and_counts_are_joined():
    grid = SpaceTimeGrid(cell_m=10.0, cell_us=1_000)
    cells = grid.cells(
        np.array([1.0, 9.0, 11.0, 1.0, -1.0]),
        np.array([1.0, 2.0, 1.0, 11.0, 1.0]),
        np.array([0, 999, 0, 0, 0]),
    )
    assert len(set(cells.tolist())) == 4
    assert cells[0] == cells[1] != grid.cells(np.array([1.0]), np.array([1.0]), np.array([1_000]))[0]
    one = grid.counts(EventSets.of([{0, 1, 2}, {3}]), cells)
    both = joined([one, grid.counts(EventSets.of([{0}, set()]), cells)])
    assert both.total.tolist() == [4.0, 1.0]
    assert sorted(both.values[both.rows == 0].tolist()) == [1.0, 3.0]


@given(
    st.lists(st.dictionaries(st.integers(0, 4), QUALITIES, min_size=1), min_size=1, max_size=4),
    st.lists(st.integers(1, 4), min_size=5, max_size=5),
    SHARES,
)
def test_per_neighbour_weighs_common_events_by_their_annotations(rows, atoms, threshold):
    read = EventSets.of([set(row) for row in rows])
    annotated = [row[e] for row in rows for e in sorted(row)]
    pairs = per_neighbour(
        np.arange(len(rows)), read, np.array(atoms, np.float64)[read.ids],
        np.array([each.precision for each in annotated]), np.array([each.recall for each in annotated]),
        Tolerance.same(len(rows), threshold),
    )  # fmt: skip
    found = by_pair(pairs)
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            quality = by_annotations(one, other, dict(enumerate(atoms)))
            if min(abs(quality.precision - threshold), abs(quality.recall - threshold)) > 1e-9 and i != j:
                assert ((i, j) in found) == (quality.precision > threshold and quality.recall > threshold)
            if (i, j) in found:
                assert found[i, j] == pytest.approx((quality.precision, quality.recall))


def test_per_neighbour_counts_as_the_thesis_does():
    # e8 was reused with precision 2/3 and depends on three events, e11 with 1/2 and on two: 2 + 1 of 5.
    pairs = per_neighbour(
        np.array([0, 1]), EventSets.of([{8, 11}, {8, 11}]), np.array([3.0, 2.0, 3.0, 2.0]),
        np.array([2 / 3, 1 / 2, 1.0, 1.0]), np.ones(4), Tolerance.same(2, 0.5),
    )  # fmt: skip
    assert dict(zip(pairs.covered.tolist(), pairs.precision.tolist(), strict=True)) == {
        0: pytest.approx(3 / 5),
        1: pytest.approx(1.0),
    }


def test_by_area_is_precision_by_the_other_area_and_recall_by_the_own():
    precision, recall = by_area(np.array([[8.0, 1.0], [1.0, 4.0]]))
    assert precision.tolist() == [[1.0, 0.25], [0.125, 1.0]]
    assert recall.tolist() == [[1.0, 0.125], [0.25, 1.0]]


# Prediction.


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_the_chance_of_enough_common_events_is_that_of_the_urn(least, drawn, good, bad):
    known = good + bad
    drawn = min(drawn, known)
    arrays = (np.array([each], np.int64) for each in (least, drawn, good, known))
    found = prediction.chance_of(*arrays)
    assert found[0] == pytest.approx(float(exact_at_least(least, drawn, good, known)))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_predictions_lie_between_the_pessimistic_and_the_optimistic_one(common, more, missing, good, bad):
    own = common + more
    c, o, m, k, n = (np.array([float(each)]) for each in (common, own, missing, good, good + bad))
    low, high = prediction.pessimistic(c, o, m), prediction.optimistic(c, o, m)
    assert low <= prediction.by_urn(c, o, m, k, n) <= high
    if own:
        assert low <= prediction.so_far(c, o) <= high


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), SHARES)
def test_what_is_needed_is_the_least_number_that_is_above_the_threshold(common, more, missing, threshold):
    c, o, m = (np.array([float(each)]) for each in (common, common + more, missing))
    least = int(prediction.needed(c, o, m, np.array([threshold]))[0])
    total = common + more + missing
    assert common + least > threshold * total
    assert least == 0 or common + least - 1 <= threshold * total


def test_prediction_by_location_averages_over_the_steps_ahead():
    now = np.array([[True, True, False], [True, False, False]])
    later = np.array([[True, False, False], [True, False, False]])
    precision, recall = prediction.by_location([now, later])
    assert precision.tolist() == [[1.0, 1.0], [0.75, 1.0]]
    assert recall.tolist() == [[1.0, 0.75], [1.0, 1.0]]
    x, y = prediction.dead_reckoning(np.array([1.0]), np.array([2.0]), np.array([3.0]), np.array([0.0]),
                                     np.array([0.0, 2.0]))  # fmt: skip
    assert (x.tolist(), y.tolist()) == ([[1.0], [7.0]], [[2.0], [2.0]])
