"""Events from GeoJSON features: plain ones, those with a time, and those that move (OGC 19-045r3).

| feature | its events |
|---|---|
| `geometry` and `properties` | one; its properties, its `time` or its `when` say the time |
| LineString with `properties.datetimes` (MF-JSON Trajectory) | one a position |
| `temporalGeometry` (MF-JSON Prism) | one a position, with the `temporalProperties` at its time |

Other writers call the times of a line `coordTimes` or `coordinateProperties.times`; they are read, too.

The events of a feature that moves have its id as their `source`.

References
----------
.. [1] "OGC Moving Features Encoding Extension - JSON", OGC 19-045r3, 2020.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from whimbrel.errors import DataError
from whimbrel.io._rows import Rejected, Row
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates

MOVING = ("MovingPoint", "MovingPolygon", "MovingLineString", "MovingPointCloud", "MovingGeometryCollection")
"""Types of a `temporalGeometry`; `MovingGeometryCollection` has several in `prisms`."""

_TIME_LISTS = ("datetimes", "coordTimes", "times", "timestamps", "time")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST_SECONDS = 100_000_000_000
"""Numbers beyond it are milliseconds, as the standard has it; as seconds it is the year 5138."""


def is_feature(item: Any) -> bool:
    """Tell whether a JSON value is a feature, and not an event of a type that is called Feature."""
    if not isinstance(item, dict):
        return False
    if item.get("type") in MOVING:
        return True
    return item.get("type") == "Feature" and bool(
        item.keys() & {"geometry", "properties", "temporalGeometry"}
    )


def events_of(item: Any, number: int, coordinates: Coordinates) -> Iterator[Row | Rejected]:
    """Yield the events of a feature, and what of it cannot be one. `number` is its place in the file."""
    if not is_feature(item):
        yield "this is not a GeoJSON feature", _shown(item)
        return
    if item["type"] in MOVING:
        item = {"type": "Feature", "temporalGeometry": item}
    properties = item.get("properties") or {}
    if not isinstance(properties, dict):
        yield "the properties of the feature are not an object", _shown(item)
        return
    try:
        if item.get("temporalGeometry") is not None:
            yield from _prism(item, properties, number, coordinates)
        elif (times := _times_along(item, properties)) is not None:
            yield from _trajectory(item, properties, number, coordinates, times)
        else:
            yield _plain(item, properties)
    except (DataError, LookupError, TypeError, ValueError, AttributeError) as error:
        yield _reason(error), _shown(item)


def _reason(error: Exception) -> str:
    if isinstance(error, DataError):
        return str(error)
    return f"the feature cannot be understood ({type(error).__name__}: {error})"


def _shown(item: Any) -> str:
    text = json.dumps(item, ensure_ascii=False)
    return text if len(text) <= 2000 else f"{text[:2000]}..."


# --- features that do not move -------------------------------------------------------------------------


def _plain(item: Row, properties: Row) -> Row:
    row = dict(properties)
    if item.get("id") is not None:
        row.setdefault("id", item["id"])
    if not row.keys() & {"time", "start", "end"}:
        row |= _time_of(item)
    if item.get("geometry") is not None:
        row["geometry"] = _wkt(item["geometry"])
    return row


def _time_of(item: Row) -> Row:
    """Read the time of a feature as a whole: MF-JSON's or JSON-FG's `time`, or `when`."""
    said = item.get("time", item.get("when"))
    if isinstance(said, dict):
        interval = said.get("interval") or [
            said.get("start"),
            said.get("end", said.get("stop", said.get("finish"))),
        ]
        instant = next(
            (said[name] for name in ("timestamp", "datetime", "instant", "date") if name in said), None
        )
        said = instant if instant is not None else interval if any(interval) else None
    if isinstance(said, list) and len(said) == 2:
        return {"start": _time(said[0]), "end": _time(said[1])}
    if isinstance(said, list) and len(said) == 1:
        said = said[0]
    return {} if said is None or isinstance(said, list) else {"time": _time(said)}


def _wkt(geometry: Any) -> str:
    from whimbrel.space.geometry import geojson_to_wkt

    if isinstance(geometry, dict) and geometry.get("type") == "Point":
        position = geometry.get("coordinates")
        if isinstance(position, list) and len(position) >= 2 and all(map(_is_number, position[:2])):
            x, y = (repr(float(value)).removesuffix(".0") for value in position[:2])
            return f"POINT ({x} {y})"
    return geojson_to_wkt(geometry)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# --- features that move --------------------------------------------------------------------------------


def _base(item: Row, properties: Row, number: int) -> Row:
    """Return what holds for every event of a feature that moves."""
    own = RESERVED_COLUMNS - {"type", "source"}
    row = {f"{name}_" if name in own else name: value for name, value in properties.items() if name != "id"}
    named = item.get("id", properties.get("id"))
    row.setdefault("source", str(named) if named is not None else f"feature {number}")
    return row


def _times_along(item: Row, properties: Row) -> list[Any] | None:
    """Return the times of the positions of a line, wherever the writer has put them; None without any."""
    geometry = item.get("geometry")
    if not isinstance(geometry, dict) or geometry.get("type") not in (
        "LineString",
        "MultiPoint",
        "MultiLineString",
    ):
        return None
    inner = properties.get("coordinateProperties")
    for members in (properties, inner if isinstance(inner, dict) else {}):
        for name in _TIME_LISTS:
            if isinstance(members.get(name), list):
                return list(_flat(members[name]))
    return None


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _trajectory(
    item: Row, properties: Row, number: int, coordinates: Coordinates, times: list[Any]
) -> Iterator[Row | Rejected]:
    positions = item["geometry"]["coordinates"]
    if item["geometry"]["type"] == "MultiLineString":
        positions = [position for line in positions for position in line]
    _check_lengths(len(times), len(positions))
    inner = properties.get("coordinateProperties")
    said = {**properties, **(inner if isinstance(inner, dict) else {})}
    said.pop("coordinateProperties", None)
    along = {
        name: list(_flat(values))
        for name, values in said.items()
        if isinstance(values, list) and name not in _TIME_LISTS
    }
    along = {name: values for name, values in along.items() if len(values) == len(times)}
    static = {
        name: value
        for name, value in said.items()
        if name not in along and not (name in _TIME_LISTS and isinstance(value, list))
    }
    base = _base(item, static, number)
    for place, position in enumerate(positions):
        row = {**base, "time": _time(times[place]), **{name: values[place] for name, values in along.items()}}
        yield _placed(row, "MovingPoint", position, coordinates)


def _prism(item: Row, properties: Row, number: int, coordinates: Coordinates) -> Iterator[Row | Rejected]:
    base = _base(item, properties, number)
    series = [*_series(item.get("temporalProperties") or [])]
    seen: set[int | None] = set()
    for kind, times, positions in _parts(item["temporalGeometry"]):
        _check_lengths(len(times), len(positions))
        for said, position in zip(times, positions, strict=True):
            instant = _instant(said)
            seen.add(instant)
            values = {attribute.name: attribute.at(instant) for attribute in series if instant is not None}
            yield _placed({**base, "time": _time(said), **values}, kind, position, coordinates)
    # Values at a time without a position are an event, too: nothing is lost.
    for instant, said in {instant: said for attribute in series for said, instant in attribute.times}.items():
        if instant not in seen:
            yield {
                **base,
                "time": _time(said),
                **{attribute.name: attribute.at(instant) for attribute in series},
            }


def _check_lengths(times: int, positions: int) -> None:
    if times != positions:
        raise DataError(f"the feature has {positions} positions and {times} times; there must be as many")


def _parts(geometry: Any) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Yield the type, the times and the places of each part of a geometry that moves."""
    kind = geometry.get("type")
    if kind not in MOVING:
        raise DataError(f"the temporalGeometry is a {kind!r}, not one of: {', '.join(MOVING)}")
    if kind == "MovingGeometryCollection":
        for part in geometry.get("prisms", geometry.get("members")):
            yield from _parts(part)
        return
    # MobilityDB writes what is interrupted as several sequences.
    for part in geometry.get("sequences", [geometry]):
        yield kind, part["datetimes"], part["coordinates"]


def _placed(row: Row, kind: str, position: Any, coordinates: Coordinates) -> Row | Rejected:
    if kind == "MovingPoint":
        if not isinstance(position, list) or len(position) < 2 or not all(map(_is_number, position)):
            return "a position is not two or three numbers", _shown({**row, "position": position})
        pair = ("lon", "lat") if coordinates is Coordinates.LONLAT else ("x", "y")
        row |= {pair[0]: float(position[0]), pair[1]: float(position[1])}
        if len(position) > 2:
            row.setdefault("altitude", float(position[2]))
        return row
    shape = {"MovingPolygon": "Polygon", "MovingLineString": "LineString", "MovingPointCloud": "MultiPoint"}[
        kind
    ]
    try:
        return {**row, "geometry": _wkt({"type": shape, "coordinates": position})}
    except DataError as error:
        return str(error), _shown({**row, "position": position})


class _Values:
    """A temporal property: values at times, and what holds between them."""

    def __init__(self, name: str, times: list[Any], said: Row) -> None:
        self.name = f"{name}_" if name in RESERVED_COLUMNS else name
        values = said["values"]
        if len(values) != len(times):
            raise DataError(f"the property {name!r} has {len(values)} values and {len(times)} times")
        instants = [(_instant(time), time, value) for time, value in zip(times, values, strict=True)]
        known = sorted(
            ((at, time, value) for at, time, value in instants if at is not None), key=lambda e: e[0]
        )
        self._instants = [at for at, _, _ in known]
        self._values = [value for _, _, value in known]
        self.times = [(time, at) for at, time, _ in known]
        how = said.get("interpolation", said.get("interpolations", "Discrete"))
        self._how = how[0] if isinstance(how, list) and how else how

    def at(self, instant: int | None) -> Any:
        """Return the value at an instant, None where there is none."""
        if instant is None:
            return None
        number = bisect_left(self._instants, instant)
        if number < len(self._instants) and self._instants[number] == instant:
            return self._values[number]
        if number in (0, len(self._instants)) or self._how not in ("Step", "Linear"):
            return None
        before, after = self._values[number - 1], self._values[number]
        if self._how == "Step":
            return before
        if not (_is_number(before) and _is_number(after)):
            return None
        start, end = self._instants[number - 1], self._instants[number]
        return before + (after - before) * ((instant - start) / (end - start))


def _series(groups: list[Row]) -> Iterator[_Values]:
    for group in groups:
        times = group["datetimes"]
        for name, said in group.items():
            if isinstance(said, dict) and isinstance(said.get("values"), list):
                yield _Values(name, times, said)


# --- times ---------------------------------------------------------------------------------------------


def _time(value: Any) -> Any:
    """Return a time as text; a number is milliseconds since 1970, or seconds if it is too small for that."""
    if not _is_number(value):
        return value if value is None or isinstance(value, str) else json.dumps(value)
    try:
        return _iso(_EPOCH + timedelta(microseconds=_microseconds(value)))
    except OverflowError:
        return str(value)


def _microseconds(value: float) -> int:
    factor = 1_000 if abs(value) >= _LARGEST_SECONDS else 1_000_000
    return value * factor if isinstance(value, int) else round(value * factor)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _instant(value: Any) -> int | None:
    """Return a time as microseconds, to compare with others; None if it cannot be read."""
    if _is_number(value):
        return _microseconds(value)
    try:
        moment = datetime.fromisoformat(value)
        return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // _MICROSECOND
    except (TypeError, ValueError, OverflowError):
        return None
