"""What a query reads of atomic events, whether it follows objects or not."""

from __future__ import annotations

from collections.abc import Iterator

from whimbrel.graph.expressions import Expr
from whimbrel.graph.mobile.interests import CorridorInterest, FunctionInterest
from whimbrel.graph.mobile.policy import RefreshWhenQualityFalls
from whimbrel.graph.mobile.query import MobileQuery
from whimbrel.graph.operators import Filter, Graph, Source
from whimbrel.graph.query import Query
from whimbrel.graph.required_columns import ColumnSet, RequiredColumns, all_read, read_by
from whimbrel.graph.scope import selection

Selections = dict[str, list[Expr | None]]
"""Event types, each with the conditions one of which an event of it has to fit; None: every event fits."""


def selections(graph: Graph) -> Selections:
    """Find out which atomic events the operators of a graph read."""
    conditions: Selections = {}
    for operator in graph.operators:
        if isinstance(operator, Filter):
            continue
        for input in operator.inputs:
            root, condition = selection(graph, input)
            if isinstance(root, Source):
                conditions.setdefault(root.event_type, []).append(condition)
    return conditions


def selections_of(query: Query) -> Selections:
    """Find out which atomic events a query reads, location updates among them."""
    if not query.mobile:
        return selections(query.rewritten)
    found: Selections = {}
    for each in query.mobile:
        for event_type, condition in _selected(each):
            found.setdefault(event_type, []).append(condition)
    return found


def _selected(query: MobileQuery) -> Iterator[tuple[str, Expr | None]]:
    counts_all = isinstance(query.policy.refresh, RefreshWhenQualityFalls)
    yield query.focal.type, query.focal.condition
    for event_type, conditions in selections(query.detect.rewritten).items():
        yield from ((event_type, condition) for condition in conditions)
        if counts_all:
            yield event_type, None


def read_of(query: Query) -> ColumnSet:
    """Give the attributes of atomic events that a query reads."""
    if not query.mobile:
        return RequiredColumns(query.rewritten, query.functions).read
    return all_read(column for each in query.mobile for column in _read(each))


def _read(query: MobileQuery) -> Iterator[ColumnSet]:
    detect, focal = query.detect, query.focal
    yield RequiredColumns(detect.rewritten, detect.functions).read
    yield read_by(focal.condition)
    yield ColumnSet(frozenset([focal.key]), all_atoms=isinstance(query.interest, FunctionInterest))
    if isinstance(query.interest, CorridorInterest):
        yield ColumnSet(frozenset([query.interest.attribute]))


def types_read(query: Query) -> list[str]:
    """Name the types of events that a query reads, and those of location updates.

    >>> from whimbrel.lang.wbl import compile_text
    >>> text = "define Slow detect Car(speed < 3) around Ship as me group by mmsi within 1 nmi report Slow"
    >>> types_read(compile_text(text))
    ['Ship', 'Car']
    """
    return list(selections_of(query))
