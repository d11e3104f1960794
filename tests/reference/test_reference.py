"""The reference against docs/meaning.md: every sentence that can be tried, with answers worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.reference import Event, TooLarge, admit, detect
from tests.reference.building import (
    BY_CELL,
    BY_K,
    BY_SOURCE,
    absent,
    attr,
    call,
    is_,
    query,
    sequence,
    together,
    value,
)
from tests.reference.data import hull, order
from tests.reference.notation import given

from whimbrel.graph.functions import function
from whimbrel.graph.operators import (
    Aggregate,
    AggregateInput,
    Branch,
    Derive,
    DeriveCase,
    Filter,
    Graph,
    Merge,
    Repeat,
    Source,
    TimeOrder,
)
from whimbrel.graph.policies import WHOLE, Assign, Context, Window
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import SECOND


def found(graph, text, **more):
    """The events of each detection, as words: {"a1 b1", ...}; every detection only once."""
    listed = [" ".join(one.events) for one in detect(graph, given(text), **more)]
    assert len(set(listed)) == len(listed)
    return set(listed)


def one(graph, text, **more):
    (detection,) = detect(graph, given(text), **more)
    return detection


def span(detection):
    return detection.start / SECOND, detection.end / SECOND


# Events and their order.


def test_events_stand_by_end_then_start_then_source_then_id():
    events = given("A@2s#late A@1s#b!s A@1s#c!r A@1s#a!s A@1s#z A@0..1s#long")
    assert [event.id for event in sorted(events, key=order)] == ["long", "z", "c", "a", "b", "late"]


def test_texts_go_by_code_point():
    events = given("A@1s#é A@1s#Z A@1s#a")
    assert [event.id for event in sorted(events, key=order)] == ["Z", "a", "é"]


def test_nan_attributes_are_null():
    events = [Event("e", "A", 0, 0, attributes={"w": float("nan")})]
    keep = Filter("f", "A", call("is_null", attr("w")))
    assert [detection.events for detection in detect(query(keep), events)] == [("e",)]


# Lateness and duplicates.


def test_an_event_at_the_watermark_is_late_and_one_after_it_is_not():
    # After the first batch W = 10 s - 3 s - 1 us, so an end of exactly 7 s is still in time.
    admitted = admit(
        [given("A@10s#a"), [*given("A@7s#b"), Event("c", "A", 6_999_999, 6_999_999)]], 3 * SECOND
    )
    assert [event.id for event in admitted.processed] == ["b", "a"]
    assert [event.id for event in admitted.late] == ["c"]


def test_lateness_is_judged_by_the_watermark_before_the_batch():
    admitted = admit([given("A@10s#a A@1s#b")], 3 * SECOND)
    assert admitted.late == []
    assert [event.id for event in admit([given("A@10s#a"), given("A@1s#b")], 3 * SECOND).late] == ["b"]


def test_a_watermark_never_falls():
    admitted = admit([given("A@10s#a"), given("A@8s#b"), given("A@6s#c")], 3 * SECOND)
    assert [event.id for event in admitted.late] == ["c"]


def test_the_same_id_within_the_lateness_is_a_duplicate():
    batches = [given("A@1s#a"), given("A@4s#a"), given("A@5s#a")]
    admitted = admit(batches, 3 * SECOND)
    # 4 s is 3 s after the accepted one; 5 s is 4 s after it, and the one at 4 s was not accepted.
    assert [event.end // SECOND for event in admitted.processed] == [1, 5]
    assert [event.end // SECOND for event in admitted.duplicate] == [4]


def test_duplicates_do_not_depend_on_the_order_of_arrival():
    for batches in ([given("A@1s#a A@4s#a")], [given("A@4s#a"), given("A@1s#a")]):
        assert [event.end // SECOND for event in admit(batches, 3 * SECOND).duplicate] == [4]


def test_without_a_lateness_nothing_is_late_and_every_repeated_id_is_a_duplicate():
    admitted = admit([given("A@100s#a"), given("A@1s#a B@50s#b")], None)
    assert [(event.id, event.end // SECOND) for event in admitted.processed] == [("a", 1), ("b", 50)]
    assert [event.end // SECOND for event in admitted.duplicate] == [100]
    assert admitted.late == []


# Parts, combinations, detections.


def test_then_means_that_one_has_ended_before_the_other_starts():
    graph = query(sequence("A a, B b", 10))
    assert found(graph, "A@1s B@2s") == {"a1 b1"}
    assert found(graph, "A@1s B@1s") == set()
    assert found(graph, "A@1..2s B@2..3s") == set()
    assert found(graph, "A@1..2s B@3..4s") == {"a1 b1"}
    assert found(graph, "B@1s A@2s") == set()


def test_within_is_closed_and_spans_from_least_start_to_largest_end():
    graph = query(sequence("A a, B b", 5))
    assert found(graph, "A@1s B@6s") == {"a1 b1"}
    assert found(graph, "A@1s B@6..7s") == set()
    assert found(graph, "A@0..1s B@6s") == set()


def test_within_from_counts_between_ends_and_needs_only_the_total_order():
    gap = query(replace(together("A a, B b", 60), orders=(TimeOrder(0, 1, 3 * SECOND),)))
    assert found(gap, "A@1s B@4s") == {"a1 b1"}
    assert found(gap, "A@1s B@5s") == set()
    assert found(gap, "A@1..3s B@2..5s") == {"a1 b1"}
    # A tie in time: a1 stands before b1 by id, b1 does not stand before a2.
    assert found(gap, "A@1s B@1s") == {"a1 b1"}
    assert found(gap, "A@1s#z B@1s#b") == set()


def test_a_conjunction_takes_events_in_any_order():
    assert found(query(together("A a, B b", 5)), "B@1s A@2s B@9s") == {"b1 a1"}


def test_no_event_fills_two_parts():
    assert found(query(together("A a, A b", 5)), "A@1s") == set()
    listed = detect(query(together("A a, A b", 5)), given("A@1s A@2s"))
    assert [detection.events for detection in listed] == [("a1", "a2"), ("a1", "a2")]


def test_composites_may_share_constituents():
    pair = replace(sequence("A a, B b", 5), name="p")
    first = Derive("P", "P", (DeriveCase("p", None),))
    top = together("P p, P q", 5, conditions=(is_("p.id", "<", attr("q.id")),))
    assert found(query(pair, first, top), "A@1s B@2s B@3s") == {"a1 b1 b2"}


def test_a_detection_spans_its_constituents_and_names_them_in_total_order():
    detection = one(query(together("B b, A a", 20)), "A@1..4s!s(0,0) B@2..9s!s(3,4)")
    assert span(detection) == (1, 9)
    assert detection.events == ("a1", "b1")
    assert detection.hull == ((0.0, 0.0), (3.0, 4.0))
    assert detection.source == "s"


def test_sources_that_differ_give_none():
    assert one(query(together("A a, B b", 5)), "A@1s!s B@2s!t").source is None
    assert one(query(together("A a, B b", 5)), "A@1s!s B@2s").source is None


def test_all_events_lie_in_one_partition_and_null_is_a_partition():
    graph = query(sequence("A a, B b", 10, partitioning=BY_K))
    text = "A@1s:k=x A@1s:k=y A@1s B@2s:k=x B@2s"
    assert found(graph, text) == {"a1 b1", "a3 b2"}
    by_source = query(sequence("A a, B b", 10, partitioning=BY_SOURCE))
    assert found(by_source, "A@1s!s A@1s!t B@2s!t") == {"a2 b1"}
    by_cell = query(sequence("A a, B b", 10, partitioning=BY_CELL))
    assert found(by_cell, "A@1s(9,9) A@1s(10,9) B@2s(0,0) B@2s(-1,0)") == {"a1 b1"}


def test_conditions_compare_the_parts():
    graph = query(sequence("A a, B b", 10, conditions=(is_("a.v", "<", attr("b.v")),)))
    assert found(graph, "A@1s:v=1 A@1s:v=5 A@1s B@2s:v=3 B@3s") == {"a1 b1"}


def test_a_condition_may_read_the_group():
    condition = is_("group.k", "=", "x")
    graph = query(sequence("A a, B b", 10, partitioning=BY_K, conditions=(condition,)))
    assert found(graph, "A@1s:k=x B@2s:k=x A@1s:k=y B@2s:k=y") == {"a1 b1"}


# Absent parts.


def test_absent_between_two_parts():
    graph = query(sequence("A a, B b", 10, absent=(absent("C c", 0, 1),)))
    assert found(graph, "A@1s C@2s B@3s") == set()
    assert found(graph, "A@1s C@1s B@3s") == {"a1 b1"}
    assert found(graph, "A@1s C@3s B@3s") == {"a1 b1"}
    assert found(graph, "A@1s C@2..3s B@3s") == {"a1 b1"}
    assert found(graph, "C@0s A@1s B@3s C@4s") == {"a1 b1"}


def test_absent_before_the_first_part_reaches_back_as_far_as_within():
    graph = query(sequence("A a, B b", 5, absent=(absent("C c", None, 0),)))
    assert found(graph, "C@1s A@4s B@6s") == set()
    assert found(graph, "C@0s A@4s B@6s") == {"a1 b1"}
    assert found(graph, "C@4s A@4s B@6s") == {"a1 b1"}
    assert found(graph, "C@0..2s A@4s B@6s") == {"a1 b1"}


def test_absent_for_a_time_completes_at_its_deadline():
    graph = query(sequence("A a", 0, absent=(absent("B b", 0, None, 3),)))
    detection = one(graph, "A@1s B@1s B@5s")
    assert span(detection) == (1, 4)
    assert detection.events == ("a1",)
    assert found(graph, "A@1s B@4s") == set()
    assert found(graph, "A@1s B@4..5s") == {"a1"}


def test_absent_for_a_time_may_reach_beyond_within():
    graph = query(sequence("A a, B b", 2, absent=(absent("C c", 1, None, 10),)))
    assert span(one(graph, "A@1s B@2s")) == (1, 12)
    assert found(graph, "A@1s B@2s C@12s") == set()


def test_absent_after_the_last_part_waits_for_the_rest_of_within():
    graph = query(sequence("A a, B b", 5, absent=(absent("C c", 1, None),)))
    assert span(one(graph, "A@1s B@2s C@7s")) == (1, 6)
    assert found(graph, "A@1s B@2s C@6s") == set()
    assert found(graph, "A@1s C@1..2s B@2s C@2s") == {"a1 b1"}


def test_an_absent_part_may_read_other_parts_and_lies_in_the_same_partition():
    same = is_("c.v", "=", attr("a.v"))
    graph = query(sequence("A a, B b", 10, absent=(absent("C c", 0, 1, None, same),)))
    assert found(graph, "A@1s:v=1 C@2s:v=2 B@3s") == {"a1 b1"}
    assert found(graph, "A@1s:v=1 C@2s:v=1 B@3s") == set()
    grouped = query(sequence("A a, B b", 10, partitioning=BY_K, absent=(absent("C c", 0, 1),)))
    assert found(grouped, "A@1s:k=x C@2s:k=y B@3s:k=x") == {"a1 b1"}
    assert found(grouped, "A@1s:k=x C@2s:k=x B@3s:k=x") == set()


def test_a_deadline_before_the_last_part_does_not_cut_the_detection_short():
    graph = query(together("A a, B b", 10, absent=(absent("C c", 0, None, 1),)))
    assert span(one(graph, "A@1s B@5s")) == (1, 5)


# Selection.


def test_first_keeps_the_earliest_of_those_that_agree_elsewhere():
    assert found(query(sequence("A a first, B b", 10)), "A@1s A@2s B@3s B@4s") == {"a1 b1", "a1 b2"}
    assert found(query(sequence("A a, B b first", 10)), "A@1s A@2s B@3s B@4s") == {"a1 b1", "a2 b1"}


def test_last_keeps_the_latest_that_has_completed():
    assert found(query(sequence("A a last, B b", 10)), "A@1s A@2s B@3s B@4s") == {"a2 b1", "a2 b2"}
    # When b1 completes, b2 has not come yet: both stay.
    assert found(query(sequence("A a, B b last", 10)), "A@1s B@3s B@4s") == {"a1 b1", "a1 b2"}


def test_marks_apply_independently():
    text = "A@1s A@2s B@3s B@4s"
    assert found(query(sequence("A a last, B b first", 10)), text) == {"a2 b1"}
    # a1 and a2 tie with different b: a1 b2 loses to a2 b2 on part a and to a1 b1 on part b.
    assert found(query(sequence("A a first, B b first", 10)), text) == {"a1 b1"}


def test_selection_looks_at_combinations_that_hold():
    graph = query(sequence("A a first, B b", 10, conditions=(is_("a.v", "=", attr("b.v")),)))
    assert found(graph, "A@1s:v=1 A@2s:v=2 B@3s:v=2") == {"a2 b1"}


def test_absences_that_wait_are_judged_after_selection():
    quiet = (absent("C c", 0, None, 3),)
    # c1 comes within 3 s of a2 but not of a1; a2 has been chosen by then.
    assert found(query(sequence("A a last, B b", 10, absent=quiet)), "A@1s A@2s B@3s C@5s") == set()
    assert found(query(sequence("A a, B b", 10, absent=quiet)), "A@1s A@2s B@3s C@5s") == {"a1 b1"}


# Contexts. The text has two of each, all combinations of which hold.

FOUR = "A@1s A@2s B@3s B@4s"


def in_context(context, text=FOUR, pattern="A a, B b", within=10, **more):
    return found(query(sequence(pattern, within, context=context, **more)), text)


def test_each_gives_every_combination():
    assert in_context(Context.EACH) == {"a1 b1", "a1 b2", "a2 b1", "a2 b2"}


def test_recent_gives_the_newest_for_each_trigger():
    assert in_context(Context.RECENT) == {"a2 b1", "a2 b2"}


def test_recent_compares_from_the_last_part_to_the_first():
    # For the trigger c1: a2 b1 and a1 b2 both hold, the newer b decides.
    close = (is_("a.v", "=", attr("b.v")),)
    text = "A@1s:v=2 A@2s:v=1 B@3s:v=1 B@4s:v=2 C@5s"
    assert in_context(Context.RECENT, text, "A a, B b, C c", conditions=close) == {"a1 b2 c1"}


def test_chronicle_pairs_the_oldest_with_the_oldest():
    assert in_context(Context.CHRONICLE) == {"a1 b1", "a2 b2"}


def test_chronicle_does_not_look_further_when_a_condition_fails():
    close = (is_("a.v", "=", attr("b.v")),)
    assert in_context(Context.CHRONICLE, "A@1s:v=1 A@2s:v=2 B@3s:v=2", conditions=close) == set()


def test_chronicle_tries_the_oldest_for_every_trigger():
    close = (is_("a.v", "=", attr("b.v")),)
    assert in_context(Context.CHRONICLE, "A@1s:v=1 B@2s:v=9 B@3s:v=1", conditions=close) == {"a1 b2"}


def test_chronicle_does_not_wait_for_events_that_are_too_old():
    assert in_context(Context.CHRONICLE, "A@1s A@9s B@10s", within=5) == {"a2 b1"}


def test_first_matching_takes_the_oldest_that_holds_and_consumes_it():
    assert in_context(Context.FIRST_MATCHING) == {"a1 b1", "a2 b2"}
    close = (is_("a.v", "=", attr("b.v")),)
    assert in_context(Context.FIRST_MATCHING, "A@1s:v=1 A@2s:v=2 B@3s:v=2", conditions=close) == {"a2 b1"}


def test_continuous_gives_one_for_each_first_part_and_then_consumes_all():
    assert in_context(Context.CONTINUOUS) == {"a1 b1", "a2 b1"}
    # Both a1 and a2 take the oldest b; the trigger c1 ends both.
    assert in_context(Context.CONTINUOUS, "A@1s A@2s B@3s B@4s C@5s C@6s", "A a, B b, C c") == {
        "a1 b1 c1",
        "a2 b1 c1",
    }


def test_cumulative_takes_all_at_once_and_each_part_reads_as_its_latest():
    graph = query(
        sequence("A a, B b", 10, context=Context.CUMULATIVE),
        assign={"v": attr("a.v"), "n": call("count", "a")},
    )
    detection = one(graph, "A@1s:v=1 A@2s:v=2 B@3s B@4s")
    assert detection.events == ("a1", "a2", "b1")
    assert detection.attributes == {"v": 2, "n": 1}
    assert span(detection) == (1, 3)


def test_consuming_takes_away_the_named_parts_only():
    assert in_context(Context.EACH, consuming=(0,)) == {"a1 b1", "a2 b1"}
    assert in_context(Context.EACH, consuming=(1,)) == {"a1 b1", "a1 b2"}
    assert in_context(Context.EACH, consuming=(0, 1)) == {"a1 b1", "a2 b2"}


def test_consumed_events_still_count_as_not_absent():
    pair = sequence(
        "A a, B b",
        10,
        absent=(absent("A n", 0, 1, None, is_("n.v", "=", 7)),),
        context=Context.FIRST_MATCHING,
    )
    # a2 violates for a1 although nobody can use it any more after b1.
    assert found(query(pair), "A@1s A@2s:v=7 B@3s B@4s") == {"a2 b1"}


def test_deadlines_are_taken_by_deadline_then_trigger():
    quiet = absent("C c", 0, None, 3)
    pattern = together("A a, B b", 10, absent=(quiet,), context=Context.FIRST_MATCHING)
    # The combination with a1 is complete at 4 s, that with a2 at 5 s; both want b1.
    assert found(query(pattern), "A@1s A@2s B@3s") == {"a1 b1"}


def test_an_earlier_deadline_comes_before_an_earlier_trigger():
    quiet = absent("D d", 0, None, 10)
    pairs = (is_("a.v", "=", attr("c.v")),)
    pattern = together("A a, B b, C c", 9, absent=(quiet,), conditions=pairs, context=Context.FIRST_MATCHING)
    # a1 c2 is complete at 11 s, a2 c1 at 12 s although its trigger came first; both want b1.
    assert found(query(pattern), "A@1s:v=1 A@2s:v=2 B@3s C@4s:v=2 C@5s:v=1") == {"a1 b1 c2"}


def test_each_partition_consumes_for_itself():
    text = "A@1s:k=x A@1s:k=y B@2s:k=x B@2s:k=y"
    assert in_context(Context.CHRONICLE, text, partitioning=BY_K) == {"a1 b1", "a2 b2"}


# Repetition.


def repeat(at_least, at_most, within=10, until=None, by=WHOLE):
    return Repeat("r", "A", "a", at_least, at_most, within * SECOND, until, by)


def test_every_stretch_of_successive_events_is_one_composite():
    text = "A@1s A@2s A@3s"
    assert found(query(repeat(2, 3)), text) == {"a1 a2", "a2 a3", "a1 a2 a3"}
    assert found(query(repeat(2, None)), text) == {"a1 a2", "a2 a3", "a1 a2 a3"}
    assert found(query(repeat(1, 1)), text) == {"a1", "a2", "a3"}


def test_a_stretch_is_no_longer_than_within():
    assert found(query(repeat(2, 3, within=1)), "A@1s A@2s A@4s") == {"a1 a2"}


def test_until_ends_stretches_between_first_and_last():
    graph = query(repeat(2, 3, until="C"))
    assert found(graph, "A@1s A@2s C@2500ms A@3s") == {"a1 a2"}
    assert found(graph, "C@0s A@1s A@2s C@9s") == {"a1 a2"}


def test_stretches_stay_in_one_partition():
    assert found(query(repeat(2, 2, by=BY_K)), "A@1s:k=x A@2s:k=y A@3s:k=x") == {"a1 a3"}


def test_a_repeated_part_is_read_through_aggregates():
    assign = {
        "n": call("count", "a"),
        "some": call("count", "a.v"),
        "total": call("sum", "a.v"),
        "mean": call("avg", "a.v"),
        "low": call("min", "a.v"),
        "high": call("max", "a.v"),
        "first": call("first", "a.v"),
        "last": call("last", "a.v"),
        "kinds": call("distinct", "a.v"),
    }
    detection = one(query(repeat(4, 4), assign=assign), "A@1s:v=2 A@2s:v=5 A@3s A@4s:v=2")
    assert detection.attributes == {
        "n": 4, "some": 3, "total": 9, "mean": 3.0, "low": 2, "high": 5, "first": 2, "last": 2, "kinds": 2,
    }  # fmt: skip


def test_a_repetition_is_a_part_of_a_sequence():
    top = sequence("r, B b", 10, conditions=(is_(call("sum", "a.v"), ">", attr("b.v")),))
    graph = query(repeat(1, 2), top)
    assert found(graph, "A@1s:v=1 A@2s:v=2 B@3s:v=2") == {"a1 a2 b1"}


# Alternatives.


def test_a_merge_has_each_event_once_and_binds_what_it_fits():
    big = Filter("big", "A", is_("v", ">", 5))
    either = Merge("e", (Branch("big", "x"), Branch("A", "y"), Branch("B", "z")))
    assign = {"x": attr("x.id"), "y": attr("y.id"), "z": attr("z.id"), "n": call("count", "x")}
    listed = detect(query(big, either, assign=assign), given("A@1s:v=9 A@2s:v=1 B@3s"))
    assert [dict(detection.attributes) for detection in listed] == [
        {"x": "a1", "y": "a1", "n": 1},
        {"y": "a2", "n": 0},
        {"z": "b1", "n": 0},
    ]


def test_an_event_of_a_merge_is_still_the_same_event():
    either = Merge("e", (Branch("A", "x"), Branch("B", "y")))
    assert found(query(either, together("e, A a", 5)), "A@1s B@2s") == {"a1 b1"}


# Aggregates.


ONLY_A = (AggregateInput("A", "a"),)


def aggregate(window, assign=None, inputs=ONLY_A, **more):
    chosen = assign or {"n": call("count", "a")}
    return Aggregate("g", inputs, window, tuple(Assign(*item) for item in chosen.items()), **more)


def results(operator, text, **more):
    return [
        (" ".join(detection.events), *detection.attributes.values())
        for detection in detect(query(operator, **more), given(text))
    ]


def test_every_gives_windows_of_the_time_grid_that_own_their_start():
    tumbling = aggregate(Window("temporal", 5 * SECOND, 5 * SECOND))
    assert results(tumbling, "A@0s A@4s A@5s A@-1s") == [("a4", 1), ("a1 a2", 2), ("a3", 1)]


def test_over_every_gives_overlapping_windows():
    sliding = aggregate(Window("temporal", 10 * SECOND, 5 * SECOND))
    # [-5, 5) has a1, [0, 10) both, [5, 15) a2.
    assert results(sliding, "A@1s A@6s") == [("a1", 1), ("a1 a2", 2), ("a2", 1)]


def test_over_looks_back_from_each_event_and_is_closed():
    rolling = aggregate(Window("temporal", 3 * SECOND))
    assert results(rolling, "A@1s A@4s A@5s") == [("a1", 1), ("a1 a2", 2), ("a2 a3", 2)]


def test_over_stops_at_the_event_in_the_total_order():
    rolling = aggregate(Window("temporal", 3 * SECOND))
    assert results(rolling, "A@1s A@1s") == [("a1", 1), ("a1 a2", 2)]


def test_over_events_counts():
    assert results(aggregate(Window("counting", 2)), "A@1s A@2s A@3s") == [
        ("a1", 1),
        ("a1 a2", 2),
        ("a2 a3", 2),
    ]
    every = aggregate(Window("counting", 3, 2))
    assert results(every, "A@1s A@2s A@3s A@4s A@5s") == [("a1 a2", 2), ("a2 a3 a4", 3)]


def test_over_events_leaves_out_what_ended_too_long_ago():
    recent = aggregate(Window("counting", 3, within=2 * SECOND))
    assert results(recent, "A@1s A@3s A@4s") == [("a1", 1), ("a1 a2", 2), ("a2 a3", 2)]


def test_an_event_counts_by_its_end_and_the_result_spans_the_events():
    tumbling = aggregate(Window("temporal", 5 * SECOND, 5 * SECOND))
    detection = one(query(tumbling), "A@1..7s A@8s")
    assert span(detection) == (1, 8)


def test_groups_are_apart_and_null_is_a_group():
    tumbling = aggregate(
        Window("temporal", 5 * SECOND, 5 * SECOND),
        {"k": attr("group.k"), "n": call("count", "a")},
        partitioning=BY_K,
    )
    assert sorted(results(tumbling, "A@1s:k=x A@2s:k=y A@3s:k=x A@4s")) == [
        ("a1 a3", "x", 2),
        ("a2", "y", 1),
        ("a4", 1),
    ]


def test_an_input_that_is_not_outer_must_have_an_event():
    window = Window("temporal", 5 * SECOND, 5 * SECOND)
    counts = {"a": call("count", "a"), "b": call("count", "b"), "s": call("sum", "b.v")}
    both = aggregate(window, counts, (AggregateInput("A", "a"), AggregateInput("B", "b")))
    assert results(both, "A@1s A@2s B@3s:v=4 A@6s B@11s") == [("a1 a2 b1", 2, 1, 4)]
    left = aggregate(window, counts, (AggregateInput("A", "a"), AggregateInput("B", "b", outer=True)))
    assert results(left, "A@1s A@2s B@3s:v=4 A@6s B@11s") == [("a1 a2 b1", 2, 1, 4), ("a3", 1, 0)]


def test_aggregates_of_nothing_are_null_but_count_is_zero():
    names = ("count", "sum", "avg", "min", "max", "first", "last")
    tumbling = aggregate(Window("counting", 1), {name: call(name, "a.v") for name in names})
    assert dict(one(query(tumbling), "A@1s").attributes) == {"count": 0}


def test_several_inputs_without_every_are_computed_at_each_event_of_any():
    counts = {"a": call("count", "a"), "b": call("count", "b")}
    inputs = (AggregateInput("A", "a"), AggregateInput("B", "b", outer=True))
    rolling = aggregate(Window("temporal", 3 * SECOND), counts, inputs)
    assert results(rolling, "B@1s A@2s B@3s") == [("b1 a1", 1, 1), ("b1 a1 b2", 1, 2)]


def test_post_works_on_the_partial_results_and_having_on_the_final_ones():
    operator = aggregate(
        Window("temporal", 5 * SECOND, 5 * SECOND),
        {"s": call("sum", "a.v"), "n": call("count", "a.v")},
        post=(Assign("mean", is_(call("sum", attr("s")), "/", call("sum", attr("n")))),),
        having=is_("mean", ">", 2),
    )
    assert results(operator, "A@1s:v=1 A@2s:v=2 A@6s:v=2 A@7s:v=3") == [("a3 a4", 2.5)]


# Definitions.


def test_without_assign_one_part_gives_its_attributes():
    assert one(query(), "A@1s:v=3,k=x").attributes == {"v": 3, "k": "x"}
    quiet = sequence("A a", 0, absent=(absent("B b", 0, None, 3),))
    assert one(query(quiet), "A@1s:v=3,k=x").attributes == {"v": 3, "k": "x"}


def test_without_assign_several_parts_give_the_group_keys():
    pair = sequence("A a, B b", 5, partitioning=BY_K)
    assert one(query(pair, by=BY_K), "A@1s:v=3,k=x B@2s:k=x").attributes == {"k": "x"}
    assert one(query(sequence("A a, B b", 5)), "A@1s:v=3 B@2s").attributes == {}


def test_a_declared_type_casts():
    cases = [("int", -2), ("float", -2.75), ("string", "-2.75"), ("bool", True), ("timestamp", -2)]
    for name, expected in cases:
        definition = Derive("X", "X", (DeriveCase("A", "a", (Assign("v", attr("a.w"), name),)),))
        graph = Graph((Source("A", "A"), definition), ("X",))
        assert one(graph, "A@1s:w=-2.75").attributes == {"v": expected}


def test_definitions_can_be_used_in_definitions():
    pair = replace(sequence("A a, B b", 5), name="p")
    first = Derive("P", "P", (DeriveCase("p", None, (Assign("v", is_("a.v", "+", attr("b.v"))),)),))
    top = sequence("P p, C c", 9, conditions=(is_("p.v", "=", attr("c.v")),))
    detection = one(query(pair, first, top), "A@1s:v=1 B@2s:v=2 C@4s:v=3 C@5s:v=4")
    assert detection.events == ("a1", "b1", "c1")
    assert span(detection) == (1, 4)


def test_every_case_of_a_definition_detects_for_itself():
    definition = Derive("X", "X", (DeriveCase("A", "a"), DeriveCase("B", "b"), DeriveCase("A", "a")))
    graph = Graph((Source("A", "A"), Source("B", "B"), definition), ("X",))
    assert [detection.events for detection in detect(graph, given("A@1s B@2s"))] == [
        ("a1",),
        ("a1",),
        ("b1",),
    ]


def test_ids_of_detections_are_made_of_type_case_and_constituents():
    pair = replace(sequence("A a, B b", 5), name="p")
    first = Derive("P", "P", (DeriveCase("p", None),))
    graph = query(pair, first, assign={"id": attr("p.id")}, alias="p")
    graph = Graph(
        (*graph.operators[:-1], Derive("X", "X", (DeriveCase("P", "p", (Assign("i", attr("p.id")),)),))),
        ("X",),
    )
    assert one(graph, "A@1s B@2s").attributes == {"i": "P.0(a1,b1)"}


def test_several_outputs_are_reported_together():
    graph = query()
    assert [
        detection.type for detection in detect(Graph(graph.operators, ("X", "B")), given("A@2s B@1s"))
    ] == [
        "B",
        "X",
    ]


# Space.


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], None),
        ([(1, 2), (1, 2)], ((1, 2),)),
        ([(3, 0), (1, 0)], ((1, 0), (3, 0))),
        ([(2, 2), (0, 0), (1, 1)], ((0, 0), (2, 2))),
        ([(0, 0), (2, 0), (2, 2), (0, 2), (1, 1), (1, 0)], ((0, 0), (2, 0), (2, 2), (0, 2))),
    ],
)
def test_the_hull_is_canonical(points, expected):
    assert hull(points) == expected


def test_the_centre_is_the_centre_of_mass_and_distance_goes_by_the_nearest_points():
    events = [Event("t", "A", 0, 0, polygon=((0, 0), (4, 0), (0, 4))), *given("B@1s(5,6)")]
    assign = {"x": attr("a.x"), "y": attr("a.y"), "d": call("distance", "a", "b")}
    (detection,) = detect(query(together("A a, B b", 5), assign=assign), events)
    third = pytest.approx(4 / 3)
    assert detection.attributes == {"x": third, "y": third, "d": pytest.approx(24.5**0.5)}


def test_derived_events_of_one_time_stand_by_what_they_were_made_of():
    pair = replace(together("A a, B b", 5), name="p")
    first = Derive("P", "P", (DeriveCase("p", None, (Assign("v", attr("b.v")),)),))
    graph = query(pair, first, Repeat("r", "P", "p", 2, 2, SECOND), assign={"first": call("first", "p.v")})
    # Both pairs last from 1 s to 1 s; b2 stands before b1, because its id is less.
    assert one(graph, "A@1s B@1s#y:v=1 B@1s#x:v=2").attributes == {"first": 2}


def test_distance_is_euclidean_in_the_plane_and_metres_on_the_sphere():
    graph = query(together("A a, B b", 5), assign={"d": call("distance", "a", "b")})
    assert one(graph, "A@1s(0,0) B@2s(3,4)").attributes == {"d": 5.0}
    assert one(graph, "A@1s B@2s(3,4)").attributes == {}
    sphere = one(graph, "A@1s(0,0) B@2s(0,1)", coordinates=Coordinates.LONLAT)
    assert sphere.attributes["d"] == pytest.approx(111_195, abs=1)


def test_within_region_includes_the_border():
    region = value("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))")
    graph = query(together("A a", 5, conditions=(call("within_region", "a", region),)))
    assert found(graph, "A@1s(1,1) A@2s(2,1) A@3s(3,1) A@4s") == {"a1", "a2"}


# Registered functions, and limits.


def test_registered_functions_get_values_arrays_or_lists():
    @function(returns="int")
    def double(number):
        return number * 2

    @function(returns="float", vectorised=True)
    def halves(numbers):
        return numbers / 2

    @function(returns="int", aggregate=True)
    def spread(values):
        return max(values) - min(values)

    assign = {
        "d": call("double", call("sum", "a.v")),
        "h": call("halves", call("sum", "a.v")),
        "s": call("spread", "a.v"),
    }
    graph = query(repeat(2, 2), assign=assign)
    registered = {each.name: each for each in (double, halves, spread)}
    assert one(graph, "A@1s:v=1 A@2s:v=4", functions=registered).attributes == {"d": 10, "h": 2.5, "s": 3}


def test_a_merge_of_two_repetitions_can_be_repeated():
    pairs = Repeat("two", "A", "a", 2, 2, 10 * SECOND)
    both = Merge("e", (Branch("two", None), Branch("B", "b")))
    top = Repeat("r", "e", None, 2, 2, 10 * SECOND)
    graph = query(pairs, both, top, assign={"a": call("count", "a"), "b": call("count", "b")})
    assert one(graph, "A@1s A@2s B@3s").attributes == {"a": 2, "b": 1}


def test_too_many_combinations_are_refused():
    graph = query(together("A a, A b, A c, A d", 1000))
    with pytest.raises(TooLarge):
        detect(graph, [Event(f"a{number}", "A", number, number) for number in range(30)])
