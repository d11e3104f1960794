"""What a rewrite makes is in an order in which every operator comes after its inputs."""

from __future__ import annotations

from whimbrel.graph.expressions import Attribute, Binary, Literal
from whimbrel.graph.operators import (
    Derive,
    DeriveCase,
    Filter,
    Graph,
    JoinPattern,
    PatternPart,
    Source,
    TimeOrder,
)
from whimbrel.graph.passes.push_down_filters import push_down_filters
from whimbrel.model.schema import Type


def test_a_condition_may_become_a_filter_that_came_later():
    is_zero = Binary("=", Attribute(None, "v"), Literal(0, Type.INT))
    graph = Graph(
        (
            Source("A", "A"),
            Source("B", "B"),
            JoinPattern(
                "alone",
                (PatternPart("B", "a"),),
                5,
                conditions=(Binary("=", Attribute("a", "v"), Literal(0, Type.INT)),),
            ),
            Filter("zeros", "B", is_zero),
            JoinPattern(
                "both", (PatternPart("A", "a"), PatternPart("zeros", "c")), 5, orders=(TimeOrder(0, 1),)
            ),
            Derive("X", "X", (DeriveCase("alone", None), DeriveCase("both", None))),
        ),
        ("X",),
    )
    names = [operator.name for operator in push_down_filters(graph).operators]
    assert names.index("zeros") < names.index("alone") < names.index("both")
