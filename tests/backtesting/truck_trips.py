"""Trucks that leave and arrive: what the tests of backtests and shadows share."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

import whimbrel as wb
from whimbrel.io import write_detections

LATE = "define Late detect Leave then not Arrive for 1 h group by truck"
LATER = "define Late detect Leave then not Arrive for 65 min group by truck"
MAY_1 = 1_714_521_600
FORMATS = ("jsonl", "csv", "parquet", "geojson")


def trips(days: int = 6, trucks: int = 8, seed: int = 5) -> list[dict[str, Any]]:
    """A trip of every truck on every day, some of them longer than an hour."""
    chance = random.Random(seed)
    rows = []
    for day in range(days):
        for truck in range(trucks):
            leave = MAY_1 + day * 86_400 + 6 * 3_600 + int(chance.random() * 30_000)
            arrive = leave + int(chance.gauss(3_500, 500))
            for kind, time in (("Leave", leave), ("Arrive", arrive)):
                row = {"id": f"{kind[0]}{day}-{truck}", "type": kind, "time": time, "truck": f"T{truck}"}
                rows.append({**row, "x": float(truck), "y": 1.0})
    return sorted(rows, key=lambda row: row["time"])


def written(table: pa.Table, folder: Path) -> dict[str, bytes]:
    """Detections as each format writes them."""
    made = {}
    for form in FORMATS:
        write_detections(table, folder / f"found.{form}")
        made[form] = (folder / f"found.{form}").read_bytes()
    return made


def late(minutes: int = 60) -> wb.Query:
    return wb.compile(LATE.replace("1 h", f"{minutes} min"))
