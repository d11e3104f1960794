"""The events that an engine still remembers, as a table in the common form."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import event_ids
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.shapes import SHAPE, wkb_of
from whimbrel.engine.streams import ARRIVAL
from whimbrel.engine.total_order import are_time_points
from whimbrel.engine.values import Int64Array, to_arrow
from whimbrel.graph.expressions import Attribute


def events_of(atoms: RowStore) -> pa.Table:
    """List the atomic events that a store still holds, as they could be fed again.

    They are in order of their times, and where these are the same as they came. Time points are not among
    them, as nobody sends them. Attributes that no query reads are gone; so the ids of events that brought
    none are given, which could not be made again.
    """
    rows = _as_they_came(atoms, _sent(atoms, np.arange(atoms.first, atoms.total)))
    start, end = atoms.spans(rows)
    columns: dict[str, pa.Array] = {"id": event_ids(atoms, rows)}
    columns |= {"start": pa.array(start), "end": pa.array(end)}
    for name in atoms.names():
        if name not in columns and not name.startswith("@"):
            columns[name] = to_arrow(atoms.column(Attribute(None, name), rows))
    shapes = atoms.column(SHAPE, rows)
    if shapes.type is not None:
        texts = to_arrow(shapes).to_pylist()
        columns["geometry"] = pa.array([None if t is None else wkb_of(t) for t in texts], pa.binary())
        for axis in ("x", "y"):  # the centres of shapes are made again from the shapes
            columns[axis] = pc.if_else(columns["geometry"].is_null(), columns[axis], None)
    if "type" not in columns:
        columns["type"] = pa.array([], pa.string())
    return pa.table(columns)


def _as_they_came(atoms: RowStore, rows: Int64Array) -> Int64Array:
    """Put events of the same times, which stand in total order, into the order in which they came."""
    came = atoms.column(ARRIVAL, rows)
    if came.type is None:
        return rows
    start, end = atoms.spans(rows)
    return rows[np.lexsort((np.where(came.nulls, rows, came.values), start, end))]


def _sent(atoms: RowStore, rows: Int64Array) -> Int64Array:
    """Leave out time points."""
    types = atoms.column(Attribute(None, "type"), rows)
    return rows if types.type is None else rows[~are_time_points(types.values)]
