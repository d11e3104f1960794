"""Show detections as lines of text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from whimbrel.io.detections import sorted_detections
from whimbrel.spark.sinks._form import DetectionForm

_FIXED = ("id", "type", "start", "end", "geometry", "events")


@dataclass(frozen=True)
class ConsoleSink:
    """Write one line for each detection to the standard output of the driver.

    Parameters
    ----------
    rows
        The largest number of detections shown of one micro-batch; how many are left out is said.
    """

    rows: int = 100
    form: DetectionForm = field(default_factory=DetectionForm)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Show a micro-batch."""
        table = self.form.table(frame.toArrow())
        if table is None:
            return
        shown = sorted_detections(table).slice(0, self.rows).to_pylist()
        lines = [_line(row, self.form) for row in shown]
        if table.num_rows > len(shown):
            lines.append(f"... and {table.num_rows - len(shown)} more in micro-batch {batch_id}")
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()


def _line(row: Mapping[str, object], form: DetectionForm) -> str:
    names = [name for name in row if name not in _FIXED]
    own = (form.attributes or {}).get(str(row["type"]), names)
    attributes = [f"{name}={_shown(row[name])}" for name in own if row.get(name) is not None]
    events = row["events"]
    count = len(events) if isinstance(events, list) else 0
    times = f"{_shown(row['start'])} .. {_shown(row['end'])}"
    return "  ".join([times, str(row["type"]), *attributes, f"({count} event{'' if count == 1 else 's'})"])


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(sep=" ").replace("+00:00", "Z")
    return str(value)
