"""Movers: invented ones on open ground or along streets, and those of recorded traces.

Tracks are (seconds, x, y), in order of time. A mover connects to the leaf that serves its place;
`whimbrel.plan.areas.attachments` tells when it changes from one to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Box, Mover
from whimbrel.plan.tracks import read_tracks

Track = tuple[tuple[float, float, float], ...]


def random_waypoint(
    count: int,
    box: Box,
    *,
    until_s: float,
    speed_m_s: tuple[float, float] = (5.0, 15.0),
    pause_s: float = 0.0,
    random: np.random.Generator,
) -> tuple[Mover, ...]:
    """Let movers go straight to places that they draw in a box, each way at a speed that they draw."""
    return tuple(
        Mover(f"mover-{number}", _wander(box, until_s, speed_m_s, pause_s, random)) for number in range(count)
    )


def _wander(
    box: Box, until_s: float, speed: tuple[float, float], pause_s: float, random: np.random.Generator
) -> Track:
    low, high = np.array(box[:2]), np.array(box[2:])
    time, place = 0.0, low + random.random(2) * (high - low)
    track = [(time, float(place[0]), float(place[1]))]
    while time < until_s:
        target = low + random.random(2) * (high - low)
        time += max(float(np.linalg.norm(target - place)) / random.uniform(*speed), 1e-3)
        place = target
        track.append((time, float(place[0]), float(place[1])))
        if pause_s > 0:
            time += pause_s
            track.append((time, float(place[0]), float(place[1])))
    return tuple(track)


def street_grid(
    count: int,
    box: Box,
    *,
    until_s: float,
    block_m: float = 200.0,
    speed_m_s: tuple[float, float] = (8.0, 14.0),
    turn: float = 0.5,
    random: np.random.Generator,
) -> tuple[Mover, ...]:
    """Let movers drive along the streets of a grid; at a corner they turn with a probability.

    Nobody turns round but at the border of the town.
    """
    corners = (int((box[2] - box[0]) // block_m), int((box[3] - box[1]) // block_m))
    if min(corners) < 1:
        raise NetworkError(f"a town of {box} has no street every {block_m} m", "make the blocks smaller")
    return tuple(
        Mover(f"car-{number}", _drive(box, corners, block_m, until_s, speed_m_s, turn, random))
        for number in range(count)
    )


_WAYS = ((1, 0), (0, 1), (-1, 0), (0, -1))


def _drive(
    box: Box,
    corners: tuple[int, int],
    block_m: float,
    until_s: float,
    speed: tuple[float, float],
    turn: float,
    random: np.random.Generator,
) -> Track:
    place = [int(random.integers(0, size + 1)) for size in corners]
    heading = int(random.integers(0, 4))
    time, track = 0.0, []
    while True:
        track.append((time, box[0] + place[0] * block_m, box[1] + place[1] * block_m))
        if time >= until_s:
            return tuple(track)
        heading = _heading(place, heading, corners, turn, random)
        place = [at + step for at, step in zip(place, _WAYS[heading], strict=True)]
        time += block_m / random.uniform(*speed)


def _heading(
    place: list[int], heading: int, corners: tuple[int, int], turn: float, random: np.random.Generator
) -> int:
    """Choose where to go on from a corner: ahead, left or right, back only if there is nothing else."""

    def is_open(way: int) -> bool:
        ahead = [at + step for at, step in zip(place, _WAYS[way], strict=True)]
        return all(0 <= at <= size for at, size in zip(ahead, corners, strict=True))

    sides = [way for way in ((heading + 1) % 4, (heading - 1) % 4) if is_open(way)]
    if is_open(heading) and (not sides or random.random() >= turn):
        return heading
    return sides[int(random.integers(0, len(sides)))] if sides else (heading + 2) % 4


def street_trips(
    count: int,
    box: Box,
    *,
    until_s: float,
    block_m: float = 250.0,
    speed_m_s: tuple[float, float] = (8.0, 17.0),
    stop: float = 0.3,
    random: np.random.Generator,
) -> tuple[Mover, ...]:
    """Let movers drive along the streets of a grid from one place that they draw to the next.

    A mover takes one street, turns once, takes the other. It has a speed of its own, and waits up to 20 s at
    a share `stop` of the crossings.
    """
    corners = np.array([(box[2] - box[0]) // block_m, (box[3] - box[1]) // block_m], np.int64)
    if corners.min() < 2:
        raise NetworkError(
            f"a town of {box} has too few streets {block_m} m apart",
            "make the blocks smaller, so that there are two in each direction",
        )
    return tuple(
        Mover(f"car-{number}", _drive_to_places(box, corners, block_m, until_s, speed_m_s, stop, random))
        for number in range(count)
    )


def _drive_to_places(
    box: Box,
    corners: npt.NDArray[np.int64],
    block_m: float,
    until_s: float,
    speed_m_s: tuple[float, float],
    stop: float,
    random: np.random.Generator,
) -> Track:
    speed, time = float(random.uniform(*speed_m_s)), 0.0
    at = random.integers(0, corners)

    def here() -> tuple[float, float, float]:
        return (time, box[0] + float(at[0]) * block_m, box[1] + float(at[1]) * block_m)

    track = [here()]
    while time <= until_s:
        goal = random.integers(0, corners)
        for axis in random.permutation(2):
            while at[axis] != goal[axis] and time <= until_s:
                at[axis] += np.sign(goal[axis] - at[axis])
                time += block_m / speed
                track.append(here())
                if random.random() < stop:
                    time += float(random.uniform(1.0, 20.0))
                    track.append(here())
    return tuple(track)


def recorded(file: Path, names: Iterable[str] | None = None) -> tuple[Mover, ...]:
    """Read movers from CSV or Parquet with `object_id`, `t`, and `x`, `y` or `lon`, `lat`."""
    return movers(read_tracks(file), names)


def movers(tracks: Mapping[str, Track], names: Iterable[str] | None = None) -> tuple[Mover, ...]:
    """Make movers of tracks: all, or those that are named."""
    chosen = tracks if names is None else {name: tracks[name] for name in names}
    return tuple(Mover(name, track) for name, track in chosen.items())


def box_around(moving: Iterable[Mover], margin: float = 1.0) -> Box:
    """Return a box that all movers stay in."""
    places = np.array([(x, y) for mover in moving for _, x, y in mover.track])
    if not len(places):
        raise NetworkError("movers without positions have no box around them")
    low, high = places.min(axis=0) - margin, places.max(axis=0) + margin
    return (float(low[0]), float(low[1]), float(high[0]), float(high[1]))


def positions(
    moving: Iterable[Mover], *, until_s: float, every_s: float = 1.0, event_type: str = "Position"
) -> pa.Table:
    """Let movers report where they are: events with ids, in order of time, while their tracks last.

    Speed is that of the way since the report before.
    """
    parts: list[dict[str, Any]] = []
    for mover in moving:
        track = np.array(mover.track, np.float64)
        times = np.arange(0.0, until_s, every_s)
        times = times[(times >= track[0, 0]) & (times <= track[-1, 0])]
        if not len(times):
            continue
        x, y = (np.interp(times, track[:, 0], track[:, axis]) for axis in (1, 2))
        gone = np.hypot(np.diff(x, prepend=x[:1]), np.diff(y, prepend=y[:1]))
        parts.append({"source": mover.name, "t": times, "x": x, "y": y, "speed": gone / every_s})
    if not parts:
        raise NetworkError("no mover is anywhere in this time")
    time = np.concatenate([part["t"] for part in parts])
    source = np.concatenate([np.full(len(part["t"]), part["source"], object) for part in parts])
    number = np.concatenate([np.arange(len(part["t"])) for part in parts])
    table = pa.table(
        {
            "id": [f"{name}:{n}" for name, n in zip(source, number, strict=True)],
            "type": pa.repeat(event_type, len(time)),
            "source": pa.array(source, pa.string()),
            "time": time,
            **{name: np.concatenate([part[name] for part in parts]) for name in ("x", "y", "speed")},
        }
    )
    return table.take(pa.array(np.argsort(time, kind="stable")))
