"""Make forty minutes of trucks, cars and alarms between two invented towns.

Nothing in it was recorded, so it is known beforehand who is to be told of what. The file is the same on every
run.

python examples/fleet/make_fleet.py
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
START = datetime(2025, 3, 3, 14, tzinfo=UTC)
LENGTH_S = 2_400
ROAD_M = 24_000
"""The road leads straight from west to east."""
JAM_M = (11_000, 11_600)
JAM_S = (300, 1_500)


@dataclass(frozen=True)
class Truck:
    """A truck that leaves the western end of the road, or with a negative speed the eastern one."""

    plate: str
    leaves_s: int
    speed: float


TRUCKS = (
    Truck("ADR-1", 0, 12.0),
    Truck("ADR-2", 240, 12.0),
    Truck("ADR-3", 600, 12.0),
    Truck("ADR-4", 120, -12.0),
    Truck("MILK-5", 60, 12.0),
    Truck("MILK-6", 300, -12.0),
)
ALARMS = (
    # When, of what kind, where, and metres along the road and beside it.
    (420, "fire", "sawmill", 9_600, 700),
    (1_080, "fire", "barn", 18_000, -400),
    (1_500, "burglary", "office", 15_000, 100),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "fleet.parquet", help="the file to write")
    out = parser.parse_args().out
    table = fleet()
    pq.write_table(table, out, compression="zstd", compression_level=19)
    print(f"{table.num_rows:,} events in {out}")


def fleet() -> pa.Table:
    """Make the events, in order of time."""
    chance = Random(5)
    rows = [*truck_rows(chance), *car_rows(chance), *alarm_rows()]
    rows.sort(key=lambda row: (row["time"], row["source"]))
    times = [START + timedelta(seconds=row.pop("time")) for row in rows]
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("type", "source", "plate", "kind", "place")),
            *((name, pa.float64()) for name in ("x", "y", "speed")),
        ]
    )
    table = pa.Table.from_pylist(rows, schema)
    return table.add_column(1, "time", pa.array(times, pa.timestamp("us", "UTC")))


def truck_rows(chance: Random) -> Iterator[dict[str, Any]]:
    for truck in TRUCKS:
        for time in range(truck.leaves_s, LENGTH_S, 10):
            way = truck.speed * (time - truck.leaves_s)
            x = way if way >= 0 else ROAD_M + way
            if 0 <= x <= ROAD_M:
                yield {
                    "type": "Truck",
                    "time": time,
                    "source": truck.plate,
                    "plate": truck.plate,
                    "x": round(x + chance.gauss(0, 3)),
                    "y": round(chance.gauss(0, 3)),
                    "speed": abs(truck.speed),
                }


def car_rows(chance: Random) -> Iterator[dict[str, Any]]:
    """Sixty cars that drive, and eight that stand in a jam for twenty minutes."""
    for number in range(60):
        begin, speed = chance.uniform(-LENGTH_S, LENGTH_S), chance.choice([-1, 1]) * chance.uniform(18, 28)
        for time in range(chance.randrange(20), LENGTH_S, 20):
            way = speed * (time - begin)
            x = way if speed > 0 else ROAD_M + way
            if time >= begin and 0 <= x <= ROAD_M:
                yield car(f"car-{number:02}", time, x, chance.gauss(0, 4), abs(speed))
    for number in range(60, 68):
        x = chance.uniform(*JAM_M)
        for time in range(JAM_S[0] + chance.randrange(20), JAM_S[1], 20):
            yield car(f"car-{number:02}", time, x, chance.gauss(0, 4), chance.uniform(0, 1.5))


def car(name: str, time: int, x: float, y: float, speed: float) -> dict[str, Any]:
    place = {"x": round(x), "y": round(y), "speed": round(speed, 1)}
    return {"type": "Car", "time": time, "source": name, **place}


def alarm_rows() -> Iterator[dict[str, Any]]:
    for time, kind, place, x, y in ALARMS:
        yield {
            "type": "Alarm",
            "time": time,
            "source": place,
            "kind": kind,
            "place": place,
            "x": x,
            "y": y,
        }


if __name__ == "__main__":
    main()
