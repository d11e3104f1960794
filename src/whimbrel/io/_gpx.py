"""Read events from GPX 1.0 and 1.1: the points of tracks, waypoints and routes.

Expat, which comes with Python, hands the document over element by element, so that memory does not grow with
the file, and what stands before a broken place is kept; a document with a DOCTYPE, which could define
entities, is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from whimbrel.errors import DataError
from whimbrel.io import _streams
from whimbrel.io._rows import Item, Row, RowFile
from whimbrel.io._streams import Progress, open_bytes, reading
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates

_BLOCK = 1 << 20
_POINTS = {"trkpt": "TrackPoint", "wpt": "Waypoint", "rtept": "RoutePoint"}
_WORDS = {"trkpt": "track point", "wpt": "waypoint", "rtept": "route point"}
_RENAMED = {"ele": "altitude", "type": "kind"}
"""`type` is what kind of event it is, so that GPX's own word for a kind of place has another name."""
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


class GpxFile(RowFile):
    """A GPX file. Each point is an event of the type TrackPoint, Waypoint or RoutePoint.

    The `source` of a track or route is its name, or that of the file; `segment` numbers the parts of a track,
    between which the receiver was off. Elements of a point, those in `extensions` too, are attributes.
    """

    coordinates = Coordinates.LONLAT

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        super().__init__(path)
        self._encoding = encoding
        with reading(path), open_bytes(path, lambda _: None) as stream:
            if not stream.read(4096).strip():
                raise DataError("the file is empty; it must hold GPX")

    def items(self, on_read: Progress) -> Iterator[Item]:
        """Yield the points in the order of the file, and where the XML breaks off."""
        document = _Document(_streams.unpacked_name(self.path.name).removesuffix(".gpx"), self._encoding)
        count = 0
        with open_bytes(self.path, on_read) as stream:
            while True:
                block = stream.read(_BLOCK)
                broken = document.feed(block)
                for row in document.take():
                    count += 1
                    yield count, row
                if broken:
                    if count == 0:
                        raise DataError(f"the file is not GPX: {broken}")
                    reason = f"the XML is broken here, and nothing behind it can be read: {broken}"
                    yield count + 1, (reason, document.around(block))
                if broken or not block:
                    return


class _Document:
    """Takes the XML as it comes and makes events of it."""

    def __init__(self, name: str, encoding: str | None) -> None:
        self._parser = expat.ParserCreate(encoding, namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._name = name
        self._before = 0
        self._depth = 0
        self._found: list[Row | tuple[str, str]] = []
        self._text: list[str] = []
        self._point: Row | None = None
        self._counts = {"trk": 0, "rte": 0}
        self._line: Row = {}
        self._leaf = ""

    def feed(self, block: bytes) -> str | None:
        """Take a block, or the end; return what is wrong with it."""
        try:
            self._parser.Parse(block, not block)
        except expat.ExpatError as error:
            return f"{expat.ErrorString(error.code)}, line {error.lineno}, column {error.offset + 1}"
        self._before += len(block)
        return None

    def take(self) -> list[Row | tuple[str, str]]:
        """Hand out the events that are complete."""
        rows, self._found = self._found, []
        return rows

    def around(self, block: bytes) -> str:
        """Return the text around the place where the XML broke."""
        place = max(0, self._parser.ErrorByteIndex - self._before)
        return block[max(0, place - 60) : place + 60].decode(errors="replace")

    @staticmethod
    def _refuse(*_: Any) -> None:
        raise DataError("the file declares a document type (DOCTYPE), which GPX has none of; remove it")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        self._depth += 1
        if self._depth == 1 and name != "gpx":
            raise DataError(f"the file is not GPX: its outermost element is <{name}>")
        self._text.clear()
        self._leaf = tag
        if name in self._counts:
            self._counts[name] += 1
            self._line = {"of": name, "segment": 0}
        elif name == "trkseg":
            self._line["segment"] = self._line.get("segment", 0) + 1
        elif name in _POINTS:
            self._point = {"type": _POINTS[name], "lon": attributes.get("lon"), "lat": attributes.get("lat")}

    def _characters(self, text: str) -> None:
        self._text.append(text)

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        self._depth -= 1
        text = "".join(self._text).strip() if self._leaf == tag else ""
        self._leaf = ""
        if name in _POINTS and self._point is not None:
            self._found.append(self._event(name, self._point))
            self._point = None
        elif self._point is not None:
            if text:
                self._add(self._point, name, text)
        elif name in self._counts:
            self._line = {}
        elif name == "name" and self._line.get("segment") == 0 and text:
            self._line["name"] = text

    @staticmethod
    def _add(point: Row, name: str, text: str) -> None:
        if name == "time":
            point.setdefault("time", text)
            return
        name = _RENAMED.get(name, name)
        name = f"{name}_" if name in RESERVED_COLUMNS else name
        point.setdefault(name, _value(text))

    def _event(self, name: str, point: Row) -> Row | tuple[str, str]:
        if name != "wpt":
            number = self._counts[self._line.get("of", "trk")]
            unnamed = self._name if number == 1 else f"{self._name} {number}"
            point["source"] = self._line.get("name", unnamed)
        if name == "trkpt":
            point["segment"] = self._line.get("segment", 0)
        shown = json.dumps(point, ensure_ascii=False)
        if "time" not in point:
            return f"the {_WORDS[name]} has no time, so that it is no event", shown
        for axis in ("lon", "lat"):
            try:
                point[axis] = float(point[axis])
            except (TypeError, ValueError):
                return f"{axis} is not a number: {point[axis]!r}", shown
        return point


def _value(text: str) -> Any:
    number = _NUMBER.fullmatch(text)
    if not number:
        return text
    return int(text) if not (number[2] or number[3]) and len(text) < 19 else float(text)
