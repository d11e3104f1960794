"""The policy of a mobile query: when its interest follows the object, and what is guaranteed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from whimbrel.errors import QueryError


@dataclass(frozen=True, slots=True)
class RefreshAlways:
    """Each location update begins an interest."""


@dataclass(frozen=True, slots=True)
class RefreshEvery:
    """So does the first update more than `period` microseconds after the last switch."""

    period: int


@dataclass(frozen=True, slots=True)
class RefreshWhenMoved:
    """So does the first update more than `distance_m` away from the place of the last switch."""

    distance_m: float


@dataclass(frozen=True, slots=True)
class RefreshWhenQualityFalls:
    """So does an update at which precision or recall is down to the threshold.

    They are counted over the last `over` microseconds; the threshold is the quality that the policy asks for.
    """

    over: int


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
                raise QueryError(f"{name} lies between 0 and 1; {value:g} does not")

    @property
    def is_perfect(self) -> bool:
        """Whether nothing may be left out or be put in."""
        return self.precision >= 1.0 and self.recall >= 1.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """Runs that are prepared for places to which a focal object may come."""

    steps: int = 1
    """How many switches ahead."""
    candidates: int = 1
    """For each of them, how many places at the most."""
    by: OneOf["greedy", "location", "resource"] = "location"
    """Which places are taken first: with the most events that no other has, the likeliest, the cheapest."""

    def __post_init__(self) -> None:
        for name, value in (("steps", self.steps), ("candidates", self.candidates)):
            if value < 1:
                raise QueryError(f"prediction needs at least 1 of {name}, not {value}")


@dataclass(frozen=True, slots=True)
class MobilePolicy:
    """What is guaranteed to whoever follows an object, and what it may cost."""

    refresh: Refresh = RefreshAlways()
    quality: Quality = Quality()
    order: OneOf["by arrival", "spatial", "spatio-temporal", "temporal"] = "spatial"
    completeness: OneOf["weak", "strong", "best effort"] = "weak"
    grid_m: float | None = None
    """Strong completeness: how far apart the places are that interests may have."""
    prediction: Prediction | None = None
    reuse: OneOf["off", "exact", "similar"] = "exact"
    deliver: OneOf["all", "new", "changes"] = "all"
