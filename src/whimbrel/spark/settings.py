"""The settings of detection on Spark: named once, for all functions that take them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from whimbrel.errors import WhimbrelError
from whimbrel.model.length import metres
from whimbrel.model.reading import Reading, ReadSettings, read_settings
from whimbrel.model.schema import Coordinates
from whimbrel.model.settings import check_settings
from whimbrel.model.time import duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


class FollowingSettings(StreamSettings, total=False):
    """Those of a query that may follow objects."""

    followed: DataFrame | None
    """A streaming frame of objects that are put on the lists of mobile queries, or taken off.

    It has the columns `action` (follow or unfollow) and `key`, and perhaps `query` (the name of the mobile
    query; else all that have lists), `radius` and `lifetime` (of this object alone), and `number` (by which
    those of a micro-batch are ordered).
    """
    reach: float | str | None
    """The largest radius that any of them may ask for, for good; None: the largest that the query has."""


class DetectSettings(BatchSettings, FollowingSettings, total=False):
    """The settings of detection in either kind of DataFrame."""


@dataclass(frozen=True)
class StreamPlan:
    """The settings of a stream, checked; times are microseconds."""

    lateness: int = 0
    shards: int | None = None
    heartbeat: int | None = None
    coordinates: Coordinates | str | None = None
    read: ReadSettings = field(default_factory=ReadSettings)
    followed: DataFrame | None = None
    reach_m: float = 0.0

    @classmethod
    def of(
        cls, settings: StreamSettings, function: str, known: type[StreamSettings] = StreamSettings
    ) -> StreamPlan:
        """Check what a function was given."""
        check_settings(settings, known, f"{function}() on a streaming DataFrame")
        shards, heartbeat = settings.get("shards"), settings.get("heartbeat")
        if shards is not None and shards < 1:
            raise WhimbrelError(f"shards is {shards}; it must be at least 1")
        return cls(
            duration(settings.get("lateness", 0)),
            shards,
            None if heartbeat is None else duration(heartbeat),
            settings.get("coordinates"),
            read_settings(settings),
            cast("DataFrame | None", settings.get("followed")),
            metres(cast("float | str | None", settings.get("reach")) or 0.0),
        )
