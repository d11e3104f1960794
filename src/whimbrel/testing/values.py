"""Times, values and places as test files write them."""

from __future__ import annotations

import re
from datetime import timedelta

from whimbrel.errors import DataError, ScenarioError
from whimbrel.model.columns import FIRST_INSTANT, LAST_INSTANT
from whimbrel.model.schema import Type
from whimbrel.model.time import DAY, SECOND, duration, format_duration, format_instant, instant
from whimbrel.testing.lines import Line, Token
from whimbrel.testing.scenario import ParamValue, Point, WrittenValue

FAR = 366 * DAY
"""How far from the origin a time is still shown as `+5min`; beyond, the date says more."""

_WHOLE = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")
_RELATIVE = re.compile(r"[+-](\d+(\.\d+)?[A-Za-z]+)+")
_ABSOLUTE = re.compile(r"\d{4}-\d\d-\d\d[T_]\d\d:\d\d\S*")
_WORDS = {"true": True, "false": False, "null": None}
_EXAMPLE = "write for example +5s, +1h30min or 2024-05-01T12:00:00Z"


def looks_like_time(text: str) -> bool:
    """Tell whether a line that begins with this word begins with a time."""
    return text[0] in "+-" or text[0].isdigit()


def read_times(token: Token, origin: int) -> tuple[int, int]:
    """Read `TIME` or `TIME..TIME`."""
    first, dots, last = token.text.partition("..")
    if not dots:
        time = _time(token.text, token, origin)
        return time, time
    start, end = _time(first, token, origin), _time(last, token, origin)
    if end < start:
        raise ScenarioError(f"{token.text} ends before it starts", token.at, "put the earlier time first")
    return start, end


def read_time(line: Line, origin: int) -> int:
    """Read the next word of a line as a time."""
    token = line.take("a time", _EXAMPLE)
    return _time(token.content, token, origin)


def _time(text: str, token: Token, origin: int) -> int:
    """Read a time: relative to the origin with a sign, a date without."""
    try:
        if text[:1] in ("+", "-") and text[1:]:
            size = round(float(text[1:]) * SECOND) if _is_number(text[1:]) else duration(text[1:])
            time = origin + (size if text[0] == "+" else -size)
        else:
            time = instant(text)
    except DataError:
        raise ScenarioError(f"{text!r} is not a time", token.at, _time_hint(text)) from None
    except OverflowError:
        time = LAST_INSTANT + 1
    if not FIRST_INSTANT <= time <= LAST_INSTANT:
        raise ScenarioError(f"{text!r} lies outside the years 1 to 9999", token.at, _EXAMPLE)
    return time


def _time_hint(text: str) -> str:
    if re.fullmatch(r"[+-]?\d+(\.\d+)?m", text):
        return f"'m' stands for metres; write {text}in for minutes, {text}s for milliseconds"
    if _is_number(text) or re.fullmatch(r"\d+[a-z]+", text):
        return f"times behind the origin have a sign: +{text}"
    return _EXAMPLE


def _is_number(text: str) -> bool:
    return bool(_WHOLE.fullmatch(text) or _REAL.fullmatch(text))


def format_time(time: int, origin: int) -> str:
    """Write a time as a test file would.

    >>> format_time(4_500_000_000, 0)
    '+1h15min'
    >>> format_time(-5_000_000, 0)
    '-5s'
    """
    distance = time - origin
    if abs(distance) > FAR:
        return format_instant(time)
    return ("-" if distance < 0 else "+") + format_duration(abs(distance)).replace(" ", "")


def read_value(token: Token, origin: int) -> WrittenValue:
    """Read a value: a number, `true`, `false`, `null`, a time, else text; in quotes it is always text."""
    text = token.content
    if token.kind == "text":
        return WrittenValue(text, text, Type.STRING, is_quoted=True)
    if token.kind != "word":
        raise ScenarioError(
            f"{token.text!r} is no value", token.at, "put texts with such characters in quotes"
        )
    if text in _WORDS:
        return WrittenValue(text, _WORDS[text], None if text == "null" else Type.BOOL)
    if _WHOLE.fullmatch(text):
        return WrittenValue(text, _int64(token), Type.INT)
    if _REAL.fullmatch(text):
        return WrittenValue(text, float(text), Type.FLOAT)
    if _RELATIVE.fullmatch(text) or _ABSOLUTE.fullmatch(text):
        return WrittenValue(text, _time(text, token, origin), Type.TIMESTAMP)
    return WrittenValue(text, text, Type.STRING)


def _int64(token: Token) -> int:
    if len(token.text) > 20 or not -(2**63) <= int(token.text) < 2**63:
        raise ScenarioError(
            f"{token.text} does not fit in 64 bits", token.at, "write it with a dot, as a float, or in quotes"
        )
    return int(token.text)


def read_point(line: Line) -> Point:
    """Read `(x, y)`."""
    hint = "write for example (2.5, -1)"
    opening = line.take("a place", hint)
    if opening.text != "(":
        raise ScenarioError(f"{opening.text!r} is not a place", opening.at, hint)
    x = _number(line, hint)
    if not line.next_is(","):
        token = line.take("a comma", hint)
        raise ScenarioError(f"{token.text!r} does not fit here", token.at, hint)
    line.take(",")
    y = _number(line, hint)
    closing = line.take("')'", hint)
    if closing.text != ")":
        raise ScenarioError(f"{closing.text!r} does not fit here", closing.at, hint)
    return x, y


def _number(line: Line, hint: str) -> float:
    token = line.take("a number", hint)
    if token.kind != "word" or not _is_number(token.text):
        raise ScenarioError(f"{token.text!r} is no number", token.at, hint)
    return float(token.text)


def read_polygon(token: Token) -> bytes:
    """Read WKT in quotes, as WKB."""
    import shapely

    try:
        shape = shapely.from_wkt(token.content)
    except shapely.errors.GEOSException:
        raise ScenarioError(
            "this is no WKT", token.at, "write for example 'POLYGON ((0 0, 10 0, 10 10, 0 0))'"
        ) from None
    return bytes(shapely.to_wkb(shape))


def read_param(text: str) -> ParamValue:
    """Read what stands behind `param NAME =`: a number, `true`, `false`, a duration, else text."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if _is_number(text):
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    try:
        return timedelta(microseconds=duration(text))
    except DataError:
        return text
