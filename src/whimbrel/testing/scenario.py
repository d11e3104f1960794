"""What a test of a query says: a timeline of events, and what is expected of them. Plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from whimbrel.errors import ScenarioError, Span
from whimbrel.graph.policies import Context
from whimbrel.model.schema import Coordinates, Type

Point = tuple[float, float]
ParamValue = bool | int | float | str | timedelta


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """A value as it was written, and what it stands for. Instants are microseconds with their type."""

    text: str
    value: bool | int | float | str | None
    type: Type | None
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class ParamSetting:
    """`param NAME = VALUE`."""

    value: ParamValue
    at: Span


@dataclass(frozen=True, slots=True)
class ScenarioSettings:
    """Which query is tested, and how it is compiled and run."""

    query: Path | None = None
    params: Mapping[str, ParamSetting] = field(default_factory=dict)
    lateness: int | None = None
    coordinates: Coordinates | None = None
    horizon: int | None = None
    context: Context | None = None
    emit: tuple[str, ...] | str | None = None
    origin: int = 0
    """What `+0s` stands for, in microseconds."""


@dataclass(frozen=True, slots=True)
class InputEvent:
    """An event of the timeline. A location is a point, or a polygon as WKB."""

    at: Span
    type: str
    start: int
    end: int
    id: str
    attributes: Mapping[str, WrittenValue] = field(default_factory=dict)
    source: str | None = None
    location: Point | bytes | None = None


@dataclass(frozen=True, slots=True)
class InputFile:
    """`events FILE`: all events of a file, in the order they stand in."""

    at: Span
    path: Path


@dataclass(frozen=True, slots=True)
class Advance:
    """`advance to TIME`: every event up to then has been seen."""

    at: Span
    time: int


@dataclass(frozen=True, slots=True)
class End:
    """`end`: no more events come."""


@dataclass(frozen=True, slots=True)
class AttributeTest:
    """`name = value`, or another comparison."""

    name: str
    operator: str
    value: WrittenValue


@dataclass(frozen=True, slots=True)
class Description:
    """What is said of a detection. What is not said may be anything."""

    type: str
    tests: tuple[AttributeTest, ...] = ()
    start: int | None = None
    end: int | None = None
    location: Point | None = None
    events: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Expect:
    """`expect COUNT TYPE ...`: so many detections that fit are reported."""

    at: Span
    text: str
    what: Description
    count: int = 1


@dataclass(frozen=True, slots=True)
class ExpectNothing:
    """`expect nothing`."""

    at: Span
    text: str


@dataclass(frozen=True, slots=True)
class Forbid:
    """`not TYPE ...`: no detection that has been reported up to here fits."""

    at: Span
    text: str
    what: Description


@dataclass(frozen=True, slots=True)
class ExpectSideOutput:
    """`expect COUNT late events`, or duplicate, or rejected ones."""

    at: Span
    text: str
    what: str
    count: int


@dataclass(frozen=True, slots=True)
class Check:
    """Expectations that stand together: what is reported between the check before and here."""

    expectations: tuple[Expect | ExpectNothing | Forbid, ...] = ()


Step = InputEvent | InputFile | Advance | End | Check


@dataclass(frozen=True, slots=True)
class Scenario:
    """One test: what happens, step by step, and what is expected."""

    name: str
    file: Path
    at: Span
    text: str = field(repr=False)
    """The whole file, so that errors can show the line."""
    settings: ScenarioSettings
    steps: tuple[Step, ...]
    side_outputs: tuple[ExpectSideOutput, ...] = ()
    allowed: tuple[Description, ...] = ()
    allows_others: bool = False
    """Whether detections that no line speaks of are fine."""

    @property
    def title(self) -> str:
        """The file and the name, as reports show them."""
        return f"{self.file}: {self.name}"

    def error(self, message: str, hint: str, at: Span | None = None) -> ScenarioError:
        """Make an error that shows a line of the file; where none is named, the one that begins the test."""
        error = ScenarioError(message, at or self.at, hint)
        error.located_in(self.text, str(self.file))
        return error
