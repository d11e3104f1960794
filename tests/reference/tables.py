"""From the events of the reference to the table a backend reads, and from its geometry back to a hull."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import shapely

from .data import Event, Point, Timestamp, Value

_TIME = pa.timestamp("us", tz="UTC")
_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), Timestamp: _TIME}
_KNOWN = {"v": pa.int64(), "w": pa.float64(), "k": pa.string()}


def event_table(events: Sequence[Event]) -> pa.Table:
    """Make a table with the columns of an event file, in the order of the list.

    Points are in `x` and `y`; where an event has a polygon, all locations are in `geometry` (WKT).
    """
    columns = {
        "id": pa.array([event.id for event in events], pa.string()),
        "type": pa.array([event.type for event in events], pa.string()),
        "source": pa.array([event.source for event in events], pa.string()),
        "start": pa.array([event.start for event in events], _TIME),
        "end": pa.array([event.end for event in events], _TIME),
        **_locations(events),
    }
    for name in dict.fromkeys(name for event in events for name in event.attributes):
        values = [event.attributes.get(name) for event in events]
        columns[name] = pa.array(values, _KNOWN.get(name) or _kind(values))
    return pa.table(columns)


def _locations(events: Sequence[Event]) -> dict[str, pa.Array]:
    if any(event.polygon is not None for event in events):
        return {"geometry": pa.array([_wkt(event) for event in events], pa.string())}
    return {name: pa.array([getattr(event, name) for event in events], pa.float64()) for name in ("x", "y")}


def _wkt(event: Event) -> str | None:
    if not event.points:
        return None
    shape = shapely.Polygon(event.points) if event.polygon is not None else shapely.Point(event.points[0])
    return str(shapely.to_wkt(shape, rounding_precision=-1))


def _kind(values: Sequence[Value]) -> pa.DataType:
    kinds = [_KINDS[type(value)] for value in values if value is not None]
    return kinds[0] if kinds else pa.string()


def vertices(geometry: str | bytes | shapely.Geometry | None) -> tuple[Point, ...] | None:
    """The vertices of a location (WKT, WKB or a shape) as `Detection.hull` has them, in the order given."""
    if geometry is None:
        return None
    if isinstance(geometry, str):
        geometry = shapely.from_wkt(geometry)
    elif isinstance(geometry, bytes):
        geometry = shapely.from_wkb(geometry)
    if geometry.geom_type == "Polygon":
        return tuple(geometry.exterior.coords[:-1])
    return tuple(geometry.coords)
