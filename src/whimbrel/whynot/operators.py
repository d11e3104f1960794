"""One explanation for each kind of operator.

An operator that is new needs a function here, registered for its class: it gets the operator, what the engine
did (`EngineView`), the name of the definition and the case it is in, and gives a `Finding`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from whimbrel.graph.operators import (
    Aggregate,
    Custom,
    Derive,
    DeriveCase,
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
from whimbrel.graph.operators.step_pattern import StepPattern
from whimbrel.whynot.asking import EngineView
from whimbrel.whynot.explanation import Finding
from whimbrel.whynot.motions import explain_encounter, explain_motion
from whimbrel.whynot.patterns import explain_match
from whimbrel.whynot.repeats import explain_repeat
from whimbrel.whynot.singles import explain_selection
from whimbrel.whynot.steps import explain_sequence
from whimbrel.whynot.windows import explain_aggregate
from whimbrel.whynot.words import many

INNER = (JoinPattern, Repeat, Motion, Encounter)
"""Operators that are worth a finding of their own where a definition has them inside."""


@singledispatch
def explain_operator(op: Operator, view: EngineView, definition: str, case: DeriveCase) -> Finding:
    """Explain what an operator found and missed; of one that is not known here, only what it found."""
    rows = view.rows_asked_for(op.name, case.partitioning)
    counts = [f"{many(len(view.stream(name).new), 'event')} of {name}" for name in op.inputs]
    return Finding(
        definition,
        op.name,
        detections=len(rows),
        examples=view.examples(op.name, rows),
        notes=(f"{type(op).__name__} is not explained further; it read {', '.join(counts)}",),
    )


@explain_operator.register
def _(op: JoinPattern, view: EngineView, definition: str, case: DeriveCase) -> Finding:  # noqa: ARG001
    return explain_match(op, view, definition)


@explain_operator.register
def _(op: StepPattern, view: EngineView, definition: str, case: DeriveCase) -> Finding:  # noqa: ARG001
    return explain_sequence(op, view, definition)


@explain_operator.register
def _(op: Repeat, view: EngineView, definition: str, case: DeriveCase) -> Finding:  # noqa: ARG001
    return explain_repeat(op, view, definition)


@explain_operator.register
def _(op: Motion, view: EngineView, definition: str, case: DeriveCase) -> Finding:  # noqa: ARG001
    return explain_motion(op, view, definition)


@explain_operator.register
def _(op: Encounter, view: EngineView, definition: str, case: DeriveCase) -> Finding:  # noqa: ARG001
    return explain_encounter(op, view, definition)


@explain_operator.register
def _(op: Aggregate, view: EngineView, definition: str, case: DeriveCase) -> Finding:  # noqa: ARG001
    return explain_aggregate(op, view, definition)


@explain_operator.register(Source)
@explain_operator.register(Filter)
@explain_operator.register(Merge)
@explain_operator.register(Derive)
def _(op: Source | Filter | Merge | Derive, view: EngineView, definition: str, case: DeriveCase) -> Finding:
    return explain_selection(op, view, definition, case)


@explain_operator.register
def _(op: Custom, view: EngineView, definition: str, case: DeriveCase) -> Finding:  # noqa: ARG001
    rows = view.rows_asked_for(op.name, op.partitioning)
    counts = [f"{many(len(view.stream(name).new), 'event')} of {name}" for name in op.inputs]
    return Finding(
        definition,
        op.name,
        detections=len(rows),
        examples=view.examples(op.name, rows),
        notes=(f"{op.function} is written in Python and explains itself; it read {', '.join(counts)}",),
    )


def explain_graph(view: EngineView) -> tuple[Finding, ...]:
    """Explain every definition: those that are reported first, then those that they are made of."""
    graph = view.graph
    definitions = [op for op in reversed(graph.operators) if isinstance(op, Derive)]
    definitions.sort(key=lambda op: op.name not in graph.outputs)
    findings = [finding for op in definitions for finding in _of_definition(graph, op, view)]
    others = [name for name in graph.outputs if not isinstance(graph[name], Derive)]
    findings += [explain_operator(graph[name], view, name, DeriveCase(name, None)) for name in others]
    return tuple(findings)


def _of_definition(graph: Graph, op: Derive, view: EngineView) -> list[Finding]:
    findings = []
    is_reported = op.name in graph.outputs
    view = view if is_reported else replace(view, effort=max(1, view.effort // 4))
    for number, case in enumerate(op.cases):
        label = (case.label or str(number)) if len(op.cases) > 1 else ""
        for operator in _operators_of(graph, case):
            finding = explain_operator(operator, view, op.name, case)
            is_inside = operator.name != case.input
            if is_inside:
                finding = replace(finding, definition=f"{op.name}, {operator.name}")
            findings.append(replace(finding, case=label, is_output=is_reported and not is_inside))
    return findings


def _operators_of(graph: Graph, case: DeriveCase) -> list[Operator]:
    """List what makes a case, and the patterns and repetitions inside it that no definition makes."""
    operators = {case.input: graph[case.input]}
    todo = [case.input] if not isinstance(graph[case.input], Derive) else []
    while todo:
        for name in graph[todo.pop(0)].inputs:
            operator = graph[name]
            if not isinstance(operator, Derive):
                todo.append(name)
                operators |= {name: operator} if isinstance(operator, INNER) else {}
    return list(operators.values())
