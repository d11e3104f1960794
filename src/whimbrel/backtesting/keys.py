"""What a detection is about: the values that its query groups by, read off the graph.

A detection need not show what it was grouped by. So every definition that is reported gets a twin, which is
made from the same findings, has the same ids, and shows the keys instead of the attributes. Nothing is looked
for twice, and the detections themselves stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.report import ATTRIBUTES_KEY
from whimbrel.errors import WhimbrelError, did_you_mean
from whimbrel.graph.expressions import GROUP, Attribute, Literal
from whimbrel.graph.operators import Aggregate, Derive, DeriveCase, Graph, Operator
from whimbrel.graph.policies import Assign
from whimbrel.graph.query import Query
from whimbrel.io import _text
from whimbrel.model.columns import decoded
from whimbrel.model.deliveries import has_deliveries
from whimbrel.model.schema import Type

TWIN = "~"
"""The column that is true in the rows of twins; columns of keys are named with it in front."""
KEY = "~key"
"""The column that says in words what a detection is about; like all such columns it is not shown."""


def group_keys(query: Query) -> dict[str, tuple[str, ...]]:
    """Name what the definitions that a query reports are grouped by, by the type of their detections.

    >>> from whimbrel.lang.wbl.compile import compile_text
    >>> group_keys(compile_text("define Late detect Leave then not Arrive for 1 h group by source"))
    {'Late': ('source',)}
    """
    keys: dict[str, tuple[str, ...]] = {}
    for derive in _reported(query.graph):
        names = [key.name for case in derive.cases for key in case.partitioning.keys]
        keys[derive.event_type] = tuple(dict.fromkeys([*keys.get(derive.event_type, ()), *names]))
    return keys


def with_keys(query: Query) -> Query:
    """Add a twin, which shows the keys, to every definition that a query reports.

    What a mobile query tells goes by whom it is told to, and needs none.
    """
    if query.mobile:
        return query
    graph = query.graph
    twins = [_twin(graph, derive) for derive in _reported(graph) if _is_grouped(derive)]
    if not twins:
        return query
    read = {case.input for twin in twins for case in twin.cases}
    operators = [_keeping_keys(node) if node.name in read else node for node in graph.operators]
    outputs = (*graph.outputs, *(twin.name for twin in twins))
    return replace(query, graph=replace(graph, operators=(*operators, *twins), outputs=outputs))


def _reported(graph: Graph) -> list[Derive]:
    return [derive for name in graph.outputs if isinstance(derive := graph[name], Derive)]


def _is_grouped(derive: Derive) -> bool:
    return any(case.partitioning.keys for case in derive.cases)


def _twin(graph: Graph, derive: Derive) -> Derive:
    return Derive(f"{derive.name}{TWIN}", derive.event_type, tuple(_showing(graph, c) for c in derive.cases))


def _showing(graph: Graph, case: DeriveCase) -> DeriveCase:
    """Make a case of a twin: it assigns the keys and nothing else."""
    is_aggregate = isinstance(graph[case.input], Aggregate)
    shown = [
        Assign(f"{TWIN}{key.name}", _hidden(key.name) if is_aggregate else Attribute(GROUP, key.name))
        for key in case.partitioning.keys
    ]
    return replace(case, assign=(Assign(TWIN, Literal(True, Type.BOOL)), *shown))


def _hidden(name: str) -> Attribute:
    """Name an attribute that is not reported: its name begins with @."""
    return Attribute(None, f"@{name}")


def _keeping_keys(operator: Operator) -> Operator:
    """Let an aggregate keep its keys, which it forgets otherwise."""
    if not isinstance(operator, Aggregate):
        return operator
    names = [key.name for key in operator.partitioning.keys]
    first = tuple(Assign(_hidden(name).name, Attribute(GROUP, name)) for name in names)
    then = tuple(Assign(_hidden(name).name, _hidden(name)) for name in names)
    post = (*operator.post, *then) if operator.post else ()
    return replace(operator, assign=(*operator.assign, *first), post=post)


def without_twins(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Split what such a query detected: the detections as they would be without twins, and their keys.

    The keys are a table with a row for every detection.
    """
    if TWIN not in table.column_names:
        return table, pa.table({"id": table.column("id")})
    is_twin = pc.fill_null(table.column(TWIN), False)
    own = [name for name in table.column_names if not name.startswith(TWIN)]
    metadata = dict(table.schema.metadata or {})
    metadata[ATTRIBUTES_KEY] = _without_keys(metadata.get(ATTRIBUTES_KEY, b"{}"))
    detections = table.filter(pc.invert(is_twin)).select(own).replace_schema_metadata(metadata)
    twins = table.filter(is_twin)
    rows = pc.index_in(detections.column("id"), twins.column("id").combine_chunks())
    names = ["id", *(name for name in table.column_names if name.startswith(TWIN) and name != TWIN)]
    return detections, twins.select(names).take(rows.combine_chunks())


def _without_keys(attributes: bytes) -> bytes:
    owned: dict[str, list[str]] = json.loads(attributes)
    kept = {kind: [name for name in names if not name.startswith(TWIN)] for kind, names in owned.items()}
    return json.dumps(kept).encode()


def keyed(detections: pa.Table, keys: pa.Table, query: Query, by: Sequence[str] | None) -> pa.Table:
    """Add a column that says what each detection is about: `source=truck-1`; `all` if nothing groups it.

    Deliveries are about the focal object. `by` names attributes, or keys of the query, to go by instead.

    Raises
    ------
    WhimbrelError
        If no detection has an attribute or key that `by` names.
    """
    of_type = group_keys(query)
    if has_deliveries(detections.schema):
        of_type = dict.fromkeys(query.types, _of_deliveries(query))
    if by is not None:
        _check(by, detections, keys, of_type)
    texts = np.full(detections.num_rows, "all", dtype=object)
    for kind in pc.unique(detections.column("type")).to_pylist():
        names = of_type.get(kind, ()) if by is None else by
        if names:
            rows = pc.indices_nonzero(pc.equal(detections.column("type"), kind))
            texts[rows.to_numpy()] = _words(names, detections, keys, rows)
    return detections.append_column(KEY, pa.array(texts, pa.string()))


def _of_deliveries(query: Query) -> tuple[str, ...]:
    """Name what deliveries go by: the focal object, and the mobile query where there are several."""
    return ("query", "focal") if len(query.mobile) > 1 else ("focal",)


def _check(
    by: Sequence[str], detections: pa.Table, keys: pa.Table, of_type: dict[str, tuple[str, ...]]
) -> None:
    attributes = {name for name in detections.column_names if name not in ("id", "geometry", "events")}
    attributes -= {"delivery", "interest_area"}
    known = attributes | {name for names in of_type.values() for name in names}
    for name in by:
        if name not in known and (detections.num_rows or keys.num_rows):
            raise WhimbrelError(
                f"no detection has an attribute {name!r} to count by; {did_you_mean(name, known)}"
            )


def _words(names: Sequence[str], detections: pa.Table, keys: pa.Table, rows: pa.Array) -> np.ndarray:
    texts = []
    for name in names:
        column = _column(name, detections, keys, rows)
        texts.append(pc.binary_join_element_wise(f"{name}=", pc.fill_null(_plain(column), "null"), ""))
    joined = pc.binary_join_element_wise(*texts, ", ") if len(texts) > 1 else texts[0]
    return joined.to_numpy(zero_copy_only=False)


def _column(name: str, detections: pa.Table, keys: pa.Table, rows: pa.Array) -> pa.Array:
    if f"{TWIN}{name}" in keys.column_names:
        return keys.column(f"{TWIN}{name}").take(rows).combine_chunks()
    if name in detections.column_names:
        return detections.column(name).take(rows).combine_chunks()
    return pa.nulls(len(rows), pa.string())


def _plain(column: pa.Array) -> pa.Array:
    """Write values as text."""
    column = decoded(column)
    if pa.types.is_timestamp(column.type):
        return _text.iso(column)
    if pa.types.is_nested(column.type):
        return _text.json_values(column)
    return (column.cast(pa.int64()) if pa.types.is_duration(column.type) else column).cast(pa.string())
