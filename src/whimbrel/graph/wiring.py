"""How the operators of a graph hang together, for whoever takes a graph apart and puts it together again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from whimbrel.graph.expressions import Attribute, Expr, PartRef, format_expr, transform
from whimbrel.graph.operators import Graph, Operator, Source

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
    """Name the streams that have to stay: those that are reported, or read by what can read no other."""
    others = [operator for operator in graph.operators if not operator.may_be_relinked]
    return {*graph.outputs, *(name for operator in others for name in operator.inputs)}


def below(graph: Graph, names: Iterable[str], stop: Iterable[str] = ()) -> set[str]:
    """Name what some operators need, themselves included; not what those of `stop` need."""
    needed, ends = set(names), set(stop)
    for operator in reversed(graph.operators):
        if operator.name in needed and operator.name not in ends:
            needed.update(operator.inputs)
    return needed


def sources_below(graph: Graph, name: str) -> list[Source]:
    """Give the sources that a stream is made from, in the order of the graph."""
    needed = below(graph, (name,))
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
