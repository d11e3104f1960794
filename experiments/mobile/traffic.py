"""Traffic for mobile queries: vehicles in a town of 7.7 km x 3.5 km, and their events.

The thesis on mobility-aware complex event processing (section 3.5) let SUMO drive up to 5,000 vehicles
through a German town for 500 to 1,000 s. The map is not named, so streets here are a grid: driven by SUMO
(`drive_sumo`), or plainly, with nothing installed (`drive_streets`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from experiments.sumo import record_grid
from whimbrel.errors import SimulationError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]

TOWN = (7_700.0, 3_500.0)
BLOCK_M = 250.0
LENGTH_M = 7.5
"""What a vehicle takes of a lane."""
BREAKDOWN_S = 90.0


@dataclass(frozen=True)
class Traffic:
    """Where vehicles were, second by second, and vehicle by vehicle in each second."""

    second: Ints
    vehicle: Ints
    x: Floats
    y: Floats
    speed: Floats
    lane: Ints
    """The lane of the street; -1 on a crossing."""
    street: Ints
    """Each street and direction has another number."""
    seconds: int

    def __len__(self) -> int:
        return len(self.second)

    def rows_of(self, vehicle: int) -> Ints:
        """Tell where a vehicle was, in order of time."""
        return np.flatnonzero(self.vehicle == vehicle)

    def longest_there(self, count: int, seed: int = 0) -> Ints:
        """Draw vehicles among those that were there for at least half of the longest time of any."""
        there = np.bincount(self.vehicle)
        able = np.flatnonzero(2 * there >= there.max())
        random = np.random.default_rng(seed)
        return np.sort(random.choice(able, min(count, len(able)), replace=False))


@lru_cache(maxsize=16)
def drive_sumo(vehicles: int = 5_000, seconds: int = 600, seed: int = 0, breakdowns: int = 40) -> Traffic:
    """Let SUMO drive vehicles through the town, with lights, lanes and queues; some break down on the way."""
    blocks = round(TOWN[0] / BLOCK_M), round(TOWN[1] / BLOCK_M)
    table = record_grid(
        vehicles,
        seconds=seconds,
        blocks=blocks,
        block_m=BLOCK_M,
        depart_until_s=seconds / 3,
        stops=(min(breakdowns, vehicles), BREAKDOWN_S),
        seed=seed,
    )
    name = pc.split_pattern(table.column("lane"), "_", max_splits=1, reverse=True).combine_chunks()
    street, lane = (pc.list_element(name, part) for part in (0, 1))
    crossing = pc.starts_with(street, ":").to_numpy(zero_copy_only=False)
    vehicle = pc.cast(pc.replace_substring(table.column("vehicle"), "car-", ""), pa.int64())
    second, x, y, speed = (table.column(each).to_numpy() for each in ("time", "x", "y", "speed"))
    return _in_order(
        second.astype(np.int64),
        vehicle.to_numpy(),
        x.astype(np.float64),
        y.astype(np.float64),
        speed.astype(np.float64),
        np.where(crossing, -1, pc.cast(lane, pa.int64()).to_numpy(zero_copy_only=False)),
        street.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64),
        seconds,
    )


def _in_order(second: Ints, vehicle: Ints, x: Floats, y: Floats, speed: Floats, lane: Ints, street: Ints,
              seconds: int) -> Traffic:  # fmt: skip
    order = np.lexsort((vehicle, second))
    return Traffic(
        second[order], vehicle[order], x[order], y[order], speed[order], lane[order], street[order], seconds
    )


WAYS = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])


@dataclass
class Streets:
    """Vehicles on a grid of streets with two lanes and lights, after Nagel and Schreckenberg (1992).

    Each second all vehicles at once speed up, keep the gap to the one ahead, now and then dawdle, and move.
    """

    random: np.random.Generator
    corners: Ints
    corner: Ints
    """Which corner each comes from, column and row."""
    heading: Ints
    gone: Floats
    """How far it is along its street."""
    speed: Floats
    fastest: Floats
    lane: Ints
    broken_until: Ints
    """The second until which it stands, broken down."""

    @classmethod
    def filled(cls, vehicles: int, random: np.random.Generator) -> Streets:
        """Put vehicles anywhere in the town."""
        corners = np.array([TOWN[0] // BLOCK_M, TOWN[1] // BLOCK_M], np.int64)
        made = cls(
            random, corners,
            random.integers(0, corners + 1, (vehicles, 2)), random.integers(0, 4, vehicles),
            random.uniform(0, BLOCK_M, vehicles), np.zeros(vehicles), random.uniform(11.0, 16.0, vehicles),
            random.integers(0, 2, vehicles), np.full(vehicles, -1),
        )  # fmt: skip
        made.heading = made._open_heading(np.arange(vehicles))
        return made

    @property
    def street(self) -> Ints:
        """The number of the street and direction that each is on."""
        return (self.corner[:, 1] * (self.corners[0] + 1) + self.corner[:, 0]) * 4 + self.heading

    def places(self) -> tuple[Floats, Floats]:
        """Tell where vehicles are."""
        at = (self.corner + WAYS[self.heading] * (self.gone / BLOCK_M)[:, None]) * BLOCK_M
        return at[:, 0], at[:, 1]

    def go(self, second: int) -> None:
        """Let a second pass."""
        gap = self._gaps()
        gap = np.where(self._is_red(second), np.minimum(gap, BLOCK_M - 1.0 - self.gone), gap)
        crowded = (gap < self.speed) & (self.random.random(len(gap)) < 0.3)
        self.lane = np.where(crowded & (self.gone < BLOCK_M - 20), 1 - self.lane, self.lane)
        self.speed = np.minimum(np.minimum(self.speed + 2.6, self.fastest), np.maximum(gap, 0.0))
        dawdles = self.random.random(len(gap)) < 0.15
        self.speed = np.where(dawdles, np.maximum(self.speed - 2.0, 0.0), self.speed)
        self.speed[self.broken_until > second] = 0.0
        self.gone = self.gone + self.speed
        self._turn(np.flatnonzero(self.gone >= BLOCK_M))

    def break_down(self, count: int, until: int) -> None:
        """Let some vehicles that drive stop where they are."""
        able = np.flatnonzero((self.speed > 5.0) & (self.gone < BLOCK_M - 60))
        self.broken_until[self.random.choice(able, min(count, len(able)), replace=False)] = until

    def _gaps(self) -> Floats:
        """Tell how far the vehicle ahead in the same lane is; without one, farther than anybody drives."""
        key = self.street * 2 + self.lane
        order = np.lexsort((np.arange(len(key)), self.gone, key))
        gap = np.full(len(key), 100.0)
        ahead = key[order[1:]] == key[order[:-1]]
        between = self.gone[order[1:]] - self.gone[order[:-1]] - LENGTH_M
        gap[order[:-1][ahead]] = between[ahead]
        return gap

    def _is_red(self, second: int) -> npt.NDArray[np.bool_]:
        """Tell who has a red light: they change every 30 s, each crossing with an offset of its own."""
        to = self.corner + WAYS[self.heading]
        phase = (second + 7 * to[:, 0] + 13 * to[:, 1]) // 30 % 2
        return phase == self.heading % 2

    def _turn(self, rows: Ints) -> None:
        """Choose where to go on from a crossing: mostly ahead, else left or right."""
        self.corner[rows] += WAYS[self.heading[rows]]
        self.gone[rows] -= BLOCK_M
        self.heading[rows] = self._open_heading(rows)

    def _open_heading(self, rows: Ints) -> Ints:
        turn = self.random.choice(np.array([0, 1, 3]), len(rows), p=[0.6, 0.2, 0.2])
        first = (self.heading[rows] + turn) % 4
        heading = np.full(len(rows), -1)
        for other in (0, 1, 3, 2):  # where the first choice leads out of town: the next one that does not
            way = (first + other) % 4
            to = self.corner[rows] + WAYS[way]
            is_open = ((to >= 0) & (to <= self.corners)).all(axis=1)
            heading = np.where((heading < 0) & is_open, way, heading)
        return heading


@lru_cache(maxsize=16)
def drive_streets(vehicles: int = 5_000, seconds: int = 600, seed: int = 0, breakdowns: int = 40) -> Traffic:
    """Drive vehicles along a plain grid of streets, all of them all the time; some break down for a while."""
    random = np.random.default_rng(seed)
    streets = Streets.filled(vehicles, random)
    for second in range(-60, 0):  # until queues are as long as they get
        streets.go(second)
    when = np.bincount(random.integers(0, max(seconds, 1), breakdowns), minlength=seconds)
    parts = []
    for second in range(seconds):
        streets.break_down(int(when[second]), second + round(BREAKDOWN_S))
        parts.append((*streets.places(), streets.speed.copy(), streets.lane.copy(), streets.street))
        streets.go(second)
    x, y, speed, lane, street = (np.concatenate(column) for column in zip(*parts, strict=True))
    number = np.arange(vehicles)
    return Traffic(
        np.repeat(np.arange(seconds), vehicles), np.tile(number, seconds), x, y, speed, lane, street, seconds
    )


DRIVERS: dict[str, Callable[..., Traffic]] = {"sumo": drive_sumo, "streets": drive_streets}


def drive(by: str, vehicles: int, seconds: int, seed: int) -> Traffic:
    """Drive vehicles by the name of who drives them: `sumo` or `streets`."""
    if by not in DRIVERS:
        raise SimulationError(f"traffic is driven by {' or '.join(DRIVERS)}, not by {by!r}")
    return DRIVERS[by](vehicles, seconds, seed)


# Events


def positions(traffic: Traffic, vehicles: Ints | None = None) -> pa.Table:
    """Let vehicles report where they are, every second: `Position` with `speed` in m/s."""
    rows = np.arange(len(traffic)) if vehicles is None else np.flatnonzero(np.isin(traffic.vehicle, vehicles))
    return _events("Position", traffic, rows, {"speed": traffic.speed[rows]})


def accident_events(traffic: Traffic, beyond_m_s: float = 2.0) -> pa.Table:
    """Let vehicles report what hints at an accident.

    `SpeedChange` with `speed` and `change` (m/s) where the speed has changed by more than a bound in a
    second, and `LaneChange` with the new `lane`.
    """
    before = _row_before(traffic)
    had = np.flatnonzero(before >= 0)
    change = traffic.speed[had] - traffic.speed[before[had]]
    sudden = np.abs(change) > beyond_m_s
    lanes = traffic.lane[had], traffic.lane[before[had]]
    changed = (lanes[0] != lanes[1]) & (traffic.street[had] == traffic.street[before[had]]) & (lanes[0] >= 0)
    slow, over = had[sudden], had[changed]
    return _together(
        _events("SpeedChange", traffic, slow, {"speed": traffic.speed[slow], "change": change[sudden]}),
        _events("LaneChange", traffic, over, {"speed": traffic.speed[over], "lane": traffic.lane[over]}),
    )


def speed_events(traffic: Traffic) -> pa.Table:
    """Let vehicles report how fast they are, every second: `Speed` with `speed` in m/s."""
    return _events("Speed", traffic, np.arange(len(traffic)), {"speed": traffic.speed})


def video_events(
    traffic: Traffic, every_m: float = 250.0, view_m: float = 100.0, friends: float = 0.01
) -> pa.Table:
    """Let cameras film squares of the town, every second: `Frame` with the `vehicles` and `friends` it shows.

    Cameras stand in rows, `every_m` apart; a share `friends` of all vehicles are friends of whoever asks.
    """
    across, up = (int(size // every_m) + 1 for size in TOWN)
    column, row = (np.rint(a / every_m).astype(np.int64) for a in (traffic.x, traffic.y))
    near = np.maximum(np.abs(traffic.x - column * every_m), np.abs(traffic.y - row * every_m)) <= view_m / 2
    near &= (column >= 0) & (row >= 0) & (column < across) & (row < up)
    frame = (traffic.second * up + row) * across + column
    size = traffic.seconds * up * across
    stride = max(round(1 / friends), 1)
    seen = np.bincount(frame[near], minlength=size)
    of_friends = np.bincount(frame[near & (traffic.vehicle % stride == 0)], minlength=size)
    second, place = np.divmod(np.arange(size), up * across)
    row, column = np.divmod(place, across)
    return _table(
        "Frame", second, "camera", place, column * every_m, row * every_m,
        {"vehicles": seen, "friends": of_friends},
    )  # fmt: skip


def _row_before(traffic: Traffic) -> Ints:
    """Find where each vehicle was a second before; -1 if it was not there."""
    before = np.full(len(traffic), -1)
    order = np.lexsort((traffic.second, traffic.vehicle))
    same = traffic.vehicle[order[1:]] == traffic.vehicle[order[:-1]]
    same &= traffic.second[order[1:]] == traffic.second[order[:-1]] + 1
    before[order[1:][same]] = order[:-1][same]
    return before


def _events(event_type: str, traffic: Traffic, rows: Ints, attributes: Mapping[str, Numbers]) -> pa.Table:
    place = traffic.x[rows], traffic.y[rows]
    return _table(event_type, traffic.second[rows], "car", traffic.vehicle[rows], *place, attributes)


def _table(
    event_type: str, second: Ints, kind: str, number: Ints, x: Numbers, y: Numbers,
    attributes: Mapping[str, Numbers],
) -> pa.Table:  # fmt: skip
    source = pc.binary_join_element_wise(kind, pc.cast(pa.array(number), pa.string()), "-")
    time = pa.array(second, pa.int64())
    return pa.table(
        {
            "id": pc.binary_join_element_wise(event_type, source, pc.cast(time, pa.string()), ":"),
            "type": pa.repeat(event_type, len(second)),
            "source": source,
            "time": pc.cast(pc.multiply(time, 1_000_000), pa.timestamp("us", "UTC")),
            "x": x.astype(np.float64),
            "y": y.astype(np.float64),
            **attributes,
        }
    )


def _together(*tables: pa.Table) -> pa.Table:
    """Put events of several types in order of time."""
    table = pa.concat_tables(tables, promote_options="default")
    return table.take(pc.sort_indices(table, [("time", "ascending"), ("id", "ascending")]))
