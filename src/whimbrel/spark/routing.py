"""Each kind of outcome of a stream to its own place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from whimbrel.io.atomic import writing
from whimbrel.spark.rows import DETECTION, HIDDEN, PROGRESS
from whimbrel.spark.sinks import Sink
from whimbrel.spark.types import quoted


@dataclass(frozen=True)
class Routed:
    """A sink for frames of outcomes: detections go to some sinks, events that were set aside to another.

    What was set aside has the columns `kind` (late, duplicate, rejected or refused), `event` (JSON, or the
    text of a line that is none), `reason`, and `@line` (file and row) for what was rejected from files.
    """

    detections: Sequence[Sink]
    set_aside: Sink | None = None
    """For example a `SideOutputFiles`."""

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a micro-batch, which is computed once for all sinks."""
        frame.persist()
        try:
            for sink in self.detections:
                sink.write(detections_of(frame), batch_id)
            if self.set_aside is not None:
                self.set_aside.write(set_aside_of(frame), batch_id)
        finally:
            frame.unpersist()


@dataclass(frozen=True)
class SideOutputFiles:
    """Keeps what was set aside as JSON lines, one file for each micro-batch that has any.

    A micro-batch that is written again replaces its file.
    """

    folder: str

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a micro-batch."""
        lines = [json.dumps(_entry(*row), ensure_ascii=False) for row in frame.collect()]
        if not lines:
            return
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        with writing(folder / f"batch-{batch_id:08}.jsonl") as file:
            file.write(("\n".join(lines) + "\n").encode())


def _entry(
    kind: str, event: str | None, reason: str | None, line: tuple[str, int] | None
) -> dict[str, object]:
    line_of_file = {} if line is None else {"file": line[0], "row": line[1]}
    return {"kind": kind, **line_of_file, "reason": reason, "event": _value(event)}


def _value(event: str | None) -> object:
    """Rebuild an event as what it is; a line of a file that could not be read stays its text."""
    try:
        return json.loads(event) if event else None
    except ValueError:
        return event


def detections_of(frame: DataFrame) -> DataFrame:
    """Select the detections of a frame of outcomes."""
    names = [name for name in frame.columns if name not in HIDDEN]
    return frame.where(fn.col("kind") == DETECTION).select(*(fn.col(quoted(name)) for name in names))


def set_aside_of(frame: DataFrame) -> DataFrame:
    """Select the events of a frame of outcomes that were not processed."""
    others = ~fn.col("kind").isin(DETECTION, PROGRESS)
    return frame.where(others).select("kind", "event", "reason", "@line")
