"""What may be saved and what may not: duplicates, prediction, reuse. Each printed slip has its test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.mobile.duplicates import is_duplicate
from tests.reference.mobile.prediction import Prepared, candidates, may_serve, steps_ahead
from tests.reference.mobile.query import Quality
from tests.reference.mobile.reuse import at_least, disparity, fewest, may_cover, serves, similarity_by_common

HIGH = Quality(0.9, 0.9)
LOW = Quality(0.5, 0.5)


# Duplicates.


def test_a_selection_is_a_duplicate_if_nothing_came_between_and_its_result_is_kept():
    assert is_duplicate((1, 2), logs=[(1, 3)], outputs=[(1, 2)])
    assert not is_duplicate((1, 2), logs=[(2, 3)], outputs=[(1, 2)])  # an event was new
    assert not is_duplicate((1, 2), logs=[(1, 2), (3, 4)], outputs=[])


def test_that_some_result_lies_in_the_log_does_not_make_a_selection_a_duplicate():
    # The printed condition asks no more than that; the text asks for the times of the selection itself.
    assert not is_duplicate((3, 4), logs=[(1, 5)], outputs=[(1, 2)])


def test_a_selection_over_two_logs_may_have_something_new_between():
    assert not is_duplicate((1, 4), logs=[(1, 2), (3, 4)], outputs=[(1, 4)])


# Prediction.


def test_what_is_prepared_serves_if_it_is_complete_and_good_enough():
    ready = Prepared(frozenset("abcde"), complete=True)
    assert may_serve(ready, "abcde", HIGH)
    assert may_serve(ready, "abcd", Quality(0.8, 0.8))
    assert not may_serve(ready, "abcd", HIGH)
    assert not may_serve(ready, "abcdefgh", Quality(0.1, 0.9))


def test_what_is_not_there_or_not_complete_does_not_serve():
    assert not may_serve(None, "abc", LOW)
    assert not may_serve(Prepared(frozenset("abc"), complete=False), "abc", LOW)
    assert not may_serve(Prepared(frozenset("abc"), complete=False, same_area=True), "abc", LOW)


def test_a_quality_of_1_is_kept_by_the_very_same_area_alone():
    perfect = Quality(1.0, 1.0)
    assert not may_serve(Prepared(frozenset("abc"), complete=True), "abc", perfect)
    assert may_serve(Prepared(frozenset("abc"), complete=True, same_area=True), "abc", perfect)


def test_the_pipeline_looks_ahead_from_the_next_step_on():
    assert list(steps_ahead(4, 3)) == [5, 6, 7]
    assert list(steps_ahead(4, 0)) == []


FIGURE = {
    "i": frozenset({"e2", "e3"}),
    "i1": frozenset({"e1"}),
    "i2": frozenset({"e1"}),
    "i3": frozenset({"e3"}),
}
SIZES = {name: float(len(events)) for name, events in FIGURE.items()}


def test_candidates_are_taken_by_policy_until_every_place_is_served():
    assert candidates(list(FIGURE), FIGURE, LOW, SIZES, 99.0, "greedy") == ["i", "i1", "i3"]
    assert candidates(["i2", "i", "i1", "i3"], FIGURE, LOW, SIZES, 99.0, "location") == ["i2", "i", "i3"]
    assert candidates(list(FIGURE), FIGURE, LOW, SIZES, 2.0, "resource") == ["i1", "i3"]
    assert candidates(list(FIGURE), FIGURE, LOW, SIZES, 2.0, "greedy") == ["i"]


def test_a_place_that_is_served_just_to_the_threshold_is_not_redundant():
    # i serves i3 with precision 1/2 and recall 1.
    assert "i3" in candidates(["i", "i3"], FIGURE, Quality(0.5, 0.5), SIZES, 99.0, "location")
    assert "i3" not in candidates(["i", "i3"], FIGURE, Quality(0.49, 0.5), SIZES, 99.0, "location")


# Reuse.


def test_precision_and_recall_of_selections_are_those_of_table_5_1():
    s2, s3 = {"e1", "e2", "e3"}, {"e1", "e2", "e4"}
    assert may_cover(s3, s2, Quality(0.66, 0.66))
    assert not may_cover(s3, s2, Quality(0.67, 0.5))
    assert not may_cover({"e6", "e7"}, {"e5", "e6"}, LOW)  # just a half


def test_the_threshold_is_that_of_the_query_that_gives_up_its_own_selection():
    atoms = {"choosy": {"e1", "e2", "e3"}, "easy": {"e1", "e2", "e4"}}
    owners = {"choosy": HIGH, "easy": LOW}
    assert serves({"choosy": "choosy", "easy": "choosy"}, atoms, owners, exact=False)
    assert not serves({"choosy": "easy", "easy": "easy"}, atoms, owners, exact=False)


def test_nothing_similar_stands_for_anything_with_reuse_exact_or_quality_1():
    atoms = {"a": {"e1", "e2"}, "b": {"e1", "e2"}, "c": {"e1"}}
    perfect = dict.fromkeys(atoms, Quality(1.0, 1.0))
    assert serves({"a": "a", "b": "a", "c": "c"}, atoms, perfect, exact=False)
    assert not serves({"a": "a", "b": "a", "c": "a"}, atoms, perfect, exact=False)
    assert not serves(
        {"a": "a", "b": "a", "c": "a"}, atoms, dict.fromkeys(atoms, Quality(0.1, 0.1)), exact=True
    )
    assert fewest(atoms, perfect) == 2


def test_what_stands_for_another_is_processed_itself():
    atoms = {name: {"e1"} for name in "abc"}
    assert not serves({"a": "b", "b": "c", "c": "c"}, atoms, dict.fromkeys(atoms, LOW), exact=False)


def test_disparity_counts_the_interests_that_lack_an_event():
    # Five events, two interests; one of them holds only three.
    assert disparity(list("abcde"), [lambda _: True, lambda e: e in "abc"]) == pytest.approx(0.2)
    assert disparity(list("abcde"), [lambda _: True]) == 0.0
    assert disparity([], []) == 0.0


def test_the_share_of_common_events_is_precision_in_the_one_that_stands_in():
    found = similarity_by_common(common=2.0, own=4.0, others=5.0)
    assert found == Quality(precision=2 / 5, recall=2 / 4)


def test_the_chance_of_enough_common_events_includes_just_enough():
    assert at_least(1, drawn=1, common=3, known=3) == 1.0
    assert at_least(1, drawn=1, common=1, known=2) == 0.5
    assert at_least(2, drawn=2, common=2, known=4) == pytest.approx(1 / 6)
    assert at_least(0, drawn=2, common=0, known=4) == 1.0


selections = st.dictionaries(
    st.sampled_from("abcd"), st.sets(st.sampled_from("uvwxyz"), min_size=1), min_size=1, max_size=4
)


@given(selections)
def test_each_selection_covers_itself_so_that_there_is_always_a_choice(atoms):
    owners = dict.fromkeys(atoms, HIGH)
    assert serves({name: name for name in atoms}, atoms, owners, exact=True)
    assert 1 <= fewest(atoms, owners) <= len(atoms)
    assert fewest(atoms, dict.fromkeys(atoms, Quality(0.0, 0.0))) <= fewest(atoms, owners)
