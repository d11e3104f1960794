"""Subscriptions as rows of a table: places, and attributes that must be equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from whimbrel.engine.condition_columns import column_hashes
from whimbrel.engine.packed_conditions import ClauseRows
from whimbrel.engine.values import from_arrow
from whimbrel.errors import DataError, did_you_mean
from whimbrel.model.columns import decoded, natural
from whimbrel.model.faults import Faults
from whimbrel.model.schema import Coordinates
from whimbrel.space.places import Circles, PlaceSet, Polygons, polygons_of
from whimbrel.subscriptions.clauses import ALIASES, TIMES
from whimbrel.subscriptions.columns import numbers_of

_POINTS = {Coordinates.PLANE: ("x", "y"), Coordinates.LONLAT: ("lon", "lat")}
_PLACES = frozenset({"geometry", "x", "y", "lon", "lat", "radius_m"})


@dataclass(frozen=True, slots=True)
class SubscriptionRows:
    """What the rows of a table ask for: places, and values of some attributes."""

    places: PlaceSet | None = None
    clauses: ClauseRows | None = None


def read_rows(batch: pa.RecordBatch, coordinates: Coordinates) -> SubscriptionRows:
    """Read a batch of subscriptions; the column `id` is not looked at."""
    present = set(batch.schema.names)
    if "id" not in present:
        hint = did_you_mean("id", present)
        raise DataError(f"the table of subscriptions has no column 'id'{f'; {hint}' if hint else ''}")
    names = [name for name in batch.schema.names if name not in _PLACES and name != "id"]
    for name in names:
        if name in TIMES or name in ALIASES:
            raise DataError(f"a subscription cannot ask for {name!r} in a column; leave it out")
    columns = [from_arrow(natural(name, batch.column(name), Faults(batch.num_rows))) for name in names]
    places = _places(batch, present & _PLACES, coordinates)
    if not names:
        return SubscriptionRows(places)
    highs, lows = np.empty((2, len(names), batch.num_rows), np.int64)
    for row, column in enumerate(columns):
        column_hashes(column, highs[row], lows[row])
    return SubscriptionRows(places, ClauseRows.of_hashes(tuple(names), highs, lows))


def _places(batch: pa.RecordBatch, present: set[str], coordinates: Coordinates) -> PlaceSet | None:
    if not present:
        return None
    if present == {"geometry"}:
        return Polygons(polygons_of(decoded(batch.column("geometry")).to_pylist()))
    pair = _POINTS[coordinates]
    if present != {*pair, "radius_m"}:
        raise DataError(
            f"the columns {', '.join(sorted(present))} make no place; give 'geometry', or "
            f"{pair[0]!r}, {pair[1]!r} and 'radius_m' (coordinates are {coordinates.value})"
        )
    return Circles(*(numbers_of(batch, name) for name in (*pair, "radius_m")))
