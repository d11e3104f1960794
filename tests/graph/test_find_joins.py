"""Equal attributes in all parts become a join, and the detections stay the same."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel import detect
from whimbrel.graph.operators import JoinPattern
from whimbrel.graph.passes import rewrite
from whimbrel.graph.query import Query
from whimbrel.testing import events, table

EVENTS = "A@1s:k=x B@2s:k=x C@3s:k=x A@4s:k=y B@5s:k=x C@6s:k=y B@7s A@8s B@9s:k=y C@9s:k=y"


def match_of(text: str) -> JoinPattern:
    graph = rewrite(wb.compile(text).graph)
    return next(operator for operator in graph.operators if isinstance(operator, JoinPattern))


@pytest.mark.parametrize(
    ("pattern", "joins"),
    [
        ("detect A as a then B as b within 9 s where a.k = b.k", ("k",)),
        ("detect A as a then B as b then C as c within 9 s where a.k = b.k and c.k = a.k", ("k",)),
        ("detect A as a and B as b within 9 s where a.k = b.k", ("k",)),
        ("detect A as a then not C(k = a.k) as c then B as b within 9 s where a.k = b.k", ("k",)),
        ("detect A as a then B as b then C as c within 9 s where a.k = b.k", ()),
        ("detect A as a then not C as c then B as b within 9 s where a.k = b.k", ()),
        ("detect A as a then B as b within 9 s where a.k = b.k context chronicle", ()),
        ("detect A as a then B as b within 9 s where a.k = b.k or a.k is null", ()),
    ],
)
def test_only_equalities_that_tie_all_parts_become_joins(pattern, joins):
    assert match_of(f"define X {pattern}").joins == joins


@pytest.mark.parametrize(
    "pattern",
    [
        "detect A as a then B as b within 9 s where a.k = b.k",
        "detect A as a and B as b within 9 s where a.k = b.k",
        "detect A as a then not C(k = a.k) as c then B as b within 9 s where a.k = b.k",
        "detect A as a then B as b within 9 s where a.k = b.k context continuous",
        "detect last A as a then B as b within 9 s where a.k = b.k",
    ],
)
def test_a_join_changes_no_detection(pattern):
    query = wb.compile(f"define X {pattern}")
    # `b.k = a.k or false` says the same and is no equality to the rewrite.
    spelt_out = wb.compile(f"define X {pattern.replace('a.k = b.k', '(a.k = b.k or false)')}")
    rows = table(events(EVENTS))
    found, expected = (detect(Query(q.graph), rows).column("events").to_pylist() for q in (query, spelt_out))
    assert found == expected
    assert found
