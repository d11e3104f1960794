"""What Moving Features JSON (OGC 19-045r3) has and GeoJSON lacks: how events moved during a detection."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.schema import Coordinates

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TRS = {"type": "Name", "properties": {"name": "urn:ogc:data:time:iso8601"}}
_CRS84 = {"type": "Name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}


def collection_head(table: pa.Table) -> bytes:
    """Return the beginning of a collection, up to its features."""
    plane = (table.schema.metadata or {}).get(COORDINATES_KEY) == Coordinates.PLANE.encode()
    system = {"coordinates": "plane"} if plane else {"crs": _CRS84}
    return json.dumps({"type": "FeatureCollection", **system, "trs": _TRS})[:-1].encode() + b', "features": ['


class MovingPlaces:
    """Where and when events were, by their ids.

    Parameters
    ----------
    positions
        `id`, `source`, `end`, and `lon` and `lat` or `x` and `y`, as `frames.positions` gives them.
    """

    def __init__(self, positions: pa.Table | None) -> None:
        names = positions.column_names if positions is not None else []
        pair = ("lon", "lat") if "lon" in names else ("x", "y")
        self._rows: dict[str, int] = {}
        if positions is None or not {"id", *pair} <= set(names):
            return
        self._x, self._y = (positions[name].to_numpy(zero_copy_only=False) for name in pair)
        self._times = positions["end"].cast(pa.int64()).to_numpy()
        self._sources = positions["source"].cast(pa.string()) if "source" in names else None
        self._rows = {name: row for row, name in enumerate(positions["id"].to_pylist())}

    def moving(self, events: pa.Array) -> list[str]:
        """Return how the events of each detection moved, as JSON; null where that is not known."""
        return [self._geometry(ids or []) for ids in events.to_pylist()]

    def _geometry(self, ids: list[str]) -> str:
        rows = [self._rows[name] for name in ids if name in self._rows]
        rows = [row for row in rows if np.isfinite(self._x[row]) and np.isfinite(self._y[row])]
        tracks: dict[str, dict[int, list[float]]] = {}
        for row in sorted(rows, key=lambda row: int(self._times[row])):
            # The times of a moving point rise: of two places of one source at one time the first is taken.
            track = tracks.setdefault(self._source(row), {})
            track.setdefault(int(self._times[row]), [float(self._x[row]), float(self._y[row])])
        parts = [
            {
                "type": "MovingPoint",
                "datetimes": [_iso(time) for time in track],
                "coordinates": list(track.values()),
                "interpolation": "Linear",
            }
            for track in tracks.values()
        ]
        if not parts:
            return "null"
        return json.dumps(
            parts[0] if len(parts) == 1 else {"type": "MovingGeometryCollection", "prisms": parts}
        )

    def _source(self, row: int) -> str:
        return "" if self._sources is None else self._sources[row].as_py() or ""


def _iso(micros: int) -> str:
    moment = _EPOCH + timedelta(microseconds=micros)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
