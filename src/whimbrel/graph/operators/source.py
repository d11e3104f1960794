"""Where events come in: all of one type, or a point in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from whimbrel.graph.operators.base import Columns, Operator, SpatialReach, event_by_event
from whimbrel.graph.policies import Key, SelectionPolicy
from whimbrel.model.schema import EventSchema
from whimbrel.model.time import TIME_POINT, instant, time_point, written_time_point

if TYPE_CHECKING:
    from whimbrel.graph.columns import GraphColumns
    from whimbrel.graph.sharding import KeyTracer

SOURCE = Key("source", "source")
_NOT_KEYS = frozenset({"start", "end", "timestamp", "duration", "x", "y", "lon", "lat", "id"})


def key_of(name: str, schema: EventSchema | None = None) -> Key | None:
    """Give the key that an attribute of an event is; None for what tells one event from the other."""
    if name in ("source", "srcid"):
        return SOURCE
    declared = schema is not None and name in schema.attributes
    return None if name in _NOT_KEYS and not declared else Key("attribute", name)


@dataclass(frozen=True, slots=True)
class Source(Operator):
    """All events of one type (or of `ANY`) as they come in; `schema` is None for an undeclared type."""

    word: ClassVar[str] = "source"
    brackets: ClassVar[tuple[str, str]] = ("([", "])")
    looks_at_each: ClassVar[bool] = True
    may_be_merged: ClassVar[bool] = True

    event_type: str
    schema: EventSchema | None = None

    @property
    def made_type(self) -> str | None:
        return self.event_type

    def columns(self, below: GraphColumns) -> Columns:
        if self.schema is None:
            return Columns(dict(below.events), (self.event_type,))
        return Columns(dict(self.schema.attributes))

    def traced(self, name: str, tracer: KeyTracer) -> Iterable[Key | None]:
        return (key_of(name, self.schema),)

    def spatial_reach(self, below: Callable[[str], SpatialReach | None]) -> SpatialReach | None:
        return SpatialReach(0.0, 0.0)

    def rate(self, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
        return rates.get(self.event_type, 1.0)

    @property
    def selection_policy(self) -> SelectionPolicy:
        return event_by_event([(self.event_type, self.event_type)])

    @property
    def title(self) -> str:
        if self.schema is None:
            return f"{self.word} {self.name} (any attributes)"
        listed = ", ".join(f"{name}: {kind}" for name, kind in self.schema.attributes.items())
        return f"{self.word} {self.name} ({listed})"

    def box(self, columns: Columns) -> list[str] | None:
        return [self.event_type]


@dataclass(frozen=True, slots=True)
class TimePoints(Source):
    """One event that nobody sends: a time point, which the engine makes when time passes it."""

    word: ClassVar[str] = "clock"
    brackets: ClassVar[tuple[str, str]] = ("[", "]")

    @property
    def at(self) -> int:
        """When it happens."""
        return instant(self.event_type.removeprefix(TIME_POINT))

    @property
    def together(self) -> tuple[Key, ...] | None:
        return ()  # it is for all events, and must be found once

    def why_together(self, shown: str) -> str:
        return f"{written_time_point(self.event_type)} is a time for all of them"

    def traced(self, name: str, tracer: KeyTracer) -> Iterable[Key | None]:
        return (None,)

    def spatial_reach(self, below: Callable[[str], SpatialReach | None]) -> SpatialReach | None:
        return None  # it lies nowhere

    @property
    def is_monotone(self) -> bool:
        return False

    def rate(self, below: Mapping[str, float], rates: Mapping[str, float]) -> float:
        return 0.0

    @property
    def title(self) -> str:
        return f"{self.word} {self.name}"

    def box(self, columns: Columns) -> list[str] | None:
        return [self.name]


def clock(at: int) -> TimePoints:
    """Make the stream of one time point; it has neither attributes nor a place."""
    event_type = time_point(at)
    return TimePoints(written_time_point(event_type), event_type, EventSchema(event_type, {}))
