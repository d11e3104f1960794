"""How the operators of a graph hang together, for whoever takes a graph apart and puts it together again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from whimbrel.graph.expressions import Attribute, Expr, PartRef, format_expr, transform
from whimbrel.graph.operators import (
    Aggregate,
    Custom,
    Derive,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    Repeat,
    Source,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern, with_inputs

LONGEST_NAME = 100
"""Characters of a condition in the name of its filter."""


def readers(graph: Graph) -> dict[str, list[Operator]]:
    """Give for every stream the operators that read it."""
    found: dict[str, list[Operator]] = {operator.name: [] for operator in graph.operators}
    for operator in graph.operators:
        for name in operator.inputs:
            found[name].append(operator)
    return found


def fixed(graph: Graph) -> set[str]:
    """Name the streams that have to stay: those that are reported, or read by an operator of another kind.

    A rewrite knows how to let the operators listed here read another stream, and no others.
    """
    known = (Source, Filter, Merge, Repeat, JoinPattern, Aggregate, Custom, Derive, Motion, Encounter)
    others = [operator for operator in graph.operators if not isinstance(operator, known)]
    return {*graph.outputs, *(name for operator in others for name in operator.inputs)}


def reading(operator: Operator, names: Mapping[str, str]) -> Operator:
    """Give an operator other streams to read: for each name the one that `names` has for it."""
    if not any(name in names for name in operator.inputs):
        return operator
    if isinstance(operator, StepPattern):
        return with_inputs(operator, names)
    changed: dict[str, Any] = {}
    for item in fields(operator):
        value = getattr(operator, item.name)
        if item.name in ("input", "until", "other"):
            changed[item.name] = names.get(value, value)
        elif isinstance(value, tuple) and any(hasattr(each, "input") for each in value):
            changed[item.name] = tuple(
                replace(each, input=names.get(each.input, each.input)) for each in value
            )
        elif item.name == "streams":
            changed[item.name] = tuple(names.get(each, each) for each in value)
    return replace(operator, **changed)


def sources_below(graph: Graph, name: str) -> list[Source]:
    """Give the sources that a stream is made from, in the order of the graph."""
    needed = {name}
    for operator in reversed(graph.operators):
        if operator.name in needed:
            needed.update(operator.inputs)
    return [each for each in graph.operators if isinstance(each, Source) and each.name in needed]


def renamed(expr: Expr, names: Mapping[str | None, str | None]) -> Expr:
    """Read parts by other names; None stands for the event under test."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Attribute) and node.part in names:
            return replace(node, part=names[node.part])
        if isinstance(node, PartRef) and node.name in names:
            return replace(node, name=names[node.name])
        return node

    return transform(expr, change)


def filter_name(stream: str, condition: Expr, taken: Collection[str]) -> str:
    """Name a filter after what it keeps, so that nobody else has the name."""
    text = format_expr(condition)
    text = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}..."
    return free_name(f"{stream}[{text}]", taken)


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Give `wanted`, or a numbered form of it if another operator has it."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}#{number}", number + 1
    return name


def expressions(operator: Operator) -> Iterator[Expr]:
    """Give every condition and every assigned value of an operator."""
    yield from _inside(operator)


def _inside(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _inside(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for item in fields(value):
            yield from _inside(getattr(value, item.name))
