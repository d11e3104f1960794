"""Watches a query run and keeps everything: the rows that every operator made, in the order it made them.

Explaining reads what the real engine did. The query runs once more over the same events, with nothing
forgotten, and with a few operators beside its own that say what the engine otherwise keeps to itself: the
group of every combination, the windows that were refused, and the beginnings of sequences.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from whimbrel.engine.observer import Observer
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.session import Session
from whimbrel.engine.streams import OperatorStream, SharedWatermark
from whimbrel.engine.values import Int64Array
from whimbrel.graph.expressions import GROUP, Attribute, Call, PartRef
from whimbrel.graph.operators import (
    Aggregate,
    AggregateInput,
    Derive,
    DeriveCase,
    Graph,
    Operator,
)
from whimbrel.graph.operators.step_pattern import NO_SKIP, Element, StepPattern
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.passes.find_joins import find_joins
from whimbrel.graph.policies import Assign
from whimbrel.graph.query import Query, refuse_mobile_parts
from whimbrel.graph.scope import scope
from whimbrel.model.time import END_OF_TIME

NAME = "why"
"""The name of the query in its session."""


class Watched(Observer):
    """Runs one query in a session of its own, forgets nothing, and takes note of the rows of every stream."""

    # Other rewrites change which operators there are, and with them what could be said of each.
    passes: ClassVar = (find_joins,)
    sees_every_stream: ClassVar = True
    keeps_rows: ClassVar = True
    steps_always: ClassVar = True

    def __init__(self, query: Query, **settings: Any) -> None:
        refuse_mobile_parts(query, "why")
        self.watched = drop_unused(query.graph)
        """The operators that make what the query reports, as they were written."""
        self._rows: dict[str, list[Int64Array]] = {}
        self._streams: dict[str, OperatorStream] = {}
        probed = replace(query, graph=_probing(self.watched))
        self.session = Session(probed, name=NAME, observer=self, **settings)

    def started(self, pipeline: Pipeline) -> None:
        """Take note of the streams there are."""
        self._streams, self.context = pipeline.streams, pipeline.context

    def stepped(self, pipeline: Pipeline) -> None:
        """Take note of the new rows of every stream."""
        for name, stream in pipeline.streams.items():
            if len(stream.new):
                self._rows.setdefault(name, []).append(stream.new)

    def report(self, stream: OperatorStream, rows: Int64Array, pipeline: Pipeline) -> None:
        """Report nothing: the rows are noted already."""

    def stream(self, name: str) -> OperatorStream:
        """Find the stream of an operator with all its rows, in the order of their numbers."""
        pieces = self._rows.get(name)
        rows = np.sort(np.concatenate(pieces)) if pieces else np.zeros(0, np.int64)
        return replace(self._streams[name], new=rows, clock=SharedWatermark(END_OF_TIME))


def windows_of(name: str) -> str:
    """Name the operator that has every window of an aggregate, also those that were refused."""
    return f"{name}@windows"


def count_in(number: int) -> str:
    """Name the attribute that counts the events of one input in such a window."""
    return f"@input{number}"


def _probing(graph: Graph) -> Graph:
    """Add operators that say what the engine otherwise keeps to itself."""
    extra: list[Operator] = []
    for operator in graph.operators:
        if operator.knows_groups and operator.partitioning.keys:
            case = DeriveCase(operator.name, None, (), operator.partitioning)
            extra.append(_group_reader(operator.name, case))
        if isinstance(operator, Derive):
            cases = [(number, case) for number, case in enumerate(operator.cases) if case.partitioning.keys]
            extra += [_group_reader(f"{operator.name}@{number}", case) for number, case in cases]
        if isinstance(operator, StepPattern):
            extra += beginnings(operator)
        if isinstance(operator, Aggregate):
            extra.append(_every_window(graph, operator))
    names = tuple(operator.name for operator in extra)
    return replace(graph, operators=(*graph.operators, *extra), outputs=(*graph.outputs, *names))


def _group_reader(name: str, case: DeriveCase) -> Derive:
    """Read the group keys of a stream, so that the engine keeps them with its rows."""
    keys = tuple(Assign(key.name, Attribute(GROUP, key.name)) for key in case.partitioning.keys)
    return Derive(f"{name}@groups", f"{name}@groups", (replace(case, assign=keys),))


def _every_window(graph: Graph, operator: Aggregate) -> Aggregate:
    """Collect all windows of an aggregate with their results, and how many events of each input they have."""
    counts = [(count_in(n), _any_name(graph, part)) for n, part in enumerate(operator.parts)]
    assign = tuple(Assign(name, Call("count", (PartRef(alias),))) for name, alias in counts)
    post = tuple(Assign(name, Call("sum", (Attribute(None, name),))) for name, _ in counts)
    return replace(
        operator,
        name=windows_of(operator.name),
        parts=tuple(replace(part, outer=True) for part in operator.parts),
        assign=operator.assign + assign,
        post=operator.post + post if operator.post else (),
        having=None,
    )


def _any_name(graph: Graph, part: AggregateInput) -> str | None:
    return part.alias or next(iter(scope(graph, part.input)), None)


def beginnings(op: StepPattern) -> list[Operator]:
    """Make operators that find the beginnings of a sequence, and say which events each step took."""
    operators: list[Operator] = []
    for length in range(1, len(op.steps) + 1):
        if not is_negative(op.steps[length - 1]):
            name = beginning(op.name, length)
            part = replace(op, name=name, steps=op.steps[:length], skip=NO_SKIP, counted=False)
            assign = [Assign(f"@{step.name}", Call("ids", (PartRef(step.name),))) for step in part.taken()]
            assign += [Assign(key.name, Attribute(GROUP, key.name)) for key in op.partitioning.keys]
            case = DeriveCase(name, None, tuple(assign), op.partitioning)
            operators += [part, Derive(f"{name}@steps", f"{name}@steps", (case,))]
    return operators


def beginning(name: str, length: int) -> str:
    """Name the operator that finds the first so many steps of a sequence."""
    return f"{name}@{length}"


def is_negative(element: Element) -> bool:
    """Tell whether a step must not occur."""
    return element.contiguity is not None and element.contiguity.is_negative
