"""Conditions that read very many values of an event."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.errors import QueryError


def query(number: int) -> wb.Query:
    conditions = " and ".join(f"b.v{n} > a.v{n}" for n in range(number))
    return wb.compile(f"define Risen detect A as a then B as b within 5 s where {conditions}")


def rows(number: int) -> list[dict]:
    low, high = ({f"v{n}": base + n for n in range(number)} for base in (0, 1))
    return [{"type": "A", "time": 0, **low}, {"type": "B", "time": 1, **high}]


def test_a_pattern_may_compare_thirty_two_values():
    assert wb.detect(query(32), rows(32)).num_rows == 1


def test_more_than_thirty_two_are_refused_rather_than_mixed_up():
    with pytest.raises(QueryError, match="more than 32 values"):
        wb.detect(query(33), rows(33))
