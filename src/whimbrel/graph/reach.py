"""How far back in time the events of a result can lie, read off the graph."""

from __future__ import annotations

from whimbrel.errors import UnboundedError
from whimbrel.graph.operators import (
    Aggregate,
    Custom,
    Derive,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Repeat,
    Source,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.model.time import END_OF_TIME


def reach(graph: Graph, name: str) -> int:
    """Give how long after its end an atomic event can still become part of a result of stream `name`.

    Raises
    ------
    UnboundedError
        If an operator would have to remember events for ever.
    """
    return _reaches(graph)[name]


def _reaches(graph: Graph) -> dict[str, int]:
    found: dict[str, int] = {}
    for operator in graph.operators:
        below = max((found[input] for input in operator.inputs), default=0)
        match operator:
            case JoinPattern():
                own = match_retention(operator)
            case Repeat():
                own = operator.within
            case Aggregate():
                own = _window_reach(operator)
            case Custom():
                own = 2 * operator.policy.restriction.length
            case StepPattern():
                own = sequence_retention(operator)
            case Motion() | Encounter():
                own = operator.retention
            case Source() | Filter() | TimedOut() | Merge() | Derive():
                own = 0
            case _:
                raise TypeError(f"unknown operator {operator!r}")
        found[operator.name] = below + own
    return found


def _window_reach(op: Aggregate) -> int:
    if op.window.kind == "temporal":
        return op.window.length + (op.window.every or 0)
    if op.window.within is None:
        raise UnboundedError(
            f"the window of {op.name!r} counts events and would have to remember them for ever",
            hint=f"write `over {op.window.length} events within 1 h`, or run it with a horizon",
        )
    return op.window.within


def sequence_retention(op: StepPattern) -> int:
    """Give for how long an event can still take part in a match, counted from its end."""
    return END_OF_TIME if op.within is None else op.within


def match_retention(op: JoinPattern) -> int:
    """Give for how long an event can still take part in a match, counted from its end."""
    wait = max((absent.duration or 0 for absent in op.absent), default=0)
    if op.within < END_OF_TIME:
        return op.within + wait
    if len(op.parts) == 1:
        return wait
    reached, gaps = {0}, 0
    linked = [order for order in op.orders if order.gap is not None]
    while len(reached) < len(op.parts):
        step = next((o for o in linked if (o.first in reached) != (o.second in reached)), None)
        if step is None:
            raise UnboundedError(
                f"the pattern {op.name!r} would have to remember events for ever",
                hint="add `within 1 h` (or another time), or run it with a horizon",
            )
        reached |= {step.first, step.second}
        gaps += step.gap or 0
    return gaps + wait
