"""The events and the query that go through every failure, and what must come out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import whimbrel as wb

QUERY = """
define Missing(truck) detect Leave as a then not Arrive for 20 s assign truck = group.source group by source
define Quick(truck, load)
  detect Leave(load > 5) as a then Arrive as b within 3 s
  assign truck = group.source, load = a.load
  group by source
"""


def write_events(path: Path, count: int, seed: int = 11) -> None:
    """Write events of 200 trucks, ten a second."""
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "id": [f"e{number}" for number in range(count)],
            "type": rng.choice(["Leave", "Arrive", "Position"], count, p=[0.3, 0.3, 0.4]),
            "time": pa.array(np.arange(count) * 100_000, pa.timestamp("us", "UTC")),
            "source": [f"truck-{number}" for number in rng.integers(0, 200, count)],
            "load": rng.uniform(0, 10, count),
        }
    )
    pq.write_table(table, path)


def expected(path: Path) -> list[str]:
    """The ids of what a stream over the events must have found when the last one has come."""
    last = pq.read_table(path, columns=["time"]).column("time")[-1].as_py()
    found = wb.detect(wb.compile(QUERY), path).to_pylist()
    return sorted(row["id"] for row in found if row["end"] < last)


def written(folder: Path) -> list[str]:
    """The ids of all that is in the folder of a sink."""
    if not any(folder.rglob("*.parquet")):
        return []
    return sorted(pq.read_table(folder, columns=["id"]).column("id").to_pylist())
