"""Arithmetic, the same wherever it is computed."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

DATA = "A@1s:i=7,n=-7,z=0,f=2.5,big=9223372036854775807"
VALUES = [
    ("i + 1", 8), ("i - 10", -3), ("i * i", 49), ("i / 2", 3.5), ("i % 3", 1), ("n % 3", 2),
    ("i % -3", -2), ("f % 2", 0.5), ("-f % 2", 1.5), ("i / z", None), ("i % z", None), ("f / z", None),
    ("-i", -7), ("- -i", 7), ("2 + i * 3", 23), ("(2 + i) * 3", 27), ("10 - 4 - 3", 3), ("100 / 10 / 2", 5),
    ("i + f", 9.5), ("big + 2", 1 - 2**63), ("big * 2", -2), ("1e3", 1000.0), ("i = 7", True),
    ("i > 7", False),
    ("abs(n)", 7), ("abs(-2.5)", 2.5), ("sqrt(i + 2)", 3), ("sqrt(n)", None), ("floor(f)", 2),
    ("ceil(f)", 3), ("floor(-f)", -3), ("round(f + 0.25)", 3), ("sign(n)", -1), ("sign(z)", 0),
    ("pow(i, 2)", 49), ("exp(z)", 1), ("ln(exp(2))", 2), ("ln(z)", None), ("least(i, f)", 2.5),
    ("greatest(i, f, n)", 7), ("coalesce(none, i)", 7),
    ("i + none", None), ("1.5 km + 1 m", 1501), ("2 nmi", 3704),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), VALUES, ids=[expression for expression, _ in VALUES])
def test_a_value_is(backend, expression, value):
    assert backend.value(qualified(expression, "A"), DATA) == value


@pytest.mark.parametrize(("expression", "value"), VALUES, ids=[expression for expression, _ in VALUES])
def test_a_value_compared_with_another_event_is(backend, expression, value):
    test = "is null" if value is None else f"= {str(value).lower()}"
    condition = f"({qualified(expression, 'a')}) {test} and b.one = 1"
    data = f"{DATA} B@2s:one=1"
    assert backend.pattern(f"A as a then B as b within 9 s where {condition}", data) == ["a1 b1"]


def qualified(expression: str, part: str) -> str:
    """Put the part before each attribute."""
    names = {"i", "n", "z", "f", "big", "none"}
    words = expression.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").replace("-", " - ").split()
    return " ".join(f"{part}.{word}" if word in names else word for word in words)


def test_whole_numbers_stay_whole(backend):
    value = backend.value("A.v * 3 - 1", f"A@1s:v={2**53 + 1}")
    assert value == (2**53 + 1) * 3 - 1
    assert isinstance(value, int)


def test_whole_numbers_compare_exactly(backend):
    data = f"A@1s:v={2**53} B@2s:v={2**53 + 1}"
    assert backend.pattern("A as a then B as b within 9 s where a.v = b.v", data) == []
    assert backend.pattern("A as a then B as b within 9 s where a.v < b.v", data) == ["a1 b1"]


def test_a_whole_number_compares_with_a_float(backend):
    assert backend.pattern("A as a then B as b within 9 s where a.v = b.w", "A@1s:v=2 B@2s:w=2.0") == [
        "a1 b1"
    ]


def test_numbers_become_floats_where_the_data_does(backend):
    found = backend.detect(
        "define D detect A as a then A as b within 9 s where a.v < b.v", "A@1s:v=1 A@2s:v=1.5"
    )
    assert found == expect("D@1..2s: a1 a2")
