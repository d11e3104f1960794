"""How far back in time results depend on events, read off the graph."""

from __future__ import annotations

from collections.abc import Mapping

from whimbrel.graph.custom import CustomOperator
from whimbrel.graph.operators import Custom, Graph
from whimbrel.graph.passes.drop_unused import drop_unused


def reach(graph: Graph, name: str) -> int:
    """Tell for how long after its end an atomic event can still become part of a result of stream `name`.

    Raises
    ------
    UnboundedError
        If an operator would have to remember events for ever.
    """
    found: dict[str, int] = {}
    for operator in graph.operators:
        below = max((found[input] for input in operator.inputs), default=0)
        found[operator.name] = below + operator.retention
    return found[name]


def remembered(graph: Graph, name: str) -> int:
    """Tell for how long after its end an atomic event has to be kept for the results of stream `name`.

    That is the reach of the stream, and how long an operator that correlates has to wait for its inputs.
    """
    reaches: dict[str, int] = {}
    kept: dict[str, int] = {}
    waits = waiting(graph)
    for operator in graph.operators:
        inputs = operator.inputs
        below = max((reaches[input] for input in inputs), default=0)
        reaches[operator.name] = below + operator.retention
        own = 0 if operator.looks_at_each else reaches[operator.name] + waits[operator.name]
        kept[operator.name] = max([own, *(kept[input] for input in inputs)])
    return kept[name]


def waiting(graph: Graph) -> dict[str, int]:
    """Tell of every operator how long after an event it can process it: until its slowest input is complete.

    Rows of windows become known later than they end; what correlates them has to wait for that.
    """
    found: dict[str, int] = {}
    late: dict[str, int] = {}
    for operator in graph.operators:
        found[operator.name] = max((late[input] for input in operator.inputs), default=0)
        late[operator.name] = found[operator.name] + operator.known_after
    return found


def anchors(graph: Graph, operators: Mapping[str, type[CustomOperator]] | None = None) -> dict[str, str]:
    """Say of each operator that an output needs why its results depend on where the run began.

    Where nothing is said, the graph is *bounded*: a run that begins empty at t - reach finds from t on what
    one finds that has always run. `operators` are the classes of those written in Python, which may say that
    they are bounded.

    >>> from whimbrel.lang.wbl import compile_text
    >>> anchors(compile_text("define S detect A then B within 5 s").graph)
    {}
    >>> anchors(compile_text("define S detect A as a then B within 5 s consuming a").graph)
    {'S.match': 'uses events up'}
    """
    classes = operators or {}
    found: dict[str, str] = {}
    for operator in drop_unused(graph).operators:
        own = classes.get(operator.function) if isinstance(operator, Custom) else None
        if operator.anchor is not None and not (own is not None and own.bounded):
            found[operator.name] = operator.anchor
    return found
