"""Find the accidents in a morning's city traffic, say how many were right, and draw them on a map.

python examples/traffic/run.py --out out/demo
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import whimbrel as wb
from whimbrel.cli.kernels import must_be_compiled
from whimbrel.io import write_detections
from whimbrel.io.map import write_map

HERE = Path(__file__).parent
NEAR_M = 150.0
"""How far from a staged accident the middle of a detection may lie."""


@dataclass(frozen=True)
class Staged:
    """An accident that the data is known to hold."""

    time: datetime
    place: shapely.Point
    road: str
    duration: timedelta

    def matches(self, found: Found) -> bool:
        in_time = self.time <= found.end <= self.time + self.duration
        return found.road == self.road and in_time and found.place.distance(self.place) <= NEAR_M


@dataclass(frozen=True)
class Found:
    """A detection, as far as this page needs it."""

    start: datetime
    end: datetime
    place: shapely.Point
    road: str
    lane: int
    swerves: int


def main() -> None:
    arguments = parse_arguments()
    query = wb.read(arguments.query)
    compile_kernels(query, arguments.events)
    began = perf_counter()
    table = wb.detect(query, arguments.events)
    seconds = perf_counter() - began
    events = pq.read_table(arguments.events)
    found, staged = detections(table), staged_accidents(HERE / "accidents.csv")

    print_table(found, staged)
    print_summary(found, staged, events.num_rows, seconds)
    for path in write_results(arguments.out, table, events):
        print(f"wrote {path}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder for the results")
    parser.add_argument("--query", type=Path, default=HERE / "accident.wbl", help="what to detect")
    parser.add_argument("--events", type=Path, default=HERE / "traffic.parquet", help="the events")
    return parser.parse_args()


def compile_kernels(query: wb.Query, events: Path) -> None:
    """Let the engine compile itself on the first few events, which it does once on every machine."""
    if must_be_compiled():
        print("compiling the engine's kernels, once (about half a minute) ...", flush=True)
    wb.detect(query, pq.read_table(events).slice(0, 50_000))


def detections(table: pa.Table) -> list[Found]:
    rows = table.select(["start", "end", "geometry", "road", "lane", "swerves"]).to_pylist()
    return [Found(place=shapely.from_wkb(row.pop("geometry")).centroid, **row) for row in rows]


def staged_accidents(path: Path) -> list[Staged]:
    with path.open() as file:
        return [
            Staged(
                time=datetime.fromisoformat(row["time"]),
                place=shapely.Point(float(row["x"]), float(row["y"])),
                road=row["road"],
                duration=timedelta(seconds=float(row["duration"])),
            )
            for row in csv.DictReader(file)
        ]


def print_table(found: list[Found], staged: list[Staged]) -> None:
    print(f"{'braked':9} {'detected':9} {'road':6} {'lane':>4} {'swerves':>7} {'place (m)':>13}  staged")
    for each in found:
        match = next((accident for accident in staged if accident.matches(each)), None)
        verdict = f"yes, {each.place.distance(match.place):.0f} m away" if match else "no: a false alarm"
        place = f"{each.place.x:.0f}, {each.place.y:.0f}"
        print(
            f"{each.start:%H:%M:%S}  {each.end:%H:%M:%S}  {each.road:6} {each.lane:4} {each.swerves:7} "
            f"{place:>13}  {verdict}"
        )


def print_summary(found: list[Found], staged: list[Staged], events: int, seconds: float) -> None:
    right = sum(any(accident.matches(each) for accident in staged) for each in found)
    noticed = sum(any(accident.matches(each) for each in found) for accident in staged)
    print()
    print(f"{events:,} events, {len(found)} detections in {seconds:.1f} s ({events / seconds:,.0f} events/s)")
    print(f"precision {share(right, len(found))}, recall {share(noticed, len(staged))}")


def share(part: int, whole: int) -> str:
    return f"{part}/{whole} = {part / whole:.0%}" if whole else "-"


def write_results(folder: Path, table: pa.Table, events: pa.Table) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    lines = folder / "accidents.jsonl"
    write_detections(table, lines)
    page = write_map(
        folder / "map.html",
        detections=table,
        events=events,
        roads=json.loads((HERE / "roads.geojson").read_text()),
        coordinates="plane",
        title="Accidents in the morning traffic",
    )
    return [lines, page]


if __name__ == "__main__":
    main()
