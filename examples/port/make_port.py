"""Make an hour and ten minutes of ships off an invented port, with the columns of an AIS recording.

Nothing in it was recorded, so it is known beforehand who is to be told of what. The file is the same on every
run.

python examples/port/make_port.py
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
START = datetime(2025, 3, 3, 6, tzinfo=UTC)
LENGTH_S = 4_200
EVERY_S = 20
METRES_PER_DEGREE = 111_195.0
PORT_LON, PORT_LAT = 8.0, 55.5
KNOT = 0.514444
"""Metres a second."""

Way = tuple[tuple[float, float, float], ...]
"""Seconds, and metres east and north of the port; straight and steady in between."""


@dataclass(frozen=True)
class Ship:
    """A ship, what it says it is, and its way."""

    name: str
    kind: str
    way: Way
    status: str = "Under way using engine"


STAGED = (
    # Comes in from the west at ten knots: who is near its way is told to it.
    Ship("tanker-1", "Tanker", ((0, -20_000, 0), (4_000, 0, 0), (4_200, 0, 0))),
    # Goes out to meet it, and comes back beside it.
    Ship(
        "pilot-1",
        "Pilot",
        ((0, 0, 60), (1_200, 0, 60), (2_260, -8_700, 60), (4_000, 0, 60), (4_200, 0, 60)),
    ),
    # Drifts beside their way all the time.
    Ship("freighter-3", "Cargo", ((0, -9_000, 1_000), (4_200, -8_000, 1_100))),
    # Lie side by side until minute 20, before the tanker has passed.
    Ship("trawler-4", "Fishing", ((0, -14_600, -800), (1_200, -13_700, -800), (4_200, -30_000, -9_000))),
    Ship("trawler-5", "Fishing", ((0, -14_600, -900), (1_200, -13_700, -900), (4_200, -31_000, 7_000))),
    # Is not heard of after minute 40.
    Ship("coaster-6", "Cargo", ((0, 5_000, -600), (2_400, -4_600, -600))),
    # Nobody's business once the pilot boat has left: a tug and a barge behind it, and a yacht adrift far off.
    Ship("tug-7", "Tug", ((0, 5_000, 500), (4_200, 7_700, 500))),
    Ship("barge-8", "Cargo", ((0, 5_000, 400), (4_200, 7_700, 400))),
    Ship("yacht-9", "Pleasure", ((0, -10_000, 9_000), (4_200, -9_000, 9_400))),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "port.parquet", help="the file to write")
    out = parser.parse_args().out
    table = port()
    pq.write_table(table, out, compression="zstd", compression_level=19)
    print(f"{table.num_rows:,} positions of {len(table['object_id'].unique())} ships in {out}")


def port() -> pa.Table:
    """Make the positions, in order of time."""
    chance = Random(4)
    ships = [*STAGED, *(passer(number, chance) for number in range(10, 17))]
    rows = sorted(row for ship in ships for row in reports(ship, chance))
    time, name, lon, lat, knots, status, kind = zip(*rows, strict=True)
    return pa.table(
        {
            "object_id": pa.array(name),
            "t": pa.array([START + timedelta(seconds=at) for at in time], pa.timestamp("us", "UTC")),
            "lon": pa.array(lon),
            "lat": pa.array(lat),
            "sog_kn": pa.array(knots),
            "nav_status": pa.array(status),
            "ship_type": pa.array(kind),
        }
    )


def passer(number: int, chance: Random) -> Ship:
    """Let a ship pass west of the port, from north to south or back."""
    x, lean = chance.uniform(-25_000, -2_000), chance.uniform(-3_000, 3_000)
    end = chance.choice([-1, 1]) * 16_000
    return Ship(f"ferry-{number}", "Passenger", ((0, x, -end), (LENGTH_S, x + lean, end)))


Row = tuple[int, str, float, float, float, str, str]


def reports(ship: Ship, chance: Random) -> Iterator[Row]:
    """Sample the way every 20 seconds, a few metres off, as a receiver would see it."""
    first = chance.randrange(EVERY_S)
    for (since, x0, y0), (until, x1, y1) in pairwise(ship.way):
        speed = math.hypot(x1 - x0, y1 - y0) / (until - since)
        for at in range(first, LENGTH_S, EVERY_S):
            if since <= at < until:
                part = (at - since) / (until - since)
                x = x0 + part * (x1 - x0) + chance.gauss(0, 4)
                y = y0 + part * (y1 - y0) + chance.gauss(0, 4)
                yield (at, ship.name, *degrees(x, y), round(speed / KNOT, 1), ship.status, ship.kind)


def degrees(x: float, y: float) -> tuple[float, float]:
    lon = PORT_LON + x / METRES_PER_DEGREE / math.cos(math.radians(PORT_LAT))
    return round(lon, 6), round(PORT_LAT + y / METRES_PER_DEGREE, 6)


if __name__ == "__main__":
    main()
