"""Quantities as people write them: `128 kbit/s`, `10 MB/s`, `5 min`, `20 ms`, beside plain numbers.

Plain numbers are in the units of the model: seconds, bytes, bytes a second, events a second. k, M, G and T
are thousands; Ki, Mi, Gi and Ti are 1024s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum

from whimbrel.errors import NetworkError, did_you_mean

SECONDS = {
    "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0,
    "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0,
    "day": 86400.0, "days": 86400.0,
}  # fmt: skip
PREFIXES = {
    "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
BYTES = {
    f"{prefix}{unit}": factor * of_unit
    for prefix, factor in PREFIXES.items()
    for unit, of_unit in {"B": 1.0, "byte": 1.0, "bytes": 1.0, "bit": 0.125, "bits": 0.125}.items()
}
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([^\d\s].*?)?\s*", re.IGNORECASE)


class Kind(Enum):
    """What a number counts."""

    NUMBER = "a number, such as 4 or 0.5"
    TIME = "a time, such as 20 ms, 5 min or a number of seconds"
    SIZE = "a size, such as 512 B, 10 MB or a number of bytes"
    BANDWIDTH = "a bandwidth, such as 128 kbit/s, 10 MB/s or a number of bytes a second"
    FREQUENCY = "a rate, such as 10/s, 1.5/min, 2 Hz or a number of events a second"


def quantity(value: object, kind: Kind) -> float:
    """Read a number, or a text with a unit.

    >>> quantity("128 kbit/s", Kind.BANDWIDTH), quantity("1.5 KB/min", Kind.BANDWIDTH)
    (16000.0, 25.0)
    >>> quantity("5 min", Kind.TIME), quantity("30/min", Kind.FREQUENCY), quantity(7, Kind.SIZE)
    (300.0, 0.5, 7.0)

    Raises
    ------
    NetworkError
        If it is no such quantity; the message says what would be.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise NetworkError(f"{value!r} is not {kind.value}")
    if isinstance(value, int | float):
        return _counted(float(value), value, kind)
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise NetworkError(f"{value!r} is not {kind.value}")
    unit = (match[2] or "").strip()
    factor = _FACTORS[kind](unit) if unit else 1.0
    if factor is None:
        raise NetworkError(f"{value!r} is not {kind.value}", _hint(unit, kind))
    return _counted(float(match[1]) * factor, value, kind)


def _counted(number: float, value: object, kind: Kind) -> float:
    if math.isnan(number):
        raise NetworkError(f"{value!r} is not {kind.value}")
    return number


def _no_unit(_: str) -> None:
    return None


def _a_second(unit: str, of_amount: Callable[[str], float | None]) -> float | None:
    amount, slash, time = unit.partition("/")
    seconds = SECONDS.get(time.strip())
    counted = of_amount(amount.strip())
    return counted / seconds if slash and seconds is not None and counted is not None else None


def _bandwidth(unit: str) -> float | None:
    # "bps" is bits and "Bps" bytes, as everybody writes them.
    short = re.fullmatch(r"([kKMGT]?i?)([bB])ps", unit)
    if short and short[1] in PREFIXES:
        return PREFIXES[short[1]] * (1.0 if short[2] == "B" else 0.125)
    return _a_second(unit, BYTES.get)


def _frequency(unit: str) -> float | None:
    if unit in ("Hz", "kHz", "MHz"):
        return PREFIXES[unit[:-2]]
    return _a_second(unit, {"": 1.0, "event": 1.0, "events": 1.0}.get)


_FACTORS: dict[Kind, Callable[[str], float | None]] = {
    Kind.NUMBER: _no_unit,
    Kind.TIME: SECONDS.get,
    Kind.SIZE: BYTES.get,
    Kind.BANDWIDTH: _bandwidth,
    Kind.FREQUENCY: _frequency,
}


def _hint(unit: str, kind: Kind) -> str | None:
    known = {
        Kind.TIME: [*SECONDS],
        Kind.SIZE: [*BYTES],
        Kind.BANDWIDTH: [f"{each}/s" for each in BYTES],
        Kind.FREQUENCY: ["/s", "/min", "/h", "Hz", "events/s"],
    }.get(kind)
    near = did_you_mean(unit, known) if known else None
    return near if near and near.startswith("did") else None


# -- and back, for people -----------------------------------------------------------------------------------


def in_bytes(number: float) -> str:
    """Write bytes for people.

    >>> in_bytes(1536), in_bytes(25), in_bytes(0.02), in_bytes(6.75e6)
    ('1.54 kB', '25 B', '0.02 B', '6.75 MB')
    """
    if math.isinf(number):
        return "any number of bytes"
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= factor:
            return f"{number / factor:.3g} {prefix}B"
    return f"{number:.3g} B"


def in_seconds(number: float) -> str:
    """Write a time for people.

    >>> in_seconds(0.02), in_seconds(2), in_seconds(150), in_seconds(7200), in_seconds(0)
    ('20 ms', '2 s', '2.5 min', '2 h', '0 s')
    """
    if math.isinf(number):
        return "any time"
    for factor, unit in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if abs(number) >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number * 1e6:.3g} µs" if number else "0 s"
