"""Composite events, and how likely their parts are to occur together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from whimbrel.errors import NetworkError

OPERATORS = ("and", "seq", "or")
REQUEST_B = 16.0
"""The size of a request for events, in bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """Events of one kind, which occur at one broker."""

    name: str
    at: str
    rate_hz: float
    size_b: float
    is_negated: bool = False
    """Whether the composite event occurs only if none of these does."""

    @property
    def bytes_s(self) -> float:
        """Bytes a second."""
        return self.rate_hz * self.size_b


@dataclass(frozen=True)
class Composite:
    """Parts that occur within a window, in any order (`and`), in this one (`seq`), or any of them (`or`)."""

    name: str
    operator: str
    parts: tuple[Part, ...]
    window_s: float
    at: str
    """The broker where it is wanted."""
    tolerance_s: float = math.inf
    """How long after its last part it has to be known there."""
    request_b: float = REQUEST_B

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if self.operator not in OPERATORS:
            raise NetworkError(f"{self.operator!r} is no operator of {self.name!r}", "use and, seq or or")
        if len(set(names)) < len(names) or not names:
            raise NetworkError(f"the parts of {self.name!r} need names of their own, and there must be one")
        if all(part.is_negated for part in self.parts):
            raise NetworkError(f"all parts of {self.name!r} are negated", "name one that has to occur")
        if not self.window_s > 0:
            raise NetworkError(f"the window of {self.name!r} is {self.window_s} s", "give one above 0")

    @cached_property
    def part(self) -> dict[str, Part]:
        """The parts by name."""
        return {part.name: part for part in self.parts}

    @cached_property
    def passing(self) -> dict[str, float]:
        """For each part, the share of the others' events that it leaves in question.

        Events come by chance (Poisson). Another event stays in question if one of this part's lies within
        the window of it, on either side, or on the right side in a sequence; or if none does, where the part
        is negated. Alternatives leave everything in question.
        """
        sides = {"and": 2.0, "seq": 1.0, "or": math.inf}[self.operator]
        found = {}
        for part in self.parts:
            none = math.exp(-sides * self.window_s * part.rate_hz) if part.rate_hz else 1.0
            found[part.name] = none if part.is_negated else 1.0 - none
        if self.operator == "or":
            return dict.fromkeys(found, 1.0)
        return found

    def share(self, known: Iterable[str]) -> float:
        """Give the share of events that stay in question when these parts are known."""
        return math.prod(self.passing[name] for name in known)

    def rate_hz(self, names: Iterable[str]) -> float:
        """Estimate how often these parts occur together: as often as the rarest of them stays in question."""
        some = list(names)
        rates = (
            self.part[name].rate_hz * self.share(other for other in some if other != name)
            for name in some
            if not self.part[name].is_negated
        )
        return min(rates, default=0.0)

    def bytes_s(self, names: Iterable[str]) -> float:
        """Give the bytes a second of these parts' events that stay in question once all of them are known."""
        some = list(names)
        return sum(
            self.part[name].bytes_s * self.share(other for other in some if other != name) for name in some
        )
