"""Numbers, units and quoted text: from tokens to values."""

from __future__ import annotations

import math
import re

from lark import Token

from whimbrel.errors import QuerySyntaxError, Span
from whimbrel.lang.wbl.tree import TimesNode
from whimbrel.model.time import UNITS

SHORT_UNITS = {UNITS[name]: name for name in ("us", "ms", "s", "min", "h", "d", "w")}

_LARGEST = 2**63 - 1
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*(\w+)")


def token_span(token: Token) -> Span:
    """Tell where a token stands."""
    line, column = token.line or 1, token.column or 1
    return Span(line, column, token.end_line or line, token.end_column or column + len(token))


def number(token: Token) -> int | float:
    """Read a number: whole without a point or an exponent."""
    return _number(str(token), token_span(token))


def whole(token: Token) -> int:
    """Read a whole number."""
    value = number(token)
    if isinstance(value, float):
        raise QuerySyntaxError(
            f"a whole number is needed here, not {token}",
            token_span(token),
            f"write {int(value)}, for example",
        )
    return value


def quantity(token: Token) -> tuple[int | float, str]:
    """Read a number with its unit."""
    number, unit = _QUANTITY.findall(str(token))[0]
    return _number(number, token_span(token)), short_unit(unit)


def short_unit(unit: str) -> str:
    """Look up the one spelling of a unit that the tree uses: `mins` is `min`."""
    lowered = unit.lower()
    if lowered in UNITS:
        return SHORT_UNITS[UNITS[lowered]]
    return "events" if lowered == "event" else lowered


def unquote(token: Token) -> str:
    """Take the quotes and backslashes off a text."""
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), str(token)[1:-1])


def times(at_least: Token, at_most: Token | None, at: Span | None) -> TimesNode:
    """Read `{n}`, `{n,}` and `{n,m}`."""
    low, high = whole(at_least), None if at_most is None else whole(at_most)
    if high == 0:
        raise QuerySyntaxError(
            "a part must occur at least once", at, "write {1,...}, or '+' for once or more often"
        )
    if high is not None and high < low:
        raise QuerySyntaxError(f"{high} is less than {low}", at, f"write {{{high},{low}}}")
    return TimesNode(low, high, at=at)


def _number(text: str, at: Span) -> int | float:
    if text.isascii() and text.isdigit():
        # Very long digit strings would also trip Python's own limit on int().
        if len(text) > 19 or int(text) > _LARGEST:
            raise QuerySyntaxError("this whole number does not fit into 64 bits", at, "write it with a point")
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise QuerySyntaxError("this number is too large", at)
    return value
