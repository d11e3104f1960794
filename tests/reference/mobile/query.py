"""What is asked: graph, focal object, interest, lifetime and policy of mobile CEP, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf

from tests.reference.data import Event, Point, Value
from tests.reference.functions import Place

from whimbrel.graph.expressions import Expr
from whimbrel.graph.operators import Graph
from whimbrel.graph.reach import anchors


class Refused(ValueError):
    """A mobile query that nobody could answer; the text says why."""


# Whom the query follows.


@dataclass(frozen=True)
class Focal:
    """The objects of one event type, told apart by `key`: all, some, or those that meet a condition."""

    type: str
    key: str = "source"
    only: frozenset[Value] | None = None
    condition: Expr | None = None


# Where: what the interest is at a place.


@dataclass(frozen=True)
class Circle:
    """All that lies at most `radius_m` from the focal object."""

    radius_m: float


@dataclass(frozen=True)
class Box:
    """A box around the focal object, its sides along the axes."""

    width_m: float
    height_m: float


@dataclass(frozen=True)
class Outline:
    """A polygon around the focal object, its corners in metres east and north of it."""

    corners: tuple[Point, ...]


@dataclass(frozen=True)
class Ahead:
    """The sector in front of the focal object, as it last moved; before it has moved, the circle."""

    distance_m: float
    degrees: float


@dataclass(frozen=True)
class Along:
    """All that lies at most `distance_m` from the route, which an attribute of the samples has as WKT."""

    attribute: str
    distance_m: float


@dataclass(frozen=True)
class Made:
    """What a function makes of the samples so far; None where there is no interest."""

    function: Callable[[Sequence[Event]], Place]


Shape = Circle | Box | Outline | Ahead | Along | Made


# When the next interest begins.


@dataclass(frozen=True)
class Always:
    """At each location update."""


@dataclass(frozen=True)
class Every:
    """At the first location update more than `time` after the last switch."""

    time: int


@dataclass(frozen=True)
class Moved:
    """At the first location update more than `distance_m` away from the place of the last switch."""

    distance_m: float


@dataclass(frozen=True)
class Quality:
    """How well a processing interest stands for a spatial interest."""

    precision: float = 1.0
    recall: float = 1.0

    def __lt__(self, other: Quality) -> bool:
        """Worse in both: qualities are ordered in part only."""
        return self.precision < other.precision and self.recall < other.recall


@dataclass(frozen=True)
class WhenQualityFalls:
    """When precision or recall over the last `over` microseconds is down to the threshold."""

    threshold: Quality
    over: int


Refresh = Always | Every | Moved | WhenQualityFalls


@dataclass(frozen=True)
class MobileQuery:
    """A query that follows objects; times are microseconds, distances metres."""

    graph: Graph
    focal: Focal
    interest: Shape
    lifetime: int = 0
    refresh: Refresh = field(default_factory=Always)
    order: OneOf["arrival", "spatial", "spatio-temporal", "temporal"] = "spatial"
    completeness: OneOf["weak", "strong", "best effort"] = "weak"
    snap_m: float | None = None
    of: OneOf["events", "situations"] = "events"
    motion: OneOf["everywhere", "within the interest"] = "everywhere"
    deliver: OneOf["all", "new", "changes"] = "all"
    excluding_itself: bool = False
    silent: int | None = None
    begins: int | None = None
    ends: int | None = None
    """The query knows location updates from `begins` on, and ends before `ends`."""
    name: str = "Q"

    def __post_init__(self) -> None:
        if self.order == "temporal" and self.lifetime:
            raise Refused(
                "order temporal needs lifetime 0: each interest begins with what happened before it, "
                "so what is told goes back in time at every switch"
            )
        if self.completeness == "strong":
            self._check_strong()

    def _check_strong(self) -> None:
        if self.snap_m is None:
            raise Refused(
                "completeness strong needs a grid, snap 100 m: no two objects are at one place by chance"
            )
        if not isinstance(self.interest, Circle | Box | Outline):
            raise Refused("completeness strong needs an interest that depends on the place alone")
        if self.excluding_itself:
            raise Refused("completeness strong shares one run, which cannot leave out the events of each")
        if isinstance(self.refresh, WhenQualityFalls):
            raise Refused("completeness strong has areas on a grid: their quality is not what decides")

    @property
    def is_bounded(self) -> bool:
        """Whether it makes no difference where a run begins, as long as it is early enough."""
        return not anchors(self.graph)
