"""Split the latency restriction of a delivery over the streams on its paths (MigCEP thesis, section 4.3.2).

The sum of all delays on a path from a source to a consumer is the end-to-end delay. If each stream keeps its
share, every path keeps the restriction, and an operator needs to look at its own streams only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from whimbrel.plan.workload import Delivery, Workload

_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream from one end to another: names of tasks, or '@' and the name of a broker or mover."""

    source: str
    target: str
    bytes_s: float
    share_s: float = math.inf
    """What it may take of the latency restriction: R_L."""

    @property
    def key(self) -> tuple[str, str]:
        """Name it by its ends."""
        return (self.source, self.target)


def place(name: str) -> str:
    """Return the end of a stream that is a broker or a mover."""
    return f"@{name}"


def streams_of(workload: Workload) -> list[Stream]:
    """List all streams, without shares: from feeds to tasks, between tasks, to who wants them."""
    streams = []
    for task in workload.tasks:
        for name in task.inputs:
            stream = workload.stream(name)
            streams.append(Stream(_end(workload, name), task.name, stream.bytes_s))
    for delivery in workload.deliveries:
        stream = workload.stream(delivery.stream)
        streams.append(Stream(_end(workload, delivery.stream), place(delivery.at), stream.bytes_s))
    return streams


def split_latency(workload: Workload) -> dict[tuple[str, str], float]:
    """Return the share of each stream in the latency restrictions; infinite where there is none.

    First each stream gets its part of the longest path through it. What is then left over on all paths
    through a stream is dealt out in the same way, until each stream lies on a path that is used up.
    O(deliveries x streams).
    """
    shares: dict[tuple[str, str], float] = {}
    for delivery in workload.deliveries:
        if math.isfinite(delivery.latency_s):
            for key, share in _split(workload, delivery).items():
                shares[key] = min(share, shares.get(key, math.inf))
    return {stream.key: shares.get(stream.key, math.inf) for stream in streams_of(workload)}


def _split(workload: Workload, delivery: Delivery) -> dict[tuple[str, str], float]:
    paths = _Paths(workload, delivery)
    whole = paths.longest(dict.fromkeys(paths.keys, 1.0))
    share = dict.fromkeys(paths.keys, 0.0)
    for _ in range(_ROUNDS):
        taken = paths.longest(share)
        for key in paths.keys:
            left = max(0.0, delivery.latency_s - taken[key])
            share[key] += left / whole[key] if whole[key] > 0 else 0.0
    return share


class _Paths:
    """The streams on the paths to one delivery."""

    def __init__(self, workload: Workload, delivery: Delivery) -> None:
        self._workload = workload
        self._last = (_end(workload, delivery.stream), place(delivery.at))
        needed = workload.made_from(delivery.stream)
        self._tasks = [task for task in workload.tasks if task.name in needed]
        self.keys = [(_end(workload, name), task.name) for task in self._tasks for name in task.inputs]
        self.keys.append(self._last)

    def longest(self, length: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
        """Return the length of the longest path through each stream."""
        before: dict[str, float] = {}
        for task in self._tasks:
            ends = [_end(self._workload, name) for name in task.inputs]
            before[task.name] = max(
                (before.get(end, 0.0) + length[end, task.name] for end in ends), default=0.0
            )
        after = {self._last[0]: length[self._last]}
        for task in reversed(self._tasks):
            for end in (_end(self._workload, name) for name in task.inputs):
                after[end] = max(after.get(end, 0.0), length[end, task.name] + after[task.name])
        through = {
            (source, target): before.get(source, 0.0) + length[source, target] + after.get(target, 0.0)
            for source, target in self.keys[:-1]
        }
        return {**through, self._last: before.get(self._last[0], 0.0) + length[self._last]}


def _end(workload: Workload, name: str) -> str:
    return place(workload.feed[name].at) if name in workload.feed else name
