"""Where events come in: all of one type, or a point in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whimbrel.graph.operators.base import Operator
from whimbrel.model.schema import EventSchema
from whimbrel.model.time import TIME_POINT, instant, time_point, written_time_point


@dataclass(frozen=True, slots=True)
class Source(Operator):
    """All events of one type (or of `ANY`) as they come in; `schema` is None for an undeclared type."""

    word: ClassVar[str] = "source"

    event_type: str
    schema: EventSchema | None = None


@dataclass(frozen=True, slots=True)
class TimePoints(Source):
    """One event that nobody sends: a time point, which the engine makes when time passes it."""

    word: ClassVar[str] = "clock"

    @property
    def at(self) -> int:
        """When it happens."""
        return instant(self.event_type.removeprefix(TIME_POINT))


def clock(at: int) -> TimePoints:
    """Make the stream of one time point; it has neither attributes nor a place."""
    event_type = time_point(at)
    return TimePoints(written_time_point(event_type), event_type, EventSchema(event_type, {}))
