"""The policy of a mobile query: when its interest follows the object, and what is guaranteed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeVar

from whimbrel.errors import QueryError
from whimbrel.model.length import Length, metres
from whimbrel.model.time import Duration, duration

Number = TypeVar("Number", int, float)


def _more_than_nothing(what: str, amount: Number) -> Number:
    if amount <= 0:
        raise QueryError(f"{what} has to be more than nothing", hint="leave it out for each location update")
    return amount


@dataclass(frozen=True, slots=True)
class RefreshAlways:
    """Each location update begins an interest."""


@dataclass(frozen=True, slots=True, init=False)
class RefreshEvery:
    """So does the first update more than `period` microseconds after the last switch."""

    period: int

    def __init__(self, period: Duration) -> None:
        object.__setattr__(self, "period", _more_than_nothing("the time between switches", duration(period)))


@dataclass(frozen=True, slots=True, init=False)
class RefreshWhenMoved:
    """So does the first update more than `distance_m` away from the place of the last switch."""

    distance_m: float

    def __init__(self, distance_m: Length) -> None:
        moved = _more_than_nothing("the distance between switches", metres(distance_m))
        object.__setattr__(self, "distance_m", moved)


@dataclass(frozen=True, slots=True, init=False)
class RefreshWhenQualityFalls:
    """So does an update at which precision or recall is down to the threshold.

    They are counted over the last `over` microseconds; the threshold is the quality that the policy asks for.
    """

    over: int

    def __init__(self, over: Duration) -> None:
        object.__setattr__(self, "over", _more_than_nothing("the time of counting", duration(over)))


Refresh = RefreshAlways | RefreshEvery | RefreshWhenMoved | RefreshWhenQualityFalls


@dataclass(frozen=True, slots=True)
class Quality:
    """How well the events of one area stand for those of another one."""

    precision: float = 1.0
    """The share of the events that are used which should be used."""
    recall: float = 1.0
    """The share of the events that should be used which are used."""

    def __post_init__(self) -> None:
        for name, value in (("precision", self.precision), ("recall", self.recall)):
            if not 0.0 <= value <= 1.0:
                raise QueryError(
                    f"{name} lies between 0 and 1; {value:g} does not", hint="write for example 'quality 0.9'"
                )

    @property
    def is_perfect(self) -> bool:
        """Whether nothing may be left out or be put in."""
        return self.precision >= 1.0 and self.recall >= 1.0


CandidateChoice = OneOf["greedy", "location", "resource"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Runs that are prepared for places to which a focal object may come."""

    steps: int = 1
    """How many switches ahead."""
    candidates: int = 1
    """For each of them, how many places at the most."""
    by: CandidateChoice = "location"
    """Which places are taken first: with the most events that no other has, the likeliest, the cheapest."""
    predictor: str | None = None
    """What says where objects will be, by name; None: along the route of a corridor, else dead reckoning."""

    def __post_init__(self) -> None:
        _one_of("choice of candidates", self.by, CANDIDATES)
        for name, value in (("steps", self.steps), ("candidates", self.candidates)):
            if value < 1:
                raise QueryError(
                    f"prediction needs at least 1 of {name}, not {value}",
                    hint="write for example 'predict 3 steps, 10 candidates by location'",
                )


_ALWAYS = RefreshAlways()
ORDERS = ("by arrival", "spatial", "spatio-temporal", "temporal")
COMPLETENESS = ("weak", "strong", "best effort")
REUSE = ("off", "exact", "similar")
DELIVERIES = ("all", "new", "changes")
CANDIDATES = ("greedy", "location", "resource")

Order = OneOf["by arrival", "spatial", "spatio-temporal", "temporal"]
Completeness = OneOf["weak", "strong", "best effort"]
Reuse = OneOf["off", "exact", "similar"]
Deliver = OneOf["all", "new", "changes"]


@dataclass(frozen=True, slots=True, init=False)
class MobilePolicy:
    """What is guaranteed to whoever follows an object, and what it may cost.

    >>> MobilePolicy(refresh=RefreshWhenMoved("50 m"), quality=0.9).quality
    Quality(precision=0.9, recall=0.9)
    """

    refresh: Refresh
    quality: Quality
    order: Order
    completeness: Completeness
    grid_m: float | None
    """Strong completeness: how far apart the places are that interests may have."""
    prediction: Prediction | None
    reuse: Reuse
    deliver: Deliver

    def __init__(
        self,
        refresh: Refresh = _ALWAYS,
        quality: Quality | float = 1.0,
        order: Order = "spatial",
        completeness: Completeness = "weak",
        grid_m: Length | None = None,
        prediction: Prediction | None = None,
        reuse: Reuse = "exact",
        deliver: Deliver = "all",
    ) -> None:
        chosen = {
            "refresh": refresh,
            "quality": quality if isinstance(quality, Quality) else Quality(quality, quality),
            "order": _one_of("order", order, ORDERS),
            "completeness": _one_of("completeness", completeness, COMPLETENESS),
            "grid_m": None if grid_m is None else metres(grid_m),
            "prediction": prediction,
            "reuse": _one_of("reuse", reuse, REUSE),
            "deliver": _one_of("deliver", deliver, DELIVERIES),
        }
        for name, value in chosen.items():
            object.__setattr__(self, name, value)


def _one_of(what: str, given: str, choices: tuple[str, ...]) -> str:
    if given not in choices:
        raise QueryError(f"there is no {what} {given!r}; use one of: {', '.join(choices)}")
    return given
