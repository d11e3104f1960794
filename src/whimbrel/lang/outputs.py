"""The attributes that a query's detections have, and their types, known before any event is seen."""

from __future__ import annotations

from collections.abc import Mapping

from whimbrel.errors import QueryError
from whimbrel.graph.columns import GraphColumns
from whimbrel.graph.operators.base import Columns, Types
from whimbrel.graph.query import Query
from whimbrel.lang.types import infer
from whimbrel.model.schema import Type, common_type


def output_types(query: Query, events: Mapping[str, Type]) -> dict[str, Types]:
    """List the attributes of every type of detection, in the order in which they are reported.

    `events` are the attributes of the events and their types; what the query declares outweighs it. None is
    a type that cannot be known before: an attribute that no event has.

    >>> from whimbrel.lang.wbl.compile import compile_text
    >>> query = compile_text("define Fast(twice) detect Car(speed > 9) as c assign twice = c.speed * 2")
    >>> output_types(query, {"speed": Type.INT})
    {'Fast': {'twice': <Type.INT: 'int'>}}
    """
    columns_of = GraphColumns(
        query.graph, dict(events), lambda expr, read: infer(expr, read, query.functions)
    )
    outputs: dict[str, Columns] = {}
    for name in query.graph.outputs:
        kind = query.graph[name].made_type or name
        outputs[kind] = outputs.get(kind, Columns()).joined(columns_of.of(name))
    return {kind: columns.types for kind, columns in outputs.items()}


def merged(outputs: Mapping[str, Types]) -> Types:
    """List the attributes of all types of detections together, as the columns of one table."""
    together: Types = {}
    for kind, types in outputs.items():
        for name, type_ in types.items():
            known = together.get(name)
            together[name] = common_type([known, type_])
            if together[name] is None and known is not None and type_ is not None:
                raise QueryError(
                    f"attribute {name!r} is {type_.value} in {kind} and {known.value} in another detection; "
                    f"one table cannot hold both",
                    hint="rename one of them, or report the definitions one at a time (emit=...)",
                )
    return together
