"""What the words of a test file stand for: times, values, polygons and parameters."""

from __future__ import annotations

import re
from datetime import timedelta

from lark import Token

from whimbrel.errors import DataError, ScenarioError
from whimbrel.lang.wbl.literals import token_span, unquote
from whimbrel.model.columns import FIRST_INSTANT, LAST_INSTANT
from whimbrel.model.schema import Type
from whimbrel.model.time import DAY, SECOND, duration, format_duration, format_instant, instant
from whimbrel.testing.events import CONSTANTS, REAL, WHOLE
from whimbrel.testing.scenario import ParamValue, WrittenValue
from whimbrel.testing.syntax import TIME_EXAMPLE

FAR = 366 * DAY
"""How far from the origin a time is still shown as `+5min`; beyond, the date says more."""

_RELATIVE = re.compile(r"[+-](\d+(\.\d+)?[A-Za-z]+)+")
_ABSOLUTE = re.compile(r"\d{4}-\d\d-\d\d[T_]\d\d:\d\d\S*")


def content(token: Token) -> str:
    """Read a text in quotes as what it holds, any other word as it is."""
    return unquote(token) if token.type == "STRING" else str(token)


def read_times(token: Token, origin: int) -> tuple[int, int]:
    """Read `TIME` or `TIME..TIME`."""
    first, dots, last = token.partition("..")
    if not dots:
        time = read_time(token, origin)
        return time, time
    start, end = _time(first, token, origin), _time(last, token, origin)
    if end < start:
        raise ScenarioError(f"{token} ends before it starts", token_span(token), "put the earlier time first")
    return start, end


def read_time(token: Token, origin: int) -> int:
    """Read a time: relative to the origin with a sign, a date without."""
    return _time(str(token), token, origin)


def _time(text: str, token: Token, origin: int) -> int:
    try:
        if text[:1] in ("+", "-") and text[1:]:
            size = round(float(text[1:]) * SECOND) if _is_number(text[1:]) else duration(text[1:])
            time = origin + (size if text[0] == "+" else -size)
        else:
            time = instant(text)
    except DataError:
        raise ScenarioError(f"{text!r} is not a time", token_span(token), _time_hint(text)) from None
    except OverflowError:
        time = LAST_INSTANT + 1
    if not FIRST_INSTANT <= time <= LAST_INSTANT:
        raise ScenarioError(f"{text!r} lies outside the years 1 to 9999", token_span(token), TIME_EXAMPLE)
    return time


def _time_hint(text: str) -> str:
    if re.fullmatch(r"[+-]?\d+(\.\d+)?m", text):
        return f"'m' stands for metres; write {text}in for minutes, {text}s for milliseconds"
    if _is_number(text) or re.fullmatch(r"\d+[a-z]+", text):
        return f"times behind the origin have a sign: +{text}"
    return TIME_EXAMPLE


def _is_number(text: str) -> bool:
    return bool(WHOLE.fullmatch(text) or REAL.fullmatch(text))


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
    text = content(token)
    if token.type == "STRING":
        return WrittenValue(text, text, Type.STRING, is_quoted=True)
    if text in CONSTANTS:
        return WrittenValue(text, CONSTANTS[text], None if text == "null" else Type.BOOL)
    if WHOLE.fullmatch(text):
        return WrittenValue(text, _int64(token), Type.INT)
    if REAL.fullmatch(text):
        return WrittenValue(text, float(text), Type.FLOAT)
    if _RELATIVE.fullmatch(text) or _ABSOLUTE.fullmatch(text):
        return WrittenValue(text, read_time(token, origin), Type.TIMESTAMP)
    return WrittenValue(text, text, Type.STRING)


def _int64(token: Token) -> int:
    if len(token) > 20 or not -(2**63) <= int(token) < 2**63:
        hint = "write it with a dot, as a float, or in quotes"
        raise ScenarioError(f"{token} does not fit in 64 bits", token_span(token), hint)
    return int(token)


def read_polygon(token: Token) -> bytes:
    """Read WKT in quotes, as WKB."""
    import shapely

    try:
        shape = shapely.from_wkt(content(token))
    except shapely.errors.GEOSException:
        raise ScenarioError(
            "this is no WKT", token_span(token), "write for example 'POLYGON ((0 0, 10 0, 10 10, 0 0))'"
        ) from None
    return bytes(shapely.to_wkb(shape))


def read_param(text: str) -> ParamValue:
    """Read what stands behind `param NAME =`: a number, `true`, `false`, a duration, else text."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if _is_number(text):
        return int(text) if WHOLE.fullmatch(text) else float(text)
    try:
        return timedelta(microseconds=duration(text))
    except DataError:
        return text
