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
