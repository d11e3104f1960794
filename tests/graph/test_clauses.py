"""Clauses of conditions, read in one place."""

from __future__ import annotations

import pytest

import whimbrel as wb
from whimbrel.graph.clauses import (
    Between,
    Comparison,
    InRegion,
    IsNull,
    IsTrue,
    NearPoint,
    OneOf,
    TextTest,
    read_clause,
)
from whimbrel.graph.expressions import Attribute, Binary, Expr, Literal
from whimbrel.graph.operators import Filter
from whimbrel.model.schema import Type

V = Attribute(None, "v")


def number(value: int) -> Literal:
    return Literal(value, Type.INT)


def condition(text: str) -> Expr:
    graph = wb.compile(f"coordinates plane define Q detect A({text})").graph
    return next(each.condition for each in graph.operators if isinstance(each, Filter))


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("v < 5", Comparison(V, "<", number(5))),
        ("5 <= v", Comparison(V, ">=", number(5))),
        ("3 = v", Comparison(V, "=", number(3))),
        ("v != 3", Comparison(V, "!=", number(3))),
        ("v between 1 and 2", Between(V, number(1), number(2))),
        ("v in (1, 2)", OneOf(V, (number(1), number(2)))),
        ("startswith(v, 'x')", TextTest(V, "startswith", "x")),
        ("v", IsTrue(V, wanted=True)),
        ("not v", IsTrue(V, wanted=False)),
        ("v is null", IsNull(V)),
        ("distance(this, point(1, 2)) < 5", NearPoint("POINT (1.0 2.0)", 5.0)),
        ("5 >= distance(this, point(1, 2))", NearPoint("POINT (1.0 2.0)", 5.0)),
    ],
)
def test_a_clause_is_read_with_its_attribute_first(text: str, clause: object) -> None:
    assert read_clause(condition(text)) == clause


@pytest.mark.parametrize(
    ("text", "function"), [("this in {}", "within_region"), ("intersects(this, {})", "intersects")]
)
def test_regions_are_read_with_what_is_asked_of_them(text: str, function: str) -> None:
    clause = read_clause(condition(text.format("box(0, 0, 1, 1)")))
    assert isinstance(clause, InRegion)
    assert clause.function == function
    assert clause.region.startswith("POLYGON")


@pytest.mark.parametrize(
    "text",
    [
        "v < w",
        "v + 1 < 5",
        "v in (1, w)",
        "v between w and 2",
        "lower(v) = 'x'",
        "distance(this, point(0, 0)) > 5",
    ],
)
def test_what_compares_with_no_constant_is_not_read(text: str) -> None:
    assert read_clause(condition(text)) is None


def test_the_reader_of_constants_can_be_given() -> None:
    def folded(expr: Expr) -> Literal | None:
        match expr:
            case Binary("+", Literal(int() as one), Literal(int() as other)):
                return number(one + other)
        return None

    three = Binary("+", number(1), number(2))
    assert read_clause(Binary("<", three, V), folded) == Comparison(V, ">", number(3))
    assert read_clause(Binary("<", V, number(3)), folded) is None
