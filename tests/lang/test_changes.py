"""Phrases of change: how they are written, printed, built in Python, and refused."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.errors import QueryError, QueryTypeError, UnboundedError, UnknownNameError
from whimbrel.graph.expressions import format_expr
from whimbrel.graph.operators.change import Change
from whimbrel.lang import builder as b
from whimbrel.lang.wbl import compile_text, format_text

WHOLE = "P(v > 0) as p changes v from 1 to 2 by more than 0.5 within 1 min"


def change(text: str, **settings) -> Change:
    graph = compile_text(text, **settings).graph
    (found,) = (operator for operator in graph.operators if isinstance(operator, Change))
    return found


def test_everything_that_can_be_said():
    found = change(f"define D detect {WHOLE} where p.w > previous.w group by k")
    assert (found.alias, found.attribute, found.within) == ("p", "v", 60_000_000)
    assert list(map(format_expr, found.conditions)) == [
        "previous.v = 1",
        "p.v = 2",
        "abs(p.v - previous.v) > 0.5",
        "p.w > previous.w",
    ]
    assert [str(key) for key in found.partitioning.keys] == ["k"]


def test_it_is_printed_as_it_is_written():
    text = f"define D\n  detect {WHOLE}\n  group by k\n"
    assert format_text(text) == text


def test_parameters_stand_for_values():
    found = change("param least = 3 define D detect P changes v by more than least within 1 min")
    assert list(map(format_expr, found.conditions)) == ["abs(P.v - previous.v) > 3"]


def test_the_builder_says_the_same():
    p = b.event("P", as_="p").where(b.col("v") > 0)
    made = b.define(
        "D",
        detect=p.changes("v", from_=1, to=2, by_more_than=0.5, within="1 min").where(
            p["w"] > b.previous("w")
        ),
    )
    assert str(made) == f"define D\n  detect {WHOLE}\n  where p.w > previous.w"


def test_without_a_bound_it_is_refused():
    with pytest.raises(
        UnboundedError, match="`changes v` would have to remember for ever what was before"
    ) as bad:
        compile_text("define D detect P changes v")
    assert "within 1 h" in str(bad.value)


def test_a_horizon_stands_for_the_bound():
    assert change("define D detect P changes v", horizon="1 h").within == 3_600_000_000


@pytest.mark.parametrize(
    ("phrase", "error", "said"),
    [
        ("P changes w within 1 s", UnknownNameError, "'w'"),
        ("P changes v to 'x' within 1 s", QueryTypeError, "'x'"),
        ("P changes s by more than 1 within 1 s", QueryTypeError, "text|string"),
        ("P changes v for 1 s", QueryError, "'for' does not fit here"),
        ("P changes v within 1 s within 2 s", QueryError, "`within` is given twice"),
        ("P changes 'v' within 1 s", QueryError, "`changes` is said of one attribute"),
        ("P as previous changes v within 1 s", QueryError, "'previous' is the event before the change"),
        ("P changes v within 1 s consuming P", QueryError, "`consuming` does not go with `changes`"),
        ("P as p changes v within 1 s where motion.v = 1", UnknownNameError, "motion"),
        ("P then Q changes v within 1 s", QueryError, "`changes` is said of one event type"),
    ],
)
def test_what_makes_no_sense_is_refused(phrase, error, said):
    with pytest.raises(error, match=said):
        compile_text(f"event P(v: int, s: string) define D detect {phrase}")


def test_a_value_of_another_name_may_still_be_called_changes():
    assert wb.compile("define D detect P(changes > 1) assign changes = P.changes").graph.outputs == ("D",)
