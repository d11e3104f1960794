"""Composite events, and how likely their parts are to occur together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whimbrel.errors import NetworkError
from whimbrel.plan.pushpull.match_probability import (
    share_amid,
    share_between,
    shares_in_order,
    shares_together,
)

OPERATORS = ("and", "seq", "or")
REQUEST_B = 56.0
"""The size of a request for events, in bytes: when they may have occurred, and a header of 40."""


@dataclass(frozen=True, slots=True)
class PrimitiveEvent:
    """Events of one kind, which occur at one broker."""

    name: str
    at: str
    rate_hz: float
    size_b: float
    """Bytes of an event on a link, all included."""
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
    parts: tuple[PrimitiveEvent, ...]
    window_s: float
    at: str
    """The broker where it is wanted."""
    tolerance_s: float = math.inf
    """How long after its last part it has to be known there."""
    request_b: float = REQUEST_B
    is_amid: bool = True
    """Whether negated parts must not occur between the others; else anywhere within one window with them,
    before and after them, too. In a sequence each has its place between two others."""

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if self.operator not in OPERATORS:
            raise NetworkError(f"{self.operator!r} is no operator of {self.name!r}", "use and, seq or or")
        if len(set(names)) < len(names) or not names:
            raise NetworkError(f"the parts of {self.name!r} need names of their own, and there must be one")
        if all(part.is_negated for part in self.parts):
            raise NetworkError(f"all parts of {self.name!r} are negated", "name one that has to occur")
        if self.operator == "seq" and (self.parts[0].is_negated or self.parts[-1].is_negated):
            raise NetworkError(
                f"{self.name!r} begins or ends with a negated part",
                "name what has to occur before and after it",
            )
        if self.operator == "or" and any(part.is_negated for part in self.parts):
            raise NetworkError(f"{self.name!r} has a negated alternative", "use and or seq with it")
        if not self.window_s > 0:
            raise NetworkError(f"the window of {self.name!r} is {self.window_s} s", "give one above 0")

    @cached_property
    def part(self) -> dict[str, PrimitiveEvent]:
        """The parts by name."""
        return {part.name: part for part in self.parts}

    @cached_property
    def wanted(self) -> tuple[PrimitiveEvent, ...]:
        """The parts that have to occur."""
        return tuple(part for part in self.parts if not part.is_negated)

    @cached_property
    def _shares(self) -> dict[frozenset[str], dict[str, float]]:
        return {}

    @cached_property
    def _known(self) -> dict[tuple[frozenset[str], frozenset[str] | None], float]:
        return {}

    def shares(self, names: Iterable[str]) -> Mapping[str, float]:
        """Give, for each of these parts, the share of its events that can complete it with all the others.

        These are the events that have one of each other part within a common window, and in order in a
        sequence. Alternatives leave everything in question, and parts that must not occur are passed over.
        """
        some = frozenset(names)
        if some not in self._shares:
            ordered = sorted(name for name in some if not self.part[name].is_negated)
            if self.operator == "or" or len(ordered) < 2:
                self._shares[some] = dict.fromkeys(ordered, 1.0)
            else:
                expected = np.array([self.part[name].rate_hz for name in ordered]) * self.window_s
                found = shares_together(expected) if self.operator == "and" else shares_in_order(expected)
                self._shares[some] = dict(zip(ordered, found.tolist(), strict=True))
        return self._shares[some]

    @cached_property
    def negation_share(self) -> float:
        """The share of events of a negated part that lie where they prevent what would be detected else."""
        expected = np.array([part.rate_hz for part in self.wanted]) * self.window_s
        if self.operator == "seq":
            return share_between(expected)
        if not self.is_amid:
            return float(shares_together(np.append(expected, 1.0))[-1])
        return share_amid(expected)

    def rate_hz(self, names: Iterable[str]) -> float:
        """Estimate how often these parts occur together: as often as the rarest of them stays in question."""
        key = (frozenset(names), None)
        if key not in self._known:
            rates = (self.part[name].rate_hz * share for name, share in self.shares(key[0]).items())
            self._known[key] = min(rates, default=0.0)
        return self._known[key]

    def bytes_s(self, names: Iterable[str], of: Iterable[str]) -> float:
        """Estimate the bytes a second of some parts that stay in question once all these are known."""
        key = (frozenset(names), frozenset(of))
        if key not in self._known:
            shares = self.shares(key[0])
            sizes = (self.part[name].bytes_s * shares[name] for name in key[1] if name in shares)
            self._known[key] = sum(sizes)
        return self._known[key]
