"""The ids of events that bring none, in plain Python, as docs/meaning.md says them."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import shapely

from .data import Event

_BITS = 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def xxh64(data: bytes, seed: int) -> int:
    """The XXH64 of some bytes, as its specification has it."""
    at, accumulated = 0, (seed + _P5) & _BITS
    if len(data) >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + 32 <= len(data):
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane & _BITS, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        accumulated = sum(_turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _BITS
        for lane in lanes:
            accumulated = ((accumulated ^ _round(0, lane)) * _P1 + _P4) & _BITS
    accumulated = (accumulated + len(data)) & _BITS
    while at + 8 <= len(data):
        accumulated ^= _round(0, *struct.unpack_from("<Q", data, at))
        accumulated = (_turned(accumulated, 27) * _P1 + _P4) & _BITS
        at += 8
    if at + 4 <= len(data):
        accumulated ^= struct.unpack_from("<I", data, at)[0] * _P1 & _BITS
        accumulated = (_turned(accumulated, 23) * _P2 + _P3) & _BITS
        at += 4
    for byte in data[at:]:
        accumulated ^= byte * _P5 & _BITS
        accumulated = _turned(accumulated, 11) * _P1 & _BITS
    return _avalanche(accumulated)


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _BITS


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _BITS, 31) * _P1 & _BITS


def _avalanche(value: int) -> int:
    value = (value ^ value >> 33) * _P2 & _BITS
    value = (value ^ value >> 29) * _P3 & _BITS
    return value ^ value >> 32


def value_bytes(value: Any) -> bytes | None:
    """The bytes that stand for a value; None where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, datetime):
        value = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if isinstance(value, bool):
        return struct.pack("<i", value)
    if isinstance(value, float) and not (value.is_integer() and -(2.0**63) <= value < 2.0**63):
        return struct.pack("<d", value)
    if isinstance(value, int | float):
        return struct.pack("<q", int(value))
    return value if isinstance(value, bytes) else str(value).encode()


def content(values: Mapping[str, Any]) -> int:
    """What an event says: the exclusive or of its values' hashes, each seeded with that of its name."""
    total = 0
    for name, value in values.items():
        data = value_bytes(value)
        if data is not None:
            total ^= xxh64(data, xxh64(name.encode(), 42))
    return total


def made_ids(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ids that are made for events, given in order of arrival by the columns they have.

    Equal events are numbered as they came.
    """
    seen: Counter[tuple[Any, ...]] = Counter()
    found = []
    for row in rows:
        source, start, end = row.get("source"), row["start"], row["end"]
        says = content({**_attributes(row), **_location(row)})
        kind = (source, start, end, says, row["type"])
        times = str(end) if start == end else f"{start}-{end}"
        found.append(f"{source or ''}:{times}:{says:016x}:{seen[kind]:06}:{row['type']}")
        seen[kind] += 1
    return found


def identified(events: Sequence[Event]) -> list[Event]:
    """The events, given in order of arrival, with the ids that are made for them instead of their own."""
    rows = [
        dict(event.attributes) | {n: v for n, v in vars(event).items() if n != "attributes"}
        for event in events
    ]
    for row in rows:
        shape = row.pop("polygon")
        row["geometry"] = None if shape is None else shapely.to_wkt(shapely.Polygon(shape), -1)
    return [replace(event, id=name) for event, name in zip(events, made_ids(rows), strict=True)]


_NO_ATTRIBUTES = {"id", "type", "source", "start", "end", "x", "y", "lon", "lat", "geometry"}


def _attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _NO_ATTRIBUTES}


def _location(row: Mapping[str, Any]) -> dict[str, Any]:
    """Points are x and y whichever way they are written, polygons their WKB."""
    if row.get("geometry") is None:
        return {"x": _float(row.get("x", row.get("lon"))), "y": _float(row.get("y", row.get("lat")))}
    shape = shapely.from_wkt(row["geometry"])
    if shape.geom_type == "Point":
        return {"x": shape.x, "y": shape.y}
    return {"geometry": shapely.to_wkb(shape, byte_order=1, output_dimension=2)}


def _float(value: Any) -> float | None:
    return None if value is None else float(value)
