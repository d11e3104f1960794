"""What one process finds in recorded events: what is found in a network is compared with it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from whimbrel.engine.fragment_session import FragmentSession
from whimbrel.graph.fragments import cut
from whimbrel.graph.operators import Derive
from whimbrel.graph.query import Query
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME


def one_process(query: Query, events: pa.RecordBatch, coordinates: Coordinates | None) -> dict[str, pa.Table]:
    """Say what the engine finds in all of these events, for each output of the query's graph."""
    pieces = {piece.name for piece in cut(query)}
    needed = [each.name for each in query.graph.operators if isinstance(each, Derive) and each.name in pieces]
    (whole,) = cut(query, [needed])
    given = FragmentSession(whole, coordinates=coordinates).take([events], {}, END_OF_TIME)
    kinds = np.array(given.detections.column("type").to_pylist() if given.detections.num_rows else [], object)
    found = {}
    for name in query.graph.outputs:
        operator = query.graph[name]
        assert isinstance(operator, Derive)
        found[name] = given.detections.filter(pa.array(kinds == operator.event_type, pa.bool_()))
    return found


def ids(table: pa.Table) -> list[str]:
    """List the ids of detections."""
    return list(table.column("id").to_pylist()) if table.num_rows else []
