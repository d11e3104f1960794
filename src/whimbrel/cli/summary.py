"""What became of the events, in a line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whimbrel.engine.detect import Outcome
    from whimbrel.engine.intake import Counts

MOST_FREQUENT = 3


def summary(outcome: Outcome, rejected: Path) -> str:
    """Say how many events were read, what was found, and what was set aside and why."""
    counts, found = outcome.counts, outcome.detections.num_rows
    where = f" ({rejected})" if counts.rejected else ""
    line = (
        f"{_many(counts.received, 'event')} read, {_many(found, 'detection')}, {counts.late:,} late, "
        f"{counts.duplicate:,} duplicate, {counts.rejected:,} rejected{where}"
    )
    return "\n".join([line, *_reasons(counts)])


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _reasons(counts: Counts) -> list[str]:
    """List the most frequent reasons."""
    from whimbrel.model.faults import kinds_of_reasons

    kinds = kinds_of_reasons(counts.reasons)
    lines = [f"  {count:,} x {reason}" for reason, count in kinds.most_common(MOST_FREQUENT)]
    more = len(kinds) - MOST_FREQUENT
    return [*lines, f"  and {_many(more, 'other reason')}"] if more > 0 else lines
