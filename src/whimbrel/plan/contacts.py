"""When a link is up: always, by turns, or at listed times. All times are seconds from the start of a run."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from whimbrel.errors import NetworkError


@dataclass(frozen=True, slots=True)
class Contacts:
    """When a link is up, and what that means for messages. This one is never down."""

    @property
    def longest_wait_s(self) -> float:
        """The longest time that a message may have to wait for the link (up to the last contact)."""
        return 0.0

    @property
    def mean_wait_s(self) -> float:
        """The time that a message has to wait for the link on average, if it may come at any time."""
        return 0.0

    @property
    def lag_s(self) -> float:
        """The longest time by which the link may be behind one that is always up and as slow as its share."""
        return 0.0

    @property
    def share(self) -> float:
        """The share of time that the link is up (to the last contact)."""
        return 1.0

    def after(self, time_s: float) -> tuple[float, float] | None:
        """Return the contact that is under way at a time, or the next one; None if there is none."""
        return (time_s, math.inf)


class AlwaysConnected(Contacts):
    """A link that is never down."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PeriodicContacts(Contacts):
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
        return self.down_s

    @property
    def mean_wait_s(self) -> float:
        return self.down_s**2 / (2 * (self.down_s + self.up_s))

    @property
    def lag_s(self) -> float:
        return self.down_s

    @property
    def share(self) -> float:
        return self.up_s / (self.down_s + self.up_s)

    def after(self, time_s: float) -> tuple[float, float] | None:
        turn = self.down_s + self.up_s
        start = self.phase_s + math.floor((time_s - self.phase_s) / turn) * turn
        while start + self.up_s <= time_s:
            start += turn
        return (start, start + self.up_s)


@dataclass(frozen=True, slots=True)
class ContactPlan(Contacts):
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
        return max(self._waits, default=math.inf)

    @property
    def _waits(self) -> list[float]:
        ends = (0.0, *(end for _, end in self.times))
        return [start - end for end, (start, _) in zip(ends, self.times, strict=False)]

    @property
    def mean_wait_s(self) -> float:
        if not self.times:
            return math.inf
        return sum(wait**2 for wait in self._waits) / 2 / self.times[-1][1]

    @property
    def lag_s(self) -> float:
        """The longest time by which the link may be behind one that is always up and as slow as its share.

        From the beginning of a wait to its end it falls behind by as long; in a contact it catches up.
        """
        if not self.times:
            return math.inf
        longest = behind = 0.0
        for wait, (start, end) in zip(self._waits, self.times, strict=True):
            longest = max(longest, behind + wait)
            behind = max(0.0, behind + wait + (end - start) * (1 - 1 / self.share))
        return longest

    @property
    def share(self) -> float:
        up = sum(end - start for start, end in self.times)
        return up / self.times[-1][1] if self.times else 0.0

    def after(self, time_s: float) -> tuple[float, float] | None:
        index = bisect_right(self.times, time_s, key=lambda contact: contact[1])
        return self.times[index] if index < len(self.times) else None


ALWAYS = AlwaysConnected()
