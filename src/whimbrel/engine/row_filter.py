"""Test a condition on single events outside of a session: what a sender need not send."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from whimbrel.engine.condition_templates import rows_passing
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.source_events import columns_of
from whimbrel.engine.streams import ExecutionContext, OperatorStream
from whimbrel.engine.total_order import Released
from whimbrel.engine.values import BoolArray
from whimbrel.graph.expressions import Expr
from whimbrel.graph.functions import Function
from whimbrel.model.schema import Coordinates


def rows_passing_filter(
    events: pa.RecordBatch,
    condition: Expr,
    functions: Mapping[str, Function],
    coordinates: Coordinates | None = None,
) -> BoolArray:
    """Mark the events, in the common form, for which a condition on one event is true."""
    start, end = (events.column(name).to_numpy(zero_copy_only=False) for name in ("start", "end"))
    stream = OperatorStream("events", RowStore())
    held = columns_of(Released(events, start, end, None, 0), None, coordinates)
    rows = stream.store.append(start, end, held, None)
    passes = np.zeros(events.num_rows, np.bool_)
    passes[rows_passing(condition, ExecutionContext(stream, functions, coordinates), stream, rows)] = True
    return passes
