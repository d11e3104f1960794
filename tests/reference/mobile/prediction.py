"""What is prepared for places where the focal object may come to, and when it may be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
