"""Put what a live session gave piece by piece into one list, as a run over everything gives it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from whimbrel.engine.report import COORDINATES_KEY, together
from whimbrel.graph.query import Query
from whimbrel.model.schema import Coordinates


def collected(query: Query, tables: Iterable[pa.Table]) -> pa.Table:
    """Join what a session of one query gave, in the order and with the columns that `whimbrel.detect` has.

    Written by `whimbrel.io.write_detections`, it is the same to the byte.

    >>> import whimbrel as wb
    >>> query = wb.compile("define Warm detect Temp(val > 25)")
    >>> events = [{"type": "Temp", "time": n, "val": 20 + n} for n in range(9)]
    >>> session = wb.Session(query)
    >>> pieces = [session.push(events[:6]), session.push(events[6:]), session.close()]
    >>> wb.detect(query, events).equals(collected(query, pieces), check_metadata=True)
    True
    """
    pieces = list(tables)
    known = [(table.schema.metadata or {}).get(COORDINATES_KEY, b"none").decode() for table in pieces]
    coordinates = next((name for name in reversed(known) if name != "none"), None)
    return together(pieces, None if coordinates is None else Coordinates(coordinates), query.attributes)
