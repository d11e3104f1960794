"""How much of a stream may come in a time: the least of several buckets, each with a burst and a rate.

One bucket at the mean rate says too much of streams that come by fits and starts: it takes what comes within
a minute to come at once. Buckets of higher rates and smaller bursts tell these apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

TokenBucket = tuple[float, float]
"""(rate, burst): in any t seconds there is at most burst + rate t."""
ArrivalCurve = tuple[TokenBucket, ...]
"""Buckets that hold a stream all at once: from the lowest rate to the highest, none of which says nothing."""


def arrival_curve(buckets: Iterable[TokenBucket]) -> ArrivalCurve:
    """Put buckets in order of their rates, and leave out those that say nothing beside the others.

    Examples
    --------
    >>> arrival_curve([(8.0, 1.0), (1.0, 9.0), (4.0, 8.5), (2.0, 3.0), (9.0, 1.0)])
    ((1.0, 9.0), (2.0, 3.0), (8.0, 1.0))
    """
    curve: list[TokenBucket] = []
    for rate, burst in sorted(buckets):
        if curve and burst >= curve[-1][1]:
            continue
        while len(curve) > 1 and _meet((rate, burst), curve[-1]) >= _meet(curve[-1], curve[-2]):
            curve.pop()
        curve.append((rate, burst))
    return tuple(curve)


def corners(buckets: ArrivalCurve) -> list[tuple[float, float]]:
    """Return the times at which another bucket becomes the least, and by how much its rate is lower."""
    return [(_meet(fast, slow), fast[0] - slow[0]) for slow, fast in pairwise(buckets)]


def bytes_within(buckets: ArrivalCurve, time_s: float) -> float:
    """Return how much may come in a time."""
    return min(burst + rate * time_s for rate, burst in buckets)


def _meet(fast: TokenBucket, slow: TokenBucket) -> float:
    return (slow[1] - fast[1]) / (fast[0] - slow[0])
