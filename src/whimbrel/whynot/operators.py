"""One explanation for each kind of operator.

An operator that is new needs a function in `EXPLAINED`: it gets the operator, what the engine did
(`EngineView`) and the name of the definition, and gives a `Finding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from whimbrel.engine.parts import PartsFrame
from whimbrel.engine.streams import RowsFrame
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
from whimbrel.graph.operators.change import PREVIOUS, Change
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern
from whimbrel.model.words import many
from whimbrel.whynot.asking import EngineView, EventGroups
from whimbrel.whynot.conditions import holds, shortfall
from whimbrel.whynot.events import seen
from whimbrel.whynot.explanation import Finding, Miss
from whimbrel.whynot.findings import finding_of
from whimbrel.whynot.motions import explain_encounter, explain_motion
from whimbrel.whynot.patterns import explain_match
from whimbrel.whynot.repeats import explain_repeat
from whimbrel.whynot.rule_checks import condition_reason
from whimbrel.whynot.singles import explain_selection
from whimbrel.whynot.steps import explain_sequence
from whimbrel.whynot.windows import explain_aggregate

INNER = (JoinPattern, Repeat, Motion, Encounter, Change)
"""Operators that are worth a finding of their own where a definition has them inside."""


def explain_operator(op: Operator, view: EngineView, definition: str, case: DeriveCase) -> Finding:
    """Explain what an operator found and missed; of one that is not known here, only what it found."""
    if isinstance(op, Source | Filter | Merge | Derive):
        return explain_selection(op, view, definition, case)
    explain = next((EXPLAINED[kind] for kind in type(op).__mro__ if kind in EXPLAINED), None)
    if explain is not None:
        return explain(op, view, definition)
    said = [f"looked for: {' and '.join(op.words())}"] if op.words() else []
    note = f"{type(op).__name__} is not explained further; it read {_counted(op, view)}"
    return finding_of(view, op.name, definition, case.partitioning, notes=(*said, note))


def _counted(op: Operator, view: EngineView) -> str:
    return ", ".join(f"{many(len(view.stream(name).new), 'event')} of {name}" for name in op.inputs)


def explain_change(op: Change, view: EngineView, definition: str) -> Finding:
    """Explain which events were changes, and what the others lacked."""
    misses = sorted(_unchanged(op, view, definition), key=lambda miss: miss.cost)
    return finding_of(view, op.name, definition, op.partitioning, misses, begins_with=[(op.alias, op.input)])


def _unchanged(op: Change, view: EngineView, definition: str) -> Iterator[Miss]:
    """Yield every event that is no change from the one before it in its partition, and why."""
    stream = view.stream(op.input)
    rows = view.rows_asked_for(op.input, op.partitioning)
    groups = EventGroups(view.context, op.partitioning.keys)
    last: dict[int, int] = {}
    known = ~RowsFrame(view.context, stream, rows).column(None, op.attribute).nulls
    for row, key in zip(rows[known].tolist(), groups.of(stream, rows[known]).tolist(), strict=True):
        before, last[key] = last.get(key), row
        if before is None:
            continue
        frames = tuple(
            RowsFrame(view.context, stream, np.array([each]), name, op.partitioning)
            for each, name in ((before, PREVIOUS), (row, op.alias))
        )
        pair = PartsFrame(view.context, frames, {PREVIOUS: 0, op.alias: 1})
        false = [test for test in (op.changed, op.in_time, *op.conditions) if not holds(test, pair)[0]]
        if false:
            reasons = tuple(condition_reason(test, pair, op.alias) for test in false)
            events = (
                (PREVIOUS, seen(view.context, stream, before)),
                (op.alias, seen(view.context, stream, row)),
            )
            cost = sum(0.5 + 0.5 * min(1.0, float(shortfall(test, pair)[0])) for test in false)
            yield Miss(definition, op.name, groups.values[key], events, reasons, cost)


def explain_custom(op: Custom, view: EngineView, definition: str) -> Finding:
    """Say what an operator in Python had to go by."""
    note = f"{op.function} is written in Python and explains itself; it read {_counted(op, view)}"
    return finding_of(view, op.name, definition, op.partitioning, notes=(note,))


EXPLAINED: Mapping[type, Callable[..., Finding]] = {
    JoinPattern: explain_match,
    StepPattern: explain_sequence,
    Repeat: explain_repeat,
    Motion: explain_motion,
    Encounter: explain_encounter,
    Aggregate: explain_aggregate,
    Change: explain_change,
    Custom: explain_custom,
}
"""What explains each kind of operator, besides those that select single events."""


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
