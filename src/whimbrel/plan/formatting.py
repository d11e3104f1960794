"""How plans write numbers, names and tables."""

from __future__ import annotations

import math
from typing import Any


def fields(item: object, *names: str) -> dict[str, Any]:
    """Return some fields of an item, by name."""
    return {name: getattr(item, name) for name in names}


def finite(number: float) -> float | None:
    """Return a number, or None where it has no bound."""
    return number if math.isfinite(number) else None


def rate(rate_hz: float) -> str:
    """Write events a second, or a longer time where there are few."""
    for per_second, unit in ((1.0, "s"), (60.0, "min"), (3600.0, "h"), (86400.0, "day")):
        if rate_hz * per_second >= 1 or unit == "day":
            return f"{rate_hz * per_second:.3g}/{unit}"
    raise AssertionError("a day is the last")


def moment(time_s: float) -> str:
    """Write a time since the start, exact to a hundredth of a second."""
    return f"{time_s:,.2f}".rstrip("0").rstrip(".") + " s"


def share_of(load: float, limit: float) -> str:
    """Write which share of a limit a load is; nothing where there is none."""
    return "" if math.isinf(limit) else percent(load / limit)


def amount(number: float) -> str:
    """Write a number, short."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def percent(share: float) -> str:
    """Write a share in percent."""
    return f"{100 * share:.3g} %"


def counted(count: int, what: str) -> str:
    """Write how many there are of something."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def compared(other: float, mine: float) -> str:
    """Say how much more, or less, something costs."""
    if not mine:
        return f"{amount(other)} instead of nothing" if other else "as much"
    ratio = other / mine
    if ratio >= 2:
        return f"{ratio:.3g} times as much"
    if abs(ratio - 1) < 5e-4:
        return "hardly more" if ratio > 1 else "as much"
    return f"{percent(abs(ratio - 1))} {'more' if ratio > 1 else 'less'}"


def listed(names: list[str]) -> str:
    """Write names one after the other."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def aligned(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Write rows of texts as a table."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, ["-" * width for width in widths], *rows]
    ]
