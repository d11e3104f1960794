"""Read events from one JSON document: a list of objects, or an object with one list of objects in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from whimbrel.errors import DataError
from whimbrel.io._json_parts import JsonMember, ListLines, members_of, read_block
from whimbrel.io._jsonl import JsonLinesFile
from whimbrel.io._pieces import ReadBatch, ReadPlan
from whimbrel.io._rows import Item, Row, RowFile, batch_of_rows, kinds_of_rows, row_from
from whimbrel.io._streams import Progress, is_blank, line_blocks, open_text, reading
from whimbrel.model.columns import arrow_type
from whimbrel.model.schema import Coordinates, Type

_LOG = logging.getLogger(__name__)
_PEEK = 1 << 20
_BLOCK = 8 * 2**20


@dataclass(frozen=True)
class JsonLayout:
    """How a JSON file is laid out, as far as its beginning tells."""

    is_lines: bool
    first: Any = None
    """The first line, parsed, if the file has one object a line."""


def layout_of(path: Path, encoding: str | None = None) -> JsonLayout:
    """Tell a document from JSON lines."""
    with reading(path), open_text(path, lambda _: None, encoding=encoding) as stream:
        start = stream.read(_PEEK).lstrip().lstrip(b"\x1e").lstrip()
    first_line, _, more = start.partition(b"\n")
    if start.startswith(b"["):
        return JsonLayout(is_lines=False)
    try:
        first = json.loads(first_line)
    except (ValueError, RecursionError):
        # The first line ends inside an object that is spread over several lines, or does not end here.
        spread = first_line.rstrip().endswith((b"{", b",", b"["))
        return JsonLayout(is_lines=not spread and (bool(more) or len(start) < _PEEK - 4096))
    return JsonLayout(is_lines=bool(more.strip()), first=first)


class JsonList(JsonLinesFile):
    """A document that is a list of objects, or has one as a member; read block by block as JSON lines are.

    Plain values that stand beside the list in an object become columns of every row.
    """

    what = "element"

    def __init__(
        self, path: Path, encoding: str | None = None, start: int | None = None, beside: Row | None = None
    ) -> None:
        super().__init__(path, encoding)
        self._start = start
        self._beside = beside or {}

    def open(self, on_read: Progress) -> io.BufferedReader:
        """Open the elements, one a line."""
        return open_list(self.path, on_read, self.encoding, self._start)

    def kinds(self, plan: ReadPlan, on_read: Progress) -> dict[str, Type | None]:
        """Make the first pass; a value beside the list counts where no element has a member of its name."""
        kinds = super().kinds(plan, on_read)
        self._beside = {name: value for name, value in self._beside.items() if name not in kinds}
        return kinds | kinds_of_rows([self._beside], plan)

    def pieces(self, plan: ReadPlan, on_read: Progress) -> Iterator[ReadBatch]:
        """Yield the elements, and those that are no objects."""
        beside = {name: plan.kinds[name] for name in self._beside if name in plan.kinds}
        own = replace(plan, kinds={name: kind for name, kind in plan.kinds.items() if name not in beside})
        for piece in super().pieces(own, on_read):
            yield replace(piece, batch=self._with_beside(piece.batch, beside))

    def _with_beside(self, batch: pa.RecordBatch, beside: dict[str, Type | None]) -> pa.RecordBatch:
        if not beside:
            return batch
        values = batch_of_rows([self._beside], beside)
        for name, kind in beside.items():
            column = pa.repeat(values.column(name)[0], batch.num_rows)
            batch = batch.append_column(name, column.cast(arrow_type(kind)))
        return batch


def open_list(
    path: Path, on_read: Progress, encoding: str | None = None, start: int | None = None
) -> io.BufferedReader:
    """Open the elements of a list, one a line: the list that is the document, or that begins at `start`."""
    stream = open_text(path, on_read, encoding=encoding)
    if start is None:
        # All up to and with the opening bracket.
        while stream.read(1) not in (b"[", b""):
            pass
    else:
        while start > 0 and (data := stream.read(min(start, _BLOCK))):
            start -= len(data)
    return io.BufferedReader(ListLines(stream, is_whole=start is None), 1 << 20)


class JsonObject(RowFile):
    """A document that is a single event."""

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        super().__init__(path)
        self._encoding = encoding

    def items(self, on_read: Progress) -> Iterator[Item]:
        """Yield the one event."""
        with open_text(self.path, on_read, encoding=self._encoding) as stream:
            text = b"".join(iter(lambda: read_block(stream), b""))
        row = row_from(text, "document")
        yield 1, row if isinstance(row, dict) else (row, text[:1000].decode(errors="replace"))


def open_document(path: Path, encoding: str | None = None) -> RowFile | JsonList:
    """Choose the reader for a JSON document.

    Raises
    ------
    DataError
        If it is empty, no JSON, or an object with several lists of objects.
    """
    from whimbrel.io._geojson import GeoJsonFile, has_features, is_geojson

    with reading(path), open_text(path, lambda _: None, encoding=encoding) as stream:
        if is_blank(stream):
            raise DataError("the file is empty; it must hold a list of events or a FeatureCollection")
        first = stream.peek(_PEEK).lstrip()[:1]
        if first == b"[":
            is_geo = has_features(path, encoding)
            return GeoJsonFile(path, encoding, is_list=True) if is_geo else JsonList(path, encoding)
        if first != b"{":
            raise DataError("this JSON is neither a list of events nor a GeoJSON FeatureCollection")
        members, rest = members_of(stream)
        if rest:
            raise DataError(f"the file is not JSON: more text follows the object: {rest[:40]!r}")
        if is_geojson(members):
            return GeoJsonFile(path, encoding, members=members)
        return _open_object(path, encoding, members)


def _open_object(path: Path, encoding: str | None, members: list[JsonMember]) -> RowFile | JsonList:
    states = next((member for member in members if member.name == "states" and member.opening == "["), None)
    beside = {member.name: member.value for member in members if not member.opening}
    if states and states.holds == "[" and "time" in beside:
        return OpenSkyStates(path, encoding, states.start, beside["time"])
    lists = [member for member in members if member.opening == "[" and member.holds == "{"]
    if len(lists) > 1:
        names = ", ".join(repr(member.name) for member in lists)
        raise DataError(
            f"the object has several lists of objects ({names}), and one must be the events; "
            f"write that list to a file of its own, with jq for example: jq .{lists[0].name} {path.name}"
        )
    if not lists:
        empty = [member for member in members if member.opening == "[" and not member.holds]
        is_wrapper = len(empty) == 1 and members and not any(m.name in ("type", "time") for m in members)
        return JsonList(path, encoding, empty[0].start, beside) if is_wrapper else JsonObject(path, encoding)
    (events,) = lists
    if events.name == "aircraft" and isinstance(beside.get("now"), int | float):
        return AircraftList(path, encoding, events.start, beside["now"])
    shown = f"; beside it stand {', '.join(beside)}, which become columns" if beside else ""
    _LOG.info("%s: the events are the list %r%s", path, events.name, shown)
    return JsonList(path, encoding, events.start, beside)


class _ListRows(RowFile):
    """A list inside an object whose elements are known to mean something that plain columns do not tell."""

    coordinates = Coordinates.LONLAT
    time_unit = "s"

    def __init__(self, path: Path, encoding: str | None, start: int, now: float) -> None:
        super().__init__(path)
        self._encoding, self._start, self._now = encoding, start, now

    def items(self, on_read: Progress) -> Iterator[Item]:
        """Yield an event for each element."""
        with open_list(self.path, on_read, self._encoding, self._start) as stream:
            number = 0
            for block in line_blocks(stream, _BLOCK):
                for number, line in enumerate(block.splitlines(), number + 1):  # noqa: B020 - counts on
                    if line.strip():
                        yield number, self._event(line)

    def _event(self, line: bytes) -> Row | tuple[str, str]:
        try:
            return self.row(json.loads(line))
        except (ValueError, RecursionError, TypeError, LookupError) as error:
            return f"the element is not an aircraft: {error}", line.decode(errors="replace").strip()

    def row(self, element: Any) -> Row:
        """Make an event of an element.

        Raises
        ------
        ValueError, TypeError, LookupError
            If it is none.
        """
        raise NotImplementedError


class AircraftList(_ListRows):
    """`aircraft.json` of dump1090 and readsb: `{"now": 1700000000.0, "aircraft": [{"hex": ...}]}`.

    `source` is `hex`, `time` is `now` less `seen_pos` (or `seen`), the age of the position in seconds. An
    altitude "ground" is none, and makes `on_ground` true.
    """

    def __init__(self, path: Path, encoding: str | None, start: int, now: float) -> None:
        super().__init__(path, encoding, start, now)
        _LOG.info("%s: aircraft of dump1090: time is 'now' less 'seen_pos', source is 'hex'", path)

    def row(self, element: Any) -> Row:
        """Make an event of one aircraft."""
        if not isinstance(element, dict):
            raise TypeError("it is not a JSON object")
        row = dict(element)
        row["source"] = row["hex"]
        row["time"] = round(self._now - float(row.get("seen_pos", row.get("seen", 0.0))), 6)
        if "alt_baro" in row:
            row["on_ground"] = row["alt_baro"] == "ground"
            row["alt_baro"] = None if row["on_ground"] else row["alt_baro"]
        for pair in (("lon", "lat"),):
            for name in pair:
                row.setdefault(name, None)
        # It says how the position was learned (adsb_icao, mlat), not what kind of event this is.
        row["position_type"] = row.pop("type", None)
        return row


_STATE = (
    "icao24", "callsign", "origin_country", "time_position", "last_contact", "lon", "lat", "baro_altitude",
    "on_ground", "velocity", "true_track", "vertical_rate", "sensors", "geo_altitude", "squawk", "spi",
    "position_source", "category",
)  # fmt: skip
"""The columns of a state vector, in the order that the OpenSky REST API documents."""


class OpenSkyStates(_ListRows):
    """State vectors of the OpenSky REST API: `{"time": 1700000000, "states": [["4b1803", ...], ...]}`.

    `source` is `icao24`, `time` is `time_position`, or `last_contact` if there was no position.
    """

    def __init__(self, path: Path, encoding: str | None, start: int, now: float) -> None:
        super().__init__(path, encoding, start, now)
        _LOG.info("%s: states of OpenSky: time is 'time_position', source is 'icao24'", path)

    def row(self, element: Any) -> Row:
        """Make an event of one state vector."""
        if not isinstance(element, list) or len(element) < len(_STATE) - 1:
            raise TypeError(f"it is not a list of {len(_STATE) - 1} values")
        row = dict(zip(_STATE, element, strict=False))
        row["source"] = row["icao24"]
        row["callsign"] = row["callsign"].strip() if isinstance(row["callsign"], str) else None
        row["time"] = row["time_position"] or row["last_contact"] or self._now
        return row
