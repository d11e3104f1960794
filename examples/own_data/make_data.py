"""Make the three files of this folder: ships, buses and aircraft, in the forms in which such files come.

Nothing in them was recorded: the movers are made up, and so is what happens to them. What a query finds in
them is therefore known beforehand. The files are the same on every run.

python examples/own_data/make_data.py
"""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
METRES_PER_DEGREE = 111_195.0
Track = list[tuple[float, float, float]]
"""Seconds, and where: degrees of longitude and latitude."""


def main() -> None:
    make_ships(Random(1))
    make_buses(Random(2))
    make_aircraft(Random(3))


def along(corners: Track, every_s: float, jitter: Random, noise_m: float = 4.0) -> Track:
    """Sample a way of straight pieces, at a steady pace on each, as a receiver would see it."""
    samples = []
    for (since, from_x, from_y), (until, to_x, to_y) in pairwise(corners):
        time = since
        while time < until:
            part = (time - since) / (until - since)
            noise = [jitter.gauss(0, noise_m) / METRES_PER_DEGREE for _ in range(2)]
            samples.append(
                (time, from_x + part * (to_x - from_x) + noise[0], from_y + part * (to_y - from_y) + noise[1])
            )
            time += every_s + jitter.uniform(-0.1, 0.1) * every_s
    return samples


# -- ships: CSV, one position every half a minute, as coast guards publish them ------------------------------


def make_ships(random: Random) -> None:
    """Eight ships pass through a sound; 219000102 and 265000417 lie side by side for half an hour."""
    ways = {
        219000101: [(0, 12.60, 55.80), (7200, 12.78, 56.15)],
        219000102: [(0, 12.66, 55.85), (2400, 12.70, 55.98), (4600, 12.702, 55.981), (7200, 12.66, 55.85)],
        265000417: [
            (0, 12.76, 56.12),
            (2600, 12.7012, 55.9803),
            (4500, 12.7031, 55.9813),
            (7200, 12.80, 56.13),
        ],
        265000418: [(0, 12.70, 56.10), (7200, 12.58, 55.78)],
        211000733: [(0, 12.83, 56.05), (7200, 12.83, 56.0501)],
        211000734: [(600, 12.62, 55.78), (6600, 12.70, 56.16)],
        230000551: [(0, 12.59, 55.90), (3600, 12.68, 55.90), (7200, 12.59, 55.90)],
        230000552: [(300, 12.74, 56.16), (7200, 12.61, 55.79)],
    }
    begin = datetime(2025, 3, 3, 6, 0, tzinfo=UTC)
    rows = [
        (seconds, mmsi, lat, lon)
        for mmsi, corners in ways.items()
        for seconds, lon, lat in along(corners, 30, random)
    ]
    with (HERE / "ships.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["MMSI", "BaseDateTime", "LAT", "LON", "VesselName"])
        for seconds, mmsi, lat, lon in sorted(rows):
            time = begin + timedelta(seconds=round(seconds))
            writer.writerow(
                [mmsi, f"{time:%Y-%m-%dT%H:%M:%S}", f"{lat:.5f}", f"{lon:.5f}", f"SHIP {mmsi % 1000}"]
            )


# -- buses: a spreadsheet's export, with semicolons, decimal commas, days first and local times --------------


def make_buses(random: Random) -> None:
    """Four buses ride up and down a line; bus 104 breaks down for twenty minutes, far from the depot."""
    ends = [(9.93, 51.53), (9.99, 51.56)]
    middle = ((ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2)
    rows = []
    for number in range(4):
        start = 300 * number
        ride = [(start + 1800 * leg, *ends[leg % 2]) for leg in range(4)]
        if number == 3:
            stuck = start + 2700
            ride = [*ride[:2], (stuck, *middle), (stuck + 1200, *middle), (stuck + 2100, *ends[0])]
        rows += [(time, 101 + number, lon, lat) for time, lon, lat in along(ride, 40, random, noise_m=3.0)]
    begin = datetime(2025, 3, 3, 7, 30)  # noqa: DTZ001 - the file has local times
    lines = ["Fahrzeug;Zeitpunkt;Länge;Breite"]
    for seconds, bus, lon, lat in sorted(rows):
        time = begin + timedelta(seconds=round(seconds))
        place = f"{lon:.6f};{lat:.6f}".replace(".", ",")
        lines.append(f"{bus};{time:%d.%m.%Y %H:%M:%S};{place}")
    (HERE / "buses.csv").write_text("\r\n".join([*lines, ""]), encoding="utf-8-sig", newline="")


# -- aircraft: gzipped JSON, times in milliseconds -----------------------------------------------------------


def make_aircraft(random: Random) -> None:
    """Six aircraft at an even height; 3c4a01 comes down by 5,000 m within four minutes."""
    ways = {
        "3c4a01": [(0, 8.0, 49.5), (1800, 10.0, 50.5)],
        "3c4a02": [(0, 10.2, 49.4), (1800, 8.2, 50.6)],
        "400f11": [(0, 7.8, 50.0), (1800, 10.4, 50.1)],
        "4b1802": [(0, 9.0, 49.2), (1800, 9.1, 50.9)],
        "a0b1c2": [(0, 10.5, 50.8), (1800, 8.1, 49.3)],
        "71be05": [(0, 8.6, 50.9), (1800, 9.9, 49.3)],
    }
    begin = datetime(2025, 3, 3, 12, 0, tzinfo=UTC)
    rows = []
    for number, (address, corners) in enumerate(ways.items()):
        for seconds, lon, lat in along(corners, 10, random, noise_m=20.0):
            falling = min(max((seconds - 900) / 240, 0), 1) if address == "3c4a01" else 0
            rows.append(
                {
                    "icao24": address,
                    "timestamp": round((begin + timedelta(seconds=seconds)).timestamp() * 1000),
                    "latitude": round(lat, 5),
                    "longitude": round(lon, 5),
                    "altitude": round(9000 + 600 * number - 5000 * falling + random.gauss(0, 5)),
                    "callsign": f"WBL{number + 1}",
                }
            )
    rows.sort(key=lambda row: (row["timestamp"], row["icao24"]))
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.write(json.dumps(rows, separators=(",", ":")).encode())
    (HERE / "aircraft.json.gz").write_bytes(packed.getvalue())


if __name__ == "__main__":
    main()
