"""What is prepared for places where the focal object may come to, and when it may be used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal as OneOf

from .quality import quality_of
from .query import Quality


@dataclass(frozen=True)
class Prepared:
    """A run for a predicted area: the ids of its events, and whether it is done with history."""

    events: frozenset[str]
    complete: bool
    same_area: bool = False


def may_serve(prepared: Prepared | None, true: Iterable[str], threshold: Quality) -> bool:
    """Tell whether a prepared run may take over at the switch, or the query has to react (Algorithm 3.9).

    It is there, complete, and of the quality asked for. Quality 1 is a promise about events that have yet to
    come, too, which only the very same area keeps.
    """
    if prepared is None or not prepared.complete:
        return False
    if prepared.same_area:
        return True
    found = quality_of(set(true), prepared.events)
    if max(threshold.precision, threshold.recall) >= 1.0:
        return False
    return found.precision >= threshold.precision and found.recall >= threshold.recall


def steps_ahead(current: int, eagerness: int) -> range:
    """Name the switches that are prepared after switch number `current` (Algorithm 3.10)."""
    return range(current + 1, current + eagerness + 1)


Policy = OneOf["greedy", "location", "resource"]


def candidates(
    places: Sequence[str],
    events: Mapping[str, frozenset[str]],
    threshold: Quality,
    costs: Mapping[str, float],
    limit: float,
    policy: Policy,
) -> list[str]:
    """Choose the predicted places to prepare runs for (Algorithm 3.12); `places` has the likeliest first.

    `events` are the recent events of the interest at each place.
    """
    left, chosen, used = list(places), [], 0.0
    while left:
        place = _next(left, events, costs, policy, {event for one in chosen for event in events[one]})
        left.remove(place)
        if any(_serves(events[one], events[place], threshold) for one in chosen):
            continue
        if used + costs[place] <= limit:
            chosen.append(place)
            used += costs[place]
    return chosen


def _next(
    left: Sequence[str],
    events: Mapping[str, frozenset[str]],
    costs: Mapping[str, float],
    policy: Policy,
    covered: set[str],
) -> str:
    keys: dict[Policy, Callable[[str], float]] = {
        "greedy": lambda place: -len(events[place] - covered),
        "location": lambda _: 0.0,
        "resource": lambda place: costs[place],
    }
    return min(left, key=keys[policy])  # of equal ones, the likeliest


def _serves(used: frozenset[str], true: frozenset[str], threshold: Quality) -> bool:
    found = quality_of(true, used)
    return found.precision > threshold.precision and found.recall > threshold.recall


# When it begins, and for what.


def processing_time(profile: Sequence[tuple[float, float]], events: float) -> float:
    """The seconds that events take, on the lines between measured pairs (3.12), from (0, 0) on."""
    pairs = list(profile) if profile[0][0] == 0 else [(0.0, 0.0), *profile]
    if len(pairs) == 1:
        return pairs[0][1]
    at = next((n for n, (count, _) in enumerate(pairs) if n and events <= count), len(pairs) - 1)
    (few, short), (many, long) = pairs[at - 1], pairs[at]
    return short + (long - short) * (events - few) / (many - few)


@dataclass
class Ahead:
    """The steps that one object has runs prepared for, and the place of each (Algorithm 3.10)."""

    eagerness: int
    deviation: float
    places: dict[int, tuple[float, float]] = field(default_factory=dict)

    def update(self, current: int, predicted: Mapping[int, tuple[float, float]]) -> tuple[set[int], set[int]]:
        """Take in an update, with the places that are predicted; tell what is discarded and prepared."""
        discarded = {step for step in self.places if step <= current}
        for step in discarded:
            del self.places[step]
        prepared = set()
        for step in steps_ahead(current, self.eagerness):
            if step not in predicted:
                continue
            if step in self.places:
                if math.dist(self.places[step], predicted[step]) <= self.deviation:
                    continue
                discarded.add(step)
            self.places[step] = predicted[step]
            prepared.add(step)
        return discarded, prepared


# Where.


def straight_on(samples: Sequence[tuple[float, float, float]], ahead: float) -> tuple[float, float]:
    """Where dead reckoning leads to from samples of (seconds, x, y)."""
    (t0, x0, y0), (t, x, y) = samples[0], samples[-1]
    if t == t0:
        return x, y
    return x + (x - x0) / (t - t0) * ahead, y + (y - y0) / (t - t0) * ahead


Cell = tuple[int, int]


def learned(
    tracks: Iterable[Sequence[tuple[float, float]]], cell: float
) -> dict[tuple[Cell | None, Cell], Counter[Cell]]:
    """How often objects went on to which cell, from a cell and the one before, or from a cell."""
    found: dict[tuple[Cell | None, Cell], Counter[Cell]] = {}
    for track in tracks:
        cells = [(math.floor(x / cell), math.floor(y / cell)) for x, y in track]
        for n, (at, following) in enumerate(pairwise(cells)):
            for before in {None, cells[n - 1] if n else None}:
                found.setdefault((before, at), Counter())[following] += 1
    return found


def after_steps(
    chain: Mapping[tuple[Cell | None, Cell], Counter[Cell]], before: Cell | None, at: Cell, steps: int
) -> dict[Cell, float]:
    """How likely an object is in which cell after some steps; one that nobody was seen to leave keeps it."""
    states: dict[tuple[Cell | None, Cell], float] = {(before, at): 1.0}
    for _ in range(steps):
        later: dict[tuple[Cell | None, Cell], float] = {}
        for (past, here), weight in states.items():
            counts = chain.get((past, here))
            if counts is None:
                later[past, here] = later.get((past, here), 0.0) + weight
                continue
            for following, count in counts.items():
                share = weight * count / counts.total()
                later[here, following] = later.get((here, following), 0.0) + share
        states = later
    found: dict[Cell, float] = {}
    for (_, here), weight in states.items():
        found[here] = found.get(here, 0.0) + weight
    return found


# Which one takes over.


def best_prepared(
    prepared: Sequence[Prepared], true: frozenset[str], threshold: Quality, by: OneOf["precision", "recall"]
) -> int | None:
    """The best of those that may serve; of equally good ones the first, which is the likeliest."""
    may = [n for n, one in enumerate(prepared) if may_serve(one, true, threshold)]
    return max(may, key=lambda n: getattr(quality_of(true, prepared[n].events), by), default=None)
