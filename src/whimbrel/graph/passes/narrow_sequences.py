"""Let sequences of steps walk along those events only that can make a difference."""

from __future__ import annotations

from dataclasses import replace

from whimbrel.graph.operators import Graph
from whimbrel.graph.operators.step_pattern import RUNS, Contiguity, Inner, StepPattern, TimedOut, every
from whimbrel.graph.passes.drop_unused import drop_unused

_STRICT = (Contiguity.NEXT, Contiguity.NOT_NEXT)


def narrow_sequences(graph: Graph) -> Graph:
    """Take streams from sequences that no step asks for, where an event that fits nothing changes nothing.

    `A followed by B among *` walks along every event of the data, but the others only pass by.
    """
    timed = {each.input for each in graph.operators if isinstance(each, TimedOut)}
    operators = tuple(
        replace(each, streams=_asked_for(each))
        if isinstance(each, StepPattern) and each.name not in timed and _is_relaxed(each)
        else each
        for each in graph.operators
    )
    return graph if operators == graph.operators else drop_unused(replace(graph, operators=operators))


def _asked_for(op: StepPattern) -> tuple[str, ...]:
    asked = dict.fromkeys(test.input for test in op.tests())
    return tuple(dict.fromkeys([*(name for name in op.streams if name in asked), *asked]))


def _is_relaxed(op: StepPattern) -> bool:
    """Tell whether events that fit no step only pass by.

    They count where the very next event does, and a greedy step is given up at the first event that does not
    fit. Besides, any event may split a run in two, of which one goes on to the next step: that matters where
    the runs of a partition are few, and to what runs out of time.
    """
    return op.bound.runs >= RUNS and not any(
        each.contiguity in _STRICT or each.quantifier.greedy or each.quantifier.inner is Inner.CONSECUTIVE
        for each in every(op.steps)
    )
