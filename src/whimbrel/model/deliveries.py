"""The columns that deliveries of mobile queries have besides those of the detections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whimbrel.model.words import many

if TYPE_CHECKING:
    import pyarrow as pa

CHANGES = ("removed", "kept", "added")
"""What a delivery changes in what its consumer sees of the object, in the order in which it is told."""

DELIVERIES_KEY = b"whimbrel.deliveries"
"""Schema metadata: tables of deliveries that a session gave have it; they are in the order of telling."""

DELIVERY = ("query", "focal", "interest", "interest_start", "told", "live", "change", "delivery")
AREA = "interest_area"
"""Where the interest is, as WKB: dictionary-encoded, as many deliveries are of one interest."""

PREDICTED = "predicted"
"""Whether that area was predicted; only of queries that ask for prediction."""

REUSED = ("precision", "recall", "disparity", "by")
"""How well the selection that was processed stood for one's own, how far the two interests differ on its
events, and the focal object whose it was, null for one's own; only of queries with `reuse similar`."""

DELIVERY_COLUMNS = (*DELIVERY, AREA, PREDICTED, *REUSED)


def has_deliveries(schema: pa.Schema) -> bool:
    """Tell whether a table of detections has deliveries in it."""
    return set(DELIVERY) <= set(schema.names)


def delivery_columns(schema: pa.Schema) -> list[str]:
    """Name the columns of deliveries that a table has, in their order."""
    return [name for name in DELIVERY_COLUMNS if name in schema.names] if has_deliveries(schema) else []


def without_areas(table: pa.Table) -> pa.Table:
    """Leave out where the interests are: many times as much as all the rest."""
    return table.drop_columns([AREA]) if AREA in delivery_columns(table.schema) else table


def counted(found: pa.Table) -> str:
    """Say how many detections, or deliveries, there are.

    >>> import pyarrow as pa
    >>> counted(pa.table({"id": ["a"]}))
    '1 detection'
    """
    if not has_deliveries(found.schema):
        return many(found.num_rows, "detection")
    plain = found["delivery"].null_count
    told = found.num_rows - plain
    words = f"{told:,} {'delivery' if told == 1 else 'deliveries'}"
    return f"{many(plain, 'detection')} and {words}" if plain else words
