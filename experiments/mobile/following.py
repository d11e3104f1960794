"""Vehicles that are followed, their interests, and what these stream: timelines without an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.mobile.event_index import Boxes, EventIndex, Floats, Ints
from experiments.mobile.traffic import Traffic, drive
from whimbrel.engine.mobile.quality import quality_falls, shares
from whimbrel.graph.mobile import Quality

Marks = npt.NDArray[np.bool_]

WARM_UP_S = 60
"""Nothing is measured before: there has to be history."""


@dataclass(frozen=True)
class Followed:
    """Location updates of vehicles that are followed, one a second: vehicle by vehicle, in order of time."""

    vehicle: Ints
    second: Ints
    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.vehicle)

    @property
    def begins(self) -> Marks:
        """Whether an update is the first of its vehicle."""
        return np.append(True, self.vehicle[1:] != self.vehicle[:-1])

    def boxes(self, edge: float, before: int, after: int = 0) -> Boxes:
        """Lay a square around each place, from some seconds before the update until some after it."""
        return Boxes.around(self.x, self.y, edge, self.second - before, self.second + after)

    def take(self, rows: Ints | Marks) -> Followed:
        """Give some of the updates."""
        return Followed(self.vehicle[rows], self.second[rows], self.x[rows], self.y[rows])

    def place_ago(self, rows: Ints, seconds: Ints) -> Ints:
        """Find the updates so many seconds before others; -1 where there was none."""
        at = rows - seconds
        there = (at >= 0) & (self.vehicle[np.maximum(at, 0)] == self.vehicle[rows])
        there &= self.second[np.maximum(at, 0)] == self.second[rows] - seconds
        return np.where(there, at, -1)


def follow(traffic: Traffic, count: int, seed: int = 0) -> Followed:
    """Follow some vehicles, as long as they are there without a gap."""
    chosen = traffic.longest_there(count, seed)
    rows = np.flatnonzero(np.isin(traffic.vehicle, chosen) & (traffic.second >= WARM_UP_S))
    rows = rows[np.lexsort((traffic.second[rows], traffic.vehicle[rows]))]
    return Followed(traffic.vehicle[rows], traffic.second[rows], traffic.x[rows], traffic.y[rows])


def traffic_of(parameters: Mapping[str, Any], run: int) -> Traffic:
    """Drive the traffic of one of the runs of a scenario."""
    vehicles, seconds = parameters["vehicles"], parameters["seconds"]
    return drive(parameters["traffic"], vehicles, seconds, parameters["seed"] + run)


@dataclass(frozen=True)
class Interests:
    """Interests of one size around each update of vehicles that are followed, and the events they hold."""

    events: EventIndex
    followed: Followed
    edge: float
    lifetime: int

    @classmethod
    def of(cls, events: pa.Table, followed: Followed, edge: float, lifetime: int) -> Interests:
        """Index events for them."""
        return cls(EventIndex.of(events), followed, edge, lifetime)

    def history(self) -> Ints:
        """Count the events that an interest beginning at each update has to replay."""
        return self.events.count(self.followed.boxes(self.edge, self.lifetime))

    def new_history(self) -> Ints:
        """Count those of them that the interest of the update before did not hold."""
        here = self.followed.boxes(self.edge, self.lifetime)
        before = here.take(np.maximum(np.arange(len(here)) - 1, 0)).during(here.since, here.until)
        common = self.events.count(here.common(before))
        return np.where(self.followed.begins, self.history(), self.history() - common)

    def streamed(self, switches: Marks) -> int:
        """Count the events that are streamed: history at each switch, then what comes live."""
        start = _start_of(switches)
        live = self.followed.boxes(self.edge, 0, 1).take(start)
        live = live.during(self.followed.second, self.followed.second + 1)
        return int(self.history()[switches].sum() + self.events.count(live).sum())

    def quality(self, switches: Marks) -> tuple[Floats, Floats]:
        """Measure precision and recall at each update: over all that its interest may use."""
        start = _start_of(switches)
        ends = np.append(np.flatnonzero(switches)[1:], len(switches)) - 1
        end = self.followed.second[ends[np.cumsum(switches) - 1]] + 1
        since = self.followed.second[start] - self.lifetime
        here = self.followed.boxes(self.edge, 0).during(since, end)
        used = here.take(start).during(since, end)
        common = self.events.count(here.common(used))
        return shares(common, self.events.count(used)), shares(common, self.events.count(here))


@dataclass(frozen=True)
class Lasting:
    """How long an interest that begins at each update may last, and what it streams meanwhile."""

    until: Ints
    """The first update at which it must not be kept any more; the end of the vehicle's updates, if none."""
    live: list[tuple[Ints, Ints]]
    """For each further update: which interests are still there, and how many events they then have live."""

    @classmethod
    def of(cls, interests: Interests, threshold: Quality, over: int) -> Lasting:
        """Keep each interest as long as the condition on quality allows (Algorithm 3.5)."""
        followed, events = interests.followed, interests.events
        boxes = followed.boxes(interests.edge, over, 1)
        wanted = events.count(boxes)
        now = followed.boxes(interests.edge, 0, 1)
        alive = np.arange(len(followed))
        live = [(alive, events.count(now))]
        until = np.zeros(len(followed), np.int64)
        last = np.append(np.flatnonzero(followed.begins)[1:], len(followed))[np.cumsum(followed.begins) - 1]
        step = 0
        while len(alive):
            step += 1
            over_there = alive + step >= last[alive]
            until[alive[over_there]] = last[alive[over_there]]
            alive = alive[~over_there]
            later = boxes.take(alive + step)
            used = boxes.take(alive).during(later.since, later.until)
            falls = quality_falls(
                events.count(used.common(later)), events.count(used), wanted[alive + step], threshold
            )
            until[alive[falls]] = alive[falls] + step
            alive = alive[~falls]
            kept = now.take(alive).during(followed.second[alive + step], followed.second[alive + step] + 1)
            live.append((alive, events.count(kept)))
        return cls(until, live)

    def greedy(self, begins: Marks) -> Marks:
        """Switch as late as the condition allows, again and again: what the condition does."""
        switches = begins.copy()
        following = self.until.tolist()
        at = -1
        for row, is_first in enumerate(begins.tolist()):
            if is_first or row == at:
                switches[row] = True
                at = following[row]
        return switches

    def best(self, begins: Marks, history: Ints) -> Marks:
        """Switch so that the fewest events are streamed, of all ways that keep the quality at every update.

        A dynamic program from the last update back: the cost of an interest that begins here and ends there
        is its history and what it has live, and then comes the best of what is left.
        """
        rows = len(begins)
        live = np.full((rows, len(self.live)), np.iinfo(np.int32).max, np.int64)
        for step, (alive, counts) in enumerate(self.live):
            live[alive, step] = counts
        costs = np.zeros(rows + 1, np.int64)
        following = np.zeros(rows, np.int64)
        ends_after = np.append(begins[1:], True)
        last = np.flatnonzero(ends_after)[np.searchsorted(np.flatnonzero(ends_after), np.arange(rows))] + 1
        for row in range(rows - 1, -1, -1):
            steps = self.until[row] - row
            ahead = np.arange(row + 1, self.until[row] + 1)
            rest = np.where(ahead == last[row], 0, costs[ahead])
            total = history[row] + np.cumsum(live[row, :steps]) + rest
            best = (
                steps - 1 - int(np.argmin(total[::-1]))
            )  # of equally good ones, the one with fewer switches
            costs[row], following[row] = total[best], ahead[best]
        return Lasting(following, []).greedy(begins)


def moved(followed: Followed, distance: float) -> Marks:
    """Switch at the first update more than a distance away from the place of the last switch."""
    switches = followed.begins.copy()
    x = y = 0.0
    for row, here in enumerate(zip(followed.x.tolist(), followed.y.tolist(), strict=True)):
        if switches[row] or (here[0] - x) ** 2 + (here[1] - y) ** 2 > distance**2:
            switches[row] = True
            x, y = here
    return switches


def every(followed: Followed, seconds: float) -> Marks:
    """Switch at the first update more than a time after the last switch."""
    switches = followed.begins.copy()
    at = 0
    for row, second in enumerate(followed.second.tolist()):
        if switches[row] or at + seconds < second:
            switches[row] = True
            at = second
    return switches


def _start_of(switches: Marks) -> Ints:
    """Tell for each update at which one the interest began that is current after it."""
    return np.flatnonzero(switches)[np.cumsum(switches) - 1]
