"""Virtual time: what happens when, in one order, by one seed. Nothing here reads the wall clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from zlib import crc32

import numpy as np

from whimbrel.errors import NetworkError

Action = Callable[[], None]
Progress = Callable[[int, int | None], None]
"""Called with the number of steps that are done and of those that there are."""
_STEPS = 50
"""How often a run tells how far it is."""


class Clock:
    """A discrete-event loop. Actions run in the order of (time, number): first asked for, first run.

    Examples
    --------
    >>> clock, seen = Clock(), []
    >>> clock.at(2.0, lambda: seen.append("second"))
    >>> clock.at(1.0, lambda: seen.append("first"))
    >>> clock.run()
    2
    >>> seen, clock.now
    (['first', 'second'], 2.0)
    """

    def __init__(self, seed: int = 0) -> None:
        self.now = 0.0
        self.seed = seed
        self.done = 0
        """How many actions have been run."""
        self._number = 0
        self._waiting: list[tuple[float, int, Action]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def at(self, time_s: float, action: Action) -> None:
        """Run something at a time."""
        if not time_s >= self.now:
            raise NetworkError(f"it is {self.now} s already; nothing can happen at {time_s} s")
        heappush(self._waiting, (time_s, self._number, action))
        self._number += 1

    def after(self, delay_s: float, action: Action) -> None:
        """Run something after a time."""
        self.at(self.now + delay_s, action)

    def run(self, until_s: float = math.inf) -> int:
        """Run what is to happen up to a time, that included; give how many actions were run."""
        before = self.done
        while self._waiting and self._waiting[0][0] <= until_s:
            self.now, _, action = heappop(self._waiting)
            self.done += 1
            action()
        if math.isfinite(until_s):
            self.now = max(self.now, until_s)
        return self.done - before

    def run_in_steps(self, until_s: float, progress: Progress) -> None:
        """Run everything, and tell how far it is while time passes up to a time."""
        for done in range(1, _STEPS + 1):
            self.run(until_s * done / _STEPS)
            progress(done, _STEPS + 1)
        self.run()

    def generator(self, name: str) -> np.random.Generator:
        """Return random numbers for one purpose: they do not change with what others draw."""
        return np.random.default_rng([self.seed, crc32(name.encode())])
