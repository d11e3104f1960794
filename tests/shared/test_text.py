"""Texts: comparing, searching, changing."""

from __future__ import annotations

import pytest
from tests.shared.backends import expect

VALUES = [
    ("lower(A.k)", "straße 7"), ("upper('Café 7')", "CAFÉ 7"), ("length(A.k)", 8), ("length('')", 0),
    ("contains(A.k, 'aß')", True), ("contains(A.k, 'x')", False), ("contains(A.k, '')", True),
    ("startswith(A.k, 'Str')", True), ("startswith(A.k, 'str')", False), ("endswith(A.k, ' 7')", True),
    ("contains(A.k, 'tr.*e')", False), ("A.k = 'Straße 7'", True), ("A.k = \"Straße 7\"", True),
    ("A.k in ('x', 'Straße 7')", True), ("A.k < 'a'", True), ("least(A.k, 'Z', 'b')", "Straße 7"),
    ("greatest(A.k, 'Z', 'b')", "b"), ("coalesce(A.none, 'no')", "no"), ("length(A.none)", None),
    ("contains(A.k, lower('A'))", True), (r"'it\'s'", "it's"), (r"'tab\tline\n'", "tab\tline\n"),
    (r"'\\'", "\\"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), VALUES, ids=[expression for expression, _ in VALUES])
def test_a_text_gives(backend, expression, value):
    assert backend.value(expression, "A@1s:k='Straße 7'") == value


@pytest.mark.parametrize(
    ("condition", "pairs"),
    [
        ("a.k = b.k", "2 3"),
        ("a.k < b.k", "0 1"),
        ("a.k > b.k", "4"),
        ("a.k != b.k", "0 1 4"),
        ("a.k >= b.k", "2 3 4"),
    ],
)
def test_texts_of_two_events_compare_by_code_point(backend, condition, pairs):
    texts = [("Zoo", "ant"), ("z", "é"), ("", ""), ("ant", "ant"), ("b", "ab")]
    for number, (one, other) in enumerate(texts):
        found = backend.pattern(
            f"A as a then B as b within 9 s where {condition}", f"A@1s:k='{one}' B@2s:k='{other}'"
        )
        assert bool(found) == (str(number) in pairs.split())


def test_texts_that_come_later_do_not_disturb_the_order(backend):
    data = " ".join(f"A@{number}s:k={text}" for number, text in enumerate(["m", "z", "a", "q", "b"]))
    found = backend.pattern("A as a then A as b within 1 min where a.k < b.k", data)
    assert found == ["a1 a2", "a1 a4", "a3 a4", "a3 a5"]


def test_an_empty_text_is_not_null(backend):
    assert backend.pattern("A(k is not null)", "A@1s:k='' A@2s A@3s:k=x") == ["a1", "a3"]


def test_parts_may_be_searched_in_each_other(backend):
    data = "A@1s:k=bus B@2s:k='the bus' B@3s:k='the tram'"
    found = backend.pattern("A as a then B as b within 9 s where contains(b.k, a.k)", data)
    assert found == ["a1 b1"]


def test_a_text_may_be_a_result(backend):
    assert backend.detect("define D detect A assign k = upper(A.k)", "A@1s:k=bus A@2s") == expect(
        "D@1s:k=BUS: a1 ; D@2s: a2"
    )
