"""Short ways to write operator graphs by hand, for the tests of the reference.

A graph starts with one source a type, named as the type is; `query` adds a definition `X` on top of
the last operator.
"""

from __future__ import annotations

from typing import Any

from whimbrel.graph.expressions import Attribute, Binary, Call, Expr, Literal, PartRef, Unary
from whimbrel.graph.operators import (
    Absent,
    Derive,
    DeriveCase,
    Graph,
    JoinPattern,
    Operator,
    PatternPart,
    Source,
    TimeOrder,
)
from whimbrel.graph.policies import WHOLE, Assign, Key, Partitioning, Select
from whimbrel.model.schema import Type
from whimbrel.model.time import SECOND

BY_K = Partitioning((Key("attribute", "k"),))
BY_SOURCE = Partitioning((Key("source", "source"),))
BY_CELL = Partitioning((Key("cell", "cell", 10.0),))


def value(constant: bool | int | float | str | None) -> Literal:
    kinds = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING}
    return Literal(constant, kinds.get(type(constant)))


def seconds(number: float) -> Literal:
    return Literal(int(number * SECOND), Type.DURATION)


def attr(text: str) -> Attribute:
    """`a.v`, or `v` of the event under test."""
    part, dot, name = text.rpartition(".")
    return Attribute(part if dot else None, name)


def is_(left: Expr | str, operator: str, right: Any) -> Binary:
    """`left operator right`; on the left a text is an attribute, on the right a bare value is a constant."""
    return Binary(
        operator,
        left if isinstance(left, Expr) else attr(left),
        right if isinstance(right, Expr) else value(right),
    )


def not_(operand: Expr) -> Unary:
    return Unary("not", operand)


def call(function: str, *arguments: Expr | str) -> Call:
    """`function(...)`; a text with a dot is an attribute, one without is a part."""
    return Call(function, tuple(_argument(argument) for argument in arguments))


def _argument(argument: Expr | str) -> Expr:
    if isinstance(argument, Expr):
        return argument
    return attr(argument) if "." in argument else PartRef(argument)


def parts(text: str) -> tuple[PatternPart, ...]:
    """`A a, B b first`: streams, names and marks; a composite stream has no name: `R`."""
    return tuple(_part(item.split()) for item in text.split(","))


def _part(words: list[str]) -> PatternPart:
    stream, *rest = words
    marks = [Select(word) for word in rest if word in ("first", "last")]
    names = [word for word in rest if word not in ("first", "last")]
    return PatternPart(stream, names[0] if names else None, marks[0] if marks else Select.EACH)


def neighbours(count: int) -> tuple[TimeOrder, ...]:
    return tuple(TimeOrder(number, number + 1) for number in range(count - 1))


def sequence(text: str, within: float, **more: Any) -> JoinPattern:
    """Parts one after the other; `within` in seconds."""
    listed = parts(text)
    return JoinPattern("m", listed, int(within * SECOND), orders=neighbours(len(listed)), **more)


def together(text: str, within: float, **more: Any) -> JoinPattern:
    """Parts in any order; `within` in seconds."""
    return JoinPattern("m", parts(text), int(within * SECOND), **more)


def absent(
    text: str, after: int | None, before: int | None, lasting: float | None = None, *conditions: Expr
) -> Absent:
    stream, name = text.split()
    return Absent(
        stream, name, after, before, None if lasting is None else int(lasting * SECOND), tuple(conditions)
    )


def query(
    *operators: Operator,
    assign: dict[str, Expr] | None = None,
    alias: str | None = None,
    by: Partitioning = WHOLE,
    types: str = "ABCD",
) -> Graph:
    """A definition `X` of the last operator."""
    sources = tuple(Source(name, name) for name in types)
    assignments = tuple(Assign(name, expr) for name, expr in (assign or {}).items())
    definition = Derive(
        "X", "X", (DeriveCase(operators[-1].name if operators else "A", alias, assignments, by),)
    )
    return Graph((*sources, *operators, definition), ("X",))
