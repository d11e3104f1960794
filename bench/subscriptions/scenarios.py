"""Subscriptions and events to measure with: two published scenarios, and mixtures of any size.

The taxi and shopping scenarios follow the descriptions in sections 5.2 and 5.3 of the paper on Grus, a
publish/subscribe system for spatio-temporal events; what it leaves open is said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

Floats = npt.NDArray[np.float64]

EVENTS_PER_S = 500.0
MATCHED = 0.5
"""In both scenarios events come as a Poisson process, and so large a part of them meets a subscription."""

TAXI_RADIUS_M = 2_000.0
TAXIS, TAXI_SPEED = 500, 12.0
"""The paper does not say how many taxis there are, nor how fast: these are a fleet in a city."""

AGE_RANGES, USERS = 5, ("a", "b", "c", "d", "e")
WALKING_SPEED, STORE_M = 1.4, 20.0
"""A pedestrian's pace, and how large the region of a store is; the paper leaves both open."""


@dataclass(frozen=True)
class Taxis:
    """People who want to know of free taxis within 2,000 metres, and taxis that drive around."""

    x: Floats
    y: Floats
    events: pa.Table


@dataclass(frozen=True)
class Shops:
    """Storekeepers, each with a region of four corners and an age range, and five users who walk around."""

    regions: npt.NDArray[Any]
    age_ranges: npt.NDArray[np.int64]
    events: pa.Table


def taxis(subscriptions: int, events: int, seed: int = 1) -> Taxis:
    """Make the taxi scenario: the city is so large that half of the events lie in any of the circles."""
    random = np.random.default_rng(seed)
    side = np.sqrt(subscriptions * np.pi * TAXI_RADIUS_M**2 / -np.log(1 - MATCHED))
    taxi = random.integers(0, TAXIS, events)
    time = np.cumsum(random.exponential(1 / EVENTS_PER_S, events))
    x, y = routes(random, taxi, time, TAXI_SPEED, side)
    columns = {
        "id": taxi + 1,
        "type": _repeated("TAXI", events),
        "state": _repeated("uncarry", events),
        "time": time,
        "x": x,
        "y": y,
    }
    places = random.uniform(0, side, (2, subscriptions))
    return Taxis(places[0], places[1], pa.table(columns))


def shops(subscriptions: int, events: int, seed: int = 1) -> Shops:
    """Make the shopping scenario: the mall is so large that half of the events meet a subscription."""
    random = np.random.default_rng(seed)
    corners = _quadrangles(random, subscriptions)
    area = float(shapely.area(shapely.polygons(corners)).sum())
    side = np.sqrt(area / AGE_RANGES / -np.log(1 - MATCHED))
    corners += random.uniform(0, side, (subscriptions, 1, 2))
    user = np.arange(events) % len(USERS)
    time = np.cumsum(random.exponential(1 / EVENTS_PER_S, events))
    # Five people cannot see much of a mall in minutes: their pace is that of a day's walk.
    x, y = routes(random, user, time, WALKING_SPEED * side, side)
    columns = {
        "type": _repeated("user", events),
        "username": pa.DictionaryArray.from_arrays(pa.array(user, pa.int32()), pa.array(USERS)),
        "ageRange": user % AGE_RANGES,
        "time": time,
        "x": x,
        "y": y,
    }
    age_ranges = random.integers(0, AGE_RANGES, subscriptions)
    return Shops(shapely.polygons(corners), age_ranges, pa.table(columns))


@dataclass(frozen=True)
class Speeds:
    """Ranges of speeds, and taxis that tell theirs."""

    low: Floats
    high: Floats
    events: pa.Table


def speeds(subscriptions: int, events: int, seed: int = 1) -> Speeds:
    """Make ranges so narrow that a speed lies in about one of them."""
    random = np.random.default_rng(seed)
    low = random.uniform(0, 100, subscriptions).round(6)
    columns = {"type": _repeated("TAXI", events), "speed": random.uniform(0, 100, events)}
    return Speeds(low, (low + 100 / subscriptions).round(6), pa.table(columns))


def routes(
    random: np.random.Generator, mover: npt.NDArray[np.int64], time: Floats, speed: float, side: float
) -> tuple[Floats, Floats]:
    """Let movers drive on through a square: small turns from event to event, and back at the border."""
    order = np.lexsort((time, mover))
    gaps = np.diff(time[order], prepend=0.0)
    first = np.diff(mover[order], prepend=-1) != 0
    gaps[first] = 0.0
    heading = np.cumsum(random.normal(0, 0.2, len(order)))
    found = []
    for step in (np.cos(heading), np.sin(heading)):
        way = np.cumsum(step * speed * gaps)
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, len(order)))
        begin = np.repeat(random.uniform(0, 2 * side, len(starts)) - way[starts], lengths)
        place = np.empty(len(order))
        place[order] = side - np.abs((way + begin) % (2 * side) - side)
        found.append(place)
    return found[0], found[1]


def _quadrangles(random: np.random.Generator, count: int) -> Floats:
    """Make convex regions of four corners around a point."""
    angles = np.arange(4) * np.pi / 2 + random.uniform(-0.5, 0.5, (count, 4))
    return STORE_M / 2 * np.stack([np.cos(angles), np.sin(angles)], axis=2)


def _repeated(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


@dataclass(frozen=True)
class Mixture:
    """Circles and polygons of many sizes, in turn, and how to make points among them."""

    x: Floats
    y: Floats
    radius_m: Floats
    polygons: npt.NDArray[Any]
    centres: Floats | None
    side: float

    def __len__(self) -> int:
        return 2 * len(self.x)

    def events(self, count: int, seed: int) -> pa.Table:
        """Make events, spread as the subscriptions are."""
        x, y = _spread(np.random.default_rng(seed), count, self.side, self.centres)
        return pa.table({"x": x, "y": y})


def mixture(count: int, matches: float = 1.0, *, skewed: bool = False, seed: int = 1) -> Mixture:
    """Make circles and polygons, half and half, of 50 to 1,000 metres (log-uniform).

    The area is so large that an event lies in about `matches` of them where all is spread evenly. With
    `skewed`, nine tenths of subscriptions and events lie around 50 centres, most around the first ones.
    """
    random = np.random.default_rng(seed)
    half = count // 2
    radius = 50 * 20 ** random.uniform(0, 1, 2 * half)
    angles = np.arange(6) * np.pi / 3 + random.uniform(-0.4, 0.4, (half, 6))
    corners = radius[half:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=2)
    area = np.pi * (radius[:half] ** 2).sum() + shapely.area(shapely.polygons(corners)).sum()
    side = float(np.sqrt(area / matches))
    centres = random.uniform(0.1 * side, 0.9 * side, (50, 2)) if skewed else None
    x, y = _spread(random, 2 * half, side, centres)
    corners += np.stack([x[half:], y[half:]], axis=1)[:, None, :]
    return Mixture(x[:half], y[:half], radius[:half], shapely.polygons(corners), centres, side)


def _spread(
    random: np.random.Generator, count: int, side: float, centres: Floats | None
) -> tuple[Floats, Floats]:
    x, y = random.uniform(0, side, (2, count))
    if centres is not None:
        weights = 1 / np.arange(1, len(centres) + 1)
        chosen = random.choice(len(centres), count, p=weights / weights.sum())
        near = random.uniform(0, 1, count) < 0.9
        offsets = random.normal(0, side / 40, (count, 2))
        x = np.where(near, centres[chosen, 0] + offsets[:, 0], x)
        y = np.where(near, centres[chosen, 1] + offsets[:, 1], y)
    return x, y
