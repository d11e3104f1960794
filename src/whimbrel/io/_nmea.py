r"""Read events from NMEA 0183 lines: AIS messages of ships (VDM, VDO), and positions of the receiver (RMC).

Receivers write the time in a tag block (`\c:1700000000*52\!AIVDM,...`), in front of the sentence or behind
it, as seconds since 1970 or as a date. The messages themselves are decoded by pyais.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Any

from whimbrel.errors import DataError, MissingDependency
from whimbrel.io import _streams
from whimbrel.io._pieces import ReadPlan
from whimbrel.io._rows import Item, Rejected, Row, RowFile, known_kinds
from whimbrel.io._streams import Progress, is_blank, line_blocks, open_text, reading
from whimbrel.model.schema import Coordinates, Type

COLUMNS = {
    "type": Type.STRING,
    "source": Type.STRING,
    "time": Type.TIMESTAMP,
    "lon": Type.FLOAT,
    "lat": Type.FLOAT,
    "mmsi": Type.INT,
    "message": Type.INT,
    "speed": Type.FLOAT,
    "course": Type.FLOAT,
    "heading": Type.INT,
    "turn": Type.FLOAT,
    "status": Type.INT,
    "altitude": Type.INT,
    "name": Type.STRING,
    "callsign": Type.STRING,
    "imo": Type.INT,
    "ship_type": Type.INT,
    "destination": Type.STRING,
    "draught": Type.FLOAT,
    "length": Type.INT,
    "width": Type.INT,
}
"""What events may have. Speeds are knots, courses and headings degrees, lengths metres."""

_BLOCK = 4 * 2**20
_FARTHEST = 1_000
"""Lines between two parts of one message; numbers of messages are used again soon."""
_SHORTEST = 38
"""Bits up to the end of the sender's number."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_LINE = re.compile(
    rb"(?P<before>[^!$]*)(?P<sentence>[!$][A-Z][A-Z0-9]{3,5},[^*!$]*\*[0-9A-Fa-f]{2})(?P<after>.*)"
)
_TAG = re.compile(rb"\\(?:[^\\]*[,\\])?c:(\d+)[^\\]*\\")
_NUMBER = re.compile(rb"(?<![\w.:-])(\d{16}|\d{13}|\d{10})(\.\d+)?(?![\w.:-])")
_DATE = re.compile(
    rb"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6})\d*)?"
    rb"\s*(Z|UTC|[+-]\d\d:?\d\d)?"
)
_NO_TIME = (
    "the line has no time, neither in a tag block (\\c:1700000000*hh\\) nor beside the sentence: "
    "record with time stamps"
)


class NmeaFile(RowFile):
    """Lines of NMEA 0183. Position reports are events of the type AisPosition, and so on: see `_READERS`."""

    coordinates = Coordinates.LONLAT

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        super().__init__(path)
        try:
            import pyais  # noqa: F401 - whether it is there is told at once, not after the first lines
        except ImportError as error:
            raise MissingDependency("pyais", "reading AIS messages", "ais") from error
        self._encoding = encoding
        with reading(path), open_text(path, lambda _: None, encoding=encoding) as stream:
            if is_blank(stream):
                raise DataError("the file is empty; its lines must be NMEA sentences")

    def unknown(self, plan: ReadPlan) -> list[str]:  # noqa: ARG002 - the same for every format
        """Return nothing: the columns are known."""
        return []

    def kinds(self, plan: ReadPlan, on_read: Progress) -> dict[str, Type | None]:  # noqa: ARG002 - no pass
        """Return what the columns hold."""
        return known_kinds(COLUMNS, plan)

    def items(self, on_read: Progress) -> Iterator[Item]:
        """Yield an event for each message, under the number of its last line."""
        log = _Log(_streams.unpacked_name(self.path.name).rpartition(".")[0])
        number = 0
        with open_text(self.path, on_read, encoding=self._encoding) as stream:
            for block in line_blocks(stream, _BLOCK):
                for line in block.split(b"\n")[:-1]:
                    number += 1
                    yield from log.read(line.strip(), number)
        yield from log.end()


class _Log:
    """Reads line after line, and keeps the parts of messages until all are there."""

    def __init__(self, name: str) -> None:
        from pyais import AISSentence
        from pyais.exceptions import AISBaseException

        self._sentence, self._error = AISSentence, AISBaseException
        self._name = name
        self._wrapped: int | None = None
        self._parts: dict[tuple[Any, ...], list[tuple[int, int | None, Any]]] = {}

    def read(self, line: bytes, number: int) -> Iterator[Item]:
        """Yield what a line completes."""
        if not line or line.startswith(b"#"):
            return
        sentence = _LINE.fullmatch(line)
        if sentence is None:
            yield number, _rejected("the line is no NMEA sentence with a checksum", line)
            return
        raw = sentence["sentence"]
        kind = raw[3:6]
        if kind in (b"VDM", b"VDO") and raw[:1] == b"!":
            time = _time_of(sentence["before"], sentence["after"])
            yield from self._message(raw, self._wrapped if time is None else time, line, number)
            self._wrapped = None
        elif not _is_sound(raw):
            yield number, _rejected("the checksum is wrong", line)
        elif kind == b"RMC":
            yield number, _own_position(raw, line, self._name)
        elif raw.startswith(b"$PGHP,1,"):
            self._wrapped = _gatehouse_time(raw)
        else:
            name = raw[1:].split(b",")[0].decode()
            yield number, _rejected(f"this NMEA sentence is not read (VDM, VDO and RMC are): {name}", line)

    def _message(self, raw: bytes, time: int | None, line: bytes, number: int) -> Iterator[Item]:
        try:
            sentence = self._sentence(raw)
        except (self._error, ValueError, IndexError) as error:
            yield number, _rejected(f"the AIS sentence cannot be read: {_first_line(error)}", line)
            return
        if not sentence.is_valid:
            yield number, _rejected("the checksum is wrong", line)
            return
        if sentence.frag_cnt > 1:
            yield from self._part(sentence, time, number)
            return
        yield number, self._event(sentence, time, line)

    def _part(self, sentence: Any, time: int | None, number: int) -> Iterator[Item]:
        key = (sentence.talker_id, sentence.seq_id, sentence.channel, sentence.frag_cnt)
        parts = self._parts.setdefault(key, [])
        is_new = not parts or (
            number - parts[-1][0] <= _FARTHEST
            and all(part.frag_num != sentence.frag_num for _, _, part in parts)
        )
        if not is_new:
            yield from _lost(parts)
            parts.clear()
        parts.append((number, time, sentence))
        if len(parts) < sentence.frag_cnt:
            return
        del self._parts[key]
        ordered = sorted((part for _, _, part in parts), key=lambda part: part.frag_num)
        times = [each for _, each, _ in parts if each is not None]
        line = b"\n".join(part.raw for part in ordered)
        whole = self._sentence.assemble_from_iterable(ordered)
        yield number, self._event(whole, times[0] if times else None, line)

    def _event(self, sentence: Any, time: int | None, line: bytes) -> Row | Rejected:
        if time is None:
            return _rejected(_NO_TIME, line)
        if len(sentence.bv) < _SHORTEST:
            return _rejected("the AIS message is too short to say who sent it", line)
        reader = _READERS.get(sentence.ais_id)
        try:
            if reader is None:
                row: Row = {"type": "AisOther", "mmsi": int(sentence.bv.get_num(8, 30))}
            else:
                row = reader(sentence.decode())
        except (self._error, ValueError, TypeError, IndexError, AttributeError) as error:
            return _rejected(f"the AIS message cannot be decoded: {_first_line(error)}", line)
        row["message"] = sentence.ais_id
        row["source"] = f"{row['mmsi']:09d}"
        row["time"] = time
        return row

    def end(self) -> Iterator[Item]:
        """Yield the parts that nothing completed."""
        for parts in self._parts.values():
            yield from _lost(parts)


def _lost(parts: list[tuple[int, int | None, Any]]) -> Iterator[Item]:
    for number, _, part in parts:
        reason = (
            f"the other parts of the message are missing: this is part {part.frag_num} of {part.frag_cnt}"
        )
        yield number, _rejected(reason, part.raw)


def _rejected(reason: str, line: bytes) -> Rejected:
    return reason, line.decode(errors="replace")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# --- what messages say ---------------------------------------------------------------------------------
# ITU-R M.1371 has a value that means "not available" for every field; here that is a missing value.


def _known(value: Any, *unknown: Any) -> Any:
    return None if value is None or value in unknown else value


def _place(message: Any) -> Row:
    lon, lat = message.lon, message.lat
    if lon is None or lat is None or abs(lon) > 180 or abs(lat) > 90:
        lon = lat = None
    return {"mmsi": int(message.mmsi), "lon": lon, "lat": lat}


def _motion(message: Any) -> Row:
    return {"type": "AisPosition", **_place(message), "course": _below(message.course, 360)}


def _below(value: Any, limit: float) -> float | None:
    return None if value is None or value >= limit else float(value)


def _class_a(message: Any) -> Row:
    turn = message.turn
    return _motion(message) | {
        "speed": _below(message.speed, 102.3),
        "heading": _known(message.heading, 511),
        "turn": None if turn is None or isinstance(turn, Enum) else float(turn),
        "status": _known(int(message.status), 15) if message.status is not None else None,
    }


def _class_b(message: Any) -> Row:
    return _motion(message) | {
        "speed": _below(message.speed, 102.3),
        "heading": _known(message.heading, 511),
    }


def _class_b_extended(message: Any) -> Row:
    return _class_b(message) | _ship(message)


def _long_range(message: Any) -> Row:
    status = None if message.status is None else _known(int(message.status), 15)
    return _motion(message) | {"speed": _below(message.speed, 63), "status": status}


def _aircraft(message: Any) -> Row:
    return _motion(message) | {
        "speed": _below(message.speed, 1023),
        "altitude": _known(message.alt, 4095),
    }


def _base_station(message: Any) -> Row:
    return {"type": "AisBase", **_place(message)}


def _aid(message: Any) -> Row:
    return {"type": "AisAid", **_place(message), "name": _known(message.name, "")}


def _ship(message: Any) -> Row:
    row = {"ship_type": None if message.ship_type is None else _known(int(message.ship_type), 0)}
    if getattr(message, "shipname", None) is not None:
        row["name"] = _known(message.shipname, "")
    return row | _size(message)


def _size(message: Any) -> Row:
    sides = [message.to_bow, message.to_stern, message.to_port, message.to_starboard]
    if None in sides:
        return {}
    return {"length": _known(sides[0] + sides[1], 0), "width": _known(sides[2] + sides[3], 0)}


def _static(message: Any) -> Row:
    return _ship(message) | {
        "type": "AisStatic",
        "mmsi": int(message.mmsi),
        "callsign": _known(message.callsign, ""),
        "imo": _known(message.imo, 0),
        "destination": _known(message.destination, ""),
        "draught": _known(message.draught, 0),
    }


def _static_part(message: Any) -> Row:
    row: Row = {"type": "AisStatic", "mmsi": int(message.mmsi)}
    if message.partno == 0:
        return row | {"name": _known(message.shipname, "")}
    return row | _ship(message) | {"callsign": _known(message.callsign, "")}


_READERS: dict[int, Callable[[Any], Row]] = {
    **dict.fromkeys((1, 2, 3), _class_a),
    **dict.fromkeys((4, 11), _base_station),
    5: _static,
    9: _aircraft,
    18: _class_b,
    19: _class_b_extended,
    21: _aid,
    24: _static_part,
    27: _long_range,
}
"""How messages are read, by their number; all others are events of the type AisOther without a location."""


# --- times ---------------------------------------------------------------------------------------------


def _time_of(before: bytes, after: bytes) -> int | None:
    """Return the time that a receiver has noted, in microseconds."""
    if before:
        if tag := _TAG.search(before):
            return _instant(tag[1])
        if (stamp := _stamp(before)) is not None:
            return stamp
    return _stamp(after) if after else None


def _stamp(text: bytes) -> int | None:
    if date := _DATE.search(text):
        return _of_date(date)
    numbers = _NUMBER.findall(text)
    return _instant(*numbers[-1]) if numbers else None


def _instant(digits: bytes, fraction: bytes = b"") -> int | None:
    """Read a number as seconds, milliseconds or microseconds since 1970, by how long it is."""
    if len(digits) > 16:
        return None
    factor = 1_000_000 if len(digits) <= 11 else 1_000 if len(digits) <= 14 else 1
    return int(digits) * factor + (round(float(fraction) * factor) if fraction else 0)


def _of_date(found: re.Match[bytes]) -> int | None:
    year, month, day, hour, minute, second = (int(found[place]) for place in range(1, 7))
    micros = int((found[7] or b"0").ljust(6, b"0"))
    zone = (found[8] or b"Z").decode().replace(":", "")
    offset = timedelta()
    if zone not in ("Z", "UTC"):
        offset = timedelta(hours=int(zone[:3]), minutes=int(zone[0] + zone[3:]))
    try:
        moment = datetime(year, month, day, hour, minute, second, micros, tzinfo=timezone(offset))
        return (moment - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None


def _gatehouse_time(raw: bytes) -> int | None:
    """Read the time that `$PGHP,1,year,month,day,hour,minute,second,millisecond,...` gives the next line."""
    try:
        year, month, day, hour, minute, second, millis = (int(field) for field in raw.split(b",")[2:9])
        moment = datetime(year, month, day, hour, minute, second, millis * 1000, tzinfo=UTC)
    except ValueError:
        return None
    return (moment - _EPOCH) // _MICROSECOND


# --- the receiver itself -------------------------------------------------------------------------------


def _is_sound(raw: bytes) -> bool:
    body, _, given = raw[1:].partition(b"*")
    return reduce(xor, body, 0) == int(given, 16)


def _own_position(raw: bytes, line: bytes, name: str) -> Row | Rejected:
    fields = raw.partition(b"*")[0].split(b",")
    try:
        _, clock, is_valid, lat, north, lon, east, speed, course, date = fields[:10]
        if is_valid != b"A":
            return _rejected("the receiver had no fix", line)
        moment = datetime.strptime((date + clock[:6]).decode(), "%d%m%y%H%M%S").replace(tzinfo=UTC)
        fraction = round(float(b"0" + clock[6:]) * 1_000_000) if clock[6:] else 0
        return {
            "type": "Position",
            "source": name,
            "time": (moment - _EPOCH) // _MICROSECOND + fraction,
            "lat": _degrees(lat, 2) * (-1 if north == b"S" else 1),
            "lon": _degrees(lon, 3) * (-1 if east == b"W" else 1),
            "speed": float(speed) if speed else None,
            "course": float(course) if course else None,
        }
    except ValueError as error:
        return _rejected(f"the RMC sentence cannot be read: {_first_line(error)}", line)


def _degrees(field: bytes, whole: int) -> float:
    """Read degrees and minutes, as in 4807.038."""
    return float(field[:whole]) + float(field[whole:]) / 60
