"""Lemma 1: how long before the first thing that is told a run has to begin, for each type of event."""

from __future__ import annotations

from whimbrel.graph.mobile.knowing import on_the_grid
from whimbrel.graph.operators import Aggregate, Custom, Graph, JoinPattern, Operator, Source
from whimbrel.graph.policies import Select
from whimbrel.model.time import END_OF_TIME


def additional_time(graph: Graph) -> dict[str, int]:
    """Give for each type the sum of restriction windows on the longest path from its source to an output.

    What is told late, as it waits for windows of the time grid, needs that much more. All are microseconds,
    at most `END_OF_TIME`: then everything counts that ever was.

    Raises
    ------
    UnboundedError
        If an operator would have to remember events for ever.

    Examples
    --------
    >>> from whimbrel.lang.wbl import compile_text
    >>> text = "define X detect A as a then B within 5 s  define Y detect X then C within 2 s"
    >>> {name: back // 1_000_000 for name, back in additional_time(compile_text(text).graph).items()}
    {'A': 7, 'B': 7, 'C': 2}
    """
    paths = _Paths(graph)
    found: dict[str, int] = {}
    for name in graph.outputs:
        for event_type, back in paths.back[name].items():
            found[event_type] = max(found.get(event_type, 0), min(back + paths.wait[name], END_OF_TIME))
    return found


def restriction(operator: Operator) -> int:
    """Tell how far the events that decide on a result may lie before its end."""
    if isinstance(operator, Aggregate) and operator.window.kind == "temporal":
        return operator.window.length
    if isinstance(operator, JoinPattern) and any(part.select is not Select.EACH for part in operator.parts):
        # The combination that is preferred to another one may end when that one starts.
        return 2 * operator.within
    return operator.retention


class _Paths:
    """What the paths from the sources to each stream add up to."""

    def __init__(self, graph: Graph) -> None:
        self.back: dict[str, dict[str, int]] = {}
        """How far before the end of an event of a stream those that decide on it may lie, by type."""
        self.lag: dict[str, int] = {}
        """How far a stream is complete behind the watermark, at most."""
        self.wait: dict[str, int] = {}
        """How long after the end of what decides on it an event of a stream may be known.

        A window of the time grid at the top needs none: its length is counted from when it has passed.
        """
        for operator in graph.operators:
            self._follow(operator)

    def _follow(self, operator: Operator) -> None:
        name, inputs = operator.name, operator.inputs
        below = max((self.lag[each] for each in inputs), default=0)
        handed_on = max((self.wait[each] for each in inputs), default=0)
        self.lag[name] = below + _lag(operator)
        self.wait[name] = below if _takes_in_order(operator) else handed_on
        back: dict[str, int] = {}
        for each in inputs:
            for event_type, so_far in self.back[each].items():
                back[event_type] = max(back.get(event_type, 0), so_far + restriction(operator))
        self.back[name] = {operator.event_type: 0} if isinstance(operator, Source) else back


def _lag(operator: Operator) -> int:
    if isinstance(operator, Aggregate) and on_the_grid(operator):
        return operator.window.length
    return operator.known_after if isinstance(operator, Custom) else 0


def _takes_in_order(operator: Operator) -> bool:
    """Tell whether an operator takes what it reads in total order, and so waits for all its inputs."""
    return not operator.looks_at_each or operator.hands_on_groups
