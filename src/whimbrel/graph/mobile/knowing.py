"""By which watermark a row is known: a run that sees nothing later says it by then, whatever comes.

What an operator reads in total order waits until all its inputs are complete up to there; a window of the
time grid also until it has passed; an operator in Python as long as its restriction window. So what is known
by a watermark depends on events up to it alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from whimbrel.graph.operators import Aggregate, Custom, Graph, Operator
from whimbrel.graph.wiring import below

Times = npt.NDArray[np.int64]


def on_the_grid(operator: Operator) -> bool:
    """Tell whether an operator computes windows of the time grid."""
    if not isinstance(operator, Aggregate):
        return False
    return operator.window.kind == "temporal" and operator.window.every is not None


def is_behind(graph: Graph, stream: str) -> bool:
    """Tell whether a stream may be complete only up to a time before the watermark.

    >>> from whimbrel.lang.wbl import compile_text
    >>> graph = compile_text("define N over 5 s every 1 s detect A as a assign n = count(a)").graph
    >>> is_behind(graph, "A"), is_behind(graph, "N")
    (False, True)
    """
    return any(_lags(graph[name]) for name in below(graph, (stream,)))


def complete_when(graph: Graph, stream: str, times: Times) -> Times:
    """Give for each time the least watermark by which a stream has all that ends then or before."""
    if not is_behind(graph, stream):
        return times
    operator = graph[stream]
    if isinstance(operator, Aggregate) and on_the_grid(operator):
        # A window that is open ends after the watermark; its events may end as early as it begins.
        length, every = operator.window.length, operator.window.every or 1
        first_open = -(-(times + length + 1) // every)
        times = (first_open - 1) * every - 1
    elif isinstance(operator, Custom):
        times = times + operator.known_after
    return all_complete_when(graph, operator.inputs, times)


def all_complete_when(graph: Graph, streams: Iterable[str], times: Times) -> Times:
    """Give for each time the least watermark by which several streams have all that ends by then."""
    for needed in [complete_when(graph, name, times) for name in streams]:
        times = np.maximum(times, needed)
    return times


def known_when(graph: Graph, operator: Operator, decided: Times) -> Times:
    """Give by which watermark rows of an operator are known, given up to when its inputs decide on them.

    That is their end; of a window of the time grid the last instant in it; of a row that an operator in
    Python made the moment at which it did.
    """
    return all_complete_when(graph, operator.inputs, decided)


def _lags(operator: Operator) -> bool:
    """Tell whether an operator makes rows later than what they are made of is complete."""
    return on_the_grid(operator) or isinstance(operator, Custom)
