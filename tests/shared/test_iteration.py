"""`{n,m}`: several successive events that fit."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect


def test_every_stretch_of_the_number_is_found(backend):
    found = backend.detect("define D detect A{3} as a within 10 s assign n = count(a)", "A@1s A@2s A@3s A@4s")
    assert found == expect("D@1..3s:n=3: a1 a2 a3 ; D@2..4s:n=3: a2 a3 a4")


def test_from_a_number_to_another(backend):
    assert backend.pattern("A{2,3} within 10 s", "A@1s A@2s A@3s A@4s") == [
        "a1 a2", "a1 a2 a3", "a2 a3", "a2 a3 a4", "a3 a4",
    ]  # fmt: skip


def test_at_least_a_number(backend):
    assert backend.pattern("A{2,} within 10 s", "A@1s A@2s A@3s") == ["a1 a2", "a1 a2 a3", "a2 a3"]


def test_a_plus_means_at_least_one(backend):
    assert backend.pattern("A+ within 10 s", "A@1s A@2s") == ["a1", "a1 a2", "a2"]


def test_the_stretch_is_bounded(backend):
    assert backend.pattern("A{2,} within 3 s", "A@1s A@3s A@5s A@9s") == ["a1 a2", "a2 a3"]


def test_the_span_counts_whole_intervals(backend):
    assert backend.pattern("A{2} within 4 s", "A@0..2s A@3..4s A@4..5s") == ["a1 a2", "a2 a3"]
    assert backend.pattern("A{2} within 4 s", "A@0..2s A@4..5s") == []


def test_what_does_not_fit_is_passed_over(backend):
    assert backend.pattern("A(v > 1){2} within 10 s", "A@1s:v=2 A@2s:v=0 B@2s A@3s:v=3") == ["a1 a3"]


def test_groups_are_counted_apart(backend):
    data = "A@1s:k=x A@2s:k=y A@3s:k=x A@4s:k=y"
    found = backend.detect("define D detect A{2} within 10 s group by k", data)
    assert found == expect("D@1..3s:k=x: a1 a3 ; D@2..4s:k=y: a2 a4")


def test_another_event_ends_the_stretch(backend):
    assert backend.pattern("A{2,} until C within 10 s", "A@1s C@2s A@3s A@4s") == ["a2 a3"]


def test_an_end_before_or_after_the_stretch_does_not_count(backend):
    assert backend.pattern("A{2} until C within 10 s", "C@1s A@2s A@3s C@4s") == ["a1 a2"]


def test_the_end_may_have_conditions(backend):
    data = "A@1s C@2s:v=1 A@3s C@4s:v=5 A@5s"
    assert backend.pattern("A{2} until C(v > 2) within 10 s", data) == ["a1 a2"]


def test_the_end_counts_in_its_own_group_only(backend):
    assert backend.pattern("A{2} until C within 10 s group by k", "A@1s:k=x C@2s:k=y A@3s:k=x") == ["a1 a2"]


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [
        ("count(a)", 3), ("count(a.v)", 3), ("sum(a.v)", 9), ("avg(a.v)", 3.0), ("min(a.v)", 2),
        ("max(a.v)", 5), ("first(a.v)", 5), ("last(a.v)", 2), ("distinct(a.v)", 2),
        ("max(a.v) - min(a.v)", 3), ("sum(a.v * 2)", 18),
    ],
)  # fmt: skip
def test_a_repeated_part_is_read_through_aggregates(backend, aggregate, value):
    found = backend.detect(
        f"define D detect A{{3}} as a within 10 s assign value = {aggregate}", "A@1s:v=5 A@2s:v=2 A@3s:v=2"
    )
    assert found.values("value") == [value]


def test_a_condition_may_read_the_aggregates(backend):
    data = "A@1s:v=1 A@2s:v=2 A@3s:v=6"
    assert backend.pattern("A{2} as a within 10 s where avg(a.v) > 3", data) == ["a2 a3"]


def test_a_stretch_may_begin_a_sequence(backend):
    assert backend.pattern("A{2} as a then B within 10 s", "A@1s A@2s A@3s B@4s") == ["a1 a2 b1", "a2 a3 b1"]


def test_a_stretch_may_end_a_sequence(backend):
    assert backend.pattern("B then A{2} as a within 10 s", "A@1s B@2s A@3s A@4s") == ["b1 a2 a3"]


def test_a_stretch_may_stand_between(backend):
    data = "B@1s A@2s:v=1 A@3s:v=4 C@4s:v=5"
    assert backend.pattern("B then A{2} as a then C as c within 10 s where sum(a.v) = c.v", data) == [
        "b1 a1 a2 c1"
    ]


def test_alternatives_may_be_repeated(backend):
    assert backend.pattern("(A or B){2} within 10 s", "A@1s B@2s A@3s") == ["a1 b1", "b1 a2"]


def test_a_definition_may_be_repeated(backend):
    text = "define Big detect A(v > 2) define D detect Big{2} as big within 10 s assign total = sum(big.v)"
    assert backend.detect(text, "A@1s:v=3 A@2s:v=1 A@3s:v=5") == expect("D@1..3s:total=8: a1 a3")
