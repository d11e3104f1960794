"""Values, amounts and lists in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whimbrel.graph.expressions import Expr, Literal, format_expr, format_literal
from whimbrel.model.schema import Type
from whimbrel.model.time import format_duration, format_instant

METRES = "m"
LONG = 60
"""Texts longer than this (regions, mostly) are cut."""


def value_text(value: Any, kind: Type | None, unit: str = "", *, exact: bool = False) -> str:
    """Write a value for people, with its unit.

    >>> value_text(612.3049, Type.FLOAT, "m"), value_text(380_000_000, Type.DURATION)
    ('612.305 m', '6 min 20 s')
    >>> value_text("bus", Type.STRING), value_text(None, None)
    ("'bus'", 'missing')
    """
    if value is None:
        return "missing"
    if kind is Type.DURATION:
        return format_duration(value)
    if kind is Type.TIMESTAMP:
        return clock(value)
    if isinstance(value, bool | str):
        return cut(format_literal(value, kind))
    text = repr(value) if exact or not isinstance(value, float) else f"{value:.6g}"
    return f"{text} {unit}" if unit else text


def clock(microseconds: int) -> str:
    """Write an instant without the digits that say nothing.

    >>> clock(1_500_000)
    '1970-01-01T00:00:01.5Z'
    """
    whole, _, fraction = format_instant(microseconds).removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def shortened(expr: Expr) -> str:
    """Write an expression; a long constant, such as a region, is cut."""
    if isinstance(expr, Literal) and isinstance(expr.value, str):
        return cut(expr.value)
    text = format_expr(expr)
    return text if len(text) <= 2 * LONG else cut(text, 2 * LONG)


def cut(text: str, length: int = LONG) -> str:
    """Cut a long text.

    >>> cut("abcdefgh", 5)
    'ab...'
    """
    return text if len(text) <= length else f"{text[: length - 3]}..."


def listed(names: Iterable[str], most: int = 8) -> str:
    """List names, the first few of them.

    >>> listed("abc", most=2)
    'a, b and 1 more'
    """
    every = list(names)
    shown = ", ".join(every[:most])
    return f"{shown} and {len(every) - most} more" if len(every) > most else shown
