"""Cars that ask for what happens around them: events, interests and selections, for experiments on reuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.mobility import street_trips
from experiments.sumo import drive_grid
from whimbrel.engine.mobile.reuse import EventSets, Selections
from whimbrel.engine.mobile.reuse.selections import offsets_of
from whimbrel.errors import SimulationError
from whimbrel.plan.migration.attachments import positions
from whimbrel.plan.network import Mover

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SECOND = 1_000_000
AREA_M = (7_750.0, 3_500.0)
BLOCK_M = 250.0
WARM_S = 240.0
"""How long cars drive before anything is measured: they set out one after another."""


def cars_in_town(mobility: str, count: int, seconds: float, seed: int) -> tuple[Mover, ...]:
    """Let cars drive in a grid of streets: `sumo`, with lanes, lights and queues, or `streets`, without."""
    until = 2 * (WARM_S + seconds)
    if mobility == "sumo":
        blocks = (int(AREA_M[0] // BLOCK_M), int(AREA_M[1] // BLOCK_M))
        return drive_grid(count, until_s=until, blocks=blocks, block_m=BLOCK_M, seed=seed)
    if mobility == "streets":
        random = np.random.default_rng(seed)
        return street_trips(count, (0.0, 0.0, *AREA_M), until_s=until, block_m=BLOCK_M, random=random)
    raise SimulationError(f"mobility={mobility!r} is neither sumo nor streets")


@dataclass(frozen=True)
class Town:
    """Some seconds of a town: events of all cars, and where the consumers are.

    Parameters
    ----------
    time, x, y
        Of all events, in order of time; their places here are their ids.
    where
        For each second and consumer, where it is: x, y.
    """

    time: Ints
    x: Floats
    y: Floats
    where: Floats

    @staticmethod
    def drive(
        mobility: str, vehicles: int, consumers: int, seconds: int, seed: int, grow: int | None = None
    ) -> Town:
        """Let cars drive; each tells where it is once a second, at an instant of its own.

        Consumers are drawn from the cars that drive all the time. With `grow`, so many are drawn, and the
        first of them taken: a larger number then has those of a smaller one.
        """
        random = np.random.default_rng([seed, 5])
        cars = cars_in_town(mobility, vehicles, seconds, seed)
        phases = random.integers(0, SECOND, len(cars))
        ticks = np.arange(seconds)
        times, xs, ys, places = [], [], [], []
        for car, phase in zip(cars, phases.tolist(), strict=True):
            own = ticks + phase / SECOND
            x, y = positions(car, WARM_S + own)
            there = ~np.isnan(x)
            times.append((own[there] * SECOND).astype(np.int64))
            xs.append(x[there])
            ys.append(y[there])
            places.append(np.column_stack(positions(car, WARM_S + np.arange(seconds + 1.0))))
        time, x, y = (np.concatenate(each) for each in (times, xs, ys))
        order = np.argsort(time, kind="stable")
        always = np.flatnonzero([not np.isnan(place).any() for place in places])
        wanted = max(consumers, grow or 0)
        if len(always) < wanted:
            raise SimulationError(
                f"{len(always)} of {len(cars)} cars drive all {seconds} s, too few for {wanted} consumers",
                "let more vehicles drive",
            )
        chosen = random.choice(always, wanted, replace=False)[:consumers]
        where = np.stack([places[car][:seconds] for car in chosen.tolist()], axis=1)
        return Town(time[order], x[order], y[order], where)

    @property
    def seconds(self) -> int:
        """How long it is."""
        return len(self.where)

    @property
    def consumers(self) -> int:
        """How many ask."""
        return self.where.shape[1]

    def boxes(self, second: int, side_m: float) -> Floats:
        """Give the interests of a second: squares around the consumers, as they were at its beginning."""
        return np.hstack((self.where[second] - side_m / 2, self.where[second] + side_m / 2))

    def held(self, side_m: float) -> Bools:
        """Tell for each consumer which events lie in its interest."""
        second = self.time // SECOND
        apart = np.maximum(
            np.abs(self.where[second, :, 0] - self.x[:, None]),
            np.abs(self.where[second, :, 1] - self.y[:, None]),
        )
        return np.ascontiguousarray((apart <= side_m / 2).T)


@dataclass(frozen=True)
class Windows:
    """Selections by number: so many events each, a new one after so many.

    They go on over changes of the interest.
    """

    selections: Selections
    end: Ints

    @staticmethod
    def over(streams: Sequence[Ints], time: Ints, length: int, slide: int) -> Windows:
        """Make them for each operator, of the events (by their places in `time`) that come to it."""
        ids, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for owner, stream in enumerate(streams):
            if len(stream) >= length:
                parts = np.lib.stride_tricks.sliding_window_view(stream, length)[::slide]
                ids.append(parts.ravel())
                owners.append(np.full(len(parts), owner))
        count = sum(map(len, owners))
        atoms = EventSets(offsets_of(np.full(count, length)), np.concatenate(ids))
        return Windows(
            Selections(np.concatenate(owners).astype(np.int64), atoms), time[atoms.ids[length - 1 :: length]]
        )

    def ending(self, since: int, until: int) -> tuple[Windows, Ints]:
        """Give those that end in a time, and their places here."""
        rows = np.flatnonzero((self.end >= since) & (self.end < until))
        return Windows(self.selections.take(rows), self.end[rows]), rows


def streams_of(held: Bools) -> list[Ints]:
    """Give the events that each consumer selects."""
    return [np.flatnonzero(row).astype(np.int64) for row in held]
