"""Vehicles on a grid of streets: simple movement for experiments, the same for the same seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Mover

Floats = npt.NDArray[np.float64]


def street_grid(
    vehicles: int,
    seconds: float,
    area_m: tuple[float, float],
    seed: int = 0,
    block_m: float = 250.0,
    speed_m_s: tuple[float, float] = (8.0, 17.0),
    stop: float = 0.3,
) -> tuple[Mover, ...]:
    """Let vehicles drive from crossing to crossing, to one random place after the other.

    A vehicle takes one street, turns once, takes the other; it has a speed of its own, and waits up to 20 s
    at some crossings.

    Parameters
    ----------
    vehicles
        How many; they are named `car0` and so on.
    seconds
        How long they drive.
    area_m
        Width and height of the town.
    seed
        What all chances are drawn from.
    block_m
        The distance between streets.
    speed_m_s
        Slowest and fastest vehicle.
    stop
        The share of crossings at which it waits.
    """
    generator = np.random.default_rng(seed)
    size = (np.array(area_m) / block_m).astype(np.int64)
    if size.min() < 2:
        raise NetworkError(
            f"a town of {area_m[0]} x {area_m[1]} m has no streets {block_m} m apart",
            "give smaller blocks, so that there are two in each direction",
        )
    return tuple(
        Mover(f"car{n}", _drive(generator, seconds, size, block_m, speed_m_s, stop)) for n in range(vehicles)
    )


def _drive(
    generator: np.random.Generator,
    seconds: float,
    size: npt.NDArray[np.int64],
    block_m: float,
    speed_m_s: tuple[float, float],
    stop: float,
) -> tuple[tuple[float, float, float], ...]:
    speed = float(generator.uniform(*speed_m_s))
    at = generator.integers(0, size)
    time = 0.0
    track = [(time, float(at[0] * block_m), float(at[1] * block_m))]
    while time <= seconds:
        goal = generator.integers(0, size)
        for axis in generator.permutation(2):
            while at[axis] != goal[axis] and time <= seconds:
                at[axis] += np.sign(goal[axis] - at[axis])
                time += block_m / speed
                track.append((time, float(at[0] * block_m), float(at[1] * block_m)))
                if generator.random() < stop:
                    time += float(generator.uniform(1.0, 20.0))
                    track.append((time, float(at[0] * block_m), float(at[1] * block_m)))
    return tuple(track)
