"""Which part names can be read from a stream."""

from __future__ import annotations

from whimbrel.graph.expressions import Expr, conjunction
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
from whimbrel.graph.operators.motion import MOTION, Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut


def is_composite(operator: Operator) -> bool:
    """Tell whether the stream of `operator` is read through part names."""
    return isinstance(operator, JoinPattern | Merge | Repeat | StepPattern | TimedOut | Motion | Encounter)


def scope(graph: Graph, name: str) -> dict[str, bool]:
    """Give the part names inside the composites of stream `name`, and whether each is repeated.

    A stream of plain events has none.
    """
    operator = graph[name]
    match operator:
        case JoinPattern():
            found: dict[str, bool] = {}
            for part in operator.parts:
                found |= _bound(graph, part.input, part.alias)
            return found
        case Merge():
            found = {}
            for branch in operator.branches:
                found |= _bound(graph, branch.input, branch.alias)
            return found
        case Repeat():
            return dict.fromkeys(_bound(graph, operator.input, operator.alias), True)
        case StepPattern():
            return {step.name: True for step in operator.taken()}
        case Motion():
            return {operator.alias: False, MOTION: False}
        case Encounter():
            return {operator.alias: False, operator.other_alias: False, MOTION: False}
        case TimedOut():
            return scope(graph, operator.input)
        case Source() | Filter() | Derive() | Aggregate() | Custom():
            return {}
    raise TypeError(f"unknown operator {operator!r}")


def selection(graph: Graph, name: str) -> tuple[Operator, Expr | None]:
    """Give the operator whose events stream `name` selects from, and the condition of the selection."""
    operator, conditions = graph[name], []
    while isinstance(operator, Filter):
        conditions.append(operator.condition)
        operator = graph[operator.input]
    return operator, conjunction(tuple(reversed(conditions)))


def _bound(graph: Graph, input: str, alias: str | None) -> dict[str, bool]:
    inner = scope(graph, input)
    return inner | ({alias: False} if alias is not None else {})
