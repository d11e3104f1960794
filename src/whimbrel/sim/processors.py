"""What a broker does with its time: the work of its tasks, one job after the other, as they come."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from whimbrel.sim.clock import Clock


@dataclass(slots=True)
class Job:
    """Something that takes a broker work, and what happens when it is done."""

    owner: str
    """The task that it is for."""
    work: float
    """In units of capacity times seconds."""
    finish: Callable[[], None]


class Processor:
    """The processor of a broker. With any capacity, nothing takes time."""

    def __init__(self, clock: Clock, capacity: float) -> None:
        self.clock = clock
        self.capacity = capacity
        self.work = 0.0
        """What has been done."""
        self.longest_wait_s = 0.0
        """The longest time from when a job came to when it was done."""
        self.is_down = False
        self.is_free = math.isinf(capacity)
        """Whether whatever comes is done at once."""
        self._jobs: deque[tuple[float, Job]] = deque()
        self._turn = 0

    def submit(self, job: Job) -> None:
        """Do a job when all that came before it is done."""
        if self.is_free:
            self.work += job.work
            job.finish()
            return
        self._jobs.append((self.clock.now, job))
        if len(self._jobs) == 1:
            self._begin()

    def has_jobs_for(self, owner: str) -> bool:
        """Tell whether something of a task is still to be done."""
        return any(job.owner == owner for _, job in self._jobs)

    def fail(self) -> None:
        """Stop; what is half done has to be done again."""
        self.is_down, self.is_free = True, False
        self._turn += 1

    def forget(self) -> int:
        """Part with all jobs; give how many there were."""
        count = len(self._jobs)
        self._jobs.clear()
        return count

    def restart(self, first: list[Job]) -> None:
        """Go on, with some jobs before those that wait."""
        self.is_down, self.is_free = False, math.isinf(self.capacity)
        self._jobs.extendleft((self.clock.now, job) for job in reversed(first))
        if self.is_free:
            waiting, self._jobs = self._jobs, deque()
            for _, job in waiting:
                self.submit(job)
        elif self._jobs:
            self._begin()

    def _begin(self) -> None:
        if self.is_down:
            return
        _, job = self._jobs[0]
        if job.work <= 0.0:
            self._end(self._turn)
        elif self.capacity > 0.0:  # a broker that can do nothing never comes to an end
            self.clock.after(job.work / self.capacity, partial(self._end, self._turn))

    def _end(self, turn: int) -> None:
        if turn != self._turn:
            return  # the broker failed in the meantime
        came_s, job = self._jobs.popleft()
        self.work += job.work
        self.longest_wait_s = max(self.longest_wait_s, self.clock.now - came_s)
        job.finish()
        if self._jobs and turn == self._turn:
            self._begin()
