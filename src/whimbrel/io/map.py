"""A map with a time slider as one HTML file that needs nothing else: no server, no tiles, no network.

The page is `map_page.html`; this module packs the data into it. Places become planar metres (an
equirectangular projection at the middle latitude for lonlat), reports of moving objects become integers,
differences, deflate and base64: about four bytes a report.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

from whimbrel.errors import DataError
from whimbrel.model.deliveries import counted, delivery_columns, has_deliveries

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from whimbrel.io.map_deliveries import DeliveryRows

    Floats = npt.NDArray[np.float64]
    Int64s = npt.NDArray[np.int64]

MAX_POINTS = 400_000
MAX_DETECTIONS = 2_000
MAX_EVENTS = 60
"""Constituent events that the page lists for a detection; it tells how many more there are."""

_EARTH_M = 6_371_008.8
_FIXED = frozenset({"id", "type", "start", "end", "geometry", "events", "source"})
_STREET_M = 7.0
"""How wide a line of the background is drawn that gives no `width`."""


class PageSettings(TypedDict, total=False):
    """What a map shows; all but the detections may be left out."""

    detections: Required[pa.Table]
    """What `whimbrel.detect` returns: `type`, `start`, `end`, `geometry` (WKB), `events` and attributes.

    Of deliveries, the map shows whose interests were where, and what each object sees at any time."""
    events: pa.Table | None
    """The events they were found in: `time` (or `start` and `end`), `source`, and `x` and `y`, `lon` and
    `lat`, or `geometry`. Without them the map shows detections alone."""
    roads: Mapping[str, Any] | None
    """A GeoJSON feature collection in the same coordinates, drawn below. Lines may have the properties
    `width` (metres, both directions) and `lanes` (a direction), areas `kind` ("water" or "green")."""
    coordinates: str
    """"plane" (metres) or "lonlat" (degrees)."""
    title: str
    max_points: int
    """With more positions than this, every object keeps every n-th one, and the page says so."""


def write_map(path: str | PathLike[str], **settings: Unpack[PageSettings]) -> Path:
    """Write the map of detections, and of the objects they are about, to an HTML file.

    Folders on the way are made.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(map_html(**settings), encoding="utf-8")
    return target


def map_html(
    *,
    detections: pa.Table,
    events: pa.Table | None = None,
    roads: Mapping[str, Any] | None = None,
    coordinates: str = "plane",
    title: str = "Whimbrel",
    max_points: int = MAX_POINTS,
) -> str:
    """Make the page that `write_map` writes, as text."""
    data = _page_data(detections, events, roads, coordinates, max_points)
    template = resources.files("whimbrel.io").joinpath("map_page.html").read_text(encoding="utf-8")
    before, after = template.split("{{data}}")  # first, because the title may hold the text of a placeholder
    return before.replace("{{title}}", html.escape(title)) + _script_safe_json(data) + after


def map_snippet(*, height: int = 560, **settings: Unpack[PageSettings]) -> str:
    """Make the map as a frame for a notebook, as `_repr_html_` returns it."""
    page, title = map_html(**settings), settings.get("title", "Whimbrel")
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" title="{html.escape(title)}" '
        f'style="width:100%;height:{height}px;border:1px solid #8884;border-radius:8px"></iframe>'
    )


def _script_safe_json(data: Mapping[str, Any]) -> str:
    """Write JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# The parts of the page's data -------------------------------------------------------------------


@dataclass(frozen=True)
class _Projection:
    """Degrees to planar metres, true to scale at the middle latitude; the identity in the plane."""

    lonlat: bool
    lon: float = 0.0
    lat: float = 0.0

    def xy(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        if not self.lonlat:
            return x, y
        # The short way round: a track across the antimeridian stays in one piece.
        east = (x - self.lon + 180) % 360 - 180
        metre = math.radians(1) * _EARTH_M
        return east * metre * math.cos(math.radians(self.lat)), (y - self.lat) * metre

    def label(self, x: float, y: float) -> str:
        """Convert a place of the map to the coordinates of the data."""
        if not self.lonlat:
            return f"{x:.0f} m, {y:.0f} m"
        metre = math.radians(1) * _EARTH_M
        lon = self.lon + x / metre / math.cos(math.radians(self.lat))
        return f"{self.lat + y / metre:.5f}°, {(lon + 180) % 360 - 180:.5f}°"


@dataclass(frozen=True)
class _Reports:
    """Reports of moving objects, object by object and in order of time within each."""

    names: list[str]
    counts: Int64s
    time: Int64s
    x: Floats
    y: Floats
    ids: dict[str, int]
    """Row of each event id, where the events have ids."""
    total: int
    left_out: int
    every: int

    @property
    def interval_us(self) -> int:
        """Find the median time between two reports of one object."""
        import numpy as np

        owner = np.repeat(np.arange(len(self.counts)), self.counts)
        gaps = np.diff(self.time)[np.diff(owner) == 0]
        return max(int(np.median(gaps)), 1) if len(gaps) else 10_000_000


def _page_data(
    detections: pa.Table,
    events: pa.Table | None,
    roads: Mapping[str, Any] | None,
    coordinates: str,
    max_points: int,
) -> dict[str, Any]:
    from whimbrel.io.map_deliveries import DeliveryRows, notes_told

    if coordinates not in {"plane", "lonlat"}:
        raise DataError(f"coordinates are 'plane' or 'lonlat', not {coordinates!r}")
    shapes = _shapes(detections)
    reports = _reports(events, coordinates, max_points)
    projection = _projection(coordinates, shapes, reports)
    x, y = projection.xy(reports.x, reports.y)
    start, end = _microseconds(detections, "start"), _microseconds(detections, "end")
    told = DeliveryRows.of(detections) if has_deliveries(detections.schema) else None
    more = [] if told is None else [_known_times(told.told), _known_times(told.begun)]
    first, last = _time_range([reports.time, start, end, *more])
    types, listed = _detections(detections, shapes, start - first, end - first, projection, reports, first)
    following = _following(told, listed, reports, projection, first, last)
    ground = _ground(roads, projection)
    box = _box(x, y, [*listed, *following["interests"]], ground)
    return {
        "t0": first // 1000,
        "span": (last - first) / 1000,
        "interval": reports.interval_us / 1000,
        "box": box,
        "facts": _facts(detections, reports),
        "notes": [*_notes(detections.num_rows, reports), *notes_told(told)],
        "types": types,
        "detections": listed,
        **following,
        "ground": ground,
        **_packed(reports, x, y, first, last),
    }


def _time_range(columns: Iterable[Int64s]) -> tuple[int, int]:
    filled = [column for column in columns if len(column)]
    if not filled:
        return 0, 0
    return min(int(column.min()) for column in filled), max(int(column.max()) for column in filled)


def _known_times(times: Sequence[int | None]) -> Int64s:
    import numpy as np

    return np.array([time for time in times if time is not None], np.int64)


def _following(
    told: DeliveryRows | None,
    listed: list[dict[str, Any]],
    reports: _Reports,
    projection: _Projection,
    first: int,
    last: int,
) -> dict[str, list[dict[str, Any]]]:
    """Describe whom queries follow, and their interests; add to what is listed when each object sees it."""
    from whimbrel.io.map_deliveries import facts_told, interests_shown, times_seen

    if told is None:
        return {"focals": [], "interests": []}
    times = times_seen(told, first, last)
    for found in listed:
        row = found.pop("row")
        found.update(times[row])
        found["attributes"] = {**facts_told(told.rows[row]), **found["attributes"]}
    listed.sort(key=lambda found: found.get("from", found["end"]))
    number = {name: index for index, name in enumerate(reports.names)}
    focals = [{"name": key, "query": query, "object": number.get(key)} for query, key in told.focals()]
    return {
        "focals": focals,
        "interests": interests_shown(told, first, last, lambda shape: _outline(shape, projection)),
    }


def _facts(table: pa.Table, reports: _Reports) -> str:
    detections = counted(table)
    if not reports.names:
        return detections
    return f"{detections} in {reports.total:,} positions of {len(reports.names):,} objects"


def _notes(found: int, reports: _Reports) -> list[str]:
    notes = []
    if found > MAX_DETECTIONS:
        notes.append(f"The first {MAX_DETECTIONS:,} of {found:,} detections are shown.")
    if reports.every > 1:
        notes.append(f"One position in {reports.every:,} of each object is shown.")
    if reports.left_out:
        notes.append(f"{reports.left_out:,} events without a source or a place are not shown.")
    return notes


# Moving objects ---------------------------------------------------------------------------------


def _reports(events: pa.Table | None, coordinates: str, max_points: int) -> _Reports:
    """Sort events by object and time, and thin them where there are too many."""
    import numpy as np

    if events is None:
        nothing = np.zeros(0)
        return _Reports([], np.zeros(0, np.int64), np.zeros(0, np.int64), nothing, nothing, {}, 0, 0, 1)
    x, y = _places(events, coordinates)
    time = _microseconds(events, "end" if "end" in events.schema.names else "time")
    names, owner = _owners(events)
    shown = np.flatnonzero(np.isfinite(x) & np.isfinite(y) & (owner >= 0))
    order = shown[np.lexsort((time[shown], owner[shown]))]
    every = max(1, math.ceil(len(order) / max(max_points, 1)))
    kept = order[_thinned(owner[order], every)]
    used, counts = np.unique(owner[kept], return_counts=True)
    rows = {} if "id" not in events.schema.names else _row_of_each_id(events, kept)
    return _Reports(
        names=[names[index] for index in used],
        counts=counts.astype(np.int64),
        time=time[kept],
        x=x[kept],
        y=y[kept],
        ids=rows,
        total=len(order),
        left_out=len(time) - len(order),
        every=every,
    )


def _thinned(owner: Int64s, every: int) -> npt.NDArray[np.bool_]:
    """Mark every n-th report of each object, and its first and last."""
    import numpy as np

    if len(owner) == 0:
        return np.zeros(0, np.bool_)
    is_first = np.append(True, owner[1:] != owner[:-1])
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(owner)), 0))
    return ((np.arange(len(owner)) - starts) % every == 0) | np.append(is_first[1:], True)


def _owners(events: pa.Table) -> tuple[list[str], Int64s]:
    """List the sources, and the number of each event's own; -1 where it has none."""
    import numpy as np
    import pyarrow as pa

    if "source" not in events.schema.names:
        return [], np.full(events.num_rows, -1, np.int64)
    column = events["source"].cast(pa.string()).combine_chunks().dictionary_encode()
    names = column.dictionary.to_pylist()
    return names, column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)


def _row_of_each_id(events: pa.Table, kept: Int64s) -> dict[str, int]:
    import pyarrow as pa

    ids = events["id"].cast(pa.string()).take(pa.array(kept)).to_pylist()
    return {event_id: row for row, event_id in enumerate(ids) if event_id is not None}


def _places(events: pa.Table, coordinates: str) -> tuple[Floats, Floats]:
    """Find where each event was; NaN where it says nothing."""
    import numpy as np

    across, along = ("x", "y") if coordinates == "plane" else ("lon", "lat")
    if {across, along} <= set(events.schema.names):
        return _floats(events, across), _floats(events, along)
    if "geometry" in events.schema.names:
        import shapely

        centres = shapely.centroid(_shapes(events))
        return shapely.get_x(centres), shapely.get_y(centres)
    nowhere = np.full(events.num_rows, np.nan)
    return nowhere, nowhere


def _floats(table: pa.Table, name: str) -> Floats:
    import numpy as np
    import pyarrow as pa

    column = table[name].cast(pa.float64()).fill_null(float("nan"))
    return np.asarray(column.to_numpy(), np.float64)


def _microseconds(table: pa.Table, name: str) -> Int64s:
    import numpy as np
    import pyarrow as pa

    if name not in table.schema.names:
        raise DataError(f"a map needs times: there is no column {name!r}")
    column = table[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64)


def _packed(reports: _Reports, x: Floats, y: Floats, first: int, last: int) -> dict[str, Any]:
    """Pack the reports: whole ticks and steps, differences of neighbours, deflate, base64."""
    import numpy as np

    origin = [float(x.min()), float(y.min())] if len(x) else [0.0, 0.0]
    extent = max(float(np.ptp(x)), float(np.ptp(y))) if len(x) else 0.0
    step = max(0.1, extent / 1e6)
    tick_us = 1_000 if last - first < 2**31 * 1_000 else 1_000_000
    columns = ((reports.time - first) / tick_us, (x - origin[0]) / step, (y - origin[1]) / step)
    whole = [np.diff(np.rint(column).astype(np.int64), prepend=0).astype("<i4") for column in columns]
    packed = base64.b64encode(zlib.compress(np.concatenate(whole).tobytes(), 6)).decode("ascii")
    return {
        "origin": origin,
        "step": step,
        "tick": tick_us / 1000,
        "objects": {"names": reports.names, "counts": reports.counts.tolist(), "packed": packed},
    }


# Detections -------------------------------------------------------------------------------------


def _shapes(table: pa.Table) -> npt.NDArray[np.object_]:
    """Read the geometries as shapely has them; None where there is none."""
    import numpy as np
    import shapely

    if "geometry" not in table.schema.names:
        return np.full(table.num_rows, None, np.object_)
    return np.asarray(shapely.from_wkb(np.array(table["geometry"].to_pylist(), np.object_)), np.object_)


def _projection(coordinates: str, shapes: npt.NDArray[np.object_], reports: _Reports) -> _Projection:
    import numpy as np
    import shapely

    if coordinates == "plane":
        return _Projection(lonlat=False)
    corners = shapely.get_coordinates(shapes)
    lons, lats = np.append(reports.x, corners[:, 0]), np.append(reports.y, corners[:, 1])
    if not len(lons):
        return _Projection(lonlat=True)
    # The mean direction, not the mean number: 179° and -179° meet at 180°.
    angles = np.radians(lons)
    lon = math.degrees(math.atan2(float(np.sin(angles).mean()), float(np.cos(angles).mean())))
    return _Projection(lonlat=True, lon=lon, lat=float(lats.min() + lats.max()) / 2)


def _detections(
    table: pa.Table,
    shapes: npt.NDArray[np.object_],
    start: Int64s,
    end: Int64s,
    projection: _Projection,
    reports: _Reports,
    first: int,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Describe the types, and the detections in order of their end; deliveries in that of telling."""
    import numpy as np
    import pyarrow as pa

    told = has_deliveries(table.schema)

    kinds = table["type"].cast(pa.string()).to_pylist()
    names = sorted(set(kinds))
    types = [{"name": name, "count": kinds.count(name)} for name in names]
    order = (np.arange(len(end)) if told else np.lexsort((start, end)))[:MAX_DETECTIONS]
    attributes = _attributes(table, names)
    find = _finder(reports)
    listed = []
    for row in order.tolist():
        members = {
            "type": names.index(kinds[row]),
            "start": start[row] / 1000,
            "end": end[row] / 1000,
            "attributes": {name: _plain(table[name][row].as_py()) for name in attributes[kinds[row]]},
            **_constituents(table, row, find, first),
            **_outline(shapes[row], projection),
            **({"row": row} if told else {}),
        }
        listed.append(members)
    return types, listed


def _attributes(table: pa.Table, types: Sequence[str]) -> dict[str, list[str]]:
    """Name the attributes that each type has: all, if the table does not say."""
    from whimbrel.io.detections import ATTRIBUTES_KEY

    fixed = {*_FIXED, *delivery_columns(table.schema)}
    every = [name for name in table.schema.names if name not in fixed]
    said = json.loads((table.schema.metadata or {}).get(ATTRIBUTES_KEY, b"{}"))
    return {kind: [name for name in said.get(kind, every) if name in every] for kind in types}


def _plain(value: object) -> str | float | bool | None:
    """Convert an attribute to what JSON can hold."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


_MADE_ID = re.compile(r"(?P<source>.*):(?:-?\d+-)?(?P<end>-?\d+):[0-9a-f]{16}:\d{6,}:", re.DOTALL)
"""The id that an event without one of its own is given: source:times:content:number:type."""

_Find = Callable[[str], tuple[int | None, int | None]]
"""From the id of an event to its object and its time, each None where they are not known."""


def _finder(reports: _Reports) -> _Find:
    import numpy as np

    number = {name: index for index, name in enumerate(reports.names)}
    owner = np.repeat(np.arange(len(reports.counts)), reports.counts)

    def find(event_id: str) -> tuple[int | None, int | None]:
        row = reports.ids.get(event_id)
        if row is not None:
            return int(owner[row]), int(reports.time[row])
        made = _MADE_ID.match(event_id)
        if made is None or made["source"] not in number:
            return None, None
        return number[made["source"]], int(made["end"])

    return find


def _constituents(table: pa.Table, row: int, find: _Find, first: int) -> dict[str, Any]:
    ids = (table["events"][row].as_py() if "events" in table.schema.names else None) or []
    members: dict[int, None] = {}
    events: list[list[Any]] = []
    for event_id in ids:
        owner, at = find(event_id)
        if owner is not None:
            members[owner] = None
        if len(events) < MAX_EVENTS:
            label = event_id if at is None else event_id.partition(f":{at}")[0]
            events.append([label, None if at is None else (at - first) / 1000])
    return {"events": events, "count": len(ids), "members": list(members)}


def _outline(shape: Any, projection: _Projection) -> dict[str, Any]:
    """Find the rings, the box and the middle of a location on the map; no box if there is none."""
    import shapely

    if shape is None or shape.is_empty:
        return {"rings": [], "box": None, "centre": None, "label": None}
    parts = [shape.exterior] if shape.geom_type == "Polygon" else list(getattr(shape, "geoms", [shape]))
    parts = [part.exterior if part.geom_type == "Polygon" else part for part in parts]
    rings = [projection.xy(*shapely.get_coordinates(part).T) for part in parts]
    xs, ys = [x for ring in rings for x in ring[0]], [y for ring in rings for y in ring[1]]
    centre = [
        round(float(value[0]), 2) for value in projection.xy(*shapely.get_coordinates(shape.centroid).T)
    ]
    return {
        "rings": [_flat(*ring) for ring in rings],
        "box": [round(float(edge), 2) for edge in (min(xs), min(ys), max(xs), max(ys))],
        "centre": centre,
        "label": projection.label(*centre),
    }


def _flat(x: Floats, y: Floats) -> list[float]:
    """Write points as x, y, x, y, ... in centimetres' precision."""
    return [round(float(value), 2) for point in zip(x, y, strict=True) for value in point]


# The ground -------------------------------------------------------------------------------------


def _ground(roads: Mapping[str, Any] | None, projection: _Projection) -> dict[str, list[dict[str, Any]]]:
    """Sort the features of a GeoJSON collection into lines and areas; points are left out."""
    lines: list[dict[str, Any]] = []
    areas: list[dict[str, Any]] = []
    for feature in (roads or {}).get("features", []):
        facts, geometry = feature.get("properties") or {}, feature.get("geometry") or {}
        paths = _paths(geometry, "LineString", "MultiLineString")
        lines.extend({"path": _path(path, projection), **_road_facts(facts)} for path in paths)
        for rings in _paths(geometry, "Polygon", "MultiPolygon"):
            kind = "water" if facts.get("kind") == "water" else "green"
            areas.append({"kind": kind, "rings": [_path(ring, projection) for ring in rings]})
    return {"lines": lines, "areas": areas}


def _paths(geometry: Mapping[str, Any], single: str, several: str) -> Sequence[Any]:
    if geometry.get("type") == single:
        return [geometry["coordinates"]]
    return geometry["coordinates"] if geometry.get("type") == several else []


def _path(points: Sequence[Sequence[float]], projection: _Projection) -> list[float]:
    import numpy as np

    x, y = np.array([point[:2] for point in points], np.float64).reshape(-1, 2).T
    return _flat(*projection.xy(x, y))


def _road_facts(facts: Mapping[str, Any]) -> dict[str, float]:
    width, lanes = facts.get("width", _STREET_M), facts.get("lanes", 0)
    is_number = isinstance(width, int | float) and isinstance(lanes, int)
    return {"width": float(width), "lanes": lanes} if is_number else {"width": _STREET_M, "lanes": 0}


def _box(x: Floats, y: Floats, listed: list[dict[str, Any]], ground: Mapping[str, Any]) -> list[float]:
    """Cover the objects and detections; the roads only where there are neither."""
    boxes = [found["box"] for found in listed if found["box"]]
    if len(x):
        boxes.append([float(x.min()), float(y.min()), float(x.max()), float(y.max())])
    if not boxes:
        paths = [line["path"] for line in ground["lines"]]
        boxes = [[min(path[::2]), min(path[1::2]), max(path[::2]), max(path[1::2])] for path in paths]
    if not boxes:
        return [0.0, 0.0, 1_000.0, 1_000.0]
    west, south, east, north = zip(*boxes, strict=True)
    return [min(west), min(south), max(east), max(north)]
