"""Aggregate functions: many values to one."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

import whimbrel as wb


def aggregate(backend, expression: str, data: str, **settings):
    """The value of an aggregate over all events of A in the first minute."""
    found = backend.detect(f"define D every 1 min detect A assign value = {expression}", data, **settings)
    assert len(found) == 1
    return found.values("value")[0]


NUMBERS = "A@1s:v=4 A@2s:v=1 A@3s A@4s:v=4 A@5s:v=3"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("count(A)", 5), ("count(A.v)", 4), ("sum(A.v)", 12), ("avg(A.v)", 3), ("min(A.v)", 1),
        ("max(A.v)", 4), ("first(A.v)", 4), ("last(A.v)", 3), ("distinct(A.v)", 3),
        ("Sum(A.v) / Count(A.v)", 3), ("sum(A.v * A.v)", 42), ("max(A.v) - min(A.v) + 1", 4),
        ("sum(-A.v)", -12),
    ],
)  # fmt: skip
def test_of_numbers_nulls_are_skipped(backend, expression, value):
    assert aggregate(backend, expression, NUMBERS) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [("count(A)", 2), ("count(A.v)", 0), ("distinct(A.v)", 0), ("sum(A.v)", None), ("avg(A.v)", None),
     ("min(A.v)", None), ("max(A.v)", None), ("first(A.v)", None), ("last(A.v)", None)],
)  # fmt: skip
def test_of_nothing_but_nulls(backend, expression, value):
    data = "A@1s A@2s B@3s:v=1"
    assert aggregate(backend, expression, data) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [("min(A.k)", "Zoo"), ("max(A.k)", "bus"), ("first(A.k)", "bus"), ("last(A.k)", "Zoo"),
     ("distinct(A.k)", 3), ("count(A.k)", 4)],
)  # fmt: skip
def test_of_texts_which_compare_by_code_point(backend, expression, value):
    assert aggregate(backend, expression, "A@1s:k=bus A@2s:k=boat A@3s:k=bus A@4s:k=Zoo A@5s") == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [("sum(A.v)", 0.75), ("avg(A.v)", 0.25), ("min(A.v)", -0.5), ("max(A.v)", 1.0)],
)
def test_of_floats(backend, expression, value):
    assert aggregate(backend, expression, "A@1s:v=0.25 A@2s:v=-0.5 A@3s:v=1.0") == value


def test_of_times(backend):
    data = "A@1..2s A@0..5s"
    assert aggregate(backend, "min(A.start)", data) == 0
    assert aggregate(backend, "max(A.end) - min(A.start)", data) == 5_000_000
    assert aggregate(backend, "max(A.duration)", data) == 5_000_000


def test_of_truth(backend):
    data = "A@1s:on=true A@2s:on=false A@3s"
    assert aggregate(backend, "count(A.on)", data) == 2
    assert aggregate(backend, "last(A.on)", data) is False
    assert aggregate(backend, "distinct(A.on)", data) == 2


def test_first_and_last_go_by_the_total_order(backend):
    # The same end: the one that started earlier stands first; the same times: the source decides.
    data = "A@2..3s:v=1 A@1..3s:v=2"
    assert aggregate(backend, "first(A.v)", data) == 2
    assert aggregate(backend, "last(A.v)", "A@1s!b:v=1 A@1s!a:v=2 A@1s:v=3") == 1


def test_whole_numbers_stay_whole(backend):
    big = 2**53 + 1
    assert aggregate(backend, "max(A.v)", f"A@1s:v={big} A@2s:v=1") == big
    assert aggregate(backend, "sum(A.v)", f"A@1s:v={big} A@2s:v=1") == big + 1


def test_an_aggregate_of_one_input_does_not_see_the_other(backend):
    text = "define D every 10 s detect A and B assign a = sum(A.v), b = sum(B.v)"
    assert backend.detect(text, "A@1s:v=1 B@2s:v=10 A@3s:v=2") == expect("D@1..3s:a=3,b=10: a1 b1 a2")


def test_an_aggregate_of_an_empty_outer_input(backend):
    text = "define D every 10 s detect A and outer B assign n = count(B), s = sum(B.v), d = distinct(B.v)"
    assert backend.detect(text, "A@1s:v=1") == expect("D@1s:n=0,d=0: a1")


@wb.function(returns="float", aggregate=True)
def spread(values):
    return max(values) - min(values) if values else None


def test_a_function_of_your_own(backend):
    assert aggregate(backend, "spread(A.v)", NUMBERS, functions=[spread]) == 3
    assert aggregate(backend, "spread(A.v) * 2 + count(A)", NUMBERS, functions=[spread]) == 11
    assert aggregate(backend, "spread(A.v)", "A@1s", functions=[spread]) is None
