"""The total order of atomic events by their row numbers, also where some came along with derived events.

A session numbers the events that it takes in by their order, so that comparing numbers compares events.
Events that were brought along (`engine.carried`) come when they come, perhaps twice: they are ranked by what
the order is made of.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.derived_batch import has_brought_along, own_times
from whimbrel.engine.identity import event_ids
from whimbrel.engine.row_store import RowStore, different
from whimbrel.engine.values import Int64Array, to_arrow
from whimbrel.graph.expressions import Attribute
from whimbrel.model.schema import Type


def numbered(atoms: RowStore, refs: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Give a row of each different atomic event, in total order, and the place there of every ref."""
    rows, places = different(refs)
    if not has_brought_along(atoms) or not len(rows):
        return rows, places
    table = _keys(atoms, rows)
    order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy()
    ids = table.column("id").take(pa.array(order)).combine_chunks()
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(is_new) - 1
    return rows[order[is_new]], number[places]


def _keys(atoms: RowStore, rows: Int64Array) -> pa.Table:
    start, end = own_times(atoms, rows)
    source = atoms.column(Attribute(None, "source"), rows)
    texts = to_arrow(source) if source.type is Type.STRING else pa.nulls(len(rows), pa.string())
    return pa.table(
        {
            "end": end,
            "start": start,
            "has_source": texts.is_valid(),  # those without one come first
            "source": texts.fill_null(""),
            "id": event_ids(atoms, rows),
        }
    )
