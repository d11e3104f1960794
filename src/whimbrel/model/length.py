"""Lengths as people give them; the project keeps metres."""

from __future__ import annotations

import math
import re
from typing import TypeAlias

from whimbrel.errors import DataError

Length: TypeAlias = float | str
"""A length as people give it: metres, or text such as "1.5 km"."""

LENGTHS = {"m": 1.0, "km": 1_000.0, "mi": 1_609.344, "nmi": 1_852.0}
"""Units of length, in metres."""

_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def metres(value: Length) -> float:
    """Turn text such as "500 m" or "1 nmi", or metres, into metres.

    >>> metres("1.5 km")
    1500.0
    """
    if isinstance(value, str):
        found = _LENGTH.fullmatch(value)
        unit = found[2].lower() or "m" if found else ""
        if found is None or unit not in LENGTHS:
            raise DataError(f"{value!r} is no length; write for example '500 m' or '1.5 km'")
        return float(found[1]) * LENGTHS[unit]
    if not math.isfinite(value):
        raise DataError(f"{value!r} is no length; write metres, or for example '1.5 km'")
    return float(value)
