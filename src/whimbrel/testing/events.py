"""Events and detections in one line, for tests.

An event is `TYPE@TIME`, and behind it, in any order and each at most once:

=================  =====================================================================
`leave@75m`        a point event, 75 minutes after 1970-01-01; units us ms s m (min) h d,
                   seconds where none is given; `A@-2s` lies before 1970
`stay@1..3s`       an event that lasts; a start without a unit has that of the end
`A@1s#e7`          with the id `e7`
`A@1s!bus-4`       from the source `bus-4`
`A@1s(2.5,-1)`     at the point x = 2.5, y = -1
`A@1s:v=3,k=north` with attributes: whole numbers, floats, `true`, `false`, `null`, else
                   text; in quotes anything is text (`k='7'`, `k='two words'`)
=================  =====================================================================

Events are parted by blanks or line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from whimbrel.errors import DataError
from whimbrel.model.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND

Value = bool | int | float | str | None
Row = dict[str, Any]
"""One event: `type`, `start`, `end`, and what was given of `id`, `source`, `x`, `y` and attributes."""

_UNITS = {"us": 1, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "min": MINUTE, "h": HOUR, "d": DAY}
_RESERVED = frozenset({"type", "start", "end", "id", "source", "x", "y"})

_QUOTED = r"'[^']*'"
_INSTANT = r"-?\d+(?:\.\d+)?[a-z]*"
_TIMES = re.compile(rf"({_INSTANT})(?:\.\.({_INSTANT}))?")
_WORD = re.compile(rf"(?:{_QUOTED}|\([^)]*\)|[^\s'(])+")
_IDS = re.compile(r":(?P<ids>\s(?:(?!:\s).)*|)$")
_HEAD = re.compile(rf"(?P<type>[^\s@#!:(']+)@(?P<times>{_INSTANT}(?:\.\.{_INSTANT})?)")
_SUFFIX = re.compile(
    rf"#(?P<id>[^\s#!:()']+)|!(?P<source>[^\s#!:()']+)"
    rf"|\((?P<point>[^)]*)\)|:(?P<attributes>(?:{_QUOTED}|[^\s#!()'])+)"
)
_PAIR = re.compile(rf"([A-Za-z_]\w*)=({_QUOTED}|[^,']*)(?:,|$)")
WHOLE = re.compile(r"[+-]?\d+")
REAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")
CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}


def events(text: str) -> list[Row]:
    """Read events in the one-line notation, as rows of an event file with times in microseconds.

    >>> events("leave@0m arrive@75m:speed=3,k=x")
    [{'type': 'leave', 'start': 0, 'end': 0},
     {'type': 'arrive', 'start': 4500000000, 'end': 4500000000, 'speed': 3, 'k': 'x'}]
    >>> events("A@1..3s#id7!src(1,2)")
    [{'type': 'A', 'start': 1000000, 'end': 3000000, 'id': 'id7', 'source': 'src', 'x': 1.0, 'y': 2.0}]

    Raises
    ------
    DataError
        If a word is not an event; the error quotes it and shows one that is.
    """
    rest = _WORD.sub("", text).strip()
    if rest:
        raise DataError(f"{rest[0]!r} in {text!r} is opened and never closed")
    return [_event(word) for word in _WORD.findall(text)]


def table(rows: str | Iterable[Mapping[str, object]]) -> pa.Table:
    """Make an Arrow table of events, with times as `timestamp[us, UTC]`; text is read by `events` first.

    >>> table("A@1s:v=3 B@2s").to_pylist()[1]["v"] is None
    True
    >>> table("A@1s").schema.field("end").type
    TimestampType(timestamp[us, tz=UTC])
    """
    listed = events(rows) if isinstance(rows, str) else list(rows)
    names = dict.fromkeys(["type", "start", "end", *(name for row in listed for name in row)])
    return pa.table({name: _column(name, [row.get(name) for row in listed]) for name in names})


def detections(text: str) -> list[Row]:
    """Read detections: `TYPE@START..END: id id ...`, parted by semicolons or line ends.

    The type may be left out, and is then no part of what is expected. Attributes stand behind the
    times as in `events`.

    >>> detections("missing@0m..60m: e1 ; 5s: e2 e3")
    [{'type': 'missing', 'start': 0, 'end': 3600000000, 'events': ('e1',)},
     {'start': 5000000, 'end': 5000000, 'events': ('e2', 'e3')}]
    >>> detections("busy@0s..5s:n=2: e1 e2")
    [{'type': 'busy', 'start': 0, 'end': 5000000, 'n': 2, 'events': ('e1', 'e2')}]
    """
    return [_detection(line.strip()) for line in re.split(r"[;\n]", text) if line.strip()]


def _detection(line: str) -> Row:
    match = _IDS.search(line)  # ids may hold colons themselves
    if match is None:
        raise DataError(f"{line!r} is not a detection; write for example 'missing@0m..60m: e1 e2'")
    head, ids = line[: match.start()], match["ids"]
    named = "@" in head
    row = _event(head.strip() if named else f"any@{head.strip()}")
    if not named:
        del row["type"]
    return row | {"events": tuple(ids.split())}


def _event(word: str) -> Row:
    head = _HEAD.match(word)
    if head is None:
        raise DataError(f"{word!r} is not an event; write for example 'A@5s' or 'A@1..3s#id!source(1,2):v=3'")
    start, end = _times(head["times"], word)
    row: Row = {"type": head["type"], "start": start, "end": end}
    position, seen = head.end(), set[str]()
    while position < len(word):
        match = _SUFFIX.match(word, position)
        if match is None or match.lastgroup is None:
            raise DataError(
                f"{word[position:]!r} in {word!r} is none of '#id', '!source', '(x,y)', ':name=value'"
            )
        if match.lastgroup in seen:
            raise DataError(f"{word!r} gives its {match.lastgroup} twice")
        seen.add(match.lastgroup)
        row |= _suffix(match.lastgroup, match[match.lastgroup], word)
        position = match.end()
    return row


def _times(text: str, word: str) -> tuple[int, int]:
    match = _TIMES.fullmatch(text)
    if match is None:
        raise DataError(f"{text!r} in {word!r} is not a time; write for example '5s' or '1..3s'")
    first, last = match[1], match[2] or match[1]
    unit = last.lstrip("-0123456789.") or "s"
    start, end = _microseconds(first, unit, word), _microseconds(last, unit, word)
    if end < start:
        raise DataError(f"{word!r} ends before it starts")
    return start, end


def _microseconds(text: str, unit: str, word: str) -> int:
    own = text.lstrip("-0123456789.")
    size = _UNITS.get(own or unit)
    if size is None:
        raise DataError(f"{own or unit!r} in {word!r} is no unit of time; units: {', '.join(_UNITS)}")
    number = text.removesuffix(own) if own else text
    return int(number) * size if WHOLE.fullmatch(number) else round(float(number) * size)


def _suffix(kind: str, text: str, word: str) -> Row:
    if kind == "point":
        return _point(text, word)
    return _attributes(text, word) if kind == "attributes" else {kind: text}


def _point(text: str, word: str) -> Row:
    numbers = [_value(number.strip()) for number in text.split(",")]
    if len(numbers) != 2 or not all(type(number) in (int, float) for number in numbers):
        raise DataError(f"({text}) in {word!r} is not a point; write for example '(2.5,-1)'")
    x, y = (float(number) for number in numbers if isinstance(number, int | float))
    return {"x": x, "y": y}


def _attributes(text: str, word: str) -> Row:
    attributes: Row = {}
    position = 0
    while position < len(text):
        pair = _PAIR.match(text, position)
        if pair is None:
            raise DataError(f"{text[position:]!r} in {word!r} is not 'name=value'")
        name = pair[1]
        if name in _RESERVED or name in attributes:
            kind = "is a column of every event" if name in _RESERVED else "is given twice"
            raise DataError(f"the attribute {name!r} in {word!r} {kind}")
        attributes[name] = _value(pair[2])
        position = pair.end()
    return attributes


def _value(text: str) -> Value:
    if text.startswith("'"):
        return text[1:-1]
    if WHOLE.fullmatch(text):
        return int(text)
    if REAL.fullmatch(text):
        return float(text)
    return CONSTANTS.get(text, text)


def _column(name: str, values: list[object]) -> pa.Array:
    if name in ("start", "end"):
        return pa.array(values, type=pa.timestamp("us", tz="UTC"))
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array(values, type=pa.float64())
    if len(kinds) > 1:
        listed = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"the attribute {name!r} has {listed} values; a column has one type")
    # A column of nulls would have a type of its own that no schema knows.
    return pa.array(values, type=None if kinds else pa.string())
