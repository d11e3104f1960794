"""Values and what can be done with them: SQL nulls, 64-bit whole numbers, times and durations.

Every function takes values that are not null, unless it says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from whimbrel.errors import DataError
from whimbrel.model.schema import TYPE_NAMES, Type
from whimbrel.model.time import format_instant, instant

from .data import Duration, Timestamp, Value


def wrap(number: int) -> int:
    """Whole numbers wrap at 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def clean(value: Value) -> Value:
    """What is not a number is null."""
    return None if isinstance(value, float) and math.isnan(value) else value


def binary(operator: str, left: Value, right: Value) -> Value:
    """Apply an operator other than `and` and `or`; null if either side is null."""
    if left is None or right is None:
        return None
    if operator in COMPARISONS:
        return compare(operator, left, right)
    if isinstance(left, str | bool) or isinstance(right, str | bool):
        raise TypeError(f"no arithmetic with {left!r} {operator} {right!r}")
    if isinstance(left, Timestamp | Duration) or isinstance(right, Timestamp | Duration):
        return _in_time(operator, left, right)
    if isinstance(left, int) and isinstance(right, int):
        return _whole(operator, left, right)
    return clean(_real(operator, float(left), float(right)))


COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}


def compare(operator: str, left: Value, right: Value) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        raise TypeError(f"cannot compare {left!r} with {right!r}")
    return COMPARISONS[operator](left, right)


def _whole(operator: str, a: int, b: int) -> Value:
    match operator:
        case "+":
            return wrap(a + b)
        case "-":
            return wrap(a - b)
        case "*":
            return wrap(a * b)
        case "/":
            return None if b == 0 else float(a) / float(b)
        case "%":
            return None if b == 0 else a % b
    raise ValueError(operator)


def _real(operator: str, a: float, b: float) -> float | None:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return None if b == 0 else a / b
        case "%":
            return None if b == 0 or math.isinf(a) else a % b
    raise ValueError(operator)


def _in_time(operator: str, a: Value, b: Value) -> Value:
    """Sums with instants and durations: what is not listed has no meaning."""
    match a, operator, b:
        case Timestamp(), "-", Timestamp():
            return Duration(wrap(int(a) - int(b)))
        case Timestamp(), "+", Duration():
            return Timestamp(wrap(int(a) + int(b)))
        case Duration(), "+", Timestamp():
            return Timestamp(wrap(int(a) + int(b)))
        case Timestamp(), "-", Duration():
            return Timestamp(wrap(int(a) - int(b)))
        case Duration(), "+", Duration():
            return Duration(wrap(int(a) + int(b)))
        case Duration(), "-", Duration():
            return Duration(wrap(int(a) - int(b)))
        case Duration(), "/", Duration():
            return None if b == 0 else float(a) / float(b)
        case Duration(), "%", Duration():
            return None if b == 0 else Duration(int(a) % int(b))
        case (Timestamp(), _, _) | (_, _, Timestamp()):
            raise TypeError(f"no meaning for {a!r} {operator} {b!r}")
        case (Duration(), "*", int() | float()) | (int() | float(), "*", Duration()):
            return _duration(_plain("*", a, b))
        case Duration(), "/", int() | float() if not isinstance(b, Duration):
            return _duration(_plain("/", a, b))
    raise TypeError(f"no meaning for {a!r} {operator} {b!r}")


def _plain(operator: str, a: Value, b: Value) -> Value:
    """Forget that a value is a duration."""
    left = int(a) if isinstance(a, Duration) else a
    right = int(b) if isinstance(b, Duration) else b
    return binary(operator, left, right)


def _duration(value: Value) -> Value:
    if value is None or math.isinf(value):  # type: ignore[arg-type]
        return None
    return Duration(wrap(round(value)))  # type: ignore[arg-type]


def negative(value: Value) -> Value:
    if value is None:
        return None
    if isinstance(value, float):
        return -value
    if isinstance(value, Duration):
        return Duration(wrap(-value))
    if isinstance(value, int) and not isinstance(value, bool | Timestamp):
        return wrap(-value)
    raise TypeError(f"no negative of {value!r}")


def negation(value: Value) -> bool | None:
    return None if value is None else not value


def conjunction(left: Value, right: Value) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def disjunction(left: Value, right: Value) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def cast(value: Value, type_name: str | None) -> Value:
    """Turn `value` into the declared type; what cannot be turned is null.

    An attribute is never a duration: without a declared type it becomes whole microseconds.
    """
    if type_name is None:
        return int(value) if isinstance(value, Duration) else value
    if value is None:
        return None
    try:
        return clean(_CASTS[TYPE_NAMES[type_name.lower()]](value))
    except (ValueError, OverflowError, DataError):
        return None


def _to_bool(value: Value) -> Value:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return bool(value)


def _to_int(value: Value) -> Value:
    whole = int(value)  # type: ignore[arg-type]  # towards zero
    return whole if -(2**63) <= whole < 2**63 else None


def _to_text(value: Value) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Timestamp):
        return format_instant(value)
    return value if isinstance(value, str) else str(value)


def _to_timestamp(value: Value) -> Value:
    return Timestamp(instant(value) if isinstance(value, str) else int(value))  # type: ignore[arg-type]


_CASTS: dict[Type, Callable[[Value], Value]] = {
    Type.BOOL: _to_bool,
    Type.INT: _to_int,
    Type.FLOAT: float,  # type: ignore[dict-item]
    Type.STRING: _to_text,
    Type.TIMESTAMP: _to_timestamp,
}
