"""The settings of detection on Spark: named once, for all functions that take them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from whimbrel.errors import WhimbrelError
from whimbrel.model.reading import Reading, ReadSettings, read_settings
from whimbrel.model.schema import Coordinates
from whimbrel.model.settings import check_settings
from whimbrel.model.time import duration


class BatchSettings(ReadSettings, total=False):
    """The settings of detection in a static DataFrame; each may be left out."""

    partitions: int | None
    """How many partitions the events are spread over; None leaves it to Spark."""
    coordinates: Coordinates | str | None
    """As for `whimbrel.run`."""
    reading: Reading | None
    """How rows are read, for a frame whose columns have their names already."""


class StreamSettings(ReadSettings, total=False):
    """The settings of detection in a streaming DataFrame; each may be left out."""

    lateness: timedelta | str | int
    """How long to wait for events that are out of order. Events that come later are set aside."""
    shards: int | None
    """Into how many parts the events and the state are partitioned, for good: a query that has state can only
    go on with the same number. Several for each core of the cluster is right."""
    heartbeat: timedelta | str | int | None
    """Let time follow the clock on the wall, this far behind, so that absences are noticed and windows close
    even while no events come. None: time follows the events alone."""
    coordinates: Coordinates | str | None
    """As for `whimbrel.run`."""


class DetectSettings(BatchSettings, StreamSettings, total=False):
    """The settings of detection in either kind of DataFrame."""


@dataclass(frozen=True)
class StreamPlan:
    """The settings of a stream, checked; times are microseconds."""

    lateness: int = 0
    shards: int | None = None
    heartbeat: int | None = None
    coordinates: Coordinates | str | None = None
    read: ReadSettings = field(default_factory=ReadSettings)

    @classmethod
    def of(cls, settings: StreamSettings, function: str) -> StreamPlan:
        """Check what a function was given."""
        check_settings(settings, StreamSettings, f"{function}() on a streaming DataFrame")
        shards, heartbeat = settings.get("shards"), settings.get("heartbeat")
        if shards is not None and shards < 1:
            raise WhimbrelError(f"shards is {shards}; it must be at least 1")
        return cls(
            duration(settings.get("lateness", 0)),
            shards,
            None if heartbeat is None else duration(heartbeat),
            settings.get("coordinates"),
            read_settings(settings),
        )
