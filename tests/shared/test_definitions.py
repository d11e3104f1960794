"""Definitions on definitions, cases, subscriptions."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

from whimbrel.errors import QueryError


def test_a_detection_is_an_event_like_any_other(backend):
    text = "define Big detect A(v > 2) define D detect Big then B within 10 s"
    assert backend.detect(text, "A@1s:v=1 A@2s:v=3 B@4s") == expect("D@2..4s: a2 b1")


def test_only_what_no_other_definition_uses_is_reported(backend):
    text = "define Big detect A(v > 2) define D detect Big(v > 4)"
    assert backend.detect(text, "A@1s:v=3 A@2s:v=5") == expect("D@2s:v=5: a2")
    assert len(backend.detect(text, "A@1s:v=3 A@2s:v=5", emit="all")) == 3
    assert backend.detect(text, "A@1s:v=3", emit=["Big"]) == expect("Big@1s:v=3: a1")


def test_the_order_of_definitions_does_not_matter(backend):
    text = "define D detect Big then B within 10 s define Big detect A(v > 2)"
    assert backend.detect(text, "A@2s:v=3 B@4s") == expect("D@2..4s: a1 b1")


def test_three_definitions_deep(backend):
    text = """
        define Pair detect A as a then B as b within 10 s assign v = a.v + b.v
        define Twice detect Pair assign v = 2 * Pair.v
        define D detect Twice(v > 10) as t then C within 10 s assign v = t.v
    """
    assert backend.detect(text, "A@1s:v=1 B@2s:v=5 C@3s") == expect("D@1..3s:v=12: a1 b1 c1")


def test_a_pair_is_over_when_its_last_event_is(backend):
    text = "define Pair detect A then B within 10 s define D detect Pair then C within 10 s"
    assert backend.detect(text, "A@1s C@2s B@3s") == []
    assert backend.detect(text, "A@1s B@2s C@3s") == expect("D@1..3s: a1 b1 c1")


def test_shared_events_are_allowed_below_the_parts(backend):
    pair = "define Pair detect A then B within 10 s"
    text = f"{pair} define D detect Pair as p and Pair as q within 10 s where p.end < q.end"
    assert backend.detect(text, "A@1s B@2s B@3s").events == ["a1 b1 b2"]


def test_an_event_and_its_detection_are_two_events(backend):
    text = "define Big detect A(v > 2) define D detect A as a and Big as b within 10 s where a.v = b.v"
    assert backend.detect(text, "A@1s:v=3").events == ["a1"]


def test_an_average_may_take_part_in_a_sequence(backend):
    text = """
        define Mean every 10 s detect A assign mean = avg(A.v)
        define D detect Mean(mean > 2) as m then B within 1 min assign mean = m.mean
    """
    # The average lasts from a1 to a2; it is known at 10 s, and b1 after a2 counts.
    assert backend.detect(text, "A@1s:v=1 A@3s:v=4 B@2s B@4s B@15s") == expect(
        "D@1..4s:mean=2.5: a1 a2 b2 ; D@1..15s:mean=2.5: a1 a2 b3"
    )


def test_an_absence_may_take_part_in_a_sequence(backend):
    text = """
        define Lost detect A then not B for 5 s
        define D detect Lost then C within 1 min
    """
    assert backend.detect(text, "A@1s C@6s C@7s") == expect("D@1..7s: a1 c2")


def test_the_absence_of_an_absence(backend):
    text = """
        define Lost detect A then not B for 2 s
        define D detect C then not Lost for 10 s
    """
    assert backend.detect(text, "C@1s A@2s B@3s") == expect("D@1..11s: c1")
    assert backend.detect(text, "C@1s A@2s B@5s") == []


def test_a_stretch_may_be_counted_by_a_window(backend):
    text = """
        define Run detect A{2} within 5 s
        define D every 10 s detect Run assign n = count(Run)
    """
    assert backend.detect(text, "A@1s A@2s A@3s") == expect("D@1..3s:n=2: a1 a2 a3")


def test_a_new_attribute_hides_the_old_one(backend):
    text = "define B detect A assign v = A.v * 10 define D detect B(v > 15)"
    assert backend.detect(text, "A@1s:v=1 A@2s:v=2") == expect("D@2s:v=20: a2")


def test_what_is_not_assigned_is_gone(backend):
    with pytest.raises(QueryError, match="no attribute of B is named 'v'"):
        backend.detect("define B detect A assign w = A.v define D detect B assign v = B.v", "A@1s:v=1")


def test_a_declared_attribute_comes_from_the_only_part(backend):
    assert backend.detect("define D(v) detect A", "A@1s:v=1,k=x") == expect("D@1s:v=1: a1")


def test_a_declared_type_converts(backend):
    assert backend.detect(
        "define D(v: float, k: string) detect A assign v = A.v, k = A.v", "A@1s:v=1"
    ) == expect("D@1s:v=1.0,k='1': a1")


# Cases.


def test_each_case_has_its_own_clauses(backend):
    text = """
        define D(place)
        case 0: detect A(v = 0) assign place = A.left
        case 1: detect A(v = 1) as it assign place = it.right
    """
    data = "A@1s:v=0,left=l,right=r A@2s:v=1,left=l,right=r A@3s:v=2"
    assert backend.detect(text, data) == expect("D@1s:place=l: a1 ; D@2s:place=r: a2")


def test_two_cases_may_hold_for_one_event(backend):
    found = backend.detect("define D case 0: detect A(v > 0) case 1: detect A(v > 1)", "A@1s:v=2")
    assert found == expect("D@1s:v=2: a1 ; D@1s:v=2: a1")
    assert len(set(found.ids)) == 2


def test_cases_may_be_patterns_of_different_kinds(backend):
    text = """
        define D
        case 0: detect A then B within 5 s assign how = 'both'
        case 1: detect A as a then not B for 5 s assign how = 'alone'
    """
    found = backend.detect(text, "A@1s B@2s A@10s")
    assert found == expect("D@1..2s:how=both: a1 b1 ; D@10..15s:how=alone: a2")


def test_the_events_of_all_cases_are_one_stream(backend):
    text = """
        define Move
        case 0: detect A assign where_ = 'in'
        case 1: detect B assign where_ = 'out'
        define D detect Move as m then Move as n within 10 s where m.where_ = 'in' and n.where_ = 'out'
    """
    assert backend.detect(text, "A@1s B@2s A@3s").events == ["a1 b1"]


# Subscriptions.


def test_where_somebody_subscribed_only_that_is_reported(backend):
    text = """
        define Other detect B
        define Big detect A(v > 2)
        Subscription Wanted seq 7 from Me to You detect Big as b then C within 10 s
    """
    assert backend.detect(text, "A@1s:v=3 B@2s C@3s") == expect("Wanted@1..3s: a1 c1")


def test_a_subscription_without_a_name_is_called_after_the_subscriber(backend):
    found = backend.detect("Subscription seq 7 from Me to You detect A", "A@1s")
    assert found == expect("Me-7@1s: a1")
