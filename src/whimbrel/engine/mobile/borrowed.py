"""Detections that were found in a selection of another interest: how well it stood for one's own.

This goes with the detection: in columns of the streams, then in columns of the table that is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.copies import seen_by
from whimbrel.engine.operators.custom.steps import Emitted
from whimbrel.engine.streams import OperatorStream
from whimbrel.engine.values import Column, Int64Array, to_arrow
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.model.deliveries import REUSED
from whimbrel.model.schema import Type

NOBODY = -1
_BY = "@by"
_OWN = {"@precision": 1.0, "@recall": 1.0, "@disparity": 0.0, _BY: NOBODY}
"""What is said of a detection in one's own selection."""
BORROWED = tuple(Attribute(None, name) for name in _OWN)


@dataclass(frozen=True, slots=True)
class BorrowedDetection(Emitted):
    """A detection that was found in a selection that stood for one's own."""

    precision: float
    recall: float
    disparity: float
    by: int
    """The object whose selection it was."""

    @classmethod
    def of(cls, found: Emitted, to: int, similar: tuple[float, float, float], by: int) -> BorrowedDetection:
        """Make it of what was found: the events are the same, as member `to` sees them."""
        parts = {field.name: getattr(found, field.name) for field in fields(Emitted)}
        parts["items"] = [replace(each, refs=seen_by(each.refs, to)) for each in found.items]
        return cls(**parts, precision=similar[0], recall=similar[1], disparity=similar[2], by=by)


def borrowed_columns(found: Sequence[Emitted]) -> dict[Expr, Column]:
    """Give the columns of streams that say of detections how well selections stood for each other."""
    columns: dict[Expr, Column] = {}
    for name, own in _OWN.items():
        values = [getattr(each, name[1:]) if isinstance(each, BorrowedDetection) else own for each in found]
        kind, dtype = (Type.INT, np.int64) if name == _BY else (Type.FLOAT, np.float64)
        columns[Attribute(None, name)] = Column(kind, np.array(values, dtype))
    return columns


def with_borrowed(table: pa.Table, stream: OperatorStream, rows: Int64Array) -> pa.Table:
    """Add to some detections how well selections stood for each other, where a stream says so."""
    for name in BORROWED:
        column = stream.store.column(name, rows)
        if column.type is not None:
            table = table.append_column(name.name, to_arrow(column))
    return table


def split_borrowed(table: pa.Table) -> tuple[pa.Table, dict[str, pa.Array]]:
    """Take these columns from a table again; what does not say is one's own."""
    found = {}
    for name, own in _OWN.items():
        if name in table.column_names:
            column = table.column(name).combine_chunks()
            found[name[1:]] = pc.fill_null(column, pa.scalar(own, column.type))
        else:
            found[name[1:]] = pa.array(np.full(len(table), own))
    kept = [name for name in table.column_names if name not in _OWN]
    return table.select(kept), {name: found[name] for name in REUSED}


def named_by(objects: pa.Array, keys: Sequence[object]) -> pa.Array:
    """Give the keys of the objects whose selections stood for others; null for one's own."""
    places = pc.if_else(pc.equal(objects, NOBODY), pa.scalar(None, pa.int64()), objects.cast(pa.int64()))
    return pa.array(keys).take(places)
