"""Three subscriptions in CPSL over invented movements, each with a map: trucks, taxis, people in a mall.

    python examples/subscriptions/run.py logistics

prints what was found and writes a map that opens in any browser.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import whimbrel as wb
from whimbrel.io.map import write_map

HERE = Path(__file__).parent
Rows = Iterator[dict[str, object]]


def logistics(rng: random.Random) -> Rows:
    """Two trucks drive from the warehouse to the shop; the second one takes a wrong turn half-way."""
    for second in range(0, 1500, 10):
        share = min(1.0, max(0.0, (second - 100) / 1200))
        for truck in ("t1", "t2"):
            x, y = 200 + 3600 * share, 150 + 2650 * share
            if truck == "t2" and share > 0.5:
                y -= 3000 * (share - 0.5)
            yield {
                "type": "Truck", "source": truck, "truck": truck, "time": second,
                "x": x + rng.gauss(0, 5), "y": y + rng.gauss(0, 5),
            }  # fmt: skip


def taxi(rng: random.Random) -> Rows:
    """Twenty taxis drive about, free or not."""
    for number in range(20):
        x, y, course = rng.uniform(0, 4000), rng.uniform(0, 3000), rng.uniform(0, 2 * math.pi)
        state = rng.choice(["free", "taken"])
        for second in range(0, 600, 10):
            course += rng.gauss(0, 0.2)
            x, y = x + 100 * math.cos(course), y + 100 * math.sin(course)
            if rng.random() < 0.02:
                state = "taken" if state == "free" else "free"
            yield {"type": "Taxi", "source": f"taxi-{number}", "time": second, "x": x, "y": y, "state": state}


def shopping(rng: random.Random) -> Rows:
    """Five people walk along the mall."""
    for name, age in zip("abcde", (15, 25, 25, 40, 65), strict=True):
        x, y = rng.uniform(0, 500), rng.uniform(350, 650)
        for second in range(0, 1200, 5):
            x, y = x + rng.gauss(6, 2), y + rng.gauss(0, 4)
            yield {"type": "Person", "source": name, "time": second, "x": x, "y": y, "age": age}


SCENARIOS = {"logistics": logistics, "taxi": taxi, "shopping": shopping}


def main() -> None:
    """Run one scenario."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--out", type=Path, default=Path("out/subscriptions"))
    options = parser.parse_args()
    rows = sorted(SCENARIOS[options.scenario](random.Random(7)), key=lambda row: row["time"])
    events = pa.Table.from_pylist(rows)
    # A position that was matched is used up; else each could be matched with many.
    query = wb.read(HERE / f"{options.scenario}.cpsl", horizon="20 min").in_context("first-matching")
    found = wb.detect(query, events)
    print(f"{events.num_rows:,} events, {found.num_rows:,} detections")
    for kind in query.types:
        of_kind = [row for row in found.to_pylist() if row["type"] == kind]
        first = f", the first at {of_kind[0]['end']:%H:%M:%S}" if of_kind else ""
        print(f"  {kind}: {len(of_kind):,}{first}")
    page = write_map(
        options.out / f"{options.scenario}.html", detections=found, events=events, title=options.scenario
    )
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
