"""What queries read of events: of those that follow something, location updates too."""

from __future__ import annotations

from whimbrel.graph.mobile.interests import CorridorInterest, FunctionInterest
from whimbrel.graph.mobile.query import MobileQuery
from whimbrel.graph.operators import Source
from whimbrel.graph.query import Query
from whimbrel.graph.required_columns import ColumnSet, RequiredColumns, all_read, read_by


def columns_read(query: Query) -> ColumnSet:
    """Give the attributes of events that a query reads.

    >>> from whimbrel.lang.wbl import compile_text
    >>> text = "define Slow detect Car(speed < 3) around Ship as me group by mmsi within 1 nmi report Slow"
    >>> sorted(columns_read(compile_text(text)).atoms)
    ['mmsi', 'speed']
    """
    plain = RequiredColumns(query.rewritten, query.functions)
    return all_read([plain.read, *(_of_mobile(mobile) for mobile in query.mobile)])


def _of_mobile(query: MobileQuery) -> ColumnSet:
    focal, interest = query.focal, query.interest
    names = {focal.key} | ({interest.attribute} if isinstance(interest, CorridorInterest) else set())
    of_updates = ColumnSet(frozenset(names), isinstance(interest, FunctionInterest))
    plain = RequiredColumns(query.detect.rewritten, query.detect.functions)
    return all_read([of_updates, read_by(focal.condition), plain.read])


def types_read(query: Query) -> list[str]:
    """Name the types of events that a query reads, and those of location updates."""
    graphs = [query.graph, *(mobile.detect.graph for mobile in query.mobile)]
    sources = (each.event_type for graph in graphs for each in graph.operators if isinstance(each, Source))
    return list(dict.fromkeys([*sources, *(mobile.focal.type for mobile in query.mobile)]))
