"""What became of the events, in a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whimbrel.model.words import many

if TYPE_CHECKING:
    from whimbrel.engine.result import Detections
    from whimbrel.io.rejected import RejectedWriter

MOST_FREQUENT = 3
LONGEST = 120
"""Letters of a rejected row that are shown."""


def summary(outcome: Detections, rejected: Path) -> str:
    """Say how many events were read, what was found, and what was set aside and why."""
    from whimbrel.model.deliveries import counted

    counts = outcome.counts
    where = f" ({rejected})" if counts.rejected else ""
    line = (
        f"{many(counts.received, 'event')} read, {counted(outcome.detections)}, {counts.late:,} late, "
        f"{counts.duplicate:,} duplicate, {counts.rejected:,} rejected{where}"
    )
    return "\n".join([line, *_reasons(counts.reasons), *taken(outcome)])


def taken(outcome: Detections) -> list[str]:
    """Say which columns were taken for what, and warn of what looks like a mistake."""
    return [*outcome.notes, *(f"warning: {warning}" for warning in outcome.warnings)]


def refusals(rejected: RejectedWriter) -> str:
    """Say how many rows were rejected and why, with the first of them."""
    where = f" ({rejected.path})" if rejected.path is not None else ""
    lines = [f"{many(rejected.total, 'row')} rejected{where}", *_reasons(rejected.counts)]
    for entry in rejected.first:
        file = f"{entry['file']}, " if entry["file"] else ""
        lines.append(f"  {file}row {entry['row']}: {entry['reason']}: {_short(entry['event'])}")
    more = rejected.total - len(rejected.first)
    return "\n".join([*lines, f"  and {many(more, 'other row')}"] if more else lines)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _reasons(reasons: Mapping[str, int]) -> list[str]:
    """List the most frequent reasons."""
    from whimbrel.model.faults import kinds_of_reasons

    kinds = kinds_of_reasons(reasons)
    lines = [f"  {count:,} x {reason}" for reason, count in kinds.most_common(MOST_FREQUENT)]
    more = len(kinds) - MOST_FREQUENT
    return [*lines, f"  and {many(more, 'other reason')}"] if more > 0 else lines
