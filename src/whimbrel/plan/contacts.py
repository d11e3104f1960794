"""When a link is up: always, by turns, or at listed times. All times are seconds from the start of a run."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from whimbrel.errors import NetworkError


@dataclass(frozen=True, slots=True)
class Always:
    """A link that is never down."""

    @property
    def longest_wait_s(self) -> float:
        """The longest time that a message may have to wait for the link."""
        return 0.0

    @property
    def share(self) -> float:
        """The share of time that the link is up."""
        return 1.0

    def after(self, time_s: float) -> tuple[float, float] | None:
        """Give the contact that is under way at a time, or the next one; None if there is none."""
        return (time_s, math.inf)


@dataclass(frozen=True, slots=True)
class ByTurns:
    """A link that is down for `down_s` and then up for `up_s`, again and again.

    These are the expected disconnection and active periods of a delay-tolerant network. `phase_s` is when
    the first contact begins; there are contacts before it, too.
    """

    down_s: float
    up_s: float
    phase_s: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.down_s < math.inf and 0 < self.up_s < math.inf and math.isfinite(self.phase_s)):
            raise NetworkError(
                f"a link that is down for {self.down_s} s and up for {self.up_s} s has no schedule",
                "give a down time of 0 or more and an up time above 0, in seconds",
            )

    @property
    def longest_wait_s(self) -> float:
        """The longest time that a message may have to wait for the link."""
        return self.down_s

    @property
    def share(self) -> float:
        """The share of time that the link is up."""
        return self.up_s / (self.down_s + self.up_s)

    def after(self, time_s: float) -> tuple[float, float] | None:
        """Give the contact that is under way at a time, or the next one."""
        turn = self.down_s + self.up_s
        start = self.phase_s + math.floor((time_s - self.phase_s) / turn) * turn
        while start + self.up_s <= time_s:
            start += turn
        return (start, start + self.up_s)


@dataclass(frozen=True, slots=True)
class Listed:
    """A link that is up at listed times: (start, end), in order, without overlap."""

    times: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        before = -math.inf
        for start, end in self.times:
            if not before <= start < end < math.inf:
                raise NetworkError(
                    f"the contact from {start} s to {end} s is empty, or does not follow the one before it",
                    "list contacts as (start, end) in seconds, in order and without overlap",
                )
            before = end

    @property
    def longest_wait_s(self) -> float:
        """The longest time that a message may have to wait for the link, up to the last contact."""
        ends = (0.0, *(end for _, end in self.times))
        waits = [start - end for end, (start, _) in zip(ends, self.times, strict=False)]
        return max(waits, default=math.inf)

    @property
    def share(self) -> float:
        """The share of time that the link is up, from 0 to the last contact."""
        up = sum(end - start for start, end in self.times)
        return up / self.times[-1][1] if self.times else 0.0

    def after(self, time_s: float) -> tuple[float, float] | None:
        """Give the contact that is under way at a time, or the next one; None after the last."""
        place = bisect_right(self.times, time_s, key=lambda contact: contact[1])
        return self.times[place] if place < len(self.times) else None


Contacts = Always | ByTurns | Listed
ALWAYS = Always()
