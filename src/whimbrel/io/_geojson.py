"""Read events from GeoJSON and Moving Features JSON: collections, single features, and one feature a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whimbrel.errors import DataError
from whimbrel.io._document import open_list
from whimbrel.io._json_parts import JsonMember
from whimbrel.io._moving import MOVING, events_of, is_feature
from whimbrel.io._rows import Item, RowFile, row_from
from whimbrel.io._streams import Progress, is_blank, line_blocks, open_text, reading
from whimbrel.model.schema import Coordinates

_BLOCK = 8 * 2**20
_PEEK = 1 << 20
_RECORD_SEPARATOR = b"\x1e"
_DEGREES = ("crs84", "crs83", "crs27", ":4326", "/4326", ":4979", "/4979", ":4258", "/4258", ":4269", "/4269")
"""Parts of the names of reference systems in longitude and latitude."""


def is_geojson(members: list[JsonMember]) -> bool:
    """Tell from the members of an object whether it is GeoJSON or Moving Features JSON."""
    values = {member.name: member.value for member in members if not member.opening}
    parts = {member.name: member for member in members if member.opening}
    if values.get("type") == "FeatureCollection" or values.get("type") in MOVING:
        return True
    if values.get("type") == "Feature" and {"geometry", "properties", "temporalGeometry"} & {*parts, *values}:
        return True
    return "features" in parts and parts["features"].holds == "{"


def has_features(path: Path, encoding: str | None = None) -> bool:
    """Tell whether a list begins with a feature."""
    with open_list(path, lambda _: None, encoding) as stream:
        first = stream.readline(_PEEK)
    try:
        return is_feature(json.loads(first))
    except (ValueError, RecursionError):
        return False


class GeoJsonFile(RowFile):
    """Features, each of them an event or, if it moves, many.

    Coordinates are degrees (RFC 7946), unless the collection names another reference system.
    """

    def __init__(
        self,
        path: Path,
        encoding: str | None = None,
        *,
        members: list[JsonMember] | None = None,
        is_list: bool = False,
    ) -> None:
        super().__init__(path)
        self._encoding = encoding
        self._is_list = is_list
        self._is_document = members is not None
        self._start: int | None = None
        said = {member.name: member for member in members or []}
        if "features" in said or (said.get("type") and said["type"].value == "FeatureCollection"):
            features = said.get("features")
            if features is None or features.opening != "[":
                raise DataError(f"{path}: the FeatureCollection has no list of features")
            self._start, self._is_list = features.start, True
        self.coordinates = self._coordinates(said)

    def _coordinates(self, said: dict[str, JsonMember]) -> Coordinates:
        plane = said.get("coordinates")
        if plane and plane.value == Coordinates.PLANE:  # as in what Whimbrel writes
            return Coordinates.PLANE
        if "crs" in said:
            crs: Any = self._object_at(said["crs"])
        elif not self._is_document or self._is_list:
            crs = next((item.get("crs") for item in self._first() if isinstance(item, dict)), None)
        else:
            crs = None
        return coordinates_of(crs)

    def _object_at(self, member: JsonMember) -> Any:
        if not member.opening:
            return member.value
        with reading(self.path), open_text(self.path, _ignore, encoding=self._encoding) as stream:
            at = member.start - 1
            while at > 0 and (data := stream.read(min(at, _BLOCK))):
                at -= len(data)
            text = stream.read(_PEEK).decode(errors="replace")
        try:
            return json.JSONDecoder().raw_decode(text)[0]
        except (ValueError, RecursionError):
            return None

    def _first(self) -> Iterator[Any]:
        with reading(self.path):
            yield from (item for _, item in self._parsed(_ignore))

    def items(self, on_read: Progress) -> Iterator[Item]:
        """Yield the events of each feature under the number of the feature."""
        assert self.coordinates is not None
        for number, item in self._parsed(on_read):
            if isinstance(item, tuple):
                yield number, item
                continue
            if self._is_list and self._start is None and not is_feature(item):
                yield number, item  # a list of plain objects, whatever its name says
                continue
            for event in events_of(item, number, self.coordinates):
                yield number, event

    def _parsed(self, on_read: Progress) -> Iterator[tuple[int, Any]]:
        what = "feature" if self._is_list or self._is_document else "line"
        for number, text in self._texts(on_read):
            row = row_from(text, what)
            shown = text[:2000].decode(errors="replace").strip()
            yield number, row if isinstance(row, dict) else (row, shown)

    def _texts(self, on_read: Progress) -> Iterator[tuple[int, bytes]]:
        if self._is_list:
            with open_list(self.path, on_read, self._encoding, self._start) as stream:
                yield from _lines(stream)
            return
        with open_text(self.path, on_read, encoding=self._encoding) as stream:
            if is_blank(stream):
                raise DataError("the file is empty; it must hold GeoJSON features")
            if self._is_document:
                yield 1, b"".join(iter(lambda: stream.read(_BLOCK), b""))
            else:
                yield from _lines(stream)


def _lines(stream: Any) -> Iterator[tuple[int, bytes]]:
    number = 0
    for block in line_blocks(stream, _BLOCK):
        for line in block.split(b"\n")[:-1]:
            number += 1
            text = line.strip().strip(_RECORD_SEPARATOR).strip()
            if text:
                yield number, text


def _ignore(count: int) -> None:
    """Take no notice: a look at the beginning is not progress."""


def coordinates_of(crs: Any) -> Coordinates:
    """Tell the coordinates from a `crs` member; without one they are degrees."""
    if crs is None:
        return Coordinates.LONLAT
    name = json.dumps(crs).lower()
    return Coordinates.LONLAT if any(part in name for part in _DEGREES) else Coordinates.PLANE
